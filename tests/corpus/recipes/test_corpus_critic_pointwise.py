"""The recipe `critic-pointwise`: exact worlds, files, several responders, and the pool of evaluation prompts."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image as Pillow

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.part import Image, text_of
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.corpus.convert import convert_file
from dikast.corpus.pipeline.build import build, estimate
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.stage import Rejected
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.recipes.critic_pointwise import _judgement_reader
from dikast.corpus.sources.evaluation_prompts import FAMILIES, Evaluation, pool
from dikast.corpus.sources.own_prompts import own_prompt
from dikast.corpus.sources.picture_questions import QuestionSource, quotas
from dikast.corpus.teachers.picture_teacher import PictureTeacher
from dikast.engines.base import Completion, Request
from dikast.prompts.dialects.critic import first_score
from dikast.prompts.gold import gold_of
from dikast.worlds.scoring.aspects import ASPECTS
from scripted import Scripted

WORDS = ("river", "stone", "tower", "garden", "window", "letter", "bridge", "winter", "market", "candle", "harbour")


def recipe(tmp_path: Path, **values: Any) -> Any:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(orjson.dumps({"recipe": "critic-pointwise", "teacher": "world:scenes", **values}))
    return load_recipe(path)


def test_the_pool_covers_seven_families() -> None:
    prompts = pool()
    assert Counter(each.family for each in prompts) == dict.fromkeys(FAMILIES, 3)
    assert len({each.hash for each in prompts}) == len(prompts)
    assert [each.family for each in prompts if each.pair] == ["arena"] * 3
    assert {each.name for each in pool(["hallucination"])} == {"useful-and-true", "invented", "misled"}
    names = [each.rubric.name for each in prompts]
    assert len(set(names)) == len(names)


def test_a_world_judges_exactly(tmp_path: Path) -> None:
    told = recipe(tmp_path, pairs=12, samples=5, text_rich=0.5)
    built = build(told, tmp_path / "out")
    assert (built.items, built.waits) == (60, "")
    assert set(built.figures["evaluation_prompts"]) == set(FAMILIES)
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    assert Counter(item.meta["source_set"] for item in items) == {
        "world:scenes": 30, "world:plates": 15, "world:charts": 15,
    }  # fmt: skip
    for item in items:
        assert isinstance(item.rubric, Rubric)
        assert load_image(item.images[0]).size == (96, 96)
        if item.meta["prompt"]["family"] == "arena":
            assert item.gold["preference"] == ("tie" if "=" in item.gold["label"] else item.gold["label"][0].lower())
            continue
        right = item.gold["feedback"].count("-> right")
        said = len(item.gold["feedback"].splitlines())
        assert item.rubric.scale.low <= item.gold["score"] <= item.rubric.scale.high
        if right == said:  # nothing is wrong, so nothing is lost
            assert item.gold["score"] == item.rubric.scale.high
    assert any(item.reference is None for item in items) == any(len(item.responses) == 2 for item in items)
    build(told, tmp_path / "again")
    assert (tmp_path / "again" / "items.jsonl").read_bytes() == (tmp_path / "out" / "items.jsonl").read_bytes()


def test_a_world_s_scores_follow_its_rubric_s_costs(tmp_path: Path) -> None:
    """The score, by hand: the points lost by wrong claims are added up; the rubric's level for the sum is the score."""
    teacher, seen = PictureTeacher("scenes", seed=5), 0
    for number in range(6):
        view, answers = teacher._views(number)[0], teacher.answers(number, 4)
        assert len({each.text for each in answers}) >= 3
        for each in pool(["open-chat", "wild-chat"]):
            rubric = teacher.judged(number, each, 4)
            spec = teacher._judging(number, each.family, each.name, str(each.rubric.scale), 4)
            if rubric is None or spec is None:
                continue
            weights = dict(spec.weights)
            for i, said in enumerate(answers):
                about = {"stage": "judgement", "number": number, "count": 4, "responses": (i,), "evaluation": each}
                [reply] = teacher.stream([Request("k", (), about=about)])
                parsed = each.form.parse(reply.text, rubric)
                lost = 0
                for claim in said.claims:
                    off, aspect = view.domain.measure(claim, view.graph).metric, ASPECTS[claim.aspect]
                    lost += weights.get(claim.aspect, 0) * (2 if spec.graded and off >= aspect.far else 1) * (off > 0)
                level = sum(lost > cut for cut in spec.cuts)
                assert parsed.label == rubric.scale.labels[-1 - level]
                seen += 1
    assert seen > 60


def test_an_answer_is_scored_beside_its_reference(tmp_path: Path) -> None:
    """Two scores on the first line, `s1 s2`: of the reference, which a world makes flawless, and of the answer."""
    build(recipe(tmp_path, pairs=6, families=["relative"], samples=2), tmp_path / "out")
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    assert len(items) == 12
    for item in items:
        assert isinstance(item.rubric, Rubric)
        assert item.reference is not None
        told, own = item.meta["prompt"], own_prompt(item)
        assert own is not None
        best, label = item.rubric.scale.labels[-1], item.rubric.scale.label(item.gold["score"])
        reply = own.target(item, gold_of(item, item.rubric, (0,)), item.rubric, (0,)).text
        assert (told["reference"], reply) == (best, f"{best} {label}\n{item.gold['feedback']}")
        assert (first_score(reply), own.form.parse(reply, item.rubric).label) == (float(best), label)
        asked = own.form.ask(item, item.rubric, (0,))[-1].text
        assert asked.index(text_of(item.reference)) < asked.index(text_of(item.responses[0]))
    assert len({item.gold["score"] for item in items}) > 2


@pytest.mark.parametrize(("reply", "reason"), [
    ("7\nIt names the sign.", "no line with two scores"), ("9 7", "the explanation is missing"),
    ("11 7\nIt names the sign.", "the reference's score is not on the scale"),
    ("Here they are.\n9 7\nIt names the sign.", "no line with two scores"),
    ("It names the sign.\n9 7", "no line with two scores"),
    ("9 7\nIt names the sign.\n8 6\nNot red.", "the explanation has another line of two scores"),
])  # fmt: skip
def test_two_scores_without_reasons_or_off_the_scale_are_rejected(tmp_path: Path, reply: str, reason: str) -> None:
    evaluation = pool(["relative"])[0]
    item = Item.of("Read it.", response="It says 5.", reference="It says 5, in red.", rubric=evaluation.rubric)
    item = replace(item, meta={"prompt": {"family": "relative"}})
    read = _judgement_reader(recipe(tmp_path, pairs=1), item, evaluation, evaluation.rubric)
    with pytest.raises(Rejected, match=reason):
        read(reply)
    [made] = read("9 7\nIt names the sign.")
    assert made["gold"] == {"score": 7, "feedback": "It names the sign."}
    assert made["meta"]["prompt"]["reference"] == "9"


@pytest.mark.parametrize("families", [(), ("relative",)])
def test_a_row_goes_to_the_critic_s_schema_with_its_own_prompt_and_back(
    tmp_path: Path, families: tuple[str, ...]
) -> None:
    build(recipe(tmp_path, pairs=6, families=families), tmp_path / "out")
    items = tmp_path / "out" / "items.jsonl"
    convert_file(items, tmp_path / "out" / "rows.json", to="critic")
    rows = orjson.loads((tmp_path / "out" / "rows.json").read_bytes())
    for row, item in zip(rows, read_items(items), strict=True):
        human, reply = (turn["value"] for turn in row["conversations"])
        assert human.startswith("<image>\n")
        assert row["image"] == item.images[0].source
        ends = f"[[{item.gold['label']}]]" if len(item.responses) == 2 else f" {item.gold['score']}"
        if families:
            reply = reply.partition("\n")[0]
        assert reply.endswith(ends)
        if item.meta["prompt"]["family"] == "hallucination":
            assert "made up" in human
    convert_file(tmp_path / "out" / "rows.json", tmp_path / "out" / "back.jsonl", to="dikast", from_="critic")
    assert list(read_items(tmp_path / "out" / "back.jsonl")) == list(read_items(items))


def photos(tmp_path: Path, n: int) -> None:
    (tmp_path / "photos").mkdir(exist_ok=True)
    for i in range(n):
        noise = np.random.default_rng(i).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Pillow.fromarray(noise).save(tmp_path / "photos" / f"{i}.png")


def sources(tmp_path: Path, n: int = 6) -> None:
    """A file of conversations with replies and a file of items with references, about different pictures."""
    photos(tmp_path, 2 * n)
    talks = [
        {"id": str(i), "image": f"photos/{i}.png", "conversations": [
            {"from": "human", "value": f"<image>\nWhat is thing {i}?"},
            {"from": "gpt", "value": f"A {WORDS[i]} I think."},
        ]} for i in range(n)
    ]  # fmt: skip
    (tmp_path / "talks.json").write_bytes(orjson.dumps(talks))
    items = [
        {"id": str(i), "image": f"photos/{n + i}.png", "instruction": f"Read sign {i}.", "reference": f"It says {i}."}
        for i in range(n)
    ]
    items.append({"id": "bare", "instruction": "No picture here."})
    (tmp_path / "signs.jsonl").write_bytes(b"\n".join(map(orjson.dumps, items)))


def answer(request: Request) -> str:
    about = request.about
    rng = np.random.default_rng(int(fingerprint([request.messages[0].text, request.key])[:8], 16))
    if about["stage"] == "question":
        return orjson.dumps({"question": f"Why would such a {rng.choice(WORDS)} be trusted?"}).decode()
    if about["stage"] == "reference":
        return orjson.dumps({"reference": "It is what it is."}).decode()
    if about["stage"] == "answer":
        return f"I see a {' '.join(rng.choice(WORDS, 8))}."
    evaluation: Evaluation = about["evaluation"]
    if evaluation.pair:
        return f"A says more of it.\n[[{rng.choice(['A>>B', 'A>B', 'A=B', 'B>A'])}]]"
    labels = evaluation.rubric.scale.labels
    return evaluation.reply("It tells what is there.", rng.choice(labels), labels[-1]).text


class Answering(Scripted):
    """A responder with its own name."""


def engine_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **values: Any) -> Any:
    """Responders `one` and `two` are scripted engines."""
    engines = {name: Answering(answer, name=name) for name in ("one", "two")}
    monkeypatch.setattr(Recipe, "engine", lambda told, spec: engines[spec])
    given = {"teacher": "mock:constant", "sources": ["talks.json"], "responders": ["one", "two"], "near": False}
    return recipe(tmp_path, **{**given, **values}), engines


def test_several_sources_several_models_and_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)
    told, engines = engine_recipe(
        tmp_path, monkeypatch, sources=["talks.json", "signs.jsonl"], samples=6, responses=2, pairs=8
    )
    teacher = Scripted(answer)
    built = build(told, tmp_path / "out", teacher=teacher)
    assert (built.items, built.waits) == (8 * 6, "")
    assert built.dropped == {"row without a picture": 1}
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    by_pair: dict[str, set[str]] = {}
    for item in items:
        by_pair.setdefault(item.id.split("-")[0], set()).update(item.meta["models"])
        assert isinstance(item.rubric, Rubric)
        assert load_image(item.images[0]).size == (40, 40)
    assert all(len(models) == 2 for models in by_pair.values())
    assert {model for models in by_pair.values() for model in models} == {"talks.json", "one", "two"}
    assert Counter(item.meta["source_set"] for item in items) == {"talks.json": 24, "signs.jsonl": 24}
    references = [r for r in teacher.requests if r.about["stage"] == "reference"]
    assert len(references) == 4  # the items about signs bring references
    assert all(any(isinstance(p, Image) for m in r.messages for p in m.parts) for r in references)
    asked = [r for engine in engines.values() for r in engine.requests]
    assert all(r.messages[0].text.strip().startswith(("What is thing", "Read sign")) for r in asked)
    once = len(teacher.requests), len(asked)
    build(told, tmp_path / "out", teacher=teacher)
    assert (len(teacher.requests), len([r for e in engines.values() for r in e.requests])) == once


def test_sensitive_questions_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)
    told, _ = engine_recipe(tmp_path, monkeypatch, sensitive=0.5, samples=2, pairs=4)
    teacher = Scripted(answer)
    build(told, tmp_path / "out", teacher=teacher)
    hard = {i.id.split("-")[0]: i for i in read_items(tmp_path / "out" / "items.jsonl") if i.meta.get("sensitive")}
    assert sorted(item.meta["sensitive"] for item in hard.values()) == ["explicit", "implicit"]
    for item in hard.values():
        assert text_of(item.instruction[0].content).endswith("be trusted?")
        assert set(item.meta["models"]) <= {"one", "two"}
    asked = [r.messages[0].text for r in teacher.requests if r.about["stage"] == "question"]
    assert sorted("touches openly" in text for text in asked) == [False, True]
    with pytest.raises(DataError, match="name 'responders'"):
        recipe(tmp_path, teacher="mock:constant", sources=["talks.json"], sensitive=0.5)


def test_a_verdict_without_reasons_or_with_a_score_in_them_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources(tmp_path)

    def careless(request: Request) -> str:
        if request.about["stage"] != "judgement" or request.about.get("attempt", 1) > 2:
            return answer(request)
        said = answer(request).splitlines()[-1]
        return said if request.about.get("attempt", 1) == 1 else f"The final score is 1.\nIt is so.\n{said}"

    told, _ = engine_recipe(tmp_path, monkeypatch, families=["open-chat"], samples=1)
    built = build(told, tmp_path / "out", teacher=Scripted(careless))
    judged = built.stages[-1]
    assert (judged.accepted, judged.attempts) == (6, 18)


def test_explanations_are_written_in_the_language_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)

    def forgetful(request: Request) -> str:
        if request.about["stage"] != "judgement":
            return '{"reference": "Es ist ein Ding, das da steht."}'
        english = "The answer says what is in the picture, and it is not what the person had in mind when they asked."
        german = "Die Antwort sagt, was auf dem Bild ist, und das ist nicht das, was die Person wissen wollte."
        said = english if request.about.get("attempt", 1) == 1 else german
        return f"{said}\n{answer(request).splitlines()[-1]}"

    told, _ = engine_recipe(tmp_path, monkeypatch, families=["wild-chat"], samples=1, language="German", responders=[])
    teacher = Scripted(forgetful)
    built = build(told, tmp_path / "out", teacher=teacher)
    assert (built.stages[-1].accepted, built.stages[-1].attempts) == (6, 12)
    judged = [r for r in teacher.requests if r.about["stage"] == "judgement"]
    assert all("thinking in it: German" in r.messages[0].text for r in judged)
    again = judged[-1].messages[-1].text
    assert "the explanation is in english; write it in German. Answer again, whole, in the form asked for" in again


def test_images_of_sources_are_checked_before_any_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)
    (tmp_path / "photos" / "2.png").unlink()
    told, engines = engine_recipe(tmp_path, monkeypatch)
    teacher = Scripted(answer)
    with pytest.raises(DataError, match=r"(?s)1 images cannot be read.*skip_unreadable.*talks\.json:\d+: .*2\.png"):
        build(told, tmp_path / "out", teacher=teacher)
    assert teacher.requests == engines["one"].requests == []
    told, _ = engine_recipe(tmp_path, monkeypatch, skip_unreadable=True, samples=1)
    built = build(told, tmp_path / "skipped", teacher=teacher)
    assert built.items == 5
    assert built.dropped["image that cannot be read"] == 1
    with pytest.raises(UserError, match=r"nowhere\.json: the recipe names this file"):
        build(engine_recipe(tmp_path, monkeypatch, sources=["nowhere.json"])[0], tmp_path / "no", teacher=teacher)


def test_worlds_are_sources_for_an_engine_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, _ = engine_recipe(tmp_path, monkeypatch, sources=["world:scenes"], responders=[], pairs=3, samples=2)
    built = build(told, tmp_path / "out", teacher=Scripted(answer))
    assert built.items == 6
    first = next(read_items(tmp_path / "out" / "items.jsonl"))
    assert first.meta["models"] in (["world"], ["world", "world"])
    assert load_image(first.images[0]).size == (96, 96)


def test_what_a_benchmark_holds_stays_out_by_its_picture_and_not_by_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources(tmp_path)
    bench = [
        {"id": "1", "image": "photos/0.png", "instruction": "Another question?", "response": "Another answer."},
        {"id": "2", "image": "missing.png", "instruction": "What is thing 1?", "response": f"A {WORDS[2]} I think."},
    ]
    (tmp_path / "bench.jsonl").write_bytes(b"\n".join(map(orjson.dumps, bench)))
    told, engines = engine_recipe(tmp_path, monkeypatch, near=True, against=["bench.jsonl"], samples=6, responses=0)
    built = build(told, tmp_path / "out", teacher=Scripted(answer))
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    asked_of = {text_of(item.instruction[0].content).strip() for item in items}
    assert "What is thing 0?" not in asked_of  # its picture is in the benchmark
    assert "What is thing 1?" in asked_of  # the same words about another picture ask something else
    assert not any(text_of(answer) == f"A {WORDS[2]} I think." for item in items for answer in item.responses)
    assert built.dropped["in a benchmark"] == 36 - len(items) > 6
    assert engines["one"].requests


def test_one_budget_holds_for_teacher_and_responders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)
    told, engines = engine_recipe(tmp_path, monkeypatch, responses=0, samples=1)
    teacher = Scripted(answer)
    built = build(told, tmp_path / "out", teacher=teacher, budget={"calls": 8})
    assert "the budget is spent in stage '3-responses-1'" in built.waits
    assert len(teacher.requests) + len(engines["one"].requests) == 8
    assert not engines["two"].requests
    assert build(told, tmp_path / "out", teacher=teacher).items == 6
    assert len(teacher.requests) + sum(len(engine.requests) for engine in engines.values()) == 6 + 12 + 6


class Interrupted(Scripted):
    """Answers `n` requests, then raises KeyboardInterrupt."""

    n = 5

    def stream(self, requests: Any) -> Iterator[Completion]:
        for completion in super().stream(requests):
            yield completion
            self.n -= 1
            if self.n <= 0:
                raise KeyboardInterrupt

    def identity(self) -> Mapping[str, Any]:
        return {"engine": self.name}


def test_interruptions_pay_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(tmp_path)
    told, _ = engine_recipe(tmp_path, monkeypatch)
    whole = build(told, tmp_path / "whole", teacher=Scripted(answer))
    asked: Counter[str] = Counter()
    items = 0
    for _ in range(40):
        teacher = Interrupted(answer)
        try:
            items = build(told, tmp_path / "out", teacher=teacher).items
        except KeyboardInterrupt:
            continue
        finally:
            asked.update(request.key for request in teacher.requests)
        break
    assert items == whole.items == 24
    assert (tmp_path / "out" / "items.jsonl").read_bytes() == (tmp_path / "whole" / "items.jsonl").read_bytes()
    assert max(asked.values()) == 1


def test_quotas_are_even_and_keep_the_share_of_text() -> None:
    few, many, text = (
        QuestionSource(name, name == "text", list(range(n))) for name, n in (("few", 3), ("many", 90), ("text", 20))
    )
    assert quotas([few, many], 20, 0.0) == [3, 17]
    assert quotas([few, many, text], 40, 0.25) == [3, 27, 10]
    assert quotas([few, many], 0, 0.0) == [3, 90]
    assert quotas([many, text], 0, 0.5) == [20, 20]
    with pytest.raises(UserError, match="30 questions about pictures with text are needed, the sources have 20"):
        quotas([many, text], 60, 0.5)


def test_options_are_checked_whole(tmp_path: Path) -> None:
    for values, told in (
        ({}, "any number of questions"),
        ({"pairs": 3, "sources": ["x.json"]}, "makes its own questions"),
        ({"pairs": 3, "sensitive": 0.1}, "no sensitive or biased content"),
        ({"pairs": 3, "families": ["ocr"]}, "there is no family 'ocr'"),
        ({"teacher": "mock:constant"}, "needs 'sources'"),
        ({"teacher": "mock:constant", "sources": ["x"], "text_rich": 0.5}, "'text_sources'"),
    ):
        with pytest.raises(DataError, match=told):
            recipe(tmp_path, **values)


def test_the_dry_run_counts_calls(tmp_path: Path) -> None:
    sources(tmp_path)
    told = recipe(
        tmp_path,
        teacher="mock:constant",
        sources=["talks.json"],
        responders=["mock:constant"],
        sensitive=0.5,
        samples=3,
    )  # fmt: skip
    assert [(each.stage, each.calls) for each in estimate(told)] == [
        ("1-questions", 3), ("2-references", 6), ("3-responses-1", 6), ("4-judgements", 18),
    ]  # fmt: skip


def test_length_tells_nothing_of_a_world_s_judgements(tmp_path: Path) -> None:
    build(recipe(tmp_path, pairs=25, text_rich=0.5), tmp_path / "out")
    words = check_file(tmp_path / "out" / "items.jsonl", CheckOptions(near=False, draws=20)).information[0]
    assert abs(words.r) < 0.2
    told = orjson.loads((tmp_path / "out" / "report.json").read_bytes())["figures"]["length"]
    assert sorted(told) == ["graded", "pairs"]
    assert all(abs(each["r"]) <= each["bound"] == 1.96 / math.sqrt(each["rows"]) for each in told.values())
