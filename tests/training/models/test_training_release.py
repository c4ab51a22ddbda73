"""Releasing: the same tensors under the Hub's names, from one file or several; damaged files are named."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dikast.core.errors import DataError, MissingExtra, RunError, UserError
from dikast.core.runs.run_files import check_model

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

from dikast.training.models.merge import Recipe, merge
from dikast.training.models.release import release
from runs import environment, fill, small_disk

SPECIAL = ["<image>", "<judge>"]


@pytest.fixture
def model(tiny: Callable[[str], Path], tmp_path: Path) -> Path:
    """A tiny LLaVA as transformers saves it, with special tokens as judges from scratch have them."""
    folder = shutil.copytree(tiny("llava"), tmp_path / "model")
    told = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps(told | {"extra_special_tokens": SPECIAL}), "utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_release_of_a_release_is_the_same(model: Path, tmp_path: Path) -> None:
    first = release(model, tmp_path / "first")
    tokenizer = json.loads((first / "tokenizer_config.json").read_text("utf-8"))
    assert tokenizer["additional_special_tokens"] == SPECIAL
    assert content(release(first, tmp_path / "second")) == content(first)


def test_a_model_in_parts_is_released_whole(model: Path, tmp_path: Path) -> None:
    merge([model, model], tmp_path / "parts", Recipe("linear", (1, 1)), shard_bytes=20_000)
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    found = [load_file(release(folder, tmp_path / f"{folder.name}-out") / "model.safetensors")
             for folder in (model, tmp_path / "parts")]  # fmt: skip
    assert found[0].keys() == found[1].keys()
    assert all(torch.equal(found[1][name], tensor) for name, tensor in found[0].items())


def test_an_earlier_release_is_replaced_and_nothing_else(model: Path, tmp_path: Path) -> None:
    out = release(model, tmp_path / "out")
    before = content(out)
    (out / "words.txt").write_text("of another model", "utf-8")
    (out / "README.md").write_text("by hand", "utf-8")
    (out / "config.json").write_text('{"model_type": "llava"}', "utf-8")
    release(model, out)
    assert content(out) == {**before, "README.md": b"by hand"}
    (tmp_path / "file").write_text("mine", "utf-8")
    (out / "mine.txt").write_text("mine", "utf-8")
    other = shutil.copytree(model, tmp_path / "other")
    alike = shutil.copytree(out, tmp_path / "alike", ignore=shutil.ignore_patterns("mine.txt"))
    (alike / "config.json").write_text('{"model_type": "vit"}', "utf-8")
    for where, said in [
        (model, "model: is the model itself: name another folder"),
        (other, "other: exists already"),  # a model in training is not a release
        (out, "out: exists already"),
        (alike, "alike: exists already"),  # files of these names alone are no release
        (tmp_path / "file", "file: is a file"),
    ]:
        kept = content(where) if where.is_dir() else {}
        with pytest.raises(UserError, match=said):
            release(model, where)
        assert not kept or content(where) == kept
    assert {path.name for path in tmp_path.iterdir()} == {"model", "out", "file", "other", "alike"}


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def put(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, "utf-8")


PIPED = ("config.json", "model.safetensors", "tokenizer.json")


def piped(name: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def gone(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (shutil.rmtree, "model: no such folder"),
        (gone("config.json"), r"model: this folder holds no model \(no config.json in it\)"),
        (put("config.json", "{"), r"config.json: cannot be read as JSON"),
        (put("config.json", '{"model_type": "llava"}'), "config.json: field 'text_config': is missing: save"),
        (gone("model.safetensors"), "model: no weights"),  # as `train new` leaves it
        (cut, "model.safetensors: no weights can be read from it"),
        (gone("processor_config.json"), "processor_config.json: is missing: save the model with"),
        (put("processor_config.json", "{}"), "processor_config.json: field 'image_processor': is missing"),
        (put("tokenizer_config.json", '"x"'), "tokenizer_config.json: is not a JSON object"),
        (gone("tokenizer.json"), "tokenizer.json: is missing"),
        *((piped(name), rf"{name}: a pipe or a device in the place of a file") for name in PIPED),
    ],
)
def test_what_is_missing_or_damaged_is_named_and_nothing_is_written(
    change: Callable[[Path], object], said: str, model: Path, tmp_path: Path
) -> None:
    change(model)
    with pytest.raises(UserError, match=said):
        release(model, tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from dikast.training.models import folders

left, move = int(sys.argv[2]), shutil.move
def moved(*paths):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    move(*paths)

shutil.move = moved
with folders.laid_out(Path(sys.argv[1])) as made:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (made / name).write_text(name)
"""


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_kill_between_the_files_leaves_no_model_that_opens_and_the_next_call_goes_on(
    moved: int, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()  # a folder that was there already stays itself, and its files come one by one
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out), str(moved)], env=environment())
    assert killed.returncode == -signal.SIGKILL
    assert len(list(out.iterdir())) == moved
    if moved:
        with pytest.raises(DataError, match="the file is missing, although it was written"):
            check_model(out)
    mine = out / "mine.txt"
    mine.write_text("keep", "utf-8")
    with pytest.raises(UserError, match="exists already: name a new folder, or empty it"):
        merge([model, model], out, Recipe("linear", (1, 1)))
    mine.unlink()
    merge([model, model], out, Recipe("linear", (1, 1)))
    merge([model, model], tmp_path / "clean", Recipe("linear", (1, 1)))
    assert content(out) == content(tmp_path / "clean")
    assert not (tmp_path / ".out.part").exists()
    with pytest.raises(UserError, match="exists already: name a new folder, or empty it"):
        merge([model, model], out, Recipe("linear", (1, 1)))


def test_a_release_that_stops_leaves_nothing(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = release(model, tmp_path / "out")
    before = content(out)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("safetensors.torch.save_file", stopped)
    for where in (out, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            release(model, where)
    assert content(out) == before
    assert {path.name for path in tmp_path.iterdir()} == {"model", "out"}


@pytest.mark.parametrize("missing", ["torch", "safetensors"])
def test_a_missing_library_is_named(missing: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "dikast.training.models.release")
    from dikast.training.models.release import release as anew

    with pytest.raises(MissingExtra, match=r"dikast\[hf\]"):
        anew(model, tmp_path / "out")


def test_a_full_disk_is_told_with_the_folder_that_was_to_be_written(model: Path, tmp_path: Path) -> None:
    (model / "README.md").write_bytes(b"x" * 300_000)  # the first file that is copied
    with small_disk(tmp_path / "disk", 1) as disk:
        fill(disk, 100_000)
        with pytest.raises(RunError, match=r"disk/out: cannot be written \(No space left on device\): free space"):
            release(model, disk / "out")
        assert not (disk / "out").exists()
