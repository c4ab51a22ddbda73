"""Export for trl: the same prompts and replies, and a YAML file that the real `trl sft` runs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dikast.core.errors import DataError, UserError
from dikast.core.part import Image
from dikast.core.records.reading import read_records
from dikast.surface.cli import app
from dikast.training.config import load_config
from dikast.training.data.examples import Asker, ExampleRow, rows_of_file
from dikast.training.models.export import export_trl

Write = Callable[..., Path]
pytest.importorskip("datasets")


def exported(write_config: Write, tiny: Callable[[str], Path], out: Path, family: str = "llava", **values: Any) -> Path:
    config = write_config(family=family, init=None, model=str(tiny(family)), **values)
    done = CliRunner().invoke(app, ["train", "sft", "--config", str(config), "--export", "trl", "--out", str(out)])
    assert done.exit_code == 0, done.output or done.exception
    assert done.stdout.startswith("12 examples; run: cd ")
    return config


def test_prompts_replies_and_images_are_those_of_our_own_loop(
    write_config: Write, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    config = load_config(exported(write_config, tiny, tmp_path / "out"))
    rows = [record.value for record in read_records(tmp_path / "out/data/train-00000.parquet")]
    records = list(rows_of_file(str(world / "scenes" / "items-00000.jsonl"), talk=False))
    for row, (item, _) in zip(rows, records, strict=True):
        (example,) = Asker(config).examples(ExampleRow(0, 0, item))
        (turn,) = row["prompt"]
        assert [part["type"] for part in turn["content"]] == ["image", "text"]
        assert turn["content"][1]["text"] == example.messages[0].text
        assert row["completion"] == [{"role": "assistant", "content": [{"type": "text", "text": example.reply.text}]}]
        name = item.instruction[0].content[0].source  # type: ignore[union-attr]
        assert row["images"][0]["bytes"] == Image.of((world / "scenes" / name).read_bytes()).source
    settings = yaml.safe_load((tmp_path / "out" / "sft.yaml").read_text("utf-8"))
    assert (settings["max_steps"], settings["learning_rate"], settings["gradient_accumulation_steps"]) == (4, 1e-3, 4)
    assert settings["max_length"] is None
    assert not (tmp_path / "out" / "cache").exists()


def test_what_trl_cannot_do_is_refused(write_config: Write, tiny: Callable[[str], Path], tmp_path: Path) -> None:
    given = {"init": None, "model": str(tiny("llava"))}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "give 'model' instead of 'init'"),
        ({**given, "train": "projector"}, "only the projector"),
        ({**given, "label_loss_weight": 3.0}, "no counterpart of 'label_loss_weight'"),
        ({**given, "label_smoothing": 0.1}, "no counterpart of 'label_smoothing'"),
        ({**given, "optimizer": "muon"}, "no counterpart of 'optimizer'"),
        ({**given, "stop_at": 2}, "no counterpart of 'stop_at'"),
    ]
    for values, said in cases:
        with pytest.raises(UserError, match=said):
            export_trl(load_config(write_config(**values)), tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_row_that_cannot_be_used_is_named(
    write_config: Write, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    scenes = shutil.copytree(world / "scenes", tmp_path / "scenes")
    last = [json.loads(line) for line in (scenes / "items-00000.jsonl").read_text("utf-8").splitlines()][-1]
    (scenes / last["instruction"][0]["image"]).unlink()
    data = [{"items": ["scenes/items-*.jsonl"], "formats": ["absolute-short.yaml"]}]
    config = load_config(write_config(init=None, model=str(tiny("llava")), data=data))
    with pytest.raises(DataError, match=r"(?s)items-00000\.jsonl:12.*does not exist"):
        export_trl(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("family", "train"), [("llava", "lora"), ("qwen", "full")])
def test_trl_runs_it(family: str, train: str, write_config: Write, tiny: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("trl")
    out = tmp_path / "out"
    exported(write_config, tiny, out, family, train=train, steps=1, batch_size=2)
    command = [str(Path(sys.executable).with_name("trl")), "sft", "--config", "sft.yaml"]
    done = subprocess.run(
        command,
        cwd=out,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    names = {path.name for path in (out / "out").rglob("*.safetensors")}
    assert names == {"adapter_model.safetensors" if train == "lora" else "model.safetensors"}


def test_a_folder_that_is_a_file_and_a_model_that_is_nowhere_are_told(
    write_config: Write, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="file: is a file, or lies in one: name a folder"):
        export_trl(load_config(write_config(init=None, model=str(tiny("llava")))), tmp_path / "file")
    for nowhere in ("nowhere", "./missing/model"):
        with pytest.raises(UserError, match=f"model: {nowhere} is no folder, and no name on the Hub"):
            export_trl(load_config(write_config(init=None, model=nowhere)), tmp_path / "out")
    assert export_trl(load_config(write_config(init=None, model="hf:gpt2@main")), tmp_path / "out")["examples"] == 12
    assert (tmp_path / "file").read_text() == "mine"
