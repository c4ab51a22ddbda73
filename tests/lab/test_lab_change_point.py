"""Effects of many arms: planted change points and spreads are found, and those that are not there are not."""

import math
from pathlib import Path

import numpy as np
import pytest

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import Resampling
from dikast.lab.change_point import power_law
from dikast.lab.effects import ArmRun, next_doubling, over_arms
from dikast.lab.experiment import load_experiment
from dikast.lab.findings import UNDECIDED, decided, findings
from dikast.lab.lab_report import to_markdown
from dikast.lab.running import run_experiments
from dikast.surface.laboratory.lab_page import lab_page
from lab_experiments import written

DOSES = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]
FEW = Resampling(draws=200)


def arms(rng: np.random.Generator, means: list[float], n: int = 120) -> dict[str, list[ArmRun]]:
    """Arms of these true means on the same items, each with noise of its own."""
    items = rng.normal(0, 1, n)
    return {str(i): [ArmRun(items + mean + rng.normal(0, 0.3, n), np.zeros(n))] for i, mean in enumerate(means)}


def measured(rng: np.random.Generator, means: list[float], doses: list[float]) -> Estimate:
    made = arms(rng, means)
    return over_arms(made, list(made), doses, "mean", how=FEW)


def test_a_change_point_by_hand() -> None:
    # no noise between arms: 0 up to dose .5, then 1 less for each dose; the broken line fits exactly there
    n = 40
    made = {str(dose): [ArmRun(np.arange(n) / n - max(0.0, dose - 0.5), np.zeros(n))] for dose in DOSES}
    found = over_arms(made, list(made), DOSES, "mean", how=FEW)
    assert math.isclose(found.value, 0.5, abs_tol=0.01)
    assert math.isclose(found.low, 0.5, abs_tol=0.01)
    assert math.isclose(found.high, 0.5, abs_tol=0.01)


def test_planted_change_points_lie_in_their_intervals() -> None:
    rng = np.random.default_rng(1)
    found = [measured(rng, [-max(0.0, dose - 0.4) for dose in DOSES], DOSES) for _ in range(60)]
    assert sum(not math.isnan(each.value) for each in found) >= 57
    held = sum(each.low <= 0.4 <= each.high for each in found)
    assert held >= 51  # 57 are due; below 51 the level of 95 % would be refused at .01
    assert all(0.125 <= each.low <= each.value <= each.high <= 0.875 for each in found if not math.isnan(each.value))


@pytest.mark.parametrize("slope", [0.0, -0.5])
def test_a_line_has_no_change_point(slope: float) -> None:
    rng = np.random.default_rng(2)
    found = [measured(rng, [slope * dose for dose in DOSES], DOSES) for _ in range(100)]
    false = sum(not math.isnan(each.value) for each in found)
    assert false <= 12  # 5 are due at the level; above 12 it would be refused at .01
    assert all("none: a line fits as well" in each.note for each in found if math.isnan(each.value))


def test_the_spread_of_arms_is_that_planted_without_what_chance_adds() -> None:
    rng = np.random.default_rng(3)
    planted = [-0.1, -0.1, 0, 0, 0, 0, 0.1, 0.1]
    found = [measured(rng, planted, []) for _ in range(60)]
    truth = float(np.std(planted))
    assert math.isclose(float(np.mean([each.value for each in found])), truth, rel_tol=0.05)
    assert sum(each.low <= truth <= each.high for each in found) >= 51
    equal = [measured(rng, [0.0] * 4, []) for _ in range(60)]
    assert sum(each.low == 0 for each in equal) >= 51
    assert all(each.value < 0.05 for each in equal)


def test_a_claim_is_refuted_where_one_of_its_effects_is_not_there(tmp_path: Path) -> None:
    effects = {"gain": {"arm": "good", "against": "poor"}, "other": {"arm": "poor", "against": "good"}}
    told = {each: {**effect, "figure": "mean", "held": "text"} for each, effect in effects.items()}
    rule = {"holds": {"gain": {"above": 0.1}, "other": {"above": 0.1}}, "fails": {"gain": {"below": 0.1}}}
    experiment = load_experiment(written(tmp_path, effects=told, **rule))
    none, low, high = (
        undefined(60, "none: a line fits as well"),
        Estimate(0, 60, -0.1, 0.1),
        Estimate(0.3, 60, 0.2, 0.4),
    )
    assert decided(experiment, {"gain": Estimate(0, 60, -0.1, 0.05), "other": none}, [1]) == ("fails", "")
    for gain, other in ((low, none), (high, none), (none, high)):
        verdict, why = decided(experiment, {"gain": gain, "other": other}, [1])
        assert (verdict, why.split(": ", 1)[1]) == (UNDECIDED, "none: a line fits as well")
    assert decided(experiment, {"gain": high, "other": high}, [1]) == ("holds", "")


def test_change_points_and_watched_sequences_are_told_by_the_report(tmp_path: Path) -> None:
    ends = ["0", "0", "0", "-.6", "-1.2"]
    arms = {f"dose {i}": {"judge": f"mock:oracle,r=.9,seed={i + 1},sway={end}"} for i, end in enumerate(ends)}
    effects = {
        "gain": {"arm": None, "against": None, "figure": "mean", "change_point": {f"dose {i}": i for i in range(5)}},
        "late": {"arm": "dose 4", "against": "good", "figure": "mean", "held": "text", "delay": 60},
        "spread": {"spread": ["dose 0", "dose 4"], "figure": "mean", "held": "text"},
        "next": {"curve": {"dose 2": 1, "dose 3": 2, "dose 4": 4}, "figure": "mean", "held": "text"},
    }
    base = {"held": {"text": {"n": 1200}}}
    rule = {"holds": {"gain": {"above": None, "within": [1, 3]}}, "fails": {"gain": {"below": None, "above": 3}}}
    path = written(tmp_path, base=base, arms={**arms, "poor": None}, effects=effects, **rule)
    run_experiments([load_experiment(path)], tmp_path / "lab")
    [found] = findings(tmp_path / "lab")
    assert found.verdict == "holds", found.effects
    assert math.isclose(found.effects["gain"].value, 2, abs_tol=0.5)
    assert 1 < found.effects["late"].value < 60
    page = to_markdown([found])
    assert "| gain: change point over dose 0, dose 1, dose 2, dose 3, dose 4 | mean | text | " in page
    assert "| late: items until dose 4 is told from good, of 60 at most | mean | text | " in page
    assert "| spread: spread of dose 0, dose 4 | mean | text | 0." in page
    later = found.effects["next"]  # it falls in equal steps with each doubling
    fall = found.figures["dose 4", "text", "mean"].value - found.figures["dose 2", "text", "mean"].value
    assert math.isclose(later.value, fall / 2, rel_tol=0.3)
    assert later.low < later.value < later.high < 0
    assert "| next: gain of the next doubling after dose 2, dose 3, dose 4 | mean | text | -0." in page
    assert "items until dose 4" in lab_page([found])


THREE = {"a": 0.25, "b": 1.0, "c": 4.0}


def taught(a: float, b: float, c: float, *, seeds: int = 3, sd: float = 0.0, rng: np.random.Generator | None = None,
           n: int = 100) -> dict[str, list[ArmRun]]:  # fmt: skip
    """Arms with these means on the same items; each training is off by its own amount, each verdict by more."""
    drawn = rng or np.random.default_rng(0)
    items = drawn.normal(0, 0.3, n)
    return {
        name: [ArmRun(items + mean + drawn.normal(0, sd) + drawn.normal(0, sd, n), np.zeros(n)) for _ in range(seeds)]
        for name, mean in {"a": a, "b": b, "c": c}.items()
    }


def test_a_curve_by_hand() -> None:
    # .9 - .2 / sqrt(dose) is .5, .7 and .8: steps of .2 and .1, so each doubling leaves 1 / sqrt(2) of what lacks at a
    # dose of 4, .1, and gains .1 - .0707 = .0293; figures in the other direction lose as much
    gain, exponent = power_law(np.array([[0.5, 0.7, 0.8], [0.5, 0.3, 0.2]]), np.array([0.25, 1, 4]))
    assert np.allclose(gain, [0.1 * (1 - 2**-0.5), -0.1 * (1 - 2**-0.5)])
    assert np.allclose(exponent, 0.5)
    # on a line over log(dose) a factor of 4 gains .1, and a doubling half of it, in whatever order the arms stand
    gain, exponent = power_law(np.array([[0.3, 0.1, 0.2]]), np.array([4, 0.25, 1]))
    assert np.allclose(gain, 0.05)
    assert exponent == 0
    # figures that grow faster and faster: the line again, whose slope over steps -1, 0, 1 is (.7 - .1) / 2
    gain, exponent = power_law(np.array([[0.1, 0.2, 0.7]]), np.array([0.25, 1, 4]))
    assert np.allclose(gain, 0.15)
    assert exponent == 0


def test_a_curve_of_little() -> None:
    gain, _ = power_law(np.array([[0.4, 0.4, 0.4], [0.4, np.nan, 0.5], [0.2, 0.6, 0.6]]), np.array([0.25, 1, 4]))
    assert math.isclose(gain[0], 0, abs_tol=1e-12)
    assert math.isnan(gain[1])
    assert 0 <= gain[2] < 0.002  # level after the first
    made = taught(0.5, 0.7, 0.8, seeds=1, sd=0.1)
    alone = next_doubling(made, THREE, "mean", how=FEW)
    assert math.isnan(alone.low)
    assert "one seed" in alone.note
    known = next_doubling(made, THREE, "mean", how=FEW, trained=False)
    assert known.low < known.value == alone.value < known.high
    assert known.method == "over items, paired"
    alike = next_doubling(taught(0.5, 0.7, 0.8), THREE, "mean", how=FEW)  # every item and every seed says the same
    assert math.isclose(alike.value, 0.1 * (1 - 2**-0.5), abs_tol=1e-9)
    assert math.isnan(alike.low)
    assert alike.note == "every draw alike"
    constant = {**made, "b": [ArmRun(np.ones(100), np.arange(100.0))]}
    found = next_doubling(constant, THREE, "pearson", how=FEW, trained=False)
    assert math.isnan(found.value)
    assert "alike" in found.note


@pytest.mark.parametrize("law", [(0.5, 0.7, 0.8), (0.7, 0.8, 0.85), (0.6, 0.6, 0.6), (0.6, 0.65, 0.7)])
def test_the_gain_of_a_planted_curve_lies_in_its_interval(law: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(4)
    truth = float(power_law(np.array([law]), np.array([0.25, 1, 4]))[0][0])
    found = [next_doubling(taught(*law, sd=0.05, rng=rng), THREE, "mean", how=FEW) for _ in range(60)]
    assert sum(each.low <= truth <= each.high for each in found) >= 51
    assert all(each.low <= each.value <= each.high for each in found)
    assert np.median([each.high - each.low for each in found]) < 0.15
