"""Means from labels that were chosen with unequal chances: by hand, and what is refused."""

import math

import numpy as np
import pytest

from dikast.audit.statistics.ppi import active_mean


def test_by_hand() -> None:
    # Least squares through (0, 1), (2, 4), (4, 4): 1.5 + .75 f, residuals -.5, 1, -.5. Parts: 1.5 - 1 = .5, 3 + 2 = 5,
    # 4.5 - 1 = 3.5, and of the unlabelled 2.25 and 3.75: the mean of five is 3
    found = active_mean([1, 4, 4], [0, 2, 4], [0.5, 0.5, 0.5], [1, 3])
    assert math.isclose(found.value, 3)
    # squares about 3: 6.25 + 4 + .25 + .5625 + .5625 = 11.625; variance 2.90625; / 5 * 3 / 1 = 1.74375; t(1) = 12.7062
    assert math.isclose(found.half_width, 12.7062 * math.sqrt(1.74375), rel_tol=1e-4)
    assert found.n == 3


def test_unequal_chances_by_hand() -> None:
    # weights (1 - p) / p^2: 2, 2, 0. The line through (0, 1) and (2, 2) is 1 + f / 2, so the residual of the third,
    # (4, 5), is 2, and counts once. Parts: 1, 2, 3 + 2 = 5, and of the unlabelled 1.5 and 2.5: the mean of five is 2.4
    found = active_mean([1, 2, 5], [0, 2, 4], [0.5, 0.5, 1], [1, 3])
    assert math.isclose(found.value, 2.4)
    assert math.isnan(found.low)  # an effective number of (2 + 2)^2 / (4 + 4) = 2 labels, and two coefficients


def test_degenerate() -> None:
    assert math.isnan(active_mean([1, 2], [1, 2], [0.5, 0.5], [1]).value)
    assert active_mean([1, 2, 3], [0, 0, 0], [1, 1, 1], []).value == 2  # all labelled: the mean of the labels
    # a constant judge has no slope: the weighted mean of the labels, weights 2, 2, 0 of the line and 1 for the rest
    found = active_mean([1, 3, 2], [4, 4, 4], [0.5, 0.5, 1], [4, 4])
    assert math.isclose(found.value, (2 + -1 / 0.5 + 2 + 1 / 0.5 + 2 + 0 + 2 + 2) / 5)
    codes = np.array([0, 0, 1, 2, 3])
    assert math.isnan(active_mean([1, 2, 5], [0, 2, 4], [0.5, 0.5, 1], [1, 3], cluster=codes).low)
    with pytest.raises(ValueError, match="above 0"):
        active_mean([1, 2, 3], [1, 2, 3], [0, 0.5, 1], [])
