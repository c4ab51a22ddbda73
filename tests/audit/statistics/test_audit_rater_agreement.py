import math

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from dikast.audit.statistics.agreement import cohen_kappa
from dikast.audit.statistics.rater_agreement import fleiss_kappa, icc_2_1, krippendorff_alpha

NAN = math.nan


def test_cohen_kappa_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = .7, p_e = .5 * .6 + .5 * .4 = .5, kappa = .4
    first, second = np.repeat([1, 1, 0, 0], [20, 5, 10, 15]), np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    assert math.isclose(cohen_kappa(first, second), 0.4)
    assert math.isnan(cohen_kappa(first * 0, second * 0))
    assert math.isnan(cohen_kappa([], []))


def test_weighted_kappa_by_hand() -> None:
    # ratings (1,1) (2,3) (3,3): observed cost 1/3 * 1; margins 1/3 1/3 1/3 and 1/3 0 2/3
    # expected: 1-1 0, 1-3 (1/3)(2/3)4, 2-1 (1/3)(1/3)1, 2-3 (1/3)(2/3)1, 3-1 (1/3)(1/3)4 = (8 + 1 + 2 + 4) / 9
    assert math.isclose(cohen_kappa([1, 2, 3], [1, 3, 3], weights="quadratic"), 1 - (1 / 3) / (15 / 9))
    # linear: expected (4 + 1 + 2 + 2) / 9
    assert math.isclose(cohen_kappa([1, 2, 3], [1, 3, 3], weights="linear"), 1 - (1 / 3) / 1)


def test_fleiss_kappa_by_hand() -> None:
    # two items, three raters: AAA and AAB. P_1 = 1, P_2 = (2 * 1) / (3 * 2) = 1/3, mean 2/3
    # shares 5/6 and 1/6: P_e = 26/36; kappa = (24/36 - 26/36) / (10/36)
    assert math.isclose(fleiss_kappa([[0, 0], [0, 0], [0, 1]]), -2 / 10)
    assert math.isnan(fleiss_kappa([[0, 0], [0, 0]]))
    assert math.isnan(fleiss_kappa([[0, 1]]))


def test_alpha_reproduces_the_published_example() -> None:
    # Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section E: four observers, twelve units
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert round(krippendorff_alpha(ratings, "nominal"), 3) == 0.743
    assert round(krippendorff_alpha(ratings, "ordinal"), 3) == 0.815
    assert round(krippendorff_alpha(ratings, "interval"), 3) == 0.849


def test_alpha_by_hand_and_undefined() -> None:
    # two raters: (1,1), (1,2). Observed interval disagreement: 2 ordered pairs of 4 values differ by 1: 2/4
    # expected: values 1,1,1,2: 6 of 12 ordered pairs differ by 1: 6/12; alpha = 1 - .5/.5
    assert math.isclose(krippendorff_alpha([[1, 1], [1, 2]], "interval"), 0, abs_tol=1e-12)
    assert math.isnan(krippendorff_alpha([[1, 1], [1, 1]], "interval"))
    assert math.isnan(krippendorff_alpha([[1, NAN], [NAN, 2]], "nominal"))


def test_icc_reproduces_the_published_example() -> None:
    # Shrout & Fleiss 1979, table 2 and 4: six targets, four judges, ICC(2,1) = .29
    ratings = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
    assert round(icc_2_1(ratings), 2) == 0.29
    assert math.isnan(icc_2_1([[3, 3], [3, 3]]))
    assert math.isnan(icc_2_1([[1, 2, 3]]))


@pytest.mark.parametrize("seed", range(5))
def test_against_independent_implementations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 5, (3, 40)).astype(float)
    ratings[1] = np.where(rng.random(40) < 0.6, ratings[0], ratings[1])
    first, second = ratings[:2]
    assert math.isclose(cohen_kappa(first, second), cohen_kappa_score(first, second))
    for weights in ("linear", "quadratic"):
        ours = cohen_kappa(first, second, weights=weights)
        assert math.isclose(ours, cohen_kappa_score(first, second, weights=weights))
    counts, _ = aggregate_raters(ratings.T.astype(int))
    assert math.isclose(fleiss_kappa(ratings), statsmodels_fleiss(counts))
    ratings[rng.random(ratings.shape) < 0.2] = NAN
    for level in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(ratings, level_of_measurement=level)
        assert math.isclose(krippendorff_alpha(ratings, level), theirs, abs_tol=1e-12)
