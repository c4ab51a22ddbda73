import math

import numpy as np
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from dikast.audit.statistics.intervals import fisher
from dikast.audit.statistics.significance import (
    benjamini_yekutieli,
    holm,
    labels_for_pearson,
    labels_for_rate,
    labels_for_width,
    mcnemar,
    pairs_for_mcnemar,
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


def test_labels_needed() -> None:
    assert labels_for_width(0.06, 100) == 400  # half the width takes four times the labels
    assert math.isnan(labels_for_width(math.nan, 100))
    n = int(labels_for_pearson(0.7, 0.05))
    assert fisher(0.7, n).high - fisher(0.7, n).low <= 0.1 < fisher(0.7, n - 1).high - fisher(0.7, n - 1).low
    assert math.isnan(labels_for_pearson(math.nan))


def test_power_by_simulation_and_by_the_textbook() -> None:
    # a coin of .55 against .5, two-sided .05, power .8: (1.96 * .5 + .8416 * .4975)^2 / .05^2 = 783
    assert labels_for_rate(0.55) == 783
    n = int(pairs_for_mcnemar(0.1, 0.3))
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        discordant = rng.binomial(n, 0.3)
        first = rng.binomial(discordant, 0.2 / 0.3)
        hits += abs(2 * first - discordant) > 1.96 * math.sqrt(discordant)
    assert 0.74 < hits / 400 < 0.86
    assert math.isnan(pairs_for_mcnemar(0.3, 0.1))
