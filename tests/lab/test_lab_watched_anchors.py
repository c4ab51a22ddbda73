"""A judge watched by anchors: how late a change is found, and how often one that is not there."""

import math

import numpy as np

from dikast.audit.statistics.drift import e_value
from dikast.lab.watched_anchors import ALARM, first_alarms, watched


def test_an_alarm_is_the_first_anchor_at_which_the_evidence_suffices() -> None:
    differences = np.array([0.0, 0.5] * 60)
    [at] = first_alarms(differences, 120)
    assert e_value(differences[:at]) >= ALARM > e_value(differences[: at - 1])
    assert list(first_alarms(np.zeros(100), 40)) == [0, 0]  # what is left over is no sequence


def test_false_alarms_are_rare_and_larger_changes_are_found_sooner() -> None:
    rng = np.random.default_rng(0)

    def told(shift: float, *, delay: bool) -> float:
        noise = np.clip(rng.normal(shift, 0.25, 200 * 60), -1, 1)
        return watched(noise, 60, delay=delay, level=0.95, dropped=0).value

    assert told(0.0, delay=False) <= 0.08  # at most .05 are due, of 200; above .08 that would be refused at .05
    assert told(0.25, delay=False) > 0.95
    late, soon = told(0.12, delay=True), told(0.25, delay=True)
    assert 1 < soon < late < 60


def test_sequences_without_an_alarm_count_whole_and_few_sequences_tell_nothing() -> None:
    quiet = watched(np.tile([0.01, -0.01], 600), 60, delay=True, level=0.95, dropped=3)
    assert (quiet.value, quiet.n, quiet.dropped) == (60, 20, 3)
    assert math.isnan(watched(np.zeros(600), 60, delay=False, level=0.95, dropped=0).value)
