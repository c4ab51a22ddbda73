"""The recipe `feedback` end to end: with an exact world, with a teacher that makes mistakes, with interruptions."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from corpus.sources import LEVELS
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, EngineError, RunError, UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.core.runs.run_files import write_checked
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build import build, estimate, known_price
from dikast.corpus.pipeline.build_run import Built
from dikast.corpus.pipeline.journal import finished
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.stage import StageReport, prompt
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.recipes import KINDS
from dikast.corpus.recipes.feedback import pooled, rubric_tasks
from dikast.corpus.sources.seed_rubrics import lint, load_seeds
from dikast.corpus.teachers.world_teacher import WorldTeacher
from dikast.engines.base import Completion, Request
from dikast.surface.cli import app
from dikast.surface.progress import stage_line
from dikast.testing import StubTeacher
from scripted import Scripted

SEED: dict[str, Any] = {"criterion": "Does the answer name its sources?", "levels": LEVELS}
WORDS = ("river", "stone", "tower", "garden", "window", "letter", "bridge", "winter", "market", "candle", "harbour")


def recipe(tmp_path: Path, name: str = "recipe", **values: Any) -> Path:
    path = tmp_path / f"{name}.yaml"
    values = {"recipe": "feedback", "teacher": "world:text", **values}
    path.write_bytes(orjson.dumps(values))
    return path


def seeds(tmp_path: Path, *rubrics: dict[str, Any]) -> str:
    path = tmp_path / "seeds.yaml"
    path.write_bytes(orjson.dumps(list(rubrics or (SEED,))))
    return path.name


def test_a_world_teaches_exactly(tmp_path: Path) -> None:
    told = load_recipe(recipe(tmp_path, rubrics=6, instructions=2, a_call=4))
    built = build(told, tmp_path / "out")
    assert (built.items, built.waits) == (60, "")
    assert built.kept == {str(n): 12 for n in range(1, 6)}
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    for item in items:  # the score follows from the claims: those that are wrong cost what the rubric's levels say
        wrong = [claim for claim in item.gold["claims"] if claim["verdict"] != "right"]
        assert text_of(item.response) != text_of(item.reference or ())
        assert all(claim["text"] in text_of(item.response) for claim in wrong)
    by_instruction: dict[str, list[Item]] = {}
    for item in items:
        by_instruction.setdefault(text_of(item.instruction[0].content), []).append(item)
    costs = [
        [sum(c["cost"] for c in i.gold["claims"]) for i in sorted(g, key=lambda e: e.gold["score"])]
        for g in by_instruction.values()
    ]
    assert all(found == sorted(set(found), reverse=True) for found in costs)
    assert len({item.rubric.hash for item in items if item.rubric}) == 6
    again = build(told, tmp_path / "again")
    assert again.items == 60
    assert (tmp_path / "again" / "items.jsonl").read_bytes() == (tmp_path / "out" / "items.jsonl").read_bytes()


def test_length_tells_nothing_of_a_world_s_scores(tmp_path: Path) -> None:
    build(load_recipe(recipe(tmp_path, rubrics=30, instructions=1, a_call=10, regrade=False)), tmp_path / "out")
    words = check_file(tmp_path / "out" / "items.jsonl", CheckOptions(near=False)).information[0]
    assert words.n == 150
    assert abs(words.r) < 0.05
    assert words.p > 0.05


def test_pairs_are_balanced_and_told(tmp_path: Path) -> None:
    build(load_recipe(recipe(tmp_path, rubrics=5, instructions=1, regrade=False)), tmp_path / "graded")
    told = load_recipe(recipe(tmp_path, "pairs", recipe="preference", source="graded/items.jsonl"))
    built = build(told, tmp_path / "pairs")
    assert built.items == 50
    assert built.kept == {"a": 25, "b": 25}
    for item in read_items(tmp_path / "pairs" / "items.jsonl"):
        a, b = item.gold["scores"]
        assert item.gold["preference"] == ("a" if a > b else "b")
        assert item.gold["responses"][0]["score"] == a
        assert re.search(r"A has \d of \d statements right", item.gold["feedback"])
    found = check_file(tmp_path / "pairs" / "items.jsonl").findings
    assert found["preference against the scores"].found == 0


def test_ties_stand_where_scores_are_equal(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "instruction": "q", "response": f"r{i}", "gold": {"score": s, "feedback": "f"}}
        for i, s in enumerate((2, 2, 4))
    ]
    (tmp_path / "graded.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    for ties, kept in ((True, 3), (False, 2)):
        told = load_recipe(recipe(tmp_path, f"p{ties}", recipe="preference", source="graded.jsonl", ties=ties))
        built = build(told, tmp_path / f"out{ties}")
        assert built.items == kept
        assert built.dropped["equal scores"] == 3 - kept


def answer(request: Request) -> str:
    """The reply of a capable teacher, with words drawn from the request's place."""
    about, attempt = request.about, request.about.get("attempt", 1)
    stage = about["stage"]
    rng = np.random.default_rng(int(fingerprint(request.messages[0].text)[:8], 16))
    if stage == "rubrics":
        made = [
            {"criterion": f"Does it speak of {rng.choice(WORDS)} and {i} of {about['first']}?", "levels": LEVELS}
            for i in range(about["count"])
        ]
        return f"Here: {orjson.dumps({'rubrics': made}).decode()}"
    if stage == "instructions":
        found = [
            {"instruction": f"Tell of {' '.join(rng.choice(WORDS, 12))}", "reference": "Yes."}
            for _ in range(about["count"])
        ]
        return orjson.dumps({"instructions": found}).decode()
    if stage == "responses":
        if attempt == 1 and about["score"] == "3":
            return "I will think about it."
        text = " ".join(rng.choice(WORDS, 20)) + f" {about['score']}"
        return orjson.dumps({"response": text, "feedback": "It goes on about it at length."}).decode()
    return f"Good enough.\nVerdict: {request.about['response'].split()[-1]}"


def engine_recipe(tmp_path: Path, **values: Any) -> Any:
    given = {
        "teacher": "mock:constant",
        "seeds": seeds(tmp_path),
        "rubrics": 5,
        "instructions": 2,
        "words": 20,
        "near": False,
    }
    return load_recipe(recipe(tmp_path, **{**given, **values}))


def test_an_engine_teaches_and_is_asked_again_with_what_was_wrong(tmp_path: Path) -> None:
    engine = Scripted(answer)
    built = build(engine_recipe(tmp_path), tmp_path / "out", teacher=engine)
    assert (built.items, built.waits) == (50, "")
    responses = next(stage for stage in built.stages if stage.name == "3-responses")
    assert (responses.accepted, responses.attempts) == (50, 60)  # the tenth of scores 3 took two tries
    second = next(r for r in engine.requests if r.about.get("attempt") == 2)
    assert [m.role for m in second.messages] == ["user", "assistant", "user"]
    assert "there is no JSON object in it" in second.messages[-1].text
    asked = len(engine.requests)
    build(engine_recipe(tmp_path), tmp_path / "out", teacher=engine)
    assert len(engine.requests) == asked
    item = next(iter(read_items(tmp_path / "out" / "items.jsonl")))
    assert item.meta["families"] == ["seed 0"]


def test_what_the_teacher_grades_otherwise_is_dropped(tmp_path: Path) -> None:
    def harsh(request: Request) -> str:
        return "No.\nVerdict: 1" if request.about["stage"] == "regrade" else answer(request)

    told = engine_recipe(tmp_path, complete=False, stop_after_rejects=1, retries=1)
    engine = Scripted(harsh)
    built = build(told, tmp_path / "out", teacher=engine)
    assert built.kept == {"1": 10}
    again, graded = built.stages[-2:]
    assert (again.name, again.tasks, graded.tasks) == ("3-responses-2", 40, 40)
    assert graded.rejected == {"graded otherwise the second time": 40}
    retry = next(request for request in engine.requests if request.about.get("retry"))
    assert [message.role for message in retry.messages] == ["user", "assistant", "user"]
    assert "No.\nVerdict: 1" in retry.messages[-1].text  # the grading is the hint
    assert f"The score {retry.about['score']} is wanted" in retry.messages[-1].text
    asked = len(engine.requests)
    build(told, tmp_path / "out", teacher=engine)
    assert len(engine.requests) == asked
    more = replace(told, options=replace(told.options, retries=2))
    assert build(more, tmp_path / "out", teacher=engine).stages[-1].name == "4-regrade-3"  # the same folder goes on


@pytest.mark.parametrize("complete", ["require", "prefer"])
def test_a_teacher_that_wavers_costs_little_and_loses_little(complete: str, tmp_path: Path) -> None:
    def told(**values: Any) -> Any:
        return engine_recipe(tmp_path, rubrics=24, instructions=2, rounds=20, complete=complete, **values)

    sure, calls = StubTeacher(words=20), StubTeacher(agreement=0.7, words=20)
    build(told(), tmp_path / "sure", teacher=sure)
    built = build(told(agreement=0.7), tmp_path / "out", teacher=calls)
    assert built.waits == ""
    kept = Counter(item.id.rpartition("-")[0] for item in read_items(tmp_path / "out" / "items.jsonl"))
    whole = sum(n == 5 for n in kept.values())
    assert whole >= 0.7 * 48  # .973 ** 5 = .87 of them are expected
    assert calls.calls.total() <= 2 * sure.calls.total()
    expected = sum(each.calls for each in estimate(told(agreement=0.7)))
    assert abs(expected / calls.calls.total() - 1) <= 0.2
    assert max(built.kept.values()) == min(built.kept.values())  # balanced, with what incomplete ones add too
    assert (len(kept) > whole) == (complete == "prefer")


def test_requests_follow_a_plan_and_are_cut_to_fit_the_reply(tmp_path: Path) -> None:
    told = engine_recipe(tmp_path, rubrics=3, instructions=12, words=120, regrade=False, complete=False)
    teacher = StubTeacher()
    built = build(told, tmp_path / "out", teacher=teacher)
    assert (built.items, built.waits) == (3 * 12 * 5, "")
    assert teacher.calls["instructions"] == 3 * 3  # 5, 5 and 2: 2,048 tokens hold no 12
    assert {each.stage: each.calls for each in estimate(told)}["2-instructions"] == 9
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    assert len({item.id for item in items}) == 180
    plans = {item.id.rpartition("-")[0]: item.meta["plan"] for item in items}
    assert len({each["topic"] for each in plans.values()}) == 36  # none twice before all were drawn
    asked = [request for request in teacher.requests if request.about["stage"] == "instructions"]
    lines = "".join(f"  - {'; '.join(f'{k}: {v}' for k, v in plans[f'r0-i{i}'].items())}\n" for i in range(5, 10))
    assert lines.replace("  - ", "- ") in asked[1].messages[0].text
    rubrics = next(request for request in teacher.requests if request.about["stage"] == "rubrics")
    assert all(text in rubrics.messages[0].text for text in LEVELS.values())  # seeds are shown with their levels

    (tmp_path / "plan.yaml").write_text("topic: [rivers]\nlanguage: [German, French]\n")
    mine = StubTeacher(words=20)
    built = build(engine_recipe(tmp_path, plan="plan.yaml", rubrics=1), tmp_path / "mine", teacher=mine)
    found = {item.meta["plan"]["language"] for item in read_items(tmp_path / "mine" / "items.jsonl")}
    assert found == {"German", "French"}
    said = [request.messages[0].text for request in mine.requests if request.about["stage"] == "responses"]
    assert [sum(name in text for text in said) for name in ("German", "French")] == [5, 5]
    both = StubTeacher(words=20)  # the plan's languages override the recipe's, which holds for rubrics alone
    built = build(engine_recipe(tmp_path, plan="plan.yaml", rubrics=2, language="Welsh"), tmp_path / "b", teacher=both)
    assert built.items == 20
    assert {r.about["stage"] for r in both.requests if "Welsh" in r.messages[0].text} == {"rubrics"}
    for text, why in (("topics: [a]", "did you mean 'topic'"), ("task: []", "at least one text"), ("[a]", "a mapping")):
        (tmp_path / "plan.yaml").write_text(text)
        with pytest.raises(DataError, match=why):
            build(engine_recipe(tmp_path, plan="plan.yaml", rubrics=1), tmp_path / "bad", teacher=mine)
    with pytest.raises(DataError, match="set max_tokens to at least 4,000"):
        engine_recipe(tmp_path, words=2000)


def test_rubrics_like_an_earlier_one_are_fed_back(tmp_path: Path) -> None:
    def repeating(request: Request, reply: str) -> str:
        first = request.about["stage"] == "rubrics" and request.about["first"] == 0
        return orjson.dumps({"rubrics": [SEED]}).decode() if first else reply

    teacher = StubTeacher(words=20, change=repeating)
    built = build(engine_recipe(tmp_path, near=True, rubrics=2, instructions=1), tmp_path / "out", teacher=teacher)
    assert built.dropped["near-duplicate rubric"] == 1
    first, second = (r.messages[0].text for r in teacher.requests if r.about["stage"] == "rubrics")
    assert "refused because one like them exists" not in first
    assert f"refused because one like them exists ]==\n- {SEED['criterion']}\n" in second


def test_nothing_is_asked_about_an_instruction_that_repeats_another(tmp_path: Path) -> None:
    def alike(request: Request) -> str:
        if request.about["stage"] == "instructions":
            said = [{"instruction": "Tell of the river, the stone and the tower.", "reference": "Yes."}]
            return orjson.dumps({"instructions": said}).decode()
        return answer(request)

    engine = Scripted(alike)
    built = build(engine_recipe(tmp_path, near=True, instructions=1), tmp_path / "out", teacher=engine)
    assert built.dropped["near-duplicate instruction, not asked about"] == 4  # of five
    assert sum(request.about["stage"] == "regrade" for request in engine.requests) == 5


def test_a_response_that_copies_its_reference_is_asked_for_again(tmp_path: Path) -> None:
    text = " ".join(f"{word} {i}" for i, word in enumerate(WORDS))

    def copying(request: Request) -> str:
        if request.about["stage"] == "instructions":
            said = [{"instruction": f"Tell of {request.about['lineage']}", "reference": text}]
            return orjson.dumps({"instructions": said}).decode()
        if request.about["stage"] == "responses" and request.about.get("attempt", 1) == 1:
            return orjson.dumps({"response": f"{text} {request.about['score']}", "feedback": "Long."}).decode()
        return answer(request)

    engine = Scripted(copying)
    told = engine_recipe(tmp_path, rubrics=1, instructions=1, words=22)
    built = build(told, tmp_path / "out", teacher=engine)
    assert built.items == 5
    again = [r for r in engine.requests if r.about["stage"] == "responses" and r.about.get("attempt") == 2]
    assert len(again) == 5
    assert "repeats the reference answer" in again[0].messages[-1].text


def test_filters_are_counted(tmp_path: Path) -> None:
    def leaky(request: Request) -> str:
        said = answer(request)
        if request.about["stage"] == "responses" and request.about["score"] == "5":
            return orjson.dumps({"response": " ".join(WORDS[:5]), "feedback": "The final score is 5."}).decode()
        return said

    told = engine_recipe(tmp_path, complete=False, tries=1, regrade=False)
    built = build(told, tmp_path / "out", teacher=Scripted(leaky))
    rejected = next(stage for stage in built.stages if stage.name == "3-responses").rejected
    assert rejected == {"no JSON object": 10, "the feedback names a score": 10}
    assert set(built.kept) == {"1", "2", "4"}
    complete = build(
        replace(told, options=replace(told.options, complete=True)), tmp_path / "complete", teacher=Scripted(leaky)
    )
    assert (complete.items, complete.dropped["not every score"]) == (0, 30)


def test_garbage_stops_a_stage_with_examples(tmp_path: Path) -> None:
    def garbage(request: Request) -> str:
        return answer(request) if request.about["stage"] != "responses" else "lorem ipsum"

    with pytest.raises(RunError, match=r"(?s)'3-responses' stopped: 20 of 20.*no JSON object: 'lorem ipsum'"):
        build(engine_recipe(tmp_path, tries=1), tmp_path / "out", teacher=Scripted(garbage))
    report = orjson.loads((tmp_path / "out" / "report.json").read_bytes())
    assert report["stages"][-1]["stage"] == "3-responses"


class Refusing(Scripted):
    """Refuses everything from `stage` on: in words, or in the field that servers have for it."""

    def __init__(self, stage: str, *, in_words: bool) -> None:
        super().__init__(answer)
        self.stage, self.in_words, self.count = stage, in_words, 0

    def stream(self, requests: Any) -> Iterator[Completion]:
        for request in requests:
            if request.about["stage"] != self.stage:
                yield Completion(request.key, answer(request))
                continue
            self.count += 1
            said = f"I cannot help with request {self.count}."
            yield Completion(request.key, said if self.in_words else "", refusal="" if self.in_words else said)


@pytest.mark.parametrize("in_words", [True, False])
@pytest.mark.parametrize(("stage", "calls"), [("rubrics", 3), ("responses", 20)])
def test_a_teacher_that_refuses_everything_stops_the_build_and_three_refusals_are_shown(
    stage: str, calls: int, in_words: bool, tmp_path: Path
) -> None:
    """In the first stage, where one task at a time is asked, and in one of many; nothing after it is asked."""
    told, teacher = engine_recipe(tmp_path, tries=1), Refusing(stage, in_words=in_words)
    with pytest.raises(RunError, match="stopped") as caught:
        build(told, tmp_path / "out", teacher=teacher)
    assert [f"I cannot help with request {n}." in str(caught.value) for n in range(1, 5)] == [True] * 3 + [False]
    assert ("no JSON object" if in_words else "refused") in str(caught.value)
    assert teacher.count == calls
    again = Refusing(stage, in_words=in_words)  # what was answered is kept, and is not paid for again
    with pytest.raises(RunError, match="I cannot help with request 3"):
        build(told, tmp_path / "out", teacher=again)
    assert again.count < calls
    told, teacher = engine_recipe(tmp_path, tries=1, stop_after_rejects=1), Refusing(stage, in_words=in_words)
    assert build(told, tmp_path / "on", teacher=teacher).items == 0  # it never stops for rejected replies


@pytest.mark.parametrize("in_words", [True, False])
def test_a_later_stage_of_few_tasks_stops_where_all_are_refused(in_words: bool, tmp_path: Path) -> None:
    """Five responses are asked for, fewer than the share of rejected replies needs; the stages before went well."""
    told, teacher = (
        engine_recipe(tmp_path, rubrics=1, instructions=1, tries=1),
        Refusing("responses", in_words=in_words),
    )
    with pytest.raises(
        RunError, match=r"stopped after stage '3-responses[^']*': all 5 replies were rejected"
    ) as caught:
        build(told, tmp_path / "out", teacher=teacher)
    assert "I cannot help with request 3" in str(caught.value)
    assert teacher.count == 5
    assert not (tmp_path / "out" / "items.jsonl").exists()
    on = replace(told, stop_after_rejects=1)  # the cure that the message names, in the same folder
    assert build(on, tmp_path / "out", teacher=teacher).items == 0
    assert teacher.count == 5  # nothing is paid for again
    with pytest.raises(UserError, match=r"built by another recipe \(tries differ\)"):
        build(replace(on, tries=2), tmp_path / "out", teacher=teacher)


def test_few_responses_that_are_all_graded_otherwise_are_written_again(tmp_path: Path) -> None:
    """These gradings can be used, so that they are no sign of a teacher that refuses."""
    graded = itertools.count()

    def strict_at_first(request: Request) -> str:
        if request.about["stage"] == "regrade" and next(graded) < 5:
            return f"Not good enough.\nVerdict: {2 if request.about['response'].endswith('1') else 1}"
        return answer(request)

    told = engine_recipe(tmp_path, rubrics=1, instructions=1)
    built = build(told, tmp_path / "out", teacher=Scripted(strict_at_first))
    assert built.items == 5
    assert [stage.name for stage in built.stages][-2:] == ["3-responses-2", "4-regrade-2"]


class Interrupted(Scripted):
    """Answers `n` requests, failing every third once, then raises KeyboardInterrupt."""

    def __init__(self, n: int, seen: Counter[str]) -> None:
        super().__init__(answer)
        self.n, self.seen = n, seen

    def stream(self, requests: Any) -> Iterator[Completion]:
        for request in requests:
            self.n -= 1
            if self.n < 0:
                raise KeyboardInterrupt
            self.seen[request.key] += 1
            if len(self.seen) % 3 == 0 and self.seen[request.key] == 1:
                yield Completion(request.key, finish="error", error=EngineError("busy", kind="overloaded"))
            else:
                yield Completion(request.key, answer(request))


def test_interruptions_and_errors_lose_nothing_and_pay_nothing_twice(tmp_path: Path) -> None:
    whole = build(engine_recipe(tmp_path), tmp_path / "whole", teacher=Scripted(answer))
    seen: Counter[str] = Counter()
    out, built, runs = tmp_path / "out", Built(""), 0
    told = engine_recipe(tmp_path)
    while not built.items or built.waits:
        runs += 1
        assert runs < 60
        try:
            built = build(told, out, teacher=Interrupted(17, seen))
        except KeyboardInterrupt:
            for journal in out.glob("*.jsonl"):
                if journal.name != "items.jsonl":
                    with journal.open("ab") as file:
                        file.write(b'{"key": "torn')
    assert runs > 5
    assert built.items == whole.items
    assert (out / "items.jsonl").read_bytes() == (tmp_path / "whole" / "items.jsonl").read_bytes()
    for journal in sorted(out.glob("[1-4]-*.jsonl")):
        answered = Counter(
            orjson.loads(line)["key"] for line in journal.read_bytes().splitlines() if b'"error"' not in line
        )
        assert max(answered.values()) == 1


def test_a_spent_budget_waits_and_goes_on(tmp_path: Path) -> None:
    told = load_recipe(recipe(tmp_path, rubrics=4, instructions=1))
    first = build(told, tmp_path / "out", budget={"calls": 9})
    assert first.items == 0
    assert "the budget is spent in stage '3-responses'" in first.waits
    assert first.stages[-1].attempts >= 4
    second = build(told, tmp_path / "out")
    assert (second.items, second.waits) == (20, "")


def test_another_recipe_s_folder_is_refused(tmp_path: Path) -> None:
    build(load_recipe(recipe(tmp_path, rubrics=1, instructions=1)), tmp_path / "out")
    with pytest.raises(UserError, match=r"another recipe \(seed, rubrics differ\)"):
        build(load_recipe(recipe(tmp_path, rubrics=2, instructions=1, seed=3)), tmp_path / "out")
    kept = orjson.loads((tmp_path / "out" / "build.json").read_bytes())
    kept["teacher"]["version"] = "worlds/0"
    write_checked(tmp_path / "out" / "build.json", orjson.dumps(kept))
    with pytest.raises(UserError, match=r"another version of Dikast, whose worlds differ \(worlds/0, now worlds/\d\)"):
        build(load_recipe(recipe(tmp_path, rubrics=1, instructions=1)), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="not a build"):
        build(load_recipe(recipe(tmp_path, rubrics=1, instructions=1)), tmp_path / "other")
    told = engine_recipe(tmp_path, rubrics=1, instructions=1)
    build(told, tmp_path / "old", teacher=StubTeacher(words=20))
    kept = orjson.loads((tmp_path / "old" / "build.json").read_bytes())
    kept["prompts"]["responses"] = "0"
    write_checked(tmp_path / "old" / "build.json", orjson.dumps(kept))
    with pytest.raises(UserError, match=r"another version of Dikast, whose prompts differ \(responses\)"):
        build(told, tmp_path / "old", teacher=StubTeacher(words=20))

    plan, out = tmp_path / "plan.yaml", tmp_path / "planned"
    plan.write_text("language: [German]\n")
    told = engine_recipe(tmp_path, rubrics=1, plan=plan.name)
    build(told, out, teacher=StubTeacher(words=20))
    kept = orjson.loads((out / "build.json").read_bytes())
    seeds(tmp_path, {**SEED, "criterion": "Does the answer name its authors?"})
    with pytest.raises(UserError, match=r"seeds\.yaml: the file of 'seeds' has changed since .*: restore the file, or"):
        build(told, out, teacher=StubTeacher(words=20))
    seeds(tmp_path)
    plan.write_text("language: [Spanish]\n")
    with pytest.raises(UserError, match=r"plan\.yaml: the file of 'plan' has changed since"):
        build(told, out, teacher=StubTeacher(words=20))
    plan.write_text("# The same\nlanguage:\n- German\n")
    resumed = StubTeacher(words=20)
    build(told, out, teacher=resumed)
    write_checked(out / "build.json", orjson.dumps({key: kept[key] for key in kept if key != "inputs"}))
    build(told, out, teacher=resumed)  # a folder of an earlier version, which did not record them
    assert not resumed.requests
    assert orjson.loads((out / "build.json").read_bytes()) == kept
    told = engine_recipe(tmp_path, recipe="bench", rubrics=1, instructions=1, spare=0, seeds="")
    out = tmp_path / "shipped"
    build(told, out, teacher=StubTeacher(words=20))
    kept = orjson.loads((out / "build.json").read_bytes())
    kept["inputs"]["seeds"] = "0"
    write_checked(out / "build.json", orjson.dumps(kept))
    with pytest.raises(UserError, match="another version of Dikast, which brings another file of 'seeds'"):
        build(told, out, teacher=StubTeacher(words=20))


def test_bad_seeds_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "seeds.yaml"
    path.write_text(
        "- criterion: Does it name its sources?\n"
        "  levels: {1: None at all., 2: One., 3: Some., 5: Every single one.}\n"
        "- criterion: Is it polite and is it short?\n"
        "  levels: {1: It is rude., 2: It is a bit rude., 3: It is so so., 4: It is fair., 5: It is kind.}\n"
        "- criterion: How clear is the answer?\n"
        "  levels:\n    5: Plain throughout.\n    4: Mostly plain.\n    3: Half plain.\n"
        "    2: Hardly plain.\n    1: Opaque.\n"
        "- criterion: How complete is the answer?\n"
        "  levels: {1: It is excellent., 2: Much is there., 3: Half is there., 4: Half is there., 5: It fails.}\n"
    )
    with pytest.raises(DataError) as caught:
        load_seeds(path)
    told = str(caught.value)
    for part in (
        ":1: ",
        "no description of 4",
        ":3: ",
        "asks two things",
        "must be listed from 1 to 5",
        "backwards",
        "3 and 4 say the same",
    ):
        assert part in told
    assert lint(SEED["criterion"], LEVELS) == []


def test_a_bad_recipe_is_told_whole(tmp_path: Path) -> None:
    path = recipe(tmp_path, teacher="mock:constant", rubrics=0, sede=1, tolerance=3, source="x.jsonl", words="many")
    with pytest.raises(DataError) as caught:
        load_recipe(path)
    for part in (
        "did you mean 'seed",
        "'rubrics': expected a whole number of at least 1, got 0",
        "'tolerance': expected a number from 0 to 1, got 3",
        "'source' is not an option of",
        "'words': expected a whole number, got 'many'",
    ):
        assert part in str(caught.value)
    with pytest.raises(UserError, match="does not exist"):
        build(load_recipe(recipe(tmp_path, teacher="mock:constant", seeds="no.yaml")), tmp_path / "out")
    with pytest.raises(UserError, match="no world 'moon'"):
        WorldTeacher("moon")


@pytest.mark.parametrize("name", KINDS)
def test_every_recipe_is_whole(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    assert kind.name == name
    assert all(prompt(each).hash for each in kind.prompts)
    with pytest.raises(DataError) as caught:
        load_recipe(recipe(tmp_path, recipe=name, teacher=""))
    assert "needs a 'teacher'" in str(caught.value)
    assert kind.options.__doc__


def test_build_on_the_command_line(tmp_path: Path) -> None:
    path, out = recipe(tmp_path, rubrics=3, instructions=1), tmp_path / "out"
    dry = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(out), "--dry-run", "--json"])
    assert dry.exit_code == 0, dry.output
    assert [each["calls"] for each in orjson.loads(dry.stdout)] == [1, 3, 15, 15]
    assert not out.exists()
    short = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(out), "--budget", "calls=5"])
    assert short.exit_code == 3
    assert "the budget is spent" in short.stdout
    made = CliRunner().invoke(app, ["corpus", "build", str(path), "--out", str(out), "--json"])
    assert made.exit_code == 0, made.output
    assert orjson.loads(made.stdout)["items"] == 15
    assert sum(1 for _ in finished(out / "3-responses.jsonl")) == 15
    assert [each.calls for each in estimate(load_recipe(path))] == [1, 3, 15, 15]


def test_later_rounds_ask_for_other_rubrics(tmp_path: Path) -> None:
    """A world's rubrics are numbered: after a round with duplicates the next one must not repeat the same rubrics."""
    told = load_recipe(recipe(tmp_path, rubrics=6, a_call=4))
    numbers = [task.about["first"] for task in rubric_tasks(told, [], 2, 6, 10)]
    assert numbers == [10, 14]
    pool: list[dict[str, Any]] = []
    dropped: Counter[str] = Counter()
    made = [{"criterion": "Is it clear?", "levels": LEVELS}, {"criterion": "is it CLEAR", "levels": LEVELS}]
    pooled(made, pool, Index(near=False), dropped, 6)
    assert (len(pool), dropped["near-duplicate rubric"]) == (1, 1)


def test_every_other_request_for_rubrics_asks_for_a_paraphrase(tmp_path: Path) -> None:
    told = load_recipe(recipe(tmp_path, rubrics=8, a_call=4))
    pool = [{**SEED, "families": ["seed 0"]}]
    asked = [task.messages[0].text for task in rubric_tasks(told, pool, 1, 8)]
    assert ["in other words" in text for text in asked] == [False, True]


def test_money_is_estimated_counted_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = recipe(tmp_path, rubrics=2, instructions=1, regrade=False), tmp_path / "out"
    asked = ["corpus", "build", str(path), "--out", str(out), "--price", "2,10", "--json"]
    dry = CliRunner().invoke(app, [*asked, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    for each in orjson.loads(dry.stdout):
        assert each["most_money"] == pytest.approx((2 * each["tokens_in"] + 10 * each["most_tokens_out"]) / 1e6)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "sk-anything-0123456789")
    for teacher, thinking in (("openai:gpt-5-mini", 25_000), ("anthropic:claude-opus-4-5", 0)):
        told = load_recipe(path, teacher=teacher)
        assert known_price(told) is not None
        assert [each.most_tokens_out for each in estimate(told)] == [
            each.calls * (told.max_tokens + thinking) for each in estimate(told)
        ]
    built = orjson.loads(CliRunner().invoke(app, asked).stdout)
    for stage in built["stages"]:
        assert stage["money"] == pytest.approx((2 * stage["tokens_in"] + 10 * stage["tokens_out"]) / 1e6)
    whole = sum(stage["money"] for stage in built["stages"])
    short = CliRunner().invoke(app, [*asked[:4], str(tmp_path / "short"), *asked[5:], "--budget", f"money={whole / 2}"])
    assert short.exit_code == 3, short.output
    told = orjson.loads(short.stdout)
    assert "the budget is spent" in told["waits"]
    assert 0 < sum(stage["money"] or 0 for stage in told["stages"]) <= whole / 2
    wrong = CliRunner().invoke(app, [*asked[:-2], "cheap"])
    assert isinstance(wrong.exception, UserError)
    assert "write IN,OUT" in str(wrong.exception)


def test_a_line_of_progress_tells_yield_rejects_and_money() -> None:
    report = StageReport("3-responses", accepted=30, records=30, tokens_in=900, tokens_out=100, money=0.5)
    report.rejected.update({"length": 9, "no JSON object": 1})
    report.left["overloaded"] = 2
    told = (
        "3-responses: 30 accepted (75%); 9 length, 1 no JSON object; 2 overloaded; 30 records, 1,000 tokens; 0.5 money"
    )
    assert stage_line(report) == told


def test_numbers_are_hashed_as_they_are_written(tmp_path: Path) -> None:
    """Builds that an earlier version made with `tolerance: 1` are resumed: 1 and 1.0 have different fingerprints."""
    whole, point = (load_recipe(recipe(tmp_path, teacher="world:text", tolerance=each)) for each in (1, 1.0))
    assert [type(each.told["tolerance"]) for each in (whole, point)] == [int, float]
    assert whole.hash == fingerprint({**point.told, "tolerance": 1}) != point.hash


def test_answers_to_a_first_stage_that_was_lost_are_not_counted_with_those_of_the_new_one(tmp_path: Path) -> None:
    """The journal of rubrics is lost, and the teacher writes others: what was asked about the old ones is left out."""
    out, told = tmp_path / "out", engine_recipe(tmp_path)
    first = build(told, out, teacher=Scripted(answer))
    old = (out / "items.jsonl").read_bytes()
    (rubrics,) = out.glob("1-*.jsonl")
    kept = rubrics.read_bytes()
    rubrics.unlink()
    again = build(told, out, teacher=Scripted(lambda request: answer(request).replace("Does it speak", "Does it tell")))
    assert again.items == first.items == 50
    assert again.waits == ""
    assert b"Does it speak" not in (out / "items.jsonl").read_bytes()
    assert sum("no longer asked" in note for note in again.notes) == len(list(out.glob("[2-4]-*.jsonl")))
    assert {stage.name: stage.accepted for stage in again.stages} == {s.name: s.accepted for s in first.stages}
    rubrics.write_bytes(kept)  # found again: the old answers count, and nothing is asked
    back = Scripted(answer)
    assert build(told, out, teacher=back).items == 50
    assert not back.requests
    assert (out / "items.jsonl").read_bytes() == old
