"""Experiments as files: what is read, and what is refused before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.text import read_located
from dikast.lab.experiment import MOST_LINES, load_experiment, names, read_experiment
from dikast.lab.region import Region
from lab_experiments import TRAIN, written


@pytest.mark.parametrize("name", names())
def test_what_comes_with_dikast_reads(name: str) -> None:
    found = load_experiment(name)
    assert found.written.holds
    assert found.written.fails
    assert len(found.arms) > 1
    assert found.hash == load_experiment(name).hash


def taught(sources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Arms that train, with these changes to what they are taught."""
    arms = {name: {"judge": None, "data": {"some": each}} for name, each in {"poor": {"n": 30}, **sources}.items()}
    return {"base": {**TRAIN, "budget": {"examples": 9}}, "arms": arms}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an arm that changes nothing": ({"arms": {"same": {}}}, "arms.same.*changes nothing.*'good'"),
    "no claim": ({"claim": " "}, "claim.*say what is claimed"),
    "no source": ({"source": ""}, "source.*say where the claim is made"),
    "a variable that is none": ({"variable": "budgte"}, "variable.*budget"),
    "no rule to refute": ({"fails": None}, "'fails' is missing"),
    "an empty rule to refute": ({"fails": {"gain": None}}, "needs a rule that would refute"),
    "a rule that nothing can meet": ({"fails": {"gain": {"below": -5}}}, "fails.gain.*no interval .* below -5"),
    "a region upside down": ({"holds": {"gain": {"above": None, "within": [0.6, 0.4]}}}, "no interval .* within 0.6"),
    "regions that overlap": ({"fails": {"gain": {"below": 0.3}}}, "overlap"),
    "a rule about nothing": ({"holds": {"loss": {"above": 0}}}, "no effect is called 'loss'"),
    "a region of two kinds": ({"holds": {"gain": {"below": 0.2}}}, "'above', 'below' or 'within', one of them"),
    "an unknown figure": ({"effects": {"gain": {"figure": "persson"}}}, "did you mean 'pearson'"),
    "an unknown arm": ({"effects": {"gain": {"arm": "goood"}}}, "did you mean 'good'"),
    "a set that no arm grades": ({"effects": {"gain": {"held": "images"}}}, "arm 'good' grades no set 'images'"),
    "a set without items": ({"base": {"held": {"text": {"n": None}}}}, "how many items the world draws"),
    "a world that is not": ({"base": {"held": {"text": {"world": {"domain": "txt"}}}}}, "base.held.text.world.*'text'"),
    "a slip in an arm": ({"arms": {"poor": {"jugde": "x"}}}, "arms.poor.jugde.*did you mean 'judge'"),
    "no such file": ({"base": {"held": {"text": {"world": None, "n": None, "items": "no.jsonl"}}}}, "no such file"),
    "no judge": ({"base": {"judge": None}}, "give 'train'"),
    "seeds twice": ({"seeds": [1, 1]}, "each once"),
    "no budget": ({"base": TRAIN, "arms": {"poor": {"judge": None, "draw": 1}}}, "give 'budget'"),
    "steps beside a budget": (
        {"base": {**TRAIN, "train": {"init": "nano:32x1", "steps": 9}, "budget": {"examples": 9}},
         "arms": {"poor": {"judge": None, "draw": 1}}}, "train.steps.*follows from 'budget'",
    ),
    "an unknown teacher": (taught({"other": {"taught_by": "goood"}}), "other.data.some.*no arm.* did you mean 'good'"),
    "a teacher that is not trained": (
        {"base": {**TRAIN, "budget": {"examples": 9}},
         "arms": {"poor": {"judge": None, "data": {"some": {"taught_by": "mock"}}},
                  "mock": {"judge": "mock:oracle", "train": None, "data": None, "budget": None}}},
        "poor.data.some.*no arm that is trained is called 'mock'",
    ),
    "a judge that teaches itself": (taught({"other": {"taught_by": "other"}}), "arms.other.*taught by itself"),
    "judges that teach each other": (
        taught({"other": {"taught_by": "poor"}, "poor": {"taught_by": "other"}}), "arms.other.*taught by itself",
    ),
    "a filter of nobody's verdicts": (taught({"other": {"keep": "right"}}), "other.data.some.*nobody gives any"),
    "budgets that differ": (
        {"base": {**TRAIN, "budget": {"examples": 100}},
         "arms": {"poor": {"judge": None, "budget": {"examples": 102}}}}, "102 examples where 'good' has 100",
    ),
    "a change point of few doses": (
        {"effects": {"gain": {"arm": None, "against": None, "change_point": {"good": 0, "poor": 1}}}},
        "arms of 5 doses",
    ),
    "a curve of two doses": (
        {"effects": {"gain": {"arm": None, "against": None, "curve": {"good": 1, "poor": 2}}}}, "needs arms of 3 doses",
    ),
    "a curve from dose 0": (
        {"arms": {"fair": {"judge": "mock:oracle,r=.5"}},
         "effects": {"gain": {"arm": None, "against": None, "curve": {"good": 1, "poor": 2, "fair": 0}}}}, "above 0",
    ),
    "a curve of no number": (
        {"arms": {"fair": {"judge": "mock:oracle,r=.5"}},
         "effects": {"gain": {"arm": None, "against": None, "curve": {"good": 1, "poor": 2, "fair": float("nan")}}}},
        "the dose of 'fair' is no finite number",
    ),
    "a slope to infinity": (
        {"effects": {"gain": {"arm": None, "against": None, "slope": {"good": 1, "poor": float("inf")}}}},
        "the dose of 'poor' is no finite number",
    ),
    "an effect of two kinds": ({"effects": {"gain": {"alarms": 10, "delay": 10}}}, "is of one kind"),
    "a spread of one arm": (
        {"effects": {"gain": {"arm": None, "against": None, "spread": ["good"]}}}, "a spread needs two arms",
    ),
    "sequences of a figure that is no mean": ({"effects": {"gain": {"alarms": 10}}}, "watched in one of mean, mae"),
    "a spread of trained judges": (
        {"base": {**TRAIN, "budget": {"examples": 9}}, "arms": {"poor": {"judge": None, "draw": 1}},
         "effects": {"gain": {"arm": None, "against": None, "spread": ["good", "poor"]}}},
        "judges that are not trained",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_experiments_are_refused(tmp_path: Path, case: str) -> None:
    changes, told = BAD[case]
    with pytest.raises(UserError, match=f"(?s){told}"):
        load_experiment(written(tmp_path, **changes))


def test_budgets_may_differ_a_little_or_as_the_variable(tmp_path: Path) -> None:
    arms = {"poor": {"judge": None, "budget": {"examples": 101}}}
    assert load_experiment(written(tmp_path, base={**TRAIN, "budget": {"examples": 100}}, arms=arms)).trains
    arms = {"poor": {"judge": None, "budget": {"examples": 400}}}
    assert load_experiment(written(tmp_path, base={**TRAIN, "budget": {"examples": 100}}, arms=arms, variable="budget"))


def test_a_file_is_short(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text() + "# more\n" * MOST_LINES)
    with pytest.raises(UserError, match="at most 60"):
        load_experiment(path)


def test_unknown_names_are_told() -> None:
    with pytest.raises(UserError, match="there is no experiment 'drifft'"):
        load_experiment("drifft")


def test_regions_hold_whole_intervals() -> None:
    nan = float("nan")
    assert Region(above=0.1).holds(0.11, 2)
    assert not Region(above=0.1).holds(0.1, 2)
    assert Region(below=0.1).holds(-1, 0.09)
    assert not Region(below=0.1).holds(-1, 0.1)
    assert Region(within=(-1, 1)).holds(-1, 1)
    assert not Region(within=(-1, 1)).holds(-1, 1.1)
    assert not any(region.holds(nan, nan) for region in (Region(above=0), Region(below=0), Region(within=(-9, 9))))


@pytest.mark.parametrize("how", ["base", "arm"])
def test_a_file_sends_no_key_to_a_server_of_its_own(tmp_path: Path, how: str) -> None:
    spec = "http://evil.example/v1#m,key_env=OPENAI_API_KEY"
    path = written(tmp_path, **({"base": {"judge": spec}} if how == "base" else {"arms": {"poor": {"judge": spec}}}))
    with pytest.raises(UserError, match=r"the experiment sends.*--allow-key OPENAI_API_KEY@evil.example$"):
        load_experiment(path)
    assert load_experiment(path, allow_keys=["OPENAI_API_KEY@evil.example"]).arms
    if how == "base":  # what is typed is trusted
        assert load_experiment(path, {"judge": "http://mine.example/v1#m,key_env=JUDGE_KEY"}).arms


def test_a_name_that_leads_out_of_the_lab_is_none(tmp_path: Path) -> None:
    path = written(tmp_path).rename(tmp_path / "...yaml")
    with pytest.raises(UserError, match="is no name"):
        load_experiment(path)


def test_a_plan_of_before_is_read_whatever_it_calls_its_variable(tmp_path: Path) -> None:
    path = written(tmp_path, source="", variable="data")
    with pytest.raises(UserError, match=r"(?s)where the claim is made.*'budget' is the one that may differ"):
        load_experiment(path)
    assert read_experiment(read_located(path), tmp_path, "mine").written.variable == "data"
