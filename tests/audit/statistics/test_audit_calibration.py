import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from statsmodels.miscmodels.ordinal_model import OrderedModel

from dikast.audit.sections.label_probabilities import Distributions, calibration_table, readout_table
from dikast.audit.statistics import calibration as cal
from dikast.audit.statistics.intervals import Resampling
from dikast.core.scale import Scale


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def judge(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are `sharpness` times too sure in logits, and gold drawn from the true ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 5)) * 1.5
    true = softmax(logits)
    gold = (true.cumsum(1) < rng.random((n, 1))).sum(1).clip(max=4)
    return softmax(logits * sharpness), gold


def test_reliability_and_ece_by_hand() -> None:
    sure, right = [0.6, 0.6, 0.9, 0.9], [1, 0, 1, 1]
    bins = cal.reliability(sure, right, 2)
    assert [each.n for each in bins] == [2, 2]
    assert np.allclose([each.accuracy for each in bins], [0.5, 1])
    # (2 * |.6 - .5| + 2 * |.9 - 1|) / 4
    assert math.isclose(cal.expected_calibration_error(sure, right, 2), 0.1)
    assert math.isnan(cal.expected_calibration_error([], []))


def test_equal_confidences_share_a_bin() -> None:
    sure = [0.5] * 7 + [0.9] * 3
    assert [each.n for each in cal.reliability(sure, [1] * 10, 5)] == [7, 3]


def test_brier_and_log_loss_by_hand() -> None:
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    # .09 + .04 + .01 = .14 and, for gold 2, .01 + .64 + .81 = 1.46
    assert np.allclose(cal.brier_scores(p, [0, 2]), [0.14, 1.46])
    assert math.isclose(cal.log_loss(p, [0, 2]), -(math.log(0.7) + math.log(0.1)) / 2)
    assert cal.brier_scores(np.zeros((0, 3)), []).shape == (0,)
    assert math.isfinite(cal.log_loss([[1.0, 0]], [1]))


def test_temperature_is_recovered() -> None:
    p, gold = judge(6000, 3.0)
    fitted = cal.fit_temperature(p, gold)
    assert math.isclose(fitted.temperature, 3.0, rel_tol=0.1)
    before = cal.expected_calibration_error(p.max(1), p.argmax(1) == gold)
    after = cal.expected_calibration_error(fitted(p).max(1), p.argmax(1) == gold)
    assert after < 0.03 < before
    assert np.allclose(fitted(p).sum(1), 1)


def test_isotonic_against_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(1, 20, 200).astype(float)
    y = 0.1 * x + rng.normal(size=200)
    ours, theirs = cal.fit_isotonic(x, y), IsotonicRegression(out_of_bounds="clip").fit(x, y)
    at = np.linspace(0, 21, 50)
    assert np.allclose(ours(at), theirs.predict(at))
    with pytest.raises(ValueError, match="at least one"):
        cal.fit_isotonic([], [])


def test_isotonic_by_hand() -> None:
    # 3 then 1 violate the order: both become 2
    assert cal.fit_isotonic([1, 2, 3], [3, 1, 4])([1, 2, 3]).tolist() == [2, 2, 4]


def test_ordinal_against_statsmodels() -> None:
    p, gold = judge(1500, 2.0, seed=1)
    ours = cal.fit_ordinal(p, gold)
    x = p @ np.arange(5.0)
    theirs = OrderedModel(gold, x[:, None], distr="logit").fit(method="bfgs", disp=False)
    assert math.isclose(ours.slope, theirs.params[0], rel_tol=0.01)
    assert np.allclose(ours(p[:50]), theirs.model.predict(theirs.params, x[:50, None]), atol=0.005)
    assert np.allclose(ours(p).sum(1), 1)


def test_a_label_that_never_occurs_stays_possible() -> None:
    p, gold = judge(300, 1.0, seed=2)
    fitted = cal.fit_ordinal(p, np.minimum(gold, 3))
    assert (fitted(p)[:, 4] > 0).all()
    assert (fitted(p)[:, 4] < 0.05).all()


def test_folds_keep_clusters_whole() -> None:
    cluster = np.repeat(np.arange(30), 4)
    fold = cal.folds_of(120, 5, np.random.default_rng(0), cluster)
    assert all(len(set(fold[cluster == each])) == 1 for each in range(30))
    assert set(fold) == set(range(5))


def test_no_row_is_predicted_from_itself() -> None:
    fold = cal.folds_of(20, 4, np.random.default_rng(1))
    seen: list[set[int]] = []

    def fit(train: np.ndarray):  # type: ignore[no-untyped-def]
        rows = set(np.flatnonzero(train))

        def predict(test: np.ndarray) -> np.ndarray:
            assert not rows & set(np.flatnonzero(test))
            seen.append(set(np.flatnonzero(test)))
            return np.full(int(test.sum()), float(len(rows)))

        return predict

    out = cal.cross_fitted(fit, fold)
    assert set.union(*seen) == set(range(20))
    assert out.tolist() == [15] * 20


def test_a_family_is_fitted_by_itself_when_it_is_large_enough() -> None:
    family = np.repeat([0, 1], [300, 30])
    gold = np.where(family == 0, 1.0, 5.0)
    fold = cal.folds_of(330, 5, np.random.default_rng(2))

    def fit(train: np.ndarray):  # type: ignore[no-untyped-def]
        mean = gold[train].mean()
        return lambda test: np.full(int(test.sum()), mean)

    out = cal.cross_fitted(fit, fold, family, least=100)
    assert (out[family == 0] == 1).all()
    assert (out[family == 1] < 2).all()  # too few: the fit on all


def test_a_recalibration_by_slice_says_which_rows_use_the_fit_on_all() -> None:
    # 5 folds: a slice of 300 keeps 240 rows in the other four, one of 30 keeps 24 (fewer than 200)
    fold, small = cal.folds_of(330, 5, np.random.default_rng(2)), np.repeat([0, 1, -1], [300, 20, 10])
    slices, told = cal.fitted_by_slice(fold, small)
    assert slices is not None
    assert told.startswith("by slice: 30 rows of 330 use the fit on all slices, since their slice has fewer than 200")
    assert cal.fitted_by_slice(fold[:300], np.zeros(300, np.int64))[1] == ""
    assert cal.fitted_by_slice(fold, None) == (None, "")
    rng = np.random.default_rng(0)
    p, gold = rng.dirichlet([1, 1, 1], 120), rng.integers(1, 4, 120).astype(float)
    given, halves = Distributions(p, p.sum(1), Scale.parse("1-3")), np.arange(120) % 2
    tables = (calibration_table, readout_table)
    for found in (make(given, gold, Resampling(50), None, halves) for make in tables):
        assert not any("slice" in str(row[0]) for row in found.rows)  # it would only repeat the fit on all
        assert "no fit by slice: no slice has 200 labelled rows in the other folds" in found.notes


def test_a_temperature_without_an_upper_end_is_no_figure() -> None:
    rng = np.random.default_rng(0)
    sure = rng.dirichlet([0.2, 0.2, 0.2], 60)
    gold = rng.integers(0, 3, 60)  # the probabilities say nothing of it
    found = cal.temperature_estimate(sure, gold, 0.95)
    assert math.isinf(found.high)
    told = cal.temperature_told(found)
    assert told.startswith(f"temperature on 60 rows: at least {found.low:.3f}, with no upper end")
    assert "inf" not in told
    known = cal.temperature_told(cal.temperature_estimate(*judge(500, 2.0), 0.95))
    assert "(above 1: overconfident)" in known
    assert "inf" not in known
