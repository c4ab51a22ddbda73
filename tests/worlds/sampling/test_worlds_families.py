import numpy as np
import pytest
from benchmarks.shortcuts import collect, probe

from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import rules_of
from dikast.worlds.scoring.terms import fits_split
from dikast.worlds.settings import Settings


def drawn(domain: str, n: int, split: str = "fresh", rubrics: int = 4) -> list[Sample]:
    return list(make(Settings(domain, split, 5, version=4, rubrics=rubrics), n))


@pytest.mark.parametrize(("domain", "split"), [("scenes", "fresh"), ("text", "combinations"), ("clips", "aspects")])
def test_one_response_stands_under_four_rubrics(domain: str, split: str) -> None:
    samples = drawn(domain, 24, split)
    for family in (samples[i : i + 4] for i in range(0, len(samples), 4)):
        items = [sample.item() for sample in family]
        assert len({item.response for item in items}) == len({item.instruction for item in items}) == 1
        assert len({item.meta["response"] for item in items}) == 1
        assert len({sample.rubric.criterion for sample in family}) == 4
        assert len({tuple(sample.paths()) for sample in family}) == 1
        assert all(fits_split(sample.spec.terms, rules_of(split).terms) for sample in family)


def test_most_wrong_claims_are_not_weighed_and_the_rubric_decides() -> None:
    samples = drawn("scenes", 400) + drawn("text", 200)
    wrong = [
        any(term.covers(claim) for term in sample.spec.terms)
        for sample in samples
        for claim, found in zip(sample.responses[0].claims, sample.graded[0].findings, strict=True)
        if found.metric
    ]
    assert 0.6 < 1 - np.mean(wrong) < 0.7
    share = [np.mean([found.metric > 0 for found in sample.graded[0].findings]) for sample in samples]
    severity = [sum(min(found.metric, 5) for found in sample.graded[0].findings) for sample in samples]
    good = [1 - sample.levels[0] / len(sample.spec.cuts) for sample in samples]
    for ignoring in (share, severity):
        assert np.corrcoef(good, ignoring)[0, 1] > -0.65
    weighed, other = _both(samples)
    # Four items share a response, so a correlation of independent shares has a standard error of up to 1 / sqrt(150).
    assert abs(np.corrcoef(weighed, other)[0, 1]) < 0.15
    assert abs(np.corrcoef(good, other)[0, 1]) < 0.15


def _both(samples: list[Sample]) -> list[list[float]]:
    """The shares of wrong claims among those that the rubric weighs, and among the others."""
    rows = []
    for sample in samples:
        parts: tuple[list[bool], list[bool]] = [], []
        for claim, found in zip(sample.responses[0].claims, sample.graded[0].findings, strict=True):
            parts[not any(term.covers(claim) for term in sample.spec.terms)].append(found.metric > 0)
        rows.append([float(np.mean(part)) for part in parts])
    return [list(each) for each in zip(*rows, strict=True)]


@pytest.mark.slow
def test_levels_are_even_and_text_says_nothing() -> None:
    counts: dict[str, np.ndarray] = {}
    for sample in drawn("scenes", 1200):
        row = counts.setdefault(sample.spec.scale, np.zeros(len(sample.spec.cuts) + 1))
        row[sample.levels[0]] += 1
    for row in counts.values():
        even = row.sum() / len(row)
        assert (abs(row - even) < 5 * even**0.5).all()
    settings = Settings("scenes", "train", 0, form=0, version=4)
    report = probe(collect(Settings("scenes", "fresh", 0, form=0, version=4), 1000), collect(settings, 1000))
    for each in report.probes:  # four items share a response: their errors are twice as large
        assert abs(each.r) < 8 * each.r_error, each


def test_the_number_of_rubrics_can_be_chosen() -> None:
    one, *_ = drawn("text", 1, rubrics=1)
    assert one.id.endswith("0000000")
    assert [sample.item().meta["response"] for sample in drawn("text", 4, rubrics=2)][0::2] == [
        "text-fresh-1-5-0000000",
        "text-fresh-1-5-0000001",
    ]


def test_four_claims_are_enough_for_four_rubrics() -> None:
    samples = list(make(Settings("scenes", "fresh", 5, version=4, claims=(3, 4)), 8))
    assert {len(sample.responses[0].claims) for sample in samples} == {4}


def test_scenes_can_hold_up_to_25_things() -> None:
    settings = Settings("scenes", "all", 5, version=4, size=448, grid=6, objects=(3, 25), rubrics=1)
    found = [len(sample.graph.things) for sample in make(settings, 40)]
    assert min(found) < 8
    assert 20 <= max(found) <= 25


def test_how_much_is_shown_hardly_tells_the_score_where_omissions_are_weighed() -> None:
    samples = [sample for sample in drawn("scenes", 1600) if sample.spec.weights]
    samples = [sample for sample in samples if "completeness" in dict(sample.spec.weights)]
    assert len(samples) > 0.08 * 1600
    good = [1 - sample.levels[0] / len(sample.spec.cuts) for sample in samples]
    things = [len(sample.graph.things) for sample in samples]
    left_out = [sample.graded[0].counts["completeness"] for sample in samples]
    assert set(left_out) == {0, 1, 2, 3}
    # About 200 items: a correlation has a standard error of .07. Drawn without regard to each other, -.6 and -.7.
    assert abs(np.corrcoef(good, things)[0, 1]) < 0.3
    assert -0.4 < np.corrcoef(good, left_out)[0, 1] < 0


def test_what_is_counted_costs_no_more_than_the_lightest_term() -> None:
    for sample in drawn("scenes", 200):
        counted = dict(sample.spec.weights).get("completeness", 0)
        assert counted <= min(term.weight for term in sample.spec.terms)
