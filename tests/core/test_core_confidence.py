"""Quantiles and Wilson's interval, by hand and beside tables."""

import math

import pytest

from dikast.core.confidence import t_of, wilson, wilson_of_groups, z_of


def test_quantiles_are_those_of_tables() -> None:
    assert z_of(0.95) == pytest.approx(1.959963984540054, rel=1e-15)
    assert z_of(0.9) == pytest.approx(1.6448536269514722, rel=1e-15)
    # Student's t, two-sided, 95 %: 12.7062 (1 degree of freedom), 3.1824 (3), 2.0423 (30)
    assert [round(t_of(0.95, free), 4) for free in (1, 3, 30)] == [12.7062, 3.1824, 2.0423]
    assert math.isnan(t_of(0.95, 0))
    assert math.isnan(t_of(0.95, -1))


def test_wilson_by_hand() -> None:
    # 2 of 10, z = 1.959964: z^2 = 3.841459; middle (.2 + .192073) / 1.384146 = .283260;
    # half 1.959964 * sqrt(.016 + .00960365) / 1.384146 = .226578
    assert wilson(2, 10) == pytest.approx((0.056682, 0.509838), abs=1e-6)
    assert wilson(2, 10, 0.9).low > wilson(2, 10).low
    assert wilson(0, 20)[0] == 0.0
    assert wilson(20, 20)[1] == 1.0
    assert all(map(math.isnan, wilson(0, 0)))


def test_dependent_rows_count_as_fewer_independent_ones() -> None:
    # a share of .5 with a standard error of .1 from 4 groups: .25 * (1.959964 / (3.182446 * .1))^2 = 9.4823
    assert wilson_of_groups(0.5, 0.1, 4) == pytest.approx(wilson(0.5 * 9.4823, 9.4823), abs=1e-5)
    # of very many groups Student's quantile is the normal one: .25 / .1^2 rows
    assert wilson_of_groups(0.5, 0.1, 10**9) == pytest.approx(wilson(12.5, 25))
    assert wilson_of_groups(0.5, 0.1, 4, least=40) == pytest.approx(wilson(20, 40))
    # groups that are alike, or one alone, count once each
    assert wilson_of_groups(0.5, 0.0, 4) == wilson_of_groups(0.5, 1e-16, 4) == wilson(2, 4)
    assert wilson_of_groups(1.0, math.nan, 1) == wilson(1, 1)
