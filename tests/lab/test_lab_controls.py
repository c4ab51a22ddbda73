"""Two arms that are the same judge, through the whole lab: an effect is found as rarely as the level says."""

from pathlib import Path

import pytest
from scipy.stats import binom

from dikast.lab.experiment import load_experiment
from dikast.lab.findings import findings
from dikast.lab.running import run_experiments
from lab_experiments import written

NOTHING = {
    "base": {"judge": "mock:oracle,r=.8", "held": {"text": {"n": 200}}},
    "arms": {"good": {}, "poor": {"judge": "mock:oracle,r=.8,seed=1"}},
    "holds": {"gain": {"above": 0}},
    "fails": {"gain": {"below": 0}},
}


@pytest.mark.slow
@pytest.mark.soak(100)
def test_arms_that_are_the_same_judge_hardly_ever_differ(tries: int, tmp_path: Path) -> None:
    wanted = []
    for k in range(tries):
        path = written(tmp_path, **NOTHING, seeds=[k])
        wanted.append(load_experiment(path.rename(tmp_path / f"pair-{k}.yaml")))
    run_experiments(wanted, tmp_path / "lab", jobs=2)
    found = [each.effects["gain"] for each in findings(tmp_path / "lab")]
    assert len(found) == tries
    assert all(each.low < each.value < each.high for each in found)
    differ = sum(each.low > 0 or each.high < 0 for each in found)
    assert differ <= binom.ppf(0.99, tries, 0.05), f"{differ} of {tries} pairs differ"
