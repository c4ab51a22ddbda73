"""Pictures are made into tensors ahead of the steps, from the files that the examples were prepared of."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from dikast.core.errors import RunError
from dikast.core.media.media_files import forget
from dikast.engines.local.seeing.shown import prepare
from dikast.training.config import load_config
from dikast.training.data import media_loader
from dikast.training.data.batches import BatchPlan
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards
from dikast.training.log import read_log
from dikast.training.models.model import about, open_model
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft
from videos import make_video

Write = Callable[..., Path]


def prepared(path: Path) -> Shards:
    config = load_config(path)
    loaded = open_model(config)
    return prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())


@pytest.fixture
def scenes(world: Path, tmp_path: Path) -> Path:
    """A copy of the world's scenes, whose pictures may be changed."""
    return shutil.copytree(world / "scenes", tmp_path / "scenes")


def of(folder: Path, **more: Any) -> dict[str, Any]:
    return {"data": [{"items": [str(folder / "items-*.jsonl")], "formats": ["absolute-short.yaml"]}], **more}


def picture_of(scenes: Path, line: int = 1) -> tuple[Path, str]:
    """The picture of a row, and where that row is."""
    file = scenes / "items-00000.jsonl"
    row = orjson.loads(file.read_bytes().splitlines()[line - 1])
    (shown,) = (part["image"] for part in row["instruction"] if part["type"] == "image")
    return scenes / shown, f"{file}:{line}"


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "model" / "model.safetensors")


def test_threads_and_interruptions_change_no_weight(write_config: Write, tmp_path: Path) -> None:
    sft(write_config("one"))
    parts = [sft(write_config("many", workers=3, max_seconds=1e-6))["steps"] for _ in range(4)]
    assert parts == [1, 2, 3, 4]
    one, many = weights(tmp_path / "run-one"), weights(tmp_path / "run-many")
    assert all(torch.equal(tensor, many[name]) for name, tensor in one.items())


def test_a_picture_that_changes_during_a_run_stops_it_at_its_step(
    scenes: Path, write_config: Write, tmp_path: Path
) -> None:
    """And the same command goes on when the file is back, with the weights of a run that nothing stopped."""
    settings = of(scenes, batch_size=1, steps=12, save_every=1)
    config = write_config("stopped", **settings)
    shards = prepared(config)
    plan = BatchPlan(shards.lengths, batch_size=1, seed=3, grouped=True)
    ((number,),) = plan.step(11)
    picture, row = picture_of(scenes, int(shards.name(number)[1].rpartition(":")[2]))
    kept = picture.read_bytes()

    def change(line: dict[str, Any]) -> None:
        if line["step"] == 1:
            Image.open(picture).rotate(90).save(picture)

    sft(write_config("plain", **settings))
    forget()
    told = rf"^{row}: example '.*': {picture} has other content now; .* put that file back"
    with pytest.raises(RunError, match=told):
        sft(config, watch=change)
    stopped = read_log(tmp_path / "run-stopped" / "train.jsonl")[-1]["step"]
    assert 1 < stopped < 12
    assert (tmp_path / "run-stopped" / "checkpoints" / f"step-{stopped:08d}").is_dir()
    picture.write_bytes(kept)
    assert sft(config)["complete"]
    one, other = weights(tmp_path / "run-plain"), weights(tmp_path / "run-stopped")
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_picture_that_is_gone_is_told_with_its_row(scenes: Path, write_config: Write) -> None:
    shards = prepared(write_config(**of(scenes)))
    picture, row = picture_of(scenes)
    picture.unlink()
    with pytest.raises(RunError, match=rf"^{row}: {picture} is gone, .* \(in all 1 of 12 files\)"):
        shards.check_files()
    number = next(n for n in range(len(shards)) if shards.name(n)[1] == row)
    with pytest.raises(RunError, match=rf"^{row}: example .* does not exist"):
        list(shards.load([number]))
    assert len(list(shards.load(n for n in range(len(shards)) if n != number))) == len(shards) - 1


def test_pictures_that_rows_hold_are_kept_as_their_files_are(write_config: Write, scenes: Path) -> None:
    """Parquet as `datasets` writes it: once for all rows that show it, and no pixels."""
    picture, _ = picture_of(scenes)
    raw = picture.read_bytes()
    rows = [
        {
            "id": str(n), "instruction": f"What is here? {n}", "response": "A thing.", "image": {"bytes": raw},
            "gold": 1 + n % 5, "rubric": "Is it right?",
        }
        for n in range(6)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), scenes / "rows.parquet")
    data = [{"items": [str(scenes / "rows.parquet")], "formats": ["score-only"]}]
    shards = prepared(write_config(data=data))
    shutil.rmtree(scenes / "images")
    (scenes / "rows.parquet").unlink()
    shards.check_files()
    first, *others = shards.load(range(6))
    assert first["pixel_values"].shape[0] == 1
    assert all(torch.equal(each["pixel_values"], first["pixel_values"]) for each in others)
    (kept,) = shards.folder.glob("shard-*/bytes.npy")
    assert len(raw) < kept.stat().st_size < len(raw) + 1_000
    assert raw in kept.read_bytes()


def test_frames_of_a_video_are_taken_from_it_again(write_config: Write, tmp_path: Path) -> None:
    make_video(tmp_path / "clip.mp4")
    shown = [{"type": "video", "video": "clip.mp4"}, {"type": "text", "text": "What is seen?"}]
    row = {"id": "a", "instruction": shown, "response": "Grey.", "gold": 4, "rubric": "Is it so?"}
    (tmp_path / "clips.jsonl").write_bytes(orjson.dumps(row))
    config = write_config(family="qwen_vl", data=[{"items": ["clips.jsonl"], "formats": ["score-only"]}], frames=4)
    shards = prepared(config)
    (part,) = shards.parts
    assert part.paths(0) == [str(tmp_path / "clip.mp4")] * 4
    (once,) = shards.load([0])
    forget()
    (again,) = prepared(config).load([0])
    assert once.keys() == again.keys() >= {"pixel_values_videos", "video_grid_thw"}
    assert all(torch.equal(tensor, again[name]) for name, tensor in once.items())


def test_pictures_are_read_a_few_steps_ahead_and_once_for_all_that_show_them(
    write_config: Write, scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    at: list[int] = []

    def counted(media: Any, vision: Any) -> Any:
        made.append(media)
        return prepare(media, vision)

    monkeypatch.setattr(media_loader, "prepare", counted)
    config = write_config(**of(scenes, batch_size=1, steps=24, save_every=0))
    sft(config, watch=lambda line: at.append(len(made)))
    assert all(count <= step + 4 + 1 for step, count in enumerate(at, start=1))  # those of four steps wait
    assert len(made) == 12  # of two passes over twelve rows: the second finds them
