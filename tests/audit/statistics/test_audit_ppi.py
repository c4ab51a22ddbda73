import math

import numpy as np
import pytest

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import kept_within
from dikast.audit.statistics.ppi import label_multiplier, mean_of_labels, ppi_difference, ppi_mean, rogan_gladen


def world(n: int, many: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gold and verdicts of a judge that is .4 too low and correlates with gold."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n + many)
    gold = np.round(3 + truth, 3)
    judged = np.round(2.6 + 0.7 * truth + rng.normal(size=n + many) * 0.6, 3)
    return gold[:n], judged[:n], judged[n:]


def test_ppi_by_hand() -> None:
    gold, judged, rest = np.array([1.0, 2, 3]), np.array([1.0, 2, 3]), np.array([4.0, 4, 2])
    # covariance 1; variance of the six verdicts 1, 2, 3, 4, 4, 2: mean 8/3, squares 50 - 6 * 64/9 = 22/3, / 5 = 22/15
    # weight = 1 / ((1 + 3/3) * 22/15) = 15/44; estimate 2 + 15/44 * (10/3 - 2)
    assert math.isclose(ppi_mean(gold, judged, rest).value, 2 + 15 / 44 * 4 / 3)
    # a judge that says one thing weighs nothing: labels alone
    assert ppi_mean(gold, np.full(3, 2.0), np.full(5, 2.0)).value == mean_of_labels(gold).value


def test_no_mean_lies_where_no_label_can() -> None:
    # labels 4, 5, 5: 4.667 -/+ 4.303 * .333; the scale ends at 5
    labels = mean_of_labels([4, 5, 5], within=(1, 5))
    assert (round(labels.low, 3), labels.high) == (3.232, 5)
    # nearly all verdicts are 5, so that their variance is small and the weight large: 4.5 + w * .5 is above 5
    gold, judged, rest = [4, 5], [4, 5], [5] * 50
    assert ppi_mean(gold, judged, rest).value > 5
    found = ppi_mean(gold, judged, rest, within=(1, 5))
    assert (found.value, found.high) == (5, 5)
    assert found.low == max(1, ppi_mean(gold, judged, rest).low)
    less = ppi_difference((gold, judged, rest), ([1, 1.5], [1, 2], [1, 1, 2]), within=(-4, 4))
    assert -4 <= less.low < less.value <= less.high == 4


def test_an_interval_that_lies_off_the_scale_altogether_is_none() -> None:
    found = kept_within(Estimate(1.4, 9, 1.2, 1.6), (0, 1))
    assert (found.value, found.note) == (1, "the whole interval lies off the scale")
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize(
    ("n", "many", "value", "low", "high"),
    [(40, 400, 2.94243423, 2.743745201, 3.141123252), (200, 5000, 3.00660905, 2.911703646, 3.101514453)],
)
def test_against_the_reference_code(n: int, many: int, value: float, low: float, high: float) -> None:
    # Made once, with ppi-python 0.2.3 from the package index in an environment of its own (Python 3.11), by the loop
    # below with these two lines in place of its body from `found` on:
    #     print(ppi_py.ppi_mean_pointestimate(gold[:n], judged[:n], judged[n:]))
    #     print(ppi_py.ppi_mean_ci(gold[:n], judged[:n], judged[n:], alpha=0.05))
    # It divides the covariance by n where we divide by n - 1, and takes the normal quantile where we take Student's.
    rng = np.random.default_rng(11)
    for size, rest in ((40, 400), (200, 5000)):
        truth = rng.normal(size=size + rest)
        gold = np.round(3 + truth, 3)
        judged = np.round(2.6 + 0.7 * truth + rng.normal(size=size + rest) * 0.6, 3)
        if size == n:
            found = ppi_mean(gold[:n], judged[:n], judged[n:])
            assert math.isclose(found.value, value, abs_tol=0.02 * (high - low))
            assert math.isclose(found.high - found.low, high - low, rel_tol=0.05)
            assert rest == many


def test_the_weight_minimises_the_variance() -> None:
    gold, judged, rest = world(300, 3000, 1)
    found = ppi_mean(gold, judged, rest)
    best = float(found.note.removeprefix("weight "))

    def variance(weight: float) -> float:
        return float(np.var(gold - weight * judged, ddof=1) / 300 + weight**2 * np.var(rest, ddof=1) / 3000)

    assert variance(best) <= min(variance(best * 0.8), variance(best * 1.2))


def test_a_biased_judge_does_not_bias_the_estimate() -> None:
    values = [ppi_mean(*world(60, 1000, seed)).value for seed in range(200)]
    assert math.isclose(np.mean(values), 3, abs_tol=4 * np.std(values) / math.sqrt(200))


def test_multiplier() -> None:
    # 1 / (1 - .25 * 2000/2100) = 1.3125
    assert math.isclose(label_multiplier(0.5, 100, 2000), 1.3125)
    gold, judged, rest = world(500, 50_000, 2)
    r = float(np.corrcoef(gold, judged)[0, 1])
    ratio = (mean_of_labels(gold).half_width / ppi_mean(gold, judged, rest).half_width) ** 2
    assert math.isclose(ratio, label_multiplier(r, 500, 50_000), rel_tol=0.08)
    assert math.isnan(label_multiplier(0.5, 0, 0))


def test_differences() -> None:
    first, second = world(100, 1000, 3), world(100, 1000, 4)
    found = ppi_difference(first, second)
    one, two = ppi_mean(*first), ppi_mean(*second)
    assert math.isclose(found.value, one.value - two.value)
    assert max(one.half_width, two.half_width) < found.half_width < one.half_width + two.half_width


def test_rogan_gladen_by_hand() -> None:
    gold, judged = np.repeat([1, 1, 0, 0], [8, 2, 1, 9]), np.repeat([1, 0, 1, 0], [8, 2, 1, 9])
    rest = np.repeat([1, 0], [45, 55])
    # sensitivity .8, specificity .9, apparent share .45: (.45 + .9 - 1) / (.8 + .9 - 1) = .35 / .7
    assert math.isclose(rogan_gladen(gold, judged, rest).value, 0.5)


def test_undefined_rather_than_wrong() -> None:
    assert math.isnan(ppi_mean([1], [1], [1, 2]).value)
    assert math.isnan(mean_of_labels([1]).value)
    assert "chance" in rogan_gladen([1, 1, 0, 0], [0, 1, 1, 0], [1, 0]).note
    assert math.isnan(rogan_gladen([1, 1], [1, 1], [1, 0]).value)
    with pytest.raises(ValueError, match="binary"):
        rogan_gladen([1, 2], [1, 0], [1])
