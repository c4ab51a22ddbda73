"""What originals owe to chance, taken off: by hand, and on changes whose noise is known."""

import math

import numpy as np
import pytest

from dikast.probes.control import controls, mean_of
from dikast.probes.noise import Plain, noise_of


def test_a_mean_by_hand() -> None:
    # leads -1, 0, 1, 2 (mean .5, squares 5), values 0, 1, 2, 5: slope (-0 - .5 + 1 + 7.5) / 5 = 1.6, held at 1.
    # Left: 1, 1, 1, 3, mean 1.5, squares .25 x 3 + 2.25 = 3, rest sqrt(3 / 2). Eight originals are alike:
    # error^2 = 1.5 (1/4 + .25/5) + 1 x (1/8) x 5/3 = .45 + .2083 = .6583
    found = mean_of(np.array([0.0, 1.0, 2.0, 5.0]), [-1, 0, 1, 2], ["k"] * 4, {"k": 8})
    assert found.value == pytest.approx(1.5)
    assert found.error == pytest.approx(math.sqrt(0.45 + 5 / 24))
    assert (found.slope, found.free) == (1, 2)
    assert found.original == pytest.approx(4 / 8)  # of the original's variance: nothing but the mean of its kind


def test_without_leads_it_is_the_plain_mean() -> None:
    found = mean_of(np.array([1.0, 2.0, 3.0, 6.0]), [math.nan] * 4, [""] * 4, {})
    assert found.value == 3
    assert found.error == pytest.approx(math.sqrt(14 / 3 / 4))
    assert math.isnan(found.slope)
    assert math.isnan(mean_of(np.array([]), [], [], {}).value)
    assert math.isnan(mean_of(np.array([1.0]), [0.0], ["k"], {"k": 1}).error)


@pytest.mark.parametrize(("stays", "gains"), [(0.0, 0.85), (1.0, 1.02)])
def test_errors_are_those_of_repeated_samples(stays: float, gains: float) -> None:
    rng = np.random.default_rng(0)
    values, errors, plain = [], [], []
    for _ in range(400):
        originals = rng.normal(size=100)  # 25 of which are changed
        changed = stays * originals[:25] + (1 - stays) * rng.normal(size=25) + 0.1 * rng.normal(size=25)
        change = changed - originals[:25]
        found = mean_of(change, list(-(originals[:25] - originals.mean())), ["k"] * 25, {"k": 100})
        values.append(found.value)
        errors.append(found.error)
        plain.append(change.mean())
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.15)
    assert np.std(values) <= gains * np.std(plain)  # less noise where there is some to take off, never more


def test_originals_are_held_against_their_kind() -> None:
    rows = [
        Plain(f"i{i}", "", 5, g, 0.5 * g + 0.1 * (i % 2), 0.0, f"i{i}~base", "k") for i in range(40) for g in [i / 40]
    ]
    known = controls(rows, noise_of(rows))
    assert known["i0~base"].alike == 40
    assert known["i1~base"].above - known["i0~base"].above == pytest.approx(0.1, abs=0.01)
    assert sum(each.above for each in known.values()) == pytest.approx(0)
    assert not controls(rows[:5], None)
