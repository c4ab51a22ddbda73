"""Experiments that really run: verdicts, pages that come out the same, changes refused, kills survived."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import Resampling
from dikast.core.errors import UserError
from dikast.lab.experiment import Experiment, load_experiment, merged
from dikast.lab.findings import Finding, RunVerdicts, finding, findings
from dikast.lab.lab_report import NOTICE, to_markdown
from dikast.lab.running import run_experiments
from dikast.surface.laboratory.lab_page import lab_page
from lab_experiments import GOOD, TRAIN, written
from runs import environment


@pytest.mark.slow
def test_a_planted_difference_is_found_and_a_rule_stays(tmp_path: Path) -> None:
    experiment, out = load_experiment(written(tmp_path, seeds=[1, 2])), tmp_path / "lab"
    run_experiments([experiment], out, jobs=2)
    [found] = findings(out)
    assert found.verdict == "holds"
    assert found.seeds == (1, 2)
    gain = found.effects["gain"]
    assert gain.n == 120
    assert 0.3 < gain.value < 0.9
    assert gain.low > 0.1
    assert found.cost["graded_items"] == 240
    assert all(each.n == 120 and each.low < each.value < each.high for each in found.figures.values())
    page = to_markdown([found])
    assert NOTICE in page
    assert "**Holds**" in page
    html = lab_page([found])
    assert "mine" in html
    assert "<script" not in html
    assert html.count("<table") == html.count('class="wide" tabindex="0"') == 2
    assert html.count("<svg") == 1  # both arms have a dot and an interval in it
    assert html.count("<circle") == html.count('class="interval"') == 2
    assert "<h2>1 claim: 1 holds</h2>" in html
    assert '<p class="light green">' in html
    assert "Cost: graded 240 responses" in html
    assert "<h2>No experiment yet</h2>" in lab_page([])
    run_experiments([experiment], out)  # nothing is left to do
    assert to_markdown(findings(out)) == page
    for place in ("mine/experiment.json", next(out.glob("runs/*/cost.json")).relative_to(out)):
        whole = (out / place).read_bytes()
        (out / place).write_bytes(whole.replace(b"1", b"7", 1))
        with pytest.raises(UserError, match=rf"{place}: the file has changed since it was written .* remove the file"):
            findings(out)
        (out / place).write_bytes(whole)
    with pytest.raises(UserError, match="a rule is not changed after"):
        run_experiments([load_experiment(written(tmp_path, seeds=[1, 2], holds={"gain": {"above": 0.2}}))], out)


def test_items_without_gold_are_refused_before_anything_is_taught(tmp_path: Path) -> None:
    (tmp_path / "bare.jsonl").write_bytes(orjson.dumps({"id": "1", "instruction": "?", "response": "!"}) + b"\n")
    held = {"text": {"world": None, "n": None, "items": "bare.jsonl"}}
    path = written(
        tmp_path, base={**TRAIN, "budget": {"examples": 8}, "held": held}, arms={"poor": {"judge": None, "draw": 1}}
    )
    with pytest.raises(UserError, match="has no item with gold"):
        run_experiments([load_experiment(path)], tmp_path / "lab")
    assert not (tmp_path / "lab" / "judges").exists()


@pytest.mark.parametrize("other", [{"judge": None, "draw": 1}, {"judge": None, "budget": {"tokens": 9}}])
def test_an_arm_with_the_runs_of_another_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    path = written(tmp_path, arms={"poor": other})
    with pytest.raises(UserError, match=r"arms.poor: changes nothing: its runs are those of 'good'"):
        run_experiments([load_experiment(path)], tmp_path / "lab")
    assert not (tmp_path / "lab" / "mine").exists()


@pytest.mark.slow
def test_a_killed_lab_goes_on_to_the_same_page(tmp_path: Path) -> None:
    path = written(tmp_path, seeds=[1, 2])
    command = [sys.executable, "-m", "dikast", "lab", "run", str(path), "--quiet", "--out"]
    with subprocess.Popen([*command, str(tmp_path / "killed")], start_new_session=True) as process:
        while process.poll() is None and not list((tmp_path / "killed").glob("runs/*/verdicts.jsonl")):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    for name in ("killed", "whole"):
        subprocess.run([*command, str(tmp_path / name)], check=True, stdout=subprocess.DEVNULL)
    assert to_markdown(findings(tmp_path / "killed")) == to_markdown(findings(tmp_path / "whole"))


@pytest.mark.slow
def test_judges_are_taught_and_measured(tmp_path: Path) -> None:
    tiny = {
        **TRAIN, "budget": {"tokens": 12_000}, "format": "scout", "max_tokens": 48,
        "train": {"init": "nano:32x1", "batch_size": 8, "learning_rate": 0.01, "optimizer": "muon", "warmup": 2},
        "data": {"some": {"world": {"domain": "text"}, "n": 40, "lessons": True, "formats": ["scout"]}},
        "held": {"text": {"n": 24}},
    }  # fmt: skip
    arms = {"poor": {"judge": None, "data": {"some": {"change": {"feedback": "none"}}}}}
    out = tmp_path / "lab"
    run_experiments([load_experiment(written(tmp_path, base=tiny, arms=arms))], out, jobs=2)
    [found] = findings(out)
    assert found.verdict == "cannot tell at this size"
    costs = [orjson.loads(path.read_bytes()) for path in out.glob("judges/*/cost.json")]
    assert len(costs) == 2
    assert all(abs(each["tokens"] - 12_000) < 1_500 for each in costs)
    assert costs[0]["examples"] != costs[1]["examples"]  # equal tokens are fewer examples where feedback is taught


def test_a_damaged_picture_of_a_lab_is_told(tmp_path: Path) -> None:
    held = {"text": {"world": {"domain": "scenes", "scales": ["1-5"]}, "n": 8}}
    path = written(tmp_path, base={"held": held})
    command = [sys.executable, "-m", "dikast", "lab", "run", str(path), "--out", "lab"]
    here: dict[str, Any] = {"cwd": tmp_path, "env": environment()}
    subprocess.run([*command, "--quiet"], check=True, stdout=subprocess.DEVNULL, **here)
    assert [each.unasked for each in findings(tmp_path / "lab")] == [{}]
    picture = sorted((tmp_path / "lab").glob("items/*/world/images/*/*.png"))[3]
    whole = picture.read_bytes()
    picture.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    shutil.rmtree(tmp_path / "lab" / "runs")
    for more in ((), ("--quiet",)):  # told again when nothing is left to do
        told = subprocess.run([*command, *more], check=True, capture_output=True, text=True, **here).stderr
        assert "No reply to 2 questions: bad_item: lab/items/" in told
        assert f"{picture.name} is damaged" in told
    found = findings(tmp_path / "lab")
    assert picture.name in to_markdown(found).replace("\\", "")
    assert f"{picture.name} is damaged" in lab_page(found)
    [cure] = re.findall(r"`(rm -r [^`]+)`", told)
    subprocess.run(shlex.split(cure), check=True, **here)
    told = subprocess.run([*command, "--quiet"], check=True, capture_output=True, text=True, **here).stderr
    assert told == ""
    assert picture.read_bytes() == whole
    assert [each.unasked for each in findings(tmp_path / "lab")] == [{}]


@pytest.mark.parametrize("harm", ["summary.json", "keys.txt", "gold.jsonl", "verdicts.jsonl"])
def test_a_damaged_run_of_a_lab_is_run_again_as_its_message_says(tmp_path: Path, harm: str) -> None:
    experiment, out = load_experiment(written(tmp_path)), tmp_path / "lab"
    run_experiments([experiment], out)
    page, broken = to_markdown(findings(out)), next(out.glob(f"runs/*/{harm}"))
    raw = broken.read_bytes()
    broken.write_bytes(raw[:-1].rpartition(b"\n")[0] + b"\n")
    if harm == "verdicts.jsonl":  # as `dikast doctor --repair` leaves it: a question without a verdict
        assert to_markdown(findings(out)) != page
    else:
        with pytest.raises(UserError, match="run the command that made it again"):
            findings(out)
    run_experiments([experiment], out)
    assert to_markdown(findings(out)) == page


PLACE = {"arm": "good", "seed": 1, "held": "text", "run": "runs/x", "items": "items/x", "judge": ""}
GONE = merged(GOOD, {"base": {"held": {"text": {"world": None, "n": None, "items": "gone.jsonl"}}}})
FIXED: dict[str, object] = {"name": "mine", "hash": "x", "told": GONE, "runs": [PLACE]}


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"{", {"runs": [{**PLACE, "run": "../../elsewhere"}]}, {"runs": [{**PLACE, "judge": "/etc"}]},
     {"runs": [{**PLACE, "seed": "one"}]}, {"runs": {"arm": 1}}, {"runs": None}, {"hash": 3}, {"name": None},
     {"told": []}, {"told": {}}],
)  # fmt: skip
def test_what_was_fixed_is_read_strictly(tmp_path: Path, damage: bytes | dict[str, object]) -> None:
    path = tmp_path / "lab" / "mine" / "experiment.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(FIXED))
    assert [each.verdict for each in findings(tmp_path / "lab")] == ["not run"]
    path.write_bytes(damage if isinstance(damage, bytes) else orjson.dumps({**FIXED, **damage}))
    with pytest.raises(UserError, match=r"experiment.json: not what an experiment fixed|mine.yaml: "):
        findings(tmp_path / "lab")


def test_a_seed_that_an_arm_lacks_is_not_done(tmp_path: Path) -> None:
    """One arm's run is finished, and what was fixed no longer names the other's for this seed."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "experiment.json").write_bytes(orjson.dumps(FIXED))
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "cost.json").write_bytes(b"{}")
    (found,) = findings(tmp_path)
    assert (found.verdict, found.why, found.seeds) == ("not run", "no seed is done in every arm", ())


def found_of(
    out: Path, experiment: Experiment, patch: pytest.MonkeyPatch, *, done: int = 9, seed: int | None = None
) -> Finding:
    """The finding of recorded verdicts: half of the items, named by `plus`, favour the good arm by .3, the rest the
    poor one by .2. `seed` grades the same items with every seed.
    """
    seeds = experiment.written.seeds
    places = [
        {"arm": arm, "seed": n, "held": "text", "run": f"runs/{arm}-{n}", "items": "", "judge": ""}
        for arm in experiment.arms for n in seeds
    ]  # fmt: skip

    def rows(run: Path) -> RunVerdicts:
        arm, n = run.name.split("-")
        rng = np.random.default_rng([seed or int(n), arm == "good"])
        told = {}
        for k in range(400):
            aspect = "plus" if k % 2 else "minus"
            shift = (0.3 if k % 2 else -0.2) * (arm == "good")
            told[f"i{k}", aspect, 0] = (0.5 + shift + rng.normal(0, 0.1), 0.5, "r", f"i{k}")
        return RunVerdicts(told, {"r": "It is"})

    for place in places:
        if seeds.index(place["seed"]) < done:
            (out / str(place["run"])).mkdir(parents=True, exist_ok=True)
            (out / str(place["run"]) / "cost.json").touch()
    patch.setattr("dikast.lab.findings._rows", rows)
    counted = ("taught_examples", "taught_tokens", "graded_items", "graded_tokens")
    patch.setattr("dikast.lab.findings._cost", lambda out, places: dict.fromkeys(counted, 0.0))
    told = {"name": "mine", "told": experiment.told, "runs": places}
    return finding(out, told, Resampling(draws=300))


MEANS = {
    "effects": {name: {"arm": "good", "against": "poor", "figure": "mean", "held": "text"} for name in ("gain", "too")},
    "holds": {"gain": {"above": 0.01}}, "fails": {"gain": {"below": 0.01}}, "seeds": [1, 2, 3, 4],
}  # fmt: skip


def test_there_is_no_verdict_before_every_seed_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment(written(tmp_path, **MEANS))
    early = found_of(tmp_path / "early", experiment, monkeypatch, done=2)
    assert early.effects["gain"].low > 0.01  # who stops here could say that it holds
    assert (early.verdict, early.why) == ("cannot tell at this size", "2 of 4 seeds of the experiment are done")
    assert "| 2 of 4 |" in (page := to_markdown([early]))
    assert "Seeds: 1, 2; not done: 3, 4." in page
    assert found_of(tmp_path / "all", experiment, monkeypatch).verdict == "holds"


def test_reversals_are_widened_for_all_slices_of_all_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_of(tmp_path / "lab", load_experiment(written(tmp_path, **MEANS)), monkeypatch)
    assert {each.slice for each in found.reversals} == {"aspect minus"}
    assert found.slices == 6  # two aspects and a phrase, of two effects
    assert {round(each.estimate.level, 6) for each in found.reversals} == {round(1 - 0.05 / 6, 6)}
    assert "Reversals (of 6 slices" in to_markdown([found])


def test_without_an_interval_no_reversal_is_said_to_be_absent(tmp_path: Path) -> None:
    base = {**TRAIN, "budget": {"tokens": 12_000}}
    one = load_experiment(written(tmp_path, base=base, arms={"poor": {"judge": None, "draw": 1}}))
    alone = {"gain": Estimate(0.3, 60, note="one seed")}
    found = Finding(one, (1,), alone, {}, "cannot tell at this size", "one seed", slices=8, cost=defaultdict(float))
    for page in (to_markdown([found]), lab_page([found])):
        assert "Reversals: not looked for, since no effect has an interval." in page
        assert "none." not in page


@pytest.mark.parametrize("held", [{"items": "some.jsonl", "world": None, "n": None}, {"world": {"seed": 5}}])
def test_the_same_items_under_several_seeds_say_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: dict[str, object]
) -> None:
    (tmp_path / "some.jsonl").write_bytes(orjson.dumps({"id": "1", "instruction": "?", "response": "!"}) + b"\n")

    def width(**more: object) -> float:
        told = merged(MEANS, {"base": {"held": {"text": held}}, **more})
        experiment = load_experiment(written(tmp_path, **told))
        return found_of(tmp_path / "lab", experiment, monkeypatch, seed=7).effects["gain"].half_width

    assert width() == pytest.approx(width(seeds=[1]), rel=0.15)  # four seeds as four times as many items would halve it
