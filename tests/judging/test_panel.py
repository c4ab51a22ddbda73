"""Several judges: what they say together and how far apart they are, by hand."""

from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.verdict import Question
from dikast.engines.base import Request
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.panel import Panel, PanelVerdict, disagreement, panel_verdicts, write_panel
from dikast.judging.run_plan import Source
from runs import lines, rows, summary, write_jsonl
from scripted import Scripted

RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}
ITEM = {"id": "i", "instruction": "Say something.", "response": "Something."}
ASKED = Question("i", "good")


def saying(*labels: str) -> Judge:
    """A judge that says these labels of the items i0, i1, ...; `?` is no verdict."""

    def say(request: Request) -> str:
        at = int(request.about["item"][1:] or 0)
        return f"Verdict: {labels[at]}" if labels[at] != "?" else "I'm sorry, I can't help with that."

    return Judge(Scripted(say), RUBRIC)


def test_scores_by_hand() -> None:
    found = Panel([saying("2"), saying("5"), saying("3")]).grade(ITEM)
    assert found.scores == (2.0, 5.0, 3.0)
    assert found.mean == pytest.approx(10 / 3)
    assert (found.median, found.spread, found.majority) == (3.0, 3.0, None)
    assert [verdict.label for verdict in found.verdicts] == ["2", "5", "3"]


def test_a_judge_without_a_verdict_is_no_number_and_no_vote() -> None:
    found = Panel([saying("4"), saying("?"), saying("4")]).grade(ITEM)
    assert found.scores == (4.0, None, 4.0)
    assert (found.mean, found.median, found.spread, found.majority) == (4.0, 4.0, 0.0, "4")
    two = PanelVerdict(ASKED, (4.0, None, None), ("4", None, None))
    assert (two.mean, two.spread, two.majority) == (4.0, None, None)
    assert repr(two).endswith(": '4', no verdict, no verdict>")
    none = PanelVerdict(ASKED, (None, None), (None, None))
    assert (none.mean, none.median, none.spread, none.majority) == (None, None, None, None)


@pytest.mark.parametrize(
    ("labels", "majority"),
    [
        (("a", "a", "b"), "a"),
        (("a", "b"), None),
        (("a", "a", "b", "b"), None),
        (("tie", "tie", "a"), "tie"),
        (("a", "a", None, None), None),  # half of all judges is not more than half
        (("a", "a", None), "a"),
    ],
)
def test_majorities(labels: tuple[str | None, ...], majority: str | None) -> None:
    assert PanelVerdict(ASKED, (None,) * len(labels), labels).majority == majority


def test_disagreement_by_hand() -> None:
    # spreads 0, 2 and 1 (mean 1); of the two questions all answered one is unanimous; one has a single score
    def of(*scores: float | None) -> PanelVerdict:
        return PanelVerdict(ASKED, scores, tuple(None if score is None else f"{score:g}" for score in scores))

    found = disagreement([of(3.0, 3.0, 3.0), of(2.0, 4.0, 3.0), of(1.0, 2.0, None), of(5.0, None, None)])
    assert (found["questions"], found["answered_by_all"]) == (4, 2)
    assert (found["unanimous"]["value"], found["unanimous"]["n"]) == (0.5, 2)
    assert (found["mean_spread"]["value"], found["mean_spread"]["n"]) == (1.0, 3)
    nothing = disagreement([])
    assert nothing["unanimous"]["value"] is None
    assert nothing["mean_spread"]["value"] is None


def graded(tmp_path: Path, *judges: Judge) -> list[Path]:
    items = write_jsonl(tmp_path / "items.jsonl", rows(3))
    runs = []
    for number, judge in enumerate(judges):
        runs.append(tmp_path / str(number))
        grade_file(judge, Source(str(items)), runs[-1])
    return runs


def test_runs_are_joined_on_their_questions(tmp_path: Path) -> None:
    runs = graded(tmp_path, saying("1", "2", "?"), saying("1", "4", "5"))
    found = {verdict.question.item: verdict.scores for verdict in panel_verdicts(runs)}
    assert found == {"i0": (1.0, 1.0), "i1": (2.0, 4.0), "i2": (None, 5.0)}
    told = write_panel(tmp_path, ["first", "second"], runs)
    assert told == summary(tmp_path)
    assert (told["judges"], told["questions"], told["answered_by_all"]) == (["first", "second"], 3, 2)
    written: dict[str, Any] = {each["item"]: each for each in lines(tmp_path / "panel.jsonl")}
    assert (written["i1"]["mean"], written["i1"]["spread"], written["i1"]["majority"]) == (3.0, 2.0, None)
    assert (written["i0"]["majority"], written["i2"]["labels"]) == ("1", [None, "5"])


def test_a_panel_is_more_than_one() -> None:
    with pytest.raises(UserError, match="at least two judges"):
        Panel([saying("1")])


def test_a_spread_over_several_scales_is_of_goodness() -> None:
    # 2 of 1-5 is half of the scale, 1 of pass/fail all of it, 5 of 0-10 half: mean (1/2 + 1 + 1/2) / 3 = 2/3
    spreads = [("1-5", (2.0, 4.0)), ("pass/fail", (0.0, 1.0)), ("0-10", (5.0, 10.0))]
    verdicts = [PanelVerdict(ASKED, scores, ("x", "y"), scale=Scale.parse(name)) for name, scores in spreads]
    found = disagreement(verdicts)
    assert found["mean_spread"]["value"] is None
    assert found["mean_spread_goodness"]["value"] == pytest.approx(2 / 3)
    one = disagreement(verdicts[:1])
    assert one["mean_spread"]["value"] == 2
    assert "mean_spread_goodness" not in one


def test_a_panel_grades_many() -> None:
    panel = Panel([Judge("mock:constant,label=2", "helpfulness"), Judge("mock:oracle,r=1", "helpfulness")])
    found = list(panel.grade_many([{"instruction": "?", "responses": ["x", "y"], "gold": [1, 5]}] * 2))
    assert [(each.question.item, each.question.responses[0], each.scores) for each in found] == [
        ("0", 0, (2.0, 1.0)), ("0", 1, (2.0, 5.0)), ("1", 0, (2.0, 1.0)), ("1", 1, (2.0, 5.0)),
    ]  # fmt: skip
    assert [each.mean for each in found[:2]] == [1.5, 3.5]
    assert len(found[0].verdicts) == 2
