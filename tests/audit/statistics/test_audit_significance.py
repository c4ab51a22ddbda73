import math

import numpy as np
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from dikast.audit.statistics.significance import (
    benjamini_yekutieli,
    holm,
    mcnemar,
    two_correlations,
    two_rates,
)


def test_mcnemar_by_hand() -> None:
    first, second = [1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0]
    found = mcnemar(first, second)
    # three discordant items, all for the first: 2 * (1/2)^3
    assert found == (3, 0, 0.25, 6, False)
    assert mcnemar([1, 0], [1, 0]).p == 1
    rng = np.random.default_rng(0)
    a, b = rng.random(80) < 0.7, rng.random(80) < 0.5
    table = [[int((a & b).sum()), int((a & ~b).sum())], [int((~a & b).sum()), int((~a & ~b).sum())]]
    assert math.isclose(mcnemar(a, b).p, statsmodels_mcnemar(table, exact=True).pvalue)


def test_holm_by_hand() -> None:
    # sorted .01 .02 .04 with factors 3 2 1: .03 .04 .04
    assert np.allclose(holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    with_unknown = holm([0.04, math.nan, 0.01])  # the unknown one is not a test: factors 2 1
    assert np.allclose(with_unknown, [0.04, math.nan, 0.02], equal_nan=True)
    assert holm([]) == []


def test_adjustments_against_statsmodels() -> None:
    p = np.random.default_rng(1).random(25) ** 3
    assert np.allclose(holm(p.tolist()), multipletests(p, method="holm")[1])
    assert np.allclose(benjamini_yekutieli(p.tolist()), multipletests(p, method="fdr_by")[1])


def test_two_samples() -> None:
    assert math.isclose(two_rates(30, 100, 45, 90), proportions_ztest([30, 45], [100, 90])[1])
    assert math.isnan(two_rates(0, 0, 1, 2))
    assert two_rates(5, 5, 7, 7) == 1
    # atanh .5 - atanh .2 = .5493 - .2027 = .3466; sqrt(1/47 + 1/97) = .1777; z = 1.950, p = .0511
    assert math.isclose(two_correlations(0.5, 50, 0.2, 100), 0.0511, abs_tol=5e-4)
    assert math.isnan(two_correlations(math.nan, 50, 0.2, 100))
