"""The standard suite of the worlds proves mock judges to be what they are."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.judging.judge import Judge
from dikast.worlds.prove import write_suite

pytestmark = pytest.mark.slow

Scores = dict[str, dict[str, dict[str, float]]]  # suite -> set -> variant -> goodness from 0 to 1


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    folder = tmp_path_factory.mktemp("prove")
    write_suite("prove", folder / "suite")
    return list(read_items(folder / "suite" / "items-00000.jsonl"))


@pytest.fixture(scope="module")
def graded(items: list[Item]) -> Callable[[str], Scores]:
    single = {item.id: item for item in items if len(item.responses) == 1}

    def grade(spec: str) -> Scores:
        found: Scores = defaultdict(lambda: defaultdict(dict))
        for verdict in Judge(spec).grade_many(single.values()):
            item = single[verdict.question.item]
            assert verdict.score is not None, verdict.reason
            assert isinstance(item.rubric, Rubric)
            variant = item.id.rsplit("-", 1)[1]
            good = item.rubric.scale.goodness(verdict.score)
            suite = item.meta[
                "suite"
            ]  # a contrast may lie in which end of the scale is good, so there the score counts
            found[suite][item.meta["set"]][variant] = verdict.score if suite == "contrast" else good
        return found

    return grade


def changes(scores: Scores, suite: str, variant: str, base: str = "base") -> list[float]:
    return [each[variant] - each[base] for each in scores[suite].values() if variant in each]


def test_the_suite_is_small_enough_for_a_paid_judge(items: list[Item]) -> None:
    assert 1_800 <= len(items) <= 2_400


def test_a_perfect_judge(graded: Callable[[str], Scores]) -> None:
    scores = graded("mock:oracle,r=1")
    for edit in ("paraphrase", "padding", "restyle", "reorder", "injection", "overlay"):
        assert set(changes(scores, "edits", edit)) == {0.0}, edit
    assert max(changes(scores, "evidence", "blank")) <= 0
    assert statistics.fmean(changes(scores, "evidence", "blank")) < -0.3
    assert statistics.fmean(changes(scores, "evidence", "swapped")) < 0
    assert all(abs(change) > 0 for change in changes(scores, "twins", "scene1", "scene0"))
    assert all(abs(change) > 0 for change in changes(scores, "contrast", "second", "first"))
    ladders = [suite for suite in scores if suite.startswith("ladder-")]
    assert len(ladders) >= 10
    for suite in ladders:
        for rungs in scores[suite].values():
            climbed = [rungs[name] for name in sorted(rungs, key=lambda name: int(name.removeprefix("off")))]
            assert climbed == sorted(climbed, reverse=True), suite


def test_a_constant_judge(graded: Callable[[str], Scores]) -> None:
    """One label for every item of a scale: neither evidence nor twins change anything."""
    scores = graded("mock:constant")
    for suite, variant, base in (
        ("evidence", "blank", "base"),
        ("twins", "scene1", "scene0"),
        ("edits", "padding", "base"),
    ):
        assert set(changes(scores, suite, variant, base)) == {0.0}


def test_a_judge_that_does_not_look(graded: Callable[[str], Scores]) -> None:
    scores = graded("mock:text-only")
    pictured = [each for name, each in scores["evidence"].items() if not name.startswith("text")]
    assert pictured
    assert all(each["blank"] == each["base"] for each in pictured if "blank" in each)
    assert all(each["swapped"] == each["base"] for each in pictured if "swapped" in each)


def test_a_judge_that_does_not_read_the_rubric(graded: Callable[[str], Scores]) -> None:
    """The same score under two rubrics that must score differently, and else none the worse for it."""
    scores = graded("mock:rubric-blind,r=1")
    contrasts = changes(scores, "contrast", "second", "first")
    assert len(contrasts) >= 80
    assert set(contrasts) == {0.0}
    assert all(abs(change) > 0 for change in changes(scores, "twins", "scene1", "scene0"))
    assert statistics.fmean(changes(scores, "evidence", "blank")) < -0.3


def test_a_judge_that_likes_length(graded: Callable[[str], Scores]) -> None:
    scores = graded("mock:prefers-long,per_doubling=2,r=1")
    assert statistics.fmean(changes(scores, "edits", "padding")) > 0.05
    assert abs(statistics.fmean(changes(scores, "edits", "restyle"))) < 0.05


def test_a_judge_that_obeys(graded: Callable[[str], Scores]) -> None:
    scores = graded("mock:injectable,r=1")
    assert statistics.fmean(changes(scores, "edits", "injection")) > 0.1
    assert set(changes(scores, "edits", "paraphrase")) == {0.0}


def test_a_judge_that_takes_the_first_slot(items: list[Item]) -> None:
    pairs: Iterator[Item] = (item for item in items if item.meta["suite"] == "swap")
    preferences = list(Judge("mock:first-slot").compare_many(pairs))
    assert len(preferences) >= 100
    assert all(preference.consistent is False for preference in preferences)
    fair = Judge("mock:oracle,r=1").compare_many(item for item in items if item.meta["suite"] == "swap")
    assert all(preference.consistent for preference in fair)
