import re

import numpy as np
import pytest
from benchmarks.blindness import States, blind_probes, collected, strongest
from benchmarks.worlds import SECTIONS, omissions

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


def _figures(section: str, part: int) -> dict[str, list[float]]:
    """The figures of a section by the first words of their row."""
    rows = [line.strip("| ").split(" | ") for line in "\n".join(SECTIONS[section](part)).splitlines() if "|" in line]
    return {name: [float(x) for x in told if re.fullmatch(r"[+-][\d.]+", x)] for name, *told in rows}


def test_probes_that_skip_an_input_stand_beside_those_of_words_and_length() -> None:
    found = _figures("charts-4", 100)  # 1,000 items of 250 responses: a correlation of 0 has an error of .063
    for name, told in found.items():
        if name.startswith(("words", "characters", "response-blind", "the highest value, where extremes")):
            assert len(told) == 1
            assert abs(told[0]) < 0.25, name
    assert found["rubric-blind: trees on what is wrong with the response"][0] > 0.3
    assert len([name for name in found if name.startswith(("words", "response-blind", "the highest"))]) == 5


def test_causes_under_one_rubric_are_named_with_their_items() -> None:
    states = collected(Settings("charts", "domain", version=4), 1000)
    for row, rubric, good in zip(states.shown, states.rubric, states.good, strict=True):
        row["noise"] += 30 * good * ("term extreme" in rubric)  # a leak where extremes are weighed
    name, r, n = strongest(states, rubric=True)[0]
    assert name == "noise | term extreme"
    assert r > 0.5
    assert n == sum("term extreme" in row for row in states.rubric) < 1000


def test_what_more_things_tell_by_hand() -> None:
    # Where it is weighed (2), four things score 1 and eight 0; elsewhere 1/2, whatever is shown: r = 1.
    rubric = [{"weight completeness": 2.0}] * 2 + [{}] * 2
    states = States([1.0, 0.0, 0.5, 0.5], [{"things": n} for n in (4.0, 8.0, 4.0, 8.0)], rubric)
    assert omissions(states, states) == pytest.approx(1)
    assert omissions(States(states.good, states.shown, [{}] * 4), states) is None
