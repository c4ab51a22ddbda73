import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from dikast.audit.statistics.against_gold.classes import class_estimates
from dikast.audit.statistics.intervals import Resampling

HOW = Resampling(500, seed=3)


@pytest.mark.parametrize("labels", [(0, 1, 2), (1, 5), (3,)])
def test_against_sklearn(labels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    gold, said = rng.choice(labels, 80), rng.choice([*labels, 9], 80)
    found = class_estimates(said, gold, HOW)
    precision, recall, f1, _ = precision_recall_fscore_support(gold, said, average="macro", zero_division=0)
    assert math.isclose(found["macro_precision"].value, precision)
    assert math.isclose(found["macro_recall"].value, recall)
    assert math.isclose(found["macro_f1"].value, f1)
    assert math.isclose(found["cohen_kappa"].value, cohen_kappa_score(gold, said), abs_tol=1e-12)
    assert found["accuracy"].value == np.mean(said == gold)
    if len(labels) > 1:
        assert all(each.low < each.value < each.high and each.n == 80 for each in found.values())


def test_classes_by_hand() -> None:
    # precision 1/2, 2/3, 0; recall 1, 2/3, 0; F1 2/3, 2/3, 0: label 3 is never said
    found = class_estimates([1, 1, 2, 2, 2], [1, 2, 2, 2, 3], HOW)
    assert math.isclose(found["accuracy"].value, 3 / 5)
    assert math.isclose(found["macro_precision"].value, (1 / 2 + 2 / 3) / 3)
    assert math.isclose(found["macro_recall"].value, (1 + 2 / 3) / 3)
    assert math.isclose(found["macro_f1"].value, (2 / 3 + 2 / 3) / 3)


def test_clusters_widen_and_nothing_is_nothing() -> None:
    gold = np.repeat(np.random.default_rng(4).integers(0, 3, 15), 10)
    said = np.repeat(np.random.default_rng(5).integers(0, 3, 15), 10)
    alone = class_estimates(said, gold, HOW)["macro_f1"]
    together = class_estimates(said, gold, HOW, np.repeat(np.arange(15), 10))["macro_f1"]
    assert together.half_width > 1.5 * alone.half_width
    assert all(math.isnan(each.value) and each.n == 0 for each in class_estimates([], [], HOW).values())


def test_a_perfect_judge_is_not_certain() -> None:
    found = class_estimates([1, 2, 3] * 4, [1, 2, 3] * 4, HOW)
    assert math.isnan(found["macro_f1"].low)
    assert found["accuracy"].low < 0.8
