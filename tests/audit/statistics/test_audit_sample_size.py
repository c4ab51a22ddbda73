import math

import numpy as np

from dikast.audit.statistics.intervals import fisher
from dikast.audit.statistics.sample_size import (
    labels_for_pearson,
    labels_for_rate,
    labels_for_width,
    pairs_for_mcnemar,
)


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
