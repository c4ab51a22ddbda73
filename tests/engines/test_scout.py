"""The judge that ships inside: it loads, grades, compares, and says when it is out of its depth."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dikast.audit.plan import AuditPlan
from dikast.core.errors import UserError
from dikast.core.item import Item, item_from
from dikast.core.message import Message
from dikast.core.part import Text
from dikast.core.records.items import read_items
from dikast.core.verdict import Status
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

pytest.importorskip("torch")
pytest.importorskip("transformers")

from dikast.engines.scout import _drawn, folder
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.surface.report.collect import collect
from dikast.surface.report.report_options import Asked


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
    assert [*judge.engine.notes.values()] == [2]  # type: ignore[attr-defined]


def test_a_picture_that_no_world_draws_is_another_world(worlds: list[Item], tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (96, 96, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    Image.fromarray(noise[:64, :64]).save(tmp_path / "small.png")
    Image.new("RGB", (96, 96)).save(tmp_path / "black.png")
    judge = Judge("scout")
    for name in ("noise.png", "small.png", "black.png"):
        row = {"id": name, "instruction": "Describe the picture.", "image": name, "response": "There is a red circle."}
        judge.grade(replace(item_from(row, root=str(tmp_path)), rubric=worlds[0].rubric))
    assert [*judge.engine.notes.values()] == [3]  # type: ignore[attr-defined]


@pytest.mark.parametrize("said", ["12345", "🙂", "It is red!"])
def test_a_question_without_picture_or_notes_and_signs_of_elsewhere_are_another_world(
    worlds: list[Item], said: str
) -> None:
    judge = Judge("scout")
    row = {"id": "1", "instruction": "Describe the picture.", "response": "There is a red circle."}
    judge.grade(replace(item_from(row), rubric=worlds[0].rubric))
    judge.grade(replace(worlds[0], responses=((Text(said),),)))
    assert [*judge.engine.notes.values()] == [1 if said == "12345" else 2]  # type: ignore[attr-defined]


def test_the_summary_of_a_run_keeps_the_note_and_that_of_another_run_has_none(tmp_path: Path) -> None:
    judge = Judge("scout", {"name": "help", "criterion": "Is the answer helpful?", "scale": "1-5"})
    outside = tmp_path / "outside.jsonl"
    outside.write_text('{"id": "1", "instruction": "Who wrote Faust?", "response": "Goethe did."}\n')
    (own,) = write_samples(make(Settings(split="fresh", seed=34), 2), tmp_path / "own", {"test": 1}).files
    for _ in range(2):
        summary = grade_file(judge, Source(str(outside)), tmp_path / "out")
        assert "scout was taught" in summary["notes"][0]
    inside = grade_file(judge, Source(str(own)), tmp_path / "in")
    assert "notes" not in inside
    (tmp_path / "out" / "summary.json").unlink()  # as after a kill
    assert any(
        "scout was taught" in each
        for each in collect(tmp_path / "out", Asked(AuditPlan(file=tmp_path / "out"))).missing
    )
    other = grade_file(Judge("mock:random", judge.rubric), Source(str(outside)), tmp_path / "out")
    assert "notes" not in other
    assert "notes" in grade_file(judge, Source(str(outside)), tmp_path / "out")
    (tmp_path / "out" / "notes.json").write_text("{torn")
    assert "notes" not in grade_file(judge, Source(str(outside)), tmp_path / "out")


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
