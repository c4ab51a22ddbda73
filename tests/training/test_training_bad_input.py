"""Errors that stop a run name the row, the cause and the cure, and leave the last good checkpoint intact."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

from dikast.core.errors import DataError, RunError, UserError
from dikast.surface.cli import app
from dikast.training.config import load_config
from dikast.training.data.collate import summed_loss
from dikast.training.log import read_log
from dikast.training.sft import sft

Write = Callable[..., Path]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def spoiled(world: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A source of scenes in which the row on line 3 was changed by `change` or replaced."""

    def make(change: Callable[[dict[str, Any]], object] | None = None, **values: Any) -> dict[str, Any]:
        folder = shutil.copytree(world / "scenes", tmp_path / "spoiled")
        path = folder / "items-00000.jsonl"
        found = rows(path)
        if change is not None:
            change(found[2])
        path.write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
        return {"items": [str(path)], "formats": ["absolute-short.yaml"], **values}

    return make


def pair(row: dict[str, Any]) -> None:
    row["responses"] = [row.pop("response"), "another"]


def no_gold(row: dict[str, Any]) -> None:
    del row["gold"]


def off_scale(row: dict[str, Any]) -> None:
    row["gold"] = {**row["gold"], "label": "9", "score": 9}


def unsayable(row: dict[str, Any]) -> None:
    row["gold"]["claims"][0]["verdict"] = "doubtful"


def no_claims(row: dict[str, Any]) -> None:
    row["gold"]["claims"] = []


def missing_image(row: dict[str, Any]) -> None:
    row["instruction"][0]["image"] = "images/none.png"


def endless(row: dict[str, Any]) -> None:
    row["response"] = "so on " * 3000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pair, "has no score in its gold: give a label"),
        (no_gold, "has no gold: .* add 'gold'"),
        (off_scale, "has the gold '9', which is not on the scale 1-5: give a label"),
        (unsayable, "claims that do not read back: findings are right, wrong or unclear"),
        (no_claims, "asks for claims and the gold has none: add 'claims' to the gold, or train a format without prose"),
        (missing_image, "none.png does not exist"),
        (
            endless,
            r"has \d+ tokens .* more than max_tokens: 4096; raise it|more than what the model takes: 2048; shorten",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_named_before_any_step(
    change: Callable[[dict[str, Any]], object], said: str, spoiled: Any, write_config: Write, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        sft(write_config(data=[spoiled(change)]))
    assert "items-00000.jsonl:3" in str(caught.value)
    assert not (tmp_path / "run-c" / "train.jsonl").exists()
    assert not list((tmp_path / "shards").glob("*/shard-*"))  # no partial shards are left


@pytest.mark.parametrize(
    ("values", "told"),
    [({"train": "lora", "lora": {"targets": "((a|[a-z._0-9])+)+!"}}, "lora: targets"),
     ({"frozen": ["embed", ".?" * 40 + "!"]}, "frozen")],
)  # fmt: skip
def test_a_pattern_that_never_ends_is_refused(
    values: dict[str, Any], told: str, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dikast.core.machine.endless_patterns._SECONDS", 0.5)
    with pytest.raises(UserError, match=f"{told}: the pattern .* takes more than .* list the names"):
        sft(write_config(family="qwen", **values))


def test_rows_of_talk_are_checked(write_config: Write, tmp_path: Path) -> None:
    for row, said in [
        ({"id": "a", "instruction": "hi"}, "give 'target' some text"),
        ({"id": "a", "instruction": "hi", "messages": [], "target": "x"}, "give one of 'messages'"),
        ({"id": "a", "instruktion": "hi", "target": "x"}, "unknown key 'instruktion'"),
        ({"id": "a", "target": "x"}, "neither an instruction nor a response"),
    ]:
        (tmp_path / "talk.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        with pytest.raises(DataError, match=said) as caught:
            sft(write_config(data=[{"talk": ["talk.jsonl"]}]))
        assert "talk.jsonl:1" in str(caught.value)


def trained_for_two_steps(write_config: Write, **values: Any) -> tuple[Path, dict[str, torch.Tensor]]:
    config = write_config(max_seconds=1e-6, save_every=1, **values)
    assert [sft(config)["steps"] for _ in range(2)] == [1, 2]
    settings = load_config(config)
    (last,) = [path for path in settings.path(settings.out).glob("checkpoints/*") if path.name == "step-00000002"]
    return last, load_file(last / "weights.safetensors")


def intact(checkpoint: Path, before: dict[str, torch.Tensor]) -> bool:
    after = load_file(checkpoint / "weights.safetensors")
    return all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_a_loss_that_is_not_a_number_names_its_example(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkpoint, before = trained_for_two_steps(write_config)
    import dikast.training.loop as loop

    told = summed_loss

    def broken(logits: torch.Tensor, batch: Any) -> torch.Tensor:
        return told(logits, batch) * (float("nan") if 7 in batch.numbers else 1.0)

    monkeypatch.setattr(loop, "summed_loss", broken)
    with pytest.raises(RunError, match=r"step [34]: the loss of example '\S+' is nan: lower 'learning_rate'") as caught:
        sft(write_config(save_every=1))
    assert "items-00000.jsonl:8" in str(caught.value)
    assert intact(checkpoint, before)
    monkeypatch.undo()
    assert sft(write_config(save_every=1))["complete"]


def test_weights_that_run_away_stop_the_run(write_config: Write) -> None:
    with pytest.raises(RunError, match=r"step \d+: the (loss of example .* is (nan|inf)|gradient is not a number)"):
        sft(write_config(learning_rate=1e30, clip=0, steps=6))


def test_weights_that_give_no_loss_are_never_saved(write_config: Write, tmp_path: Path) -> None:
    with pytest.raises(RunError):
        sft(write_config(learning_rate=1e30, clip=0, steps=6, save_every=1))
    assert not list((tmp_path / "run-c" / "checkpoints").glob("*"))
    with pytest.raises(RunError):  # nor where no step is left that would show it
        sft(write_config("one", learning_rate=1e30, clip=0, steps=1))
    assert not list((tmp_path / "run-one" / "checkpoints").glob("*"))


def test_checkpoints_ask_the_model_once_more_in_a_run(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import dikast.training.loop as loop

    asked: list[int] = []

    def counted(logits: torch.Tensor, batch: Any) -> torch.Tensor:
        asked.append(len(batch.numbers))
        return summed_loss(logits, batch)

    monkeypatch.setattr(loop, "summed_loss", counted)
    sft(write_config(steps=5, save_every=1, keep=9, max_tokens_per_micro_batch=100_000))
    assert asked == [4] * (5 + 1)  # a micro-batch a step, and the last one again before the last checkpoint
    names = {path.name for path in (tmp_path / "run-c" / "checkpoints").glob("step-*")}
    assert names == {f"step-{step:08d}" for step in range(1, 6)}


def test_a_step_that_fails_leaves_the_checkpoint_of_the_step_before(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import dikast.training.loop as loop

    calls: list[int] = []

    def broken(logits: torch.Tensor, batch: Any) -> torch.Tensor:
        calls.append(1)
        return summed_loss(logits, batch) * (float("nan") if len(calls) == 3 else 1.0)

    monkeypatch.setattr(loop, "summed_loss", broken)
    with pytest.raises(RunError, match="step 3"):
        sft(write_config(save_every=1, max_tokens_per_micro_batch=100_000))
    assert (tmp_path / "run-c" / "checkpoints" / "step-00000002" / "state.json").is_file()


def test_a_batch_that_does_not_fit_says_its_size_and_the_cure(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, before = trained_for_two_steps(write_config)
    import dikast.training.loop as loop

    def full(logits: torch.Tensor, batch: Any) -> torch.Tensor:
        return torch.empty(2**60)  # what a CPU says; CUDA raises torch.OutOfMemoryError

    monkeypatch.setattr(loop, "summed_loss", full)
    with pytest.raises(
        RunError, match=r"a batch of \d rows and \d+ tokens does not fit .* 'max_tokens_per_micro_batch'"
    ) as caught:
        sft(write_config(save_every=1))
    assert "items-00000.jsonl:" in str(caught.value)
    assert intact(checkpoint, before)


def test_a_run_that_did_not_fit_goes_on_with_the_cure(write_config: Write) -> None:
    trained_for_two_steps(write_config)
    done = sft(write_config(max_tokens_per_micro_batch=600, checkpointing=True))
    assert (done["steps"], done["complete"]) == (4, True)


def test_weights_that_ran_away_in_the_last_step_are_not_kept(write_config: Write, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"step 1: .* lower 'learning_rate'.*and give another 'out'"):
        sft(write_config(steps=1, learning_rate=1e37, schedule="constant"))
    assert not list((tmp_path / "run-c").glob("checkpoints/step-*"))
    assert not (tmp_path / "run-c" / "model").exists()


def test_a_missing_library_is_told_before_anything_is_done(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"dikast\[train\]"):
        sft(write_config())
    assert not (tmp_path / "shards").exists()


def edit_format(folder: Path) -> None:
    path = folder / "absolute-short.yaml"
    path.write_text(path.read_text("utf-8").replace("user: '", "user: 'Look. "), "utf-8")


def edit_rubric(folder: Path) -> None:
    path = folder / "rubric.yaml"
    path.write_text(path.read_text("utf-8").replace("right", "true"), "utf-8")


def edit_image(folder: Path) -> None:
    path = min((folder / "scenes").glob("**/*.png"))
    Image.open(path).rotate(90).save(path)


@pytest.mark.parametrize("edit", [edit_format, edit_rubric, edit_image])
def test_what_was_prepared_is_not_used_for_other_data(
    edit: Callable[[Path], None], write_config: Write, world: Path, tmp_path: Path
) -> None:
    """After a change of a format, a rubric or an image, shards are made again and the checkpoint is refused."""
    scenes = shutil.copytree(world / "scenes", tmp_path / "scenes")
    found = rows(scenes / "items-00000.jsonl")
    for row in found:
        del row["rubric"]
    (scenes / "items-00000.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    (tmp_path / "rubric.yaml").write_text("name: r\ncriterion: Is it right?\nscale: 1-5\n", "utf-8")

    def config() -> Path:
        source = {"items": ["scenes/items-*.jsonl"], "formats": ["absolute-short.yaml"], "rubric": "rubric.yaml"}
        return write_config(data=[source], max_seconds=1e-6)

    def prepared() -> dict[str, int]:
        return {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("shards/*/done.json")}

    first, before = sft(config()), prepared()
    assert sft(config())["steps"] == 2
    assert prepared() == before
    path = config()
    edit(tmp_path)
    with pytest.raises(UserError, match="belongs to a run with other data"):
        sft(path)
    assert prepared() != before
    assert first["steps"] == 1


def test_what_was_prepared_moves_with_what_it_shows(write_config: Write, world: Path, tmp_path: Path) -> None:
    """A copy of the whole folder uses the copy's images, of which a deleted one is told before the first step."""
    (tmp_path / "old").mkdir()
    shutil.copytree(world / "scenes", tmp_path / "old" / "scenes")
    source = {"items": ["scenes/items-*.jsonl"], "formats": ["absolute-short.yaml"]}
    config = write_config(data=[source], steps=1)
    for path in tmp_path.glob("*.yaml"):
        shutil.copy(path, tmp_path / "old")
    sft(tmp_path / "old" / config.name)
    new = shutil.copytree(tmp_path / "old", tmp_path / "new")

    def made() -> list[int]:
        return [path.stat().st_mtime_ns for path in new.glob("shards/*/done.json")]

    before = made()
    shutil.rmtree(new / "run-c")
    gone = max((new / "scenes").glob("**/*.png"))
    kept = gone.read_bytes()
    gone.unlink()
    with pytest.raises(RunError, match=rf"items-00000.jsonl:\d+: {gone} is gone, .* \(in all 1 of 12 files\)"):
        sft(new / config.name)
    assert not read_log(new / "run-c" / "train.jsonl")
    gone.write_bytes(kept)
    assert sft(new / config.name)["complete"]
    assert made() == before
    edit_image(new)
    with pytest.raises(UserError, match="belongs to a run with other data"):
        sft(new / config.name)
    assert made() != before


def test_a_checkpoint_of_another_run_is_refused(write_config: Write) -> None:
    trained_for_two_steps(write_config)
    with pytest.raises(UserError, match="belongs to a run with other data or settings: give another 'out'"):
        sft(write_config(learning_rate=2e-3))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"learning_rat": 1e-3}, "did you mean 'learning_rate'"),
        ({"steps": "many"}, "field 'steps': expected a whole number, got 'many'"),
        ({"train": "some"}, "expected 'full', 'lora' or 'projector', got 'some'"),
        ({"model": "x"}, "give 'model' .* or 'init'"),
        ({"data": []}, "no source of examples"),
        ({"data": [{"items": "x", "talk": "y"}]}, "'items' or 'talk', one of them"),
        ({"augment": {"blank": 2}}, "field 'augment.blank': expected a number from 0 to 1, got 2"),
        ({"augment": {"other_words": -0.1}}, "other_words': expected a number from 0 to 1, got -0.1"),
        ({"lora": {"rnak": 4}}, "field 'lora.rnak': unknown key: did you mean 'rank'"),
        ({"pack": "row"}, "field 'pack': expected 'none', 'rows' or 'trees', got 'row': did you mean 'rows'"),
        ({"pack": "rows", "compile": True}, "field 'compile': packed rows are never alike"),
        ({"batch_size": 0}, "field 'batch_size': expected a whole number of at least 1"),
        ({"clip": -1}, "field 'clip': expected a number of at least 0"),
        ({"label_loss_weight": -2}, "field 'label_loss_weight': expected a number of at least 0"),
        ({"stop_at": -1}, "field 'stop_at': expected a whole number of at least 0"),
        ({"betas": [1.5, 0.9]}, "field 'betas.0': expected a number from 0 to below 1, got 1.5"),
        ({"frames": 0}, "field 'frames': expected a whole number from 1 to"),
        ({"device": "gpu"}, "field 'device': expected auto, cpu, cuda"),
        ({"lora": {"rank": 0}}, "field 'lora.rank': expected a whole number of at least 1"),
        ({"lora": {"targets": "["}}, r"field 'lora.targets': '\[' is not a regular expression"),
        ({"frozen": ["["]}, r"field 'frozen': '\[' is not a regular expression"),
        ({"eval": {"every": -3}}, "field 'eval.every': expected a whole number of at least 0"),
        ({"eval": {"max_tokens": 0}}, "field 'eval.max_tokens': expected a whole number of at least 1"),
        ({"eval": {"min_mass": 7}}, "field 'eval.min_mass': expected a number from 0 to 1"),
        ({"min_lr_ratio": -3}, "field 'min_lr_ratio': expected a number from 0 to 1"),
        ({"weight_decay": -5}, "field 'weight_decay': expected a number of at least 0"),
        ({"max_seconds": -1}, "field 'max_seconds': expected a number of at least 0"),
        ({"clip": "nan"}, "field 'clip': expected a number of at least 0 and finite, got nan"),
        ({"label_loss_weight": "inf"}, "field 'label_loss_weight'"),
        ({"label_smoothing": 0.5}, "field 'label_smoothing': expected a number from 0 to below 0.5"),
        (
            {"label_smoothing": 0.1, "data": [{"talk": "t.jsonl"}]},
            "field 'label_smoothing': rows of talk have no label",
        ),
        ({"learning_rate": "nan"}, "field 'learning_rate': expected a number above 0"),
        ({"seed": -1}, "field 'seed': expected a whole number from 0 to"),
        ({"lora": {"dropout": 2}}, "field 'lora.dropout': expected a number from 0 to below 1"),
        ({"lora": {"alpha": 0}}, "field 'lora.alpha': expected a number above 0"),
        ({"out": None}, "the key 'out' is missing"),
        ({"data": [{"items": "none-*.jsonl"}]}, "no file matches"),
        ({"frozen": ["nothing"]}, "no parameter's name matches 'nothing'"),
        ({"train": "projector", "init": "TEXT"}, "leaves nothing to train: the model has no known projector"),
        ({"train": "lora", "lora": {"targets": "zzz"}}, "no linear layer's name matches 'zzz'"),
    ],
)
def test_a_configuration_that_cannot_be_meant(
    values: dict[str, Any], said: str, write_config: Write, tiny: Callable[[str], Path]
) -> None:
    if values.get("init") == "TEXT":
        values = {**values, "init": str(tiny("llama"))}
    with pytest.raises(UserError, match=said):
        sft(write_config(**values))


def test_where_training_writes_is_told_by_its_configuration_alone(write_config: Write, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "sft", "--config", str(write_config()), "--out", str(tmp_path / "x")])
    assert "--out applies to --export only" in str(done.exception)


def test_all_mistakes_of_a_configuration_are_told_at_once(write_config: Write) -> None:
    done = CliRunner().invoke(app, ["train", "sft", "--config", str(write_config(stepps=3, batch_size="x", lora=7))])
    told = str(done.exception)
    assert all(each in told for each in ("did you mean 'steps'", "'batch_size'", "'lora': expected a mapping"))
    assert "c.yaml:" in told


@pytest.mark.parametrize("given", [{"steps": 2}, {"steps": None, "epochs": 1e-9}])
def test_a_warmup_longer_than_the_run_is_told_before_it_trains(
    given: dict[str, Any], write_config: Write, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []
    sft(write_config(warmup=50, **given), watch=lambda line: told.append(len(caplog.records)))
    said = [each.message for each in caplog.records if "warmup" in each.message]
    assert len(said) == 1
    assert "'warmup' of 50 steps, and the run has" in said[0]
    assert "never reaches 0.001" in said[0]
    assert told[0] >= 1


@pytest.mark.parametrize("field", ["items", "formats", "eval"])
def test_a_pipe_in_a_configuration_is_refused_and_not_waited_for(
    field: str, spoiled: Callable[..., dict[str, Any]], write_config: Write, tmp_path: Path
) -> None:
    """The training waited for ever for somebody to write into it."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    named = [str(tmp_path / "pipe.jsonl")]
    data = spoiled(**{} if field == "eval" else {field: named})
    with pytest.raises(UserError, match=r"pipe\.jsonl is a pipe or a device, .*: name a file"):
        sft(write_config(data=[data], **{"eval": {"items": named}} if field == "eval" else {}))
