"""Verdicts of a judge as what another one is taught."""

from pathlib import Path

import orjson
import pytest

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import read_items, write_items
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.engines.base import Sampling
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.lab.experiment import load_experiment
from dikast.lab.judge_stages import JudgeStage, runs_of
from dikast.lab.own_lessons import own_lessons
from dikast.lab.running import run_experiments
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson
from lab_experiments import TRAIN, written

DRAWS = 2


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Item], Path, dict[str, list[str | None]]]:
    """Items, a run of a noisy judge with two draws on each, and the labels that it gave to each."""
    folder = tmp_path_factory.mktemp("own")
    write_items(folder / "items.jsonl", (lesson(each) for each in make(Settings(domain="text", scales=("1-3",)), 60)))
    with Judge("mock:oracle,r=.5", sampling=Sampling(temperature=1.0), samples=DRAWS) as judge:
        grade_file(judge, Source(str(folder / "items.jsonl")), folder / "run")
    labels: dict[str, list[str | None]] = {}
    for verdict in sorted(current_verdicts(folder / "run"), key=lambda each: each.question.sample):
        labels.setdefault(verdict.question.item, []).append(verdict.label)
    return list(read_items(str(folder / "items.jsonl"))), folder / "run", labels


def test_what_is_kept(graded: tuple[list[Item], Path, dict[str, list[str | None]]]) -> None:
    items, run, labels = graded
    told = {item.id: item.gold["label"] for item in items}
    kept = {
        keep: {each.id: each for each in own_lessons(items, run, keep=keep, draws=DRAWS, formats=["absolute"])}
        for keep in ("all", "consistent", "right")
    }
    assert {name: one.gold["label"] for name, one in kept["all"].items()} == {n: each[0] for n, each in labels.items()}
    assert set(kept["consistent"]) == {name for name, (one, other) in labels.items() if one == other}
    assert set(kept["right"]) == {name for name, each in labels.items() if each[0] == told[name]}
    assert 5 < len(kept["right"]) < len(kept["all"]) == 60
    assert any(one.gold["label"] != told[name] for name, one in kept["consistent"].items())  # gold is not looked at
    for item in items:
        lesson_of = kept["all"][item.id]
        assert (lesson_of.instruction, lesson_of.response, lesson_of.rubric) == (
            item.instruction, item.response, item.rubric,
        )  # fmt: skip
        assert lesson_of.gold["feedback"] != item.gold["feedback"]


def test_nothing_to_teach_is_told(graded: tuple[list[Item], Path, dict[str, list[str | None]]]) -> None:
    items, run, _ = graded
    bare = [Item(each.id, each.instruction, each.responses, rubric=each.rubric) for each in items]
    with pytest.raises(UserError, match=r"run: no verdict can be taught \(no gold: 60\): .*'keep: all'"):
        list(own_lessons(bare, run, keep="right", draws=DRAWS, formats=["absolute"]))


def test_rounds_follow_each_other() -> None:
    runs = runs_of(load_experiment("self-improvement"), (1, 2))
    for seed in (1, 2):
        judges = {arm: runs[arm, seed, "other"].judge for arm, which, _ in runs if which == seed}
        assert {arm: judge.depth for arm, judge in judges.items() if judge is not None} == {
            "start": 0, "true labels": 0, "unfiltered 1": 1, "round 1": 1, "round 2": 2, "round 3": 3, "right 1": 1,
            "right 2": 2, "right 3": 3,
        }  # fmt: skip
        first, other = (judges[arm] for arm in ("round 1", "right 1"))
        assert isinstance(first, JudgeStage)
        assert isinstance(other, JudgeStage)
        assert first.lessons()[0].graded.name == other.lessons()[0].graded.name  # the start grades once for all
        assert first.lessons()[0].name != other.lessons()[0].name
        assert first.lessons()[0].graded.judge == judges["start"]
        truth = judges["true labels"]
        assert isinstance(truth, JudgeStage)
        assert [each.name for each in first.items()] == [each.name for each in truth.items()]  # the same responses
    assert runs["round 1", 1, "other"].judge != runs["round 1", 2, "other"].judge


@pytest.mark.slow
def test_judges_are_taught_by_judges(tmp_path: Path) -> None:
    """Two rounds, in one call and with the second judge, its lessons and its run taken away; nothing else is redone."""
    base = {
        **TRAIN, "budget": {"examples": 16}, "format": "scout", "max_tokens": 300,
        "train": {"model": "scout", "batch_size": 8, "learning_rate": 1e-5},
        "data": {"some": {"world": {"domain": "text"}, "n": 12, "lessons": True, "formats": ["scout"]}},
        "held": {"text": {"n": 8}},
    }  # fmt: skip
    own = {"judge": None, "data": {"some": {"taught_by": "good"}}}
    arms = {"poor": own, "third": {"judge": None, "data": {"some": {"taught_by": "poor", "keep": "consistent"}}}}
    experiment, out = load_experiment(written(tmp_path, base=base, arms=arms)), tmp_path / "lab"
    run_experiments([experiment], out, jobs=2)
    runs = runs_of(experiment, (1,))
    poor, third = runs["poor", 1, "text"], runs["third", 1, "text"]
    assert isinstance(poor.judge, JudgeStage)
    assert isinstance(third.judge, JudgeStage)
    [told], [later] = poor.judge.lessons(), third.judge.lessons()
    said = sorted(current_verdicts(told.graded.folder(out)), key=lambda verdict: verdict.question.sample)
    lessons = list(read_items(str(told.folder(out) / "items.jsonl")))
    assert lessons
    for each in lessons:  # taught is the earliest of the judge's replies that gives this label
        first = next(v for v in said if v.question.item == each.id and v.label == each.gold["label"])
        assert each.gold["feedback"] in first.raw
    assert orjson.loads((later.graded.folder(out) / "cost.json").read_bytes())["items"] == 2 * 12
    before = {path: path.stat().st_mtime_ns for path in out.rglob("cost.json")}
    gone = [path for path in before if third.judge.name in str(path) or later.name in str(path)]
    assert len(gone) == 2
    weights = (third.judge.model(out) / "model.safetensors").read_bytes()
    for path in gone:
        path.unlink()
    (third.judge.model(out) / "model.safetensors").unlink()
    run_experiments([experiment], out, jobs=2)
    after = {path: path.stat().st_mtime_ns for path in out.rglob("cost.json")}
    assert after.keys() == before.keys()
    assert [path for path in before if after[path] != before[path]] == [path for path in before if path in gone]
    assert (third.judge.model(out) / "model.safetensors").read_bytes() == weights
