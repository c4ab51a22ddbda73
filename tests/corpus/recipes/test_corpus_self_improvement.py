"""The recipe `self-improvement`: which verdicts of a judge with known faults are kept, and when the rounds end."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pillow
from typer.testing import CliRunner

from dikast.core.errors import DataError, UserError
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.corpus.pipeline.build import build, estimate
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.round_training import training_due
from dikast.corpus.pipeline.verdict_filter import Ballot, Dropped, agreed, stop_reason
from dikast.corpus.recipes import self_improvement
from dikast.engines.base import Completion, Request
from dikast.engines.mock import Mock
from dikast.surface.cli import app
from dikast.training.config import load_config

RUBRIC = {"criterion": "Is it right?", "levels": {str(n): f"{n} of five points." for n in range(1, 6)}}


@dataclass(kw_only=True, eq=False)
class Known(Mock):
    """A judge whose faults are encoded in the responses; it grades `off` of ten held-out responses one too high."""

    off: int = 5

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            if request.about.get("stage") == "generate":
                said = "" if request.about["sample"] == 3 else f"steady {request.about['sample'] + 1}"
                yield Completion(request.key, said)
            else:
                yield self.reply(request)

    def decide(self, request: Request) -> str | Mapping[str, float]:
        texts, sample = request.about["texts"], request.about["sample"]
        if request.about["kind"] == "pairwise":
            good = ["good" in text for text in texts]
            return "tie" if good == [True, True] else "first" if good != [False, True] else "second"
        word, number = texts[0].split()
        if word == "held":
            n = int(number)
            return str(min(5, n % 5 + 1 + (n % 10 < self.off)))
        if word == "mostly" and sample == 1:
            return "1"
        return str(sample % 5 + 1) if word == "wobbly" else number


def rows(path: Path, found: list[dict[str, Any]]) -> None:
    path.write_bytes(b"\n".join(map(orjson.dumps, found)))


def recipe(folder: Path, **values: Any) -> Any:
    source = [
        ("steady 4", 4), ("steady 2", 5), ("wobbly 3", 3), ("mostly 5", None), ("steady 3", 3), ("steady 1", None),
    ]  # fmt: skip
    asked: list[dict[str, Any]] = [
        {"id": f"q{i}", "instruction": f"Question {i} of the source", "response": text, "rubric": RUBRIC}
        | ({} if gold is None else {"gold": gold})
        for i, (text, gold) in enumerate(source)
    ]
    pairs = [("good", "bad", "a"), ("bad", "good", "a"), ("bad", "poor", None), ("good", "good too", None)]
    asked += [
        {"id": f"p{i}", "instruction": f"Choice {i} of the source", "responses": [a, b], "rubric": RUBRIC}
        | ({} if gold is None else {"gold": {"preference": gold}})
        for i, (a, b, gold) in enumerate(pairs)
    ]
    asked.append({**asked[0], "id": "leak", "instruction": "Held-out question 0"})
    rows(folder / "source.jsonl", asked)
    held = [{"id": f"h{i}", "instruction": f"Held-out question {i}", "response": f"held {i}", "rubric": RUBRIC,
             "gold": i % 5 + 1} for i in range(20)]  # fmt: skip
    rows(folder / "held.jsonl", held)
    path = folder / "improve.yaml"
    given = {
        "recipe": "self-improvement", "teacher": "mock:constant", "source": "source.jsonl", "held": "held.jsonl",
        "near": False, "samples": 4, "train": {"steps": 3, "model": "hf:some/model"},
    }  # fmt: skip
    path.write_bytes(orjson.dumps({**given, **values}))
    return load_recipe(path)


def test_what_agrees_and_is_borne_out_is_kept(tmp_path: Path) -> None:
    built = build(recipe(tmp_path), tmp_path / "out", teacher=Known())
    assert "round 1 is ready to train: dikast train sft --config" in built.waits
    assert built.dropped == {
        "against gold": 2, "samples disagree": 1, "orders disagree": 1, "in the held-out set": 1,
    }  # fmt: skip
    folder = tmp_path / "out" / "round-1"
    graded = {text_of(item.response): item for item in read_items(folder / "graded.jsonl")}
    assert {text: item.gold["score"] for text, item in graded.items()} == {
        "steady 4": 4, "mostly 5": 5, "steady 3": 3, "steady 1": 1,
    }  # fmt: skip
    assert [graded[text].gold["verified"] for text in ("steady 4", "mostly 5")] == [True, False]
    assert graded["mostly 5"].gold["agreement"] == [0.75]
    assert all(item.gold["feedback"] for item in graded.values())
    pairs = [(item.gold["preference"], item.gold["verified"]) for item in read_items(folder / "pairs.jsonl")]
    assert pairs == [("a", True), ("tie", False)]
    assert orjson.loads((folder / "kept.json").read_bytes())["verified"] == 3
    config = load_config(folder / "train.yaml")
    assert (config.model, config.steps, config.path(config.out)) == ("hf:some/model", 3, folder.resolve())
    assert [each.items for each in config.data] == [("graded.jsonl",), ("pairs.jsonl",)]
    assert all(config.path(name).is_file() for each in config.data for name in (*each.items, *each.formats))


def test_generated_responses_are_judged_and_kept_without_gold(tmp_path: Path) -> None:
    told = recipe(tmp_path, generate=4, stop_after_rejects=1)
    build(told, tmp_path / "out", teacher=Known())
    report = orjson.loads((tmp_path / "out" / "report.json").read_bytes())
    assert report["stages"][0]["rejected"] == {"empty": 11}
    made = [
        item for item in read_items(tmp_path / "out" / "round-1" / "graded.jsonl") if not item.gold["verified"]
    ]  # fmt: skip
    generated = [item for item in made if "-g" in item.id]
    assert Counter(item.gold["score"] for item in generated) == {1: 10, 2: 10, 3: 10}
    assert [each.calls for each in estimate(told)] == [44, 4 * (7 + 2 * 4 + 44), 20]


def test_rounds_end_when_held_out_gold_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, out = recipe(tmp_path, rounds=5, patience=2, least=0.01), tmp_path / "out"
    off = {1: 2, 2: 2, 3: 4}  # one improvement, then equal, then worse
    opened: list[int] = []

    def trained(spec: str, **options: Any) -> Known:
        number = int(Path(spec).parent.name.removeprefix("round-"))
        opened.append(number)
        return Known(off=off[number])

    monkeypatch.setattr(self_improvement, "open_engine", trained)
    built = build(told, out, teacher=Known(off=5))
    for _ in range(6):
        config = training_due(out)
        if config is None:
            break
        (config.parent / "model").mkdir()
        (config.parent / "model" / "config.json").write_text("{}")
        built = build(told, out, teacher=Known(off=5))
    rounds = orjson.loads((out / "rounds.json").read_bytes())
    values = [each["pearson"]["value"] for each in rounds["rounds"]]
    assert len(values) == 4
    assert values[0] < values[1] == values[2] > values[3]
    assert rounds["stopped"] == "the held-out Pearson did not rise by 0.01 for 2 rounds"
    assert rounds["best"] == 1
    assert all(each["pearson"]["n"] == 20 and each["pearson"]["low"] is not None for each in rounds["rounds"])
    assert (built.waits, built.items) == ("", 6)
    opened.clear()
    again = build(told, out, teacher=Known(off=5))
    assert (again.items, opened) == (6, [])  # nothing is asked, nor is any model opened


def test_an_interrupted_round_goes_on(tmp_path: Path) -> None:
    class Stops(Known):
        def reply(self, request: Request) -> Completion:
            if self.seen == self.stop:
                raise KeyboardInterrupt
            self.seen += 1
            return super().reply(request)

        seen = 0
        stop = 0

    told, asked, runs = recipe(tmp_path), 0, 0
    while runs < 30:
        engine = Stops()
        engine.stop = 15
        runs += 1
        try:
            built = build(told, tmp_path / "out", teacher=engine)
        except KeyboardInterrupt:
            asked += engine.seen
            continue
        asked += engine.seen
        break
    assert "ready to train" in built.waits
    assert runs > 3
    assert asked == 20 + 4 * 6 + 8 * 4  # held-out, graded and pairs: nothing twice
    whole = tmp_path / "whole"
    build(told, whole, teacher=Known())
    for name in ("graded.jsonl", "pairs.jsonl"):
        assert (whole / "round-1" / name).read_bytes() == (tmp_path / "out" / "round-1" / name).read_bytes()


def test_a_round_that_keeps_nothing_is_the_last(tmp_path: Path) -> None:
    told = recipe(tmp_path)
    rows(tmp_path / "source.jsonl", [{"id": "w", "instruction": "Why?", "response": "wobbly 3", "rubric": RUBRIC}])
    built = build(told, tmp_path / "out", teacher=Known())
    assert (built.waits, built.items, built.notes) == ("", 0, ["round 1 kept nothing to train on"])
    assert training_due(tmp_path / "out") is None


def test_agreement_by_hand() -> None:
    # 4 samples: 3 of 4 is .75; 2 failures beside 2 alike is .5 of what was asked, not all of it
    def ballot(*orders: Counter[str]) -> Ballot:
        return Ballot({(i, 1 - i): each for i, each in enumerate(orders)})

    assert agreed(ballot(Counter(a=3, b=1)), 4, 0.75) == "a"
    for votes, told in (
        (ballot(Counter(a=2)), "samples disagree"),
        (ballot(Counter(a=4), Counter(b=4)), "orders disagree"),
        (ballot(Counter(a=4), Counter(a=2, b=2)), "samples disagree"),
        (ballot(Counter()), "no verdict"),
        (ballot(), "no verdict"),
    ):
        with pytest.raises(Dropped, match=told):
            agreed(votes, 4, 0.75)


def test_the_stop_rule_by_hand() -> None:
    assert stop_reason([0.5], 0.01, 1) == ""
    assert stop_reason([0.5, 0.51], 0.01, 1) == ""
    assert stop_reason([0.5, 0.505], 0.01, 1)
    assert stop_reason([0.5, 0.505], 0.01, 2) == ""
    assert stop_reason([0.5, 0.505, 0.512], 0.01, 2)  # .512 is .007 above the best, .505
    assert stop_reason([None, 0.1], 0.01, 1) == ""
    assert stop_reason([0.5, None], 0.01, 1)
    assert stop_reason([0.5, 0.4, 0.6, 0.4], 0.01, 2) == ""


def test_bad_input_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    for given, told in (
        ({"held": ""}, "needs 'held'"),
        ({"agree": 0.5}, r"above \.5"),
        ({"compare": True, "generate": 1}, "two or more"),
        ({"train": {"steps": 3}}, "has no local weights"),
        ({"train": {"data": [], "model": "x"}}, "set by each round"),
        ({"teacher": "world:text"}, "cannot be trained"),
        ({"train": 3}, "'train': expected a mapping"),
    ):
        with pytest.raises(DataError, match=told):
            recipe(tmp_path, **given)
    with pytest.raises(UserError, match="at temperature 0 are all the same"):
        build(recipe(tmp_path, temperature=0), tmp_path / "cold", teacher=Known())
    told = recipe(tmp_path)
    rows(tmp_path / "held.jsonl", [{"id": "x", "instruction": "q", "response": "held 1", "rubric": RUBRIC}])
    with pytest.raises(UserError, match="'x' has no gold"):
        build(told, tmp_path / "out", teacher=Known())
    assert not list((tmp_path / "out").glob("round-*/*/verdicts.jsonl"))
    path = tmp_path / "improve.yaml"
    path.write_bytes(path.read_bytes().replace(b'"steps"', b'"stepps"'))
    found = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(tmp_path / "cli")])
    assert found.exit_code != 0
    assert "did you mean 'steps'" in str(found.exception) + found.output
    assert not (tmp_path / "cli").exists()


def test_constant_verdicts_have_no_correlation(tmp_path: Path) -> None:
    build(recipe(tmp_path), tmp_path / "out", teacher=Known(off=10, feedback=0))
    first = orjson.loads((tmp_path / "out" / "round-0" / "held.json").read_bytes())
    assert math.isclose(first["pearson"]["value"], 0.97, abs_tol=0.03)
    flat = tmp_path / "flat.jsonl"
    rows(flat, [{"id": f"h{i}", "instruction": f"q{i}", "response": "steady 3", "rubric": RUBRIC, "gold": i + 1}
                for i in range(5)])  # fmt: skip
    build(recipe(tmp_path, held="flat.jsonl"), tmp_path / "flat", teacher=Known())
    told = orjson.loads((tmp_path / "flat" / "round-0" / "held.json").read_bytes())
    assert (told["pearson"]["value"], told["pearson"]["n"]) == (None, 5)


def test_the_same_words_about_another_picture_are_another_question(tmp_path: Path) -> None:
    for name, colour in (("one", (255, 0, 0)), ("two", (0, 0, 255))):
        Pillow.new("RGB", (32, 32), colour).save(tmp_path / f"{name}.png")
    (tmp_path / "copy.png").write_bytes((tmp_path / "one.png").read_bytes())
    held = {"instruction": "What is it?", "response": "held 1", "rubric": RUBRIC, "gold": 2, "image": "one.png"}
    rows(tmp_path / "seen.jsonl", [{**held, "id": str(n), "response": f"held {n}", "gold": n + 1} for n in (0, 1)])
    given = [{**held, "id": name, "image": f"{name}.png", "response": "steady 2"} for name in ("copy", "two")]
    told = recipe(tmp_path, source="pictures.jsonl", held="seen.jsonl")
    rows(tmp_path / "pictures.jsonl", given)
    built = build(told, tmp_path / "out", teacher=Known())
    assert built.dropped == {"in the held-out set": 1}
    (kept,) = read_items(tmp_path / "out" / "round-1" / "graded.jsonl")
    assert kept.meta["from"] == "two"


@pytest.mark.slow
def test_two_rounds_of_a_tiny_model(tmp_path: Path) -> None:
    """The command trains the prepared rounds, and resumes where it was stopped."""
    import tiny_models
    from dikast.training.sft import sft
    from dikast.worlds.settings import Settings
    from dikast.worlds.write import write_world

    tiny_models.build("llama", tmp_path / "raw")
    seen: dict[str, Any] = {"domain": "text", "claims": (1, 2), "scales": ("1-3",)}
    write_world(Settings(seed=1, **seen), 12, tmp_path / "source")
    write_world(Settings(seed=2, **seen), 8, tmp_path / "held")
    form = {"kind": "absolute", "dialect": "verdict", "marker": "Verdict:", "feedback": False,
            "user": "{{ instruction }}\n{{ response }}\nEnd with Verdict: and {{ scale }}\n"}  # fmt: skip
    (tmp_path / "short.yaml").write_bytes(orjson.dumps(form))
    steps = {
        "batch_size": 4,
        "max_tokens_per_micro_batch": 1500,
        "learning_rate": 3e-3,
        "device": "cpu",
        "label_loss_weight": 4.0,
    }
    data = [{"items": ["source/items-00000.jsonl"], "formats": ["short.yaml"]}]
    (tmp_path / "warm.yaml").write_bytes(
        orjson.dumps({"model": "raw", "out": "warm", "steps": 30, "data": data, **steps})
    )
    sft(tmp_path / "warm.yaml")  # so that the model writes labels at all
    told = {
        "recipe": "self-improvement", "teacher": str(tmp_path / "warm" / "model"), "source": "source/items-00000.jsonl",
        "held": "held/items-00000.jsonl", "rounds": 2, "patience": 2, "samples": 2, "agree": 0.6, "generate": 1,
        "max_tokens": 12, "format": "short.yaml", "near": False, "stop_after_rejects": 1,
        "train": {**steps, "steps": 2},
    }  # fmt: skip
    path = tmp_path / "improve.yaml"
    path.write_bytes(orjson.dumps(told))
    out = tmp_path / "out"
    stopped = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(out), "--no-train", "-q"])
    assert stopped.exit_code == 3, stopped.output
    assert "round 1 is ready to train" in stopped.output
    done = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(out), "-q"])
    assert done.exit_code == 0, done.output + repr(done.exception)
    rounds = orjson.loads((out / "rounds.json").read_bytes())
    assert [each["round"] for each in rounds["rounds"]] == [0, 1, 2]
    assert rounds["stopped"].startswith(("all 2 rounds", "the held-out"))
    second = load_config(out / "round-2" / "train.yaml")
    assert second.model == str((out / "round-1" / "model").resolve())
    assert all((out / f"round-{n}" / "model" / "model.safetensors").is_file() for n in (1, 2))
    assert sum(1 for _ in read_items(out / "items.jsonl")) > 0
