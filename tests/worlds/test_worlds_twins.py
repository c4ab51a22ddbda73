from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from benchmarks import twins
from benchmarks.hiding import CRITERION, LEVEL
from benchmarks.kept_runs import answers

from dikast.core.item import Item
from dikast.core.media import resolved
from dikast.core.part import Image, Video, text_of
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.core.verdict import Status
from dikast.judging.judge import Judge
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons

OTHERS = ("clips", "retouch")


@pytest.fixture
def lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two stages on lessons of single responses, each under four rubrics, of pairs, and of clips and drawn pictures."""
    world = Settings(version=4, size=48, grid=3, objects=(2, 6))
    write_lessons(world, 8, tmp_path / "data" / "rubrics", quote=True)
    write_lessons(Settings(version=4, size=48, responses=2), 2, tmp_path / "data" / "pairs")
    for domain in OTHERS:
        write_lessons(Settings(version=4, size=48, domain=domain), 2, tmp_path / "data" / domain)
    (recipes := tmp_path / "recipes").mkdir()
    for stage, before, data in (("2-grade", "1-talk", ["pairs"]), ("10-again", "2-grade", ["rubrics", *OTHERS])):
        items = [f"../data/{each}/items-*.jsonl" for each in data]
        told = {"model": f"../build/{before}/model", "data": [{"items": items}]}
        (recipes / f"{stage}.yaml").write_text(yaml.safe_dump(told), "utf-8")
    monkeypatch.setattr(twins, "RECIPES", recipes)
    return tmp_path


def _rows(folder: Path, data: str) -> list[Item]:
    rows = list(read_items(str(folder / data / "items-00000.jsonl")))
    pictures = [part for row in rows for turn in row.instruction for part in turn.content if isinstance(part, Image)]
    assert len(pictures) == len(rows)
    assert all(Path(resolved(picture)).is_file() for picture in pictures)
    return rows


def _responses(rows: list[Item]) -> set[str]:
    return {text_of(response) for row in rows for response in row.responses}


@pytest.mark.parametrize(
    ("write", "pictures", "responses", "rubrics"),
    [(twins.blanked, 1, 2, 8), (twins.response_blind, 2, 1, 8), (twins.rubric_blind, 2, 2, 1)],
)
def test_a_twin_is_taught_everything_but_one_input(
    write: Callable[[Path, twins.Course], None], pictures: int, responses: int, rubrics: int, lessons: Path
) -> None:
    (folder := lessons / "twin").mkdir()
    write(folder, twins.stages())
    rows = _rows(folder, "rubrics")
    shown = [next(part for part in row.instruction[0].content if isinstance(part, Image)) for row in rows]
    assert len({Path(resolved(picture)).read_bytes() for picture in shown}) == pictures
    assert len(_responses(rows)) == responses
    weighed = {
        (row.rubric.criterion, *(text for _, text in row.rubric.levels))
        for row in rows
        if isinstance(row.rubric, Rubric)
    }
    assert len(weighed) == rubrics if rubrics > 1 else {each[0] for each in weighed} == {CRITERION}
    assert [row.gold for row in rows] == [row.gold for row in _rows(lessons / "data", "rubrics")]
    assert len(_responses(_rows(folder, "pairs"))) == (1 if responses == 1 else 4)


def test_a_twin_goes_through_every_stage_that_grades(lessons: Path) -> None:
    (folder := lessons / "twin").mkdir()
    twins.rubric_blind(folder, twins.stages())
    first, last = (yaml.safe_load((folder / f"{stage}.yaml").read_text("utf-8")) for stage in ("2-grade", "10-again"))
    assert first["model"] == str(lessons / "build" / "1-talk" / "model")
    assert last["model"] == "2-grade/model"
    assert last["data"] == [{"items": [f"{data}/items-*.jsonl" for data in ("rubrics", *OTHERS)]}]


def test_a_twin_can_go_on_from_other_weights(lessons: Path) -> None:
    (folder := lessons / "twin").mkdir()
    twins.response_blind(folder, twins.one_stage(lessons / "model", 7))
    (written,) = folder.glob("*.yaml")
    told = yaml.safe_load(written.read_text("utf-8"))
    assert (written.stem, told["model"], told["steps"]) == ("10-again", str(lessons / "model"), 7)
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"rubrics", *OTHERS}
    assert [told["out"] for told in twins.one_stage(lessons / "model", 7, "2-grade")] == ["2-grade"]
    with pytest.raises(ValueError, match=r"there is no stage '3-odd' in .*: 2-grade, "):
        twins.one_stage(lessons / "model", 7, "3-odd")


def test_frames_and_pictures_that_are_responses_are_grey_too(lessons: Path) -> None:
    (folder := lessons / "twin").mkdir()
    twins.blanked(folder, twins.stages())
    for data in OTHERS:
        rows = list(read_items(str(folder / data / "items-00000.jsonl")))
        contents = [content for row in rows for content in (row.instruction[0].content, *row.responses)]
        parts = [part for content in contents for part in content]
        shown = [part for part in parts if isinstance(part, Image)]
        shown += [frame for part in parts if isinstance(part, Video) for frame in part.frames]
        assert len(shown) >= 2 * len(rows)
        assert {Path(resolved(picture)).name for picture in shown} == {"grey.png"}
        before = list(read_items(str(lessons / "data" / data / "items-00000.jsonl")))
        assert [(row.gold, row.meta) for row in rows] == [(row.gold, row.meta) for row in before]


@pytest.mark.parametrize(
    ("hide", "pictures", "responses", "rubrics"), [("picture", 1, 2, 8), ("response", 2, 1, 8), ("rubric", 2, 2, 1)]
)
def test_a_judge_is_asked_with_one_input_hidden(
    hide: str, pictures: int, responses: int, rubrics: int, tmp_path: Path
) -> None:
    samples = list(make(Settings("scenes", "fresh", 951, version=4), 8))
    found = answers(Judge("mock:constant"), samples, str(tmp_path), hide)
    assert {verdict.status for verdict in found.values()} == {Status.OK}
    assert found.keys() == {sample.id for sample in samples}
    (file,) = tmp_path.glob("*/items/hidden.jsonl")
    rows = list(read_items(str(file)))
    shown = [part for row in rows for part in row.instruction[0].content if isinstance(part, Image)]
    assert len({Path(resolved(picture)).read_bytes() for picture in shown}) == pictures
    assert len(_responses(rows)) == responses
    told = {row.rubric for row in rows if isinstance(row.rubric, Rubric)}
    assert len({rubric.criterion for rubric in told}) == rubrics
    if hide == "rubric":
        assert {text for rubric in told for _, text in rubric.levels} == {LEVEL}
        assert {rubric.criterion for rubric in told} == {CRITERION}
    answers(Judge("mock:constant"), samples, str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2  # what was hidden is not taken for what was shown
