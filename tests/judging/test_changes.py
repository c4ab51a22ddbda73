"""Whatever could change an answer makes a new question; an old answer is never served for it, and is kept for later."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from dikast.core.errors import EngineError
from dikast.core.item import item_from
from dikast.core.rubric import Rubric, load_rubric
from dikast.engines.base import Sampling
from dikast.engines.mock import Mock
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from dikast.judging.run_plan import Source
from runs import lines, rows, summary, write_jsonl

RUBRIC: dict[str, Any] = {"name": "good", "criterion": "Is it good?", "scale": "1-5", "levels": {"1": "no", "5": "yes"}}
ITEM = {
    "id": "one",
    "instruction": "Say something.",
    "response": "Something.",
    "reference": "Anything.",
    "context": "A talk.",
    "gold": 3,
    "meta": {"split": "test"},
}


@dataclass(kw_only=True, eq=False)
class Model(Mock):
    """Stands for a model with weights on a disk, which never sees gold."""

    weights: str = "v1"
    reads_gold = False
    asked: list[str] = field(default_factory=list)

    def decide(self, request: Any) -> str:
        self.asked.append(request.about["item"])
        return "3" if request.about["kind"] == "absolute" else "first"

    def identity(self) -> Mapping[str, Any]:
        return {"engine": "model", "weights": self.weights, "reads_gold": self.reads_gold}


class Bench:
    """One folder, one file of items, and a count of what is asked each time."""

    def __init__(self, tmp_path: Path) -> None:
        self.items, self.run = tmp_path / "items.jsonl", tmp_path / "run"

    def asks(self, item: Mapping[str, Any] | list[dict[str, Any]], weights: str = "v1", **settings: Any) -> int:
        """Grade one item (or a list) with these settings; how many questions went to the model."""
        write_jsonl(self.items, item if isinstance(item, list) else [item])
        model = Model(weights=weights)
        rubric = settings.pop("rubric", RUBRIC)
        found = grade_file(Judge(model, rubric, **settings), Source(str(self.items)), self.run)
        assert found["asked"] == len(model.asked)
        assert found["verdicts"] == found["questions"], "stale verdicts count, or new ones do not"
        return len(model.asked)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "two"},
        {"instruction": "Say nothing."},
        {"instruction": [{"role": "system", "content": "Say something."}]},
        {"response": "Something"},
        {"response": [{"type": "text", "text": "Some"}, {"type": "text", "text": "thing."}]},
        {"reference": "Nothing."},
        {"reference": None},
        {"context": "A walk."},
        {"context": None, "reference": "A talk."},
        {"rubric": {**RUBRIC, "criterion": "Is it short?"}},
    ],
    ids=lambda change: "+".join(change),
)
def test_an_edited_item_is_asked_anew_and_the_old_one_is_still_known(bench: Bench, change: dict[str, Any]) -> None:
    assert bench.asks(ITEM) == 1
    assert bench.asks({**ITEM, **change}) == 1
    assert bench.asks({**ITEM, **change}) == 0
    assert bench.asks(ITEM) == 0
    assert len(lines(bench.run / "verdicts.jsonl")) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"criterion": "Is it bad?"},
        {"name": "fine"},
        {"scale": "1-6", "levels": {}},
        {"levels": {"1": "not at all", "5": "yes"}},
        {"levels": {"5": "yes"}},
        {"lower_is_better": True},
    ],
    ids=lambda change: "+".join(change),
)
def test_an_edited_rubric(bench: Bench, change: dict[str, Any]) -> None:
    assert bench.asks(ITEM) == 1
    assert bench.asks(ITEM, rubric={**RUBRIC, **change}) == 1
    assert bench.asks(ITEM, rubric={**RUBRIC, **change}) == 0
    assert bench.asks(ITEM, rubric=dict(RUBRIC)) == 0


def test_a_new_weight_is_only_a_new_sum(bench: Bench) -> None:
    def sheet(weight: float) -> dict[str, Any]:
        return {"criteria": [{**RUBRIC, "weight": weight}, {**RUBRIC, "name": "brief", "criterion": "Is it brief?"}]}

    assert bench.asks(ITEM, rubric=sheet(1)) == 2
    assert bench.asks(ITEM, rubric=sheet(3)) == 0


def test_an_edited_format(bench: Bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    text = "kind: absolute\ndialect: verdict\nmarker: 'Verdict:'\nuser: 'Grade: {{ response }} by {{ criterion }}'\n"
    mine.write_text(text)
    assert bench.asks(ITEM) == 1
    assert bench.asks(ITEM, format=mine) == 1
    mine.write_text(text.replace("Grade:", "Score:"))
    assert bench.asks(ITEM, format=mine) == 1
    mine.write_text(text)
    assert bench.asks(ITEM, format=mine) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"weights": "v2"},
        {"sampling": Sampling(temperature=0.5)},
        {"sampling": Sampling(top_p=0.9)},
        {"sampling": Sampling(max_tokens=64)},
        {"sampling": Sampling(seed=1)},
        {"min_mass": 0.25},
        {"read": "never"},
        {"read": "only"},
    ],
    ids=str,
)
def test_another_model_or_setting(bench: Bench, settings: dict[str, Any]) -> None:
    assert bench.asks(ITEM) == 1
    assert bench.asks(ITEM, **settings) == 1
    assert bench.asks(ITEM, **settings) == 0
    assert bench.asks(ITEM) == 0


def test_more_samples_are_paid_for_once(bench: Bench) -> None:
    warm = Sampling(temperature=1.0)
    assert bench.asks(ITEM, sampling=warm) == 1
    assert bench.asks(ITEM, sampling=warm, samples=3) == 2
    assert bench.asks(ITEM, sampling=warm, samples=2) == 0
    assert summary(bench.run)["verdicts"] == 2


def test_gold_and_meta_are_nothing_to_a_judge_that_does_not_see_them(bench: Bench) -> None:
    assert bench.asks(ITEM) == 1
    assert bench.asks({**ITEM, "gold": 5, "meta": {"split": "train"}}) == 0
    assert lines(bench.run / "gold.jsonl") == [{"item": "one", "gold": 5}]


def test_new_gold_asks_a_mock_that_reads_it(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"

    def asks(engine: str, gold: int, meta: str) -> int:
        write_jsonl(items, [{**ITEM, "gold": gold, "meta": {"split": meta}}])
        asked: int = grade_file(Judge(engine, RUBRIC), Source(str(items)), tmp_path / "run")["asked"]
        return asked

    assert asks("mock:oracle", 3, "test") == 1
    assert asks("mock:oracle", 3, "train") == 0
    assert asks("mock:oracle", 4, "train") == 1
    assert asks("mock:oracle", 3, "train") == 0
    assert asks("mock:oracle,r=0", 3, "test") == 1
    assert asks("mock:oracle,r=0", 4, "test") == 0


def test_other_bytes_at_the_path_of_an_image(bench: Bench, tmp_path: Path) -> None:
    def paint(colour: str) -> None:
        Pillow.new("RGB", (32, 32), colour).save(tmp_path / "it.png")

    item = {**ITEM, "image": "it.png"}
    paint("red")
    assert bench.asks(item) == 1
    paint("blue")
    assert bench.asks(item) == 1
    Pillow.new("RGB", (32, 32), "blue").save(tmp_path / "same.png")
    assert bench.asks({**ITEM, "image": "same.png"}) == 0  # what is seen is the same, wherever it lies
    paint("red")
    assert bench.asks(item) == 0
    assert bench.asks(ITEM) == 1


def test_an_image_that_goes_and_comes_back(bench: Bench, tmp_path: Path) -> None:
    item = {**ITEM, "image": "it.png"}
    write_jsonl(bench.items, [item])
    judge = Judge(Model(), RUBRIC)
    found = grade_file(judge, Source(str(bench.items)), bench.run)
    assert found["status"] == {"bad_item": 1}
    assert "does not exist" in lines(bench.run / "verdicts.jsonl")[0]["reason"]
    Pillow.new("RGB", (32, 32), "red").save(tmp_path / "it.png")
    assert bench.asks(item) == 1
    assert summary(bench.run)["status"] == {"ok": 1}


def test_items_with_rubrics_of_their_own(bench: Bench) -> None:
    other = {**RUBRIC, "name": "short", "criterion": "Is it short?"}
    several = [{**ITEM, "id": "a"}, {**ITEM, "id": "b", "rubric": other}, {**ITEM, "id": "c", "rubric": "helpfulness"}]
    assert bench.asks(several) == 3
    asked = {each["question"]["item"]: each["question"]["criterion"] for each in lines(bench.run / "verdicts.jsonl")}
    assert asked == {"a": "good", "b": "short", "c": "helpfulness"}
    assert summary(bench.run)["criteria"].keys() == {"good", "short", "helpfulness"}
    assert bench.asks(several, rubric={**RUBRIC, "criterion": "Is it kind?"}) == 1  # the others never saw it


def test_a_pair_is_a_question_in_each_order(tmp_path: Path) -> None:
    items, run = tmp_path / "items.jsonl", tmp_path / "run"
    pair = {"id": "p", "instruction": "Say something.", "responses": ["One.", "Two."]}

    def asks(item: dict[str, Any], **settings: Any) -> int:
        write_jsonl(items, [item])
        asked: int = compare_file(Judge(Model(), RUBRIC), Source(str(items)), run, **settings)["asked"]
        return asked

    assert asks(pair, both_orders=False) == 1
    assert asks(pair) == 1
    assert asks(pair) == 0
    assert asks({**pair, "responses": ["Two.", "One."]}) == 2
    assert asks({**pair, "responses": ["One.", "Two.", "Three."]}) == 4
    assert summary(run)["preferences"]["pairs"] == 3
    assert asks(pair) == 0
    assert summary(run)["preferences"]["pairs"] == 1


def test_the_lock_of_another_judge_is_kept_and_that_is_said(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.asks(ITEM)
    assert "last used" not in caplog.text
    first = (bench.run / "judge.lock.json").read_bytes()
    bench.asks(ITEM, weights="v2")
    kept = list(bench.run.glob("judge.lock.*.json"))
    assert [each.read_bytes() for each in kept] == [first]
    assert (bench.run / "judge.lock.json").read_bytes() != first
    assert f"{bench.run}: it was last used with another judge" in caplog.text


def test_an_answer_that_never_came_is_asked_for_again(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(40)), tmp_path / "run"

    def grade(**failures: Any) -> dict[str, Any]:
        return grade_file(Judge(Flaky(**failures), "helpfulness"), Source(str(items)), run)

    first = grade(down=range(10, 25))
    assert first["status"] == {"ok": 25, "engine_error": 15}
    second = grade(down=range(20, 22))
    assert (second["asked"], second["answered_before"]) == (15, 25)
    assert second["status"] == {"ok": 38, "engine_error": 2}
    third = grade()
    assert third["asked"] == 2
    assert third["status"] == {"ok": 40}
    assert len(lines(run / "verdicts.jsonl")) == 57  # the errors stand in the file, and no longer count


@dataclass(kw_only=True, eq=False)
class Flaky(Mock):
    """A server that is down for the items of some numbers; that is no part of its identity."""

    down: range = range(0)
    reads_gold = False

    def decide(self, request: Any) -> str:
        if int(request.about["item"][1:]) in self.down:
            raise EngineError("the server is down", kind="down", retryable=True)
        return "4"

    def identity(self) -> Mapping[str, Any]:
        return {"engine": "flaky"}


def test_keys_do_not_run_together(tmp_path: Path) -> None:
    """Where the parts of a question end is part of its key."""
    judge = Judge(Model(), RUBRIC)
    seen = set()
    for item in (
        {"id": "a", "instruction": "b", "response": "c"},
        {"id": "a", "instruction": "", "response": "bc"},
        {"id": "ab", "instruction": "", "response": "c"},
        {"id": "a", "reference": "b", "response": "c"},
        {"id": "a", "context": "b", "response": "c"},
        {"id": "a", "instruction": ["b"], "response": "c"},
        {"id": "a", "instruction": [{"role": "assistant", "content": "b"}], "response": "c"},
        {"id": "a", "responses": ["b", "c"]},
    ):
        seen |= {task.key for task in judge.tasks([item_from(item)], "each")}
    assert len(seen) == 8  # `["b"]` is the text "b"; two responses make two
    rubric = load_rubric(RUBRIC)
    assert isinstance(rubric, Rubric)
    assert replace(rubric, weight=2.0).hash == rubric.hash
    assert replace(rubric, name="other").hash != rubric.hash
