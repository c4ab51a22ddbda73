"""The judge that ships inside: it loads, grades, compares, and says when it is out of its depth."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dikast.core.errors import UserError
from dikast.core.item import Item, item_from
from dikast.core.message import Message
from dikast.core.records.items import read_items
from dikast.core.verdict import Status
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

pytest.importorskip("torch")
pytest.importorskip("transformers")

from dikast.engines.scout import _drawn, folder
from dikast.judging.judge import Judge


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge("scout")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    out = tmp_path_factory.mktemp("worlds")
    samples = [s for domain in ("scenes", "text") for s in make(Settings(domain=domain, split="fresh", seed=31), 4)]
    return list(read_items(str(write_samples(samples, out, {"test": 1}).files[0])))


def test_it_asks_in_the_formats_it_was_taught(judge: Judge) -> None:
    assert (judge.format.name, judge.compare_format.name) == ("scout", "scout-pairs")
    assert Judge("scout", format="claims").format.name == "claims"


def test_it_grades_with_claims_and_a_distribution(
    judge: Judge, worlds: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = list(judge.grade_many(worlds))
    assert len(verdicts) == len(worlds)
    good = [v for v in verdicts if v.status is Status.OK]
    assert len(good) >= 6
    for verdict in good:
        assert verdict.distribution is not None
        assert verdict.mass is not None
        assert verdict.mass > 0.9
        assert verdict.marker == "own"
        assert verdict.claims
    assert not getattr(judge.engine, "notes", ())


def test_it_compares_in_both_orders(judge: Judge, tmp_path: Path) -> None:
    samples = make(Settings(split="fresh", seed=32, responses=2), 2)
    items = read_items(str(write_samples(samples, tmp_path, {"test": 1}).files[0]))
    for preference in judge.compare_many(items):
        assert len(preference.orders) == 2


def test_it_says_once_that_another_world_is_not_its_own(caplog: pytest.LogCaptureFixture) -> None:
    judge = Judge("scout", {"name": "help", "criterion": "Is the answer helpful?", "scale": "1-5"})
    for _ in range(2):
        judge.grade(instruction="Who wrote Faust?", response="Goethe did.")
    told = [record.message for record in caplog.records if "scout was taught" in record.message]
    assert len(told) == 1
    (note,) = judge.engine.notes  # type: ignore[attr-defined]
    assert "(2 questions)" in note


def test_a_picture_that_no_world_draws_is_another_world(worlds: list[Item], tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (96, 96, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    Image.new("RGB", (64, 64)).save(tmp_path / "small.png")
    judge = Judge("scout")
    for name in ("noise.png", "small.png"):
        row = {"id": name, "instruction": "Describe the picture.", "image": name, "response": "There is a red circle."}
        judge.grade(replace(item_from(row, root=str(tmp_path)), rubric=worlds[0].rubric))
    (note,) = judge.engine.notes  # type: ignore[attr-defined]
    assert "(2 questions)" in note


def test_every_picture_that_its_world_draws_is_known_as_such(tmp_path: Path) -> None:
    for split in ("fresh", "objects", "attributes", "operators"):
        samples = list(make(Settings(split=split, seed=33), 40))
        (file,) = write_samples(samples, tmp_path / split, {"test": 1}).files
        for item in read_items(str(file)):
            (image,) = item.images
            assert _drawn(Message("user", (image,)))


def test_it_takes_no_name() -> None:
    with pytest.raises(UserError, match="write `scout`"):
        Judge("scout:large")


def test_it_is_small_and_laid_out_as_released_checkpoints_are() -> None:
    from safetensors import safe_open

    assert sum(path.stat().st_size for path in folder().iterdir()) <= 15 * 2**20
    with safe_open(folder() / "model.safetensors", "pt") as file:
        names = set(file.keys())
    for part in (
        "vision_tower.vision_model.encoder.layers.0.",
        "multi_modal_projector.linear_1.",
        "language_model.model.",
    ):
        assert any(name.startswith(part) for name in names), part
    assert "language_model.lm_head.weight" in names
    assert json.loads((folder() / "config.json").read_text("utf-8"))["architectures"] == [
        "LlavaForConditionalGeneration"
    ]
    assert (folder() / "README.md").is_file()


def test_the_spec_costs_no_import_until_it_is_opened() -> None:
    code = "import sys, dikast.engines.spec; assert not {'torch', 'dikast.engines.scout'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
