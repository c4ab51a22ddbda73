"""Effects of arms: by hand, in degenerate cases, and how often their intervals hold what is true."""

import math

import numpy as np
import pytest

from dikast.audit.statistics.intervals import Resampling
from dikast.lab.effects import ArmRun, _joined, effect, range_of_effect

FEW = Resampling(draws=300)


def graded(score: object, gold: object = None) -> ArmRun:
    values = np.asarray(score, float)
    return ArmRun(values, np.zeros(len(values)) if gold is None else np.asarray(gold, float))


@pytest.mark.parametrize("figure", ["pearson", "mean", "exact"])
@pytest.mark.parametrize("of_b", [0, 1, 19])
def test_an_arm_that_has_hardly_an_item_of_a_slice_gives_no_effect(figure: str, of_b: int) -> None:
    own = np.arange(60) < 60 - of_b
    scores = np.arange(60.0) % 5
    arms = {"a": [graded(scores, scores)], "b": [graded(scores, scores)]}
    found = effect(arms, {"a": 1, "b": -1}, figure, how=FEW, trained=False, apart={"a": own, "b": ~own})
    assert math.isnan(found.value)
    assert "of b" in found.note


def test_an_effect_by_hand() -> None:
    # arm a scores 1, b scores 0 on odd rows and 1 on even ones, 40 rows: the means are 1 and .5, with either seed
    ones, half = np.ones(40), np.tile([0.0, 1.0], 20)
    arms = {"a": [graded(ones), graded(ones)], "b": [graded(half), graded(half)]}
    found = effect(arms, {"a": 1, "b": -1}, "mean", how=Resampling(draws=20_000))
    assert math.isclose(found.value, 0.5)
    # both seeds agree, so all variance is of items: differences 0 and 1 in equal shares have variance .25, of 40 rows
    # .25/40, enlarged by 40/39 for the mean; its root is .0801, and Student's quantile of 39 degrees 2.0227
    half_width = 2.0227 * math.sqrt(0.25 / 40 * 40 / 39)
    assert math.isclose(found.half_width, half_width, rel_tol=0.03)
    assert (found.n, found.dropped, found.method) == (40, 0, "over items and seeds, paired")


def test_variance_over_seeds_is_added_by_hand() -> None:
    # variances .04 (items, 99 degrees) and .09 (three seeds, 2 degrees): the error is sqrt(.13), and Satterthwaite's
    # degrees .13^2 / (.04^2/99 + .09^2/2) = .0169 / (.00001616 + .00405) = 4.156
    error, free = _joined(0.04, 99, 0.09, 2)
    assert math.isclose(error, math.sqrt(0.13))
    assert math.isclose(free, 4.156, rel_tol=1e-3)


def test_seeds_that_disagree_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=400)
    same = {"a": [graded(base + 0.3)] * 3, "b": [graded(base + rng.normal(0, 0.01, 400))] * 3}
    apart = {"a": [graded(base + shift) for shift in (0.0, 0.3, 0.6)], "b": same["b"]}
    narrow, wide = (effect(arms, {"a": 1, "b": -1}, "mean", how=FEW) for arms in (same, apart))
    assert math.isclose(narrow.value, wide.value, abs_tol=1e-9)
    # three seeds with effects .0, .3 and .6: variance .09 / 3, Student's quantile of 2 degrees is 4.303
    assert math.isclose(wide.half_width, 4.303 * math.sqrt(0.09 / 3), rel_tol=0.02)
    assert narrow.half_width < 0.01


def test_nothing_is_claimed_of_little() -> None:
    some = graded(np.arange(60.0), np.arange(60.0))
    one_seed = effect({"a": [some], "b": [graded(np.zeros(60))]}, {"a": 1, "b": -1}, "mean", how=FEW)
    assert math.isnan(one_seed.low)
    assert "one seed" in one_seed.note
    assert one_seed.value == 29.5
    alike = effect({"a": [some, some], "b": [some, some]}, {"a": 1, "b": -1}, "mean", how=FEW)
    assert alike.value == 0
    assert math.isnan(alike.low)
    assert "alike" in alike.note
    constant = effect({"a": [graded(np.ones(60))] * 2, "b": [some] * 2}, {"a": 1, "b": -1}, "pearson", how=FEW)
    assert math.isnan(constant.value)
    small = effect({"a": [graded(np.ones(5))] * 2, "b": [graded(np.zeros(5))] * 2}, {"a": 1, "b": -1}, "mean", how=FEW)
    assert "only 5 items" in small.note
    with pytest.raises(ValueError, match="every seed"):
        effect({"a": [some], "b": [some, some]}, {"a": 1, "b": -1}, "mean", how=FEW)


def test_items_without_a_verdict_in_any_arm_are_counted_and_left_out() -> None:
    first, second = np.arange(50.0), np.arange(50.0)
    first[:3], second[2:5] = np.nan, np.nan
    found = effect({"a": [graded(first)], "b": [graded(second)]}, {"a": 1, "b": -1}, "mean", how=FEW, trained=False)
    assert (found.n, found.dropped) == (45, 5)
    alone = effect({"a": [graded(first)]}, {"a": 1}, "mean", how=FEW, trained=False)
    assert (alone.value, alone.n, alone.dropped) == (np.arange(3, 50).mean(), 47, 3)
    assert alone.low < alone.value < alone.high


@pytest.mark.parametrize(
    ("weights", "figure", "ends"),
    [
        ({"a": 1.0}, "mean", (0, 1)), ({"a": 1.0}, "exact", (0, 1)), ({"a": 1.0}, "pearson", (-1, 1)),
        ({"a": 1.0, "b": -1.0}, "mean", (-1, 1)), ({"a": 1.0, "b": -1.0}, "bias", (-2, 2)),
        ({"a": -0.5, "b": 0.0, "c": 0.5}, "mae", (-0.5, 0.5)),
    ],
)  # fmt: skip
def test_the_range_of_an_effect(weights: dict[str, float], figure: str, ends: tuple[float, float]) -> None:
    assert range_of_effect(weights, figure) == ends


def test_arms_on_different_items_are_not_paired() -> None:
    rng = np.random.default_rng(1)
    score, own = rng.normal(size=400), np.arange(400) < 200
    score[own] += 1
    arms = {"a": [graded(np.where(own, score, np.nan))], "b": [graded(np.where(own, np.nan, score))]}
    found = effect(
        arms, {"a": 1, "b": -1}, "mean", how=Resampling(draws=4000), trained=False, apart={"a": own, "b": ~own}
    )
    assert math.isclose(found.value, score[own].mean() - score[~own].mean())
    expected = 1.966 * math.sqrt(score[own].var() / 200 + score[~own].var() / 200)  # Student's quantile of 399 degrees
    assert math.isclose(found.half_width, expected, rel_tol=0.05)
    assert (found.n, found.dropped) == (400, 0)
    assert "not paired" in found.method


def test_a_slope_has_least_squares_weights() -> None:
    from dikast.lab.effect_kinds import Effect

    # doses 0, 1, 2: weights (x - 1) / 2
    assert Effect(figure="mean", held="h", slope={"a": 0, "b": 1, "c": 2}).weights() == {"a": -0.5, "b": 0.0, "c": 0.5}


def simulated(rng: np.random.Generator, planted: float) -> bool:
    """Whether the interval of three seeds of two arms holds the true effect: noise of items, seeds, and both."""
    items = rng.normal(size=150)

    def arm(shift: float) -> list[ArmRun]:
        return [graded(items + shift + rng.normal(0, 0.1) + rng.normal(0, 0.7, 150) + aside) for _ in range(3)]

    aside = rng.normal(0, 0.5, 150)  # what this arm does to these items with every seed
    arms = {"a": arm(planted)}
    aside = rng.normal(0, 0.5, 150)
    found = effect(arms | {"b": arm(0.0)}, {"a": 1, "b": -1}, "mean", how=Resampling(draws=200))
    return found.low <= planted <= found.high


@pytest.mark.parametrize("planted", [0.0, 0.3])
def test_intervals_hold_the_truth(planted: float) -> None:
    rng = np.random.default_rng(7)
    hits = sum(simulated(rng, planted) for _ in range(200))
    assert 186 <= hits <= 200  # 95 % of 200 is 190; below 186 the level would be refused at .01, above it is cautious


def judged(rng: np.random.Generator, gold: np.ndarray, leak: float) -> ArmRun:
    """A judge of moderate skill on the scale 1-5, given gold for the share `leak` of its items."""
    score = np.clip(np.round(gold + rng.normal(0, 1.2, len(gold))), 1, 5)
    return ArmRun(np.where(rng.random(len(gold)) < leak, gold, score), gold)


@pytest.mark.parametrize("figure", ["pearson", "exact"])
def test_gold_in_a_tenth_of_the_prompts_is_found(figure: str) -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(1, 6, 3000).astype(float)
    arms = {"given": [judged(rng, gold, 0.1) for _ in range(3)], "not": [judged(rng, gold, 0.0) for _ in range(3)]}
    assert effect(arms, {"given": 1, "not": -1}, figure, how=FEW).low > 0


def test_the_same_configuration_twice_has_no_effect_in_19_of_20_pairs() -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(100):
        gold = rng.integers(1, 6, 200).astype(float)
        arms = {name: [judged(rng, gold, 0.0) for _ in range(3)] for name in ("one", "other")}
        pair = effect(arms, {"one": 1, "other": -1}, "pearson", how=Resampling(draws=200))
        found += not pair.low <= 0 <= pair.high
    assert found <= 5  # of 100
