import numpy as np
from benchmarks.blindness import States, blind_probes, collected, strongest

from dikast.worlds.settings import Settings


def by_name(states: tuple[States, States]) -> dict[str, float]:
    return {each.name: each.r for each in blind_probes(*states)}


def test_a_planted_leak_is_found_and_named() -> None:
    states = collected(Settings(form=0), 900)
    for row, good in zip(states.shown, states.good, strict=True):
        row["noise"] += 30 * good
    halves = [States(states.good[i::2], states.shown[i::2], states.rubric[i::2], states.faults[i::2]) for i in (0, 1)]
    assert by_name((halves[0], halves[1]))["response-blind"] > 0.5
    assert strongest(states)[0][0] == "noise"


def test_what_says_nothing_predicts_nothing() -> None:
    rng = np.random.default_rng(0)
    states = [States(rng.random(800).tolist(), [{"a": float(x)} for x in rng.random(800)]) for _ in range(2)]
    for each in states:
        each.rubric = each.faults = each.shown
    assert all(abs(r) < 0.15 for r in by_name((states[0], states[1])).values())  # four standard errors
