"""Rounds of rubrics: proposed, paraphrased, refined, some about sensitive content; the language of every prompt."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, RunError, UserError
from dikast.core.records import read_items
from dikast.corpus.pipeline.build import build, estimate
from dikast.corpus.pipeline.journal import finished
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.stage import prompt
from dikast.corpus.recipes import KINDS
from dikast.corpus.sources.seed_rubrics import SEEDS, load_seeds
from dikast.corpus.sources.sensitive import sensitive_at
from dikast.engines.base import Request
from scripted import Scripted

SHIPPED = Path(__file__).parents[3] / "recipes" / "corpus"
LEVELS = {
    "1": "None of it is there.",
    "2": "A little of it.",
    "3": "Half of it is.",
    "4": "Most is.",
    "5": "All of it.",
}
WORDS = ("river", "stone", "tower", "garden", "window", "letter", "bridge", "winter", "market", "candle", "harbour")


def answer(request: Request) -> str:
    about, stage = request.about, request.about["stage"]
    rng = np.random.default_rng(int(fingerprint(request.messages[0].text)[:8], 16))
    drawn = " ".join(rng.choice(WORDS, 20))
    if stage == "rubrics":
        made = [{"criterion": f"Does it speak of {drawn} {i}?", "levels": LEVELS} for i in range(about["count"])]
        return orjson.dumps({"rubrics": made}).decode()
    if stage == "refine":
        return orjson.dumps({"rubrics": [{"criterion": f"Sharper: {drawn}?", "levels": LEVELS}]}).decode()
    if stage == "instructions":
        found = [{"instruction": f"Tell of {drawn} {i}", "reference": "Yes."} for i in range(about["count"])]
        return orjson.dumps({"instructions": found}).decode()
    if stage == "responses":
        return orjson.dumps({"response": f"{drawn} {about['score']}", "feedback": "It goes on at length."}).decode()
    return f"Good enough.\nVerdict: {request.about['response'].split()[-1]}"


def recipe(folder: Path, **values: Any) -> Any:
    (folder / "seeds.yaml").write_bytes(orjson.dumps([{"criterion": "Does it name its sources?", "levels": LEVELS}]))
    given = {
        "recipe": "feedback", "teacher": "mock:constant", "seeds": "seeds.yaml", "rubrics": 9, "a_call": 2,
        "instructions": 1, "words": 20, "near": False,
    }  # fmt: skip
    path = folder / "recipe.yaml"
    path.write_bytes(orjson.dumps({**given, **values}))
    return load_recipe(path)


def test_each_new_rubric_is_refined_before_it_is_taken_in(tmp_path: Path) -> None:
    told, engine = recipe(tmp_path, refine=True), Scripted(answer)
    built = build(told, tmp_path / "out", teacher=engine)
    assert [stage.name for stage in built.stages[:4]] == ["1-rubrics-1", "1-refine-1", "1-rubrics-2", "1-refine-2"]
    rubrics = {item.rubric.criterion: item.meta for item in read_items(tmp_path / "out" / "items.jsonl")}  # type: ignore[union-attr]
    assert len(rubrics) == 9
    assert sum(name.startswith("Sharper") for name in rubrics) == 8
    assert all(meta["lineage"].get("refined", False) == name.startswith("Sharper") for name, meta in rubrics.items())
    hows = Counter(meta["lineage"].get("how") for name, meta in rubrics.items() if name.startswith("Sharper"))
    assert hows["new"] > 0
    assert hows["paraphrase"] > 0
    asked = [request.messages[0].text for request in engine.requests if request.about["stage"] == "refine"]
    assert all("- Does it name its sources?" in text or "- Sharper" in text for text in asked)
    again = build(told, tmp_path / "out", teacher=engine)
    assert again.items == built.items == 45
    assert len(asked) == sum(request.about["stage"] == "refine" for request in engine.requests)
    names = [each.stage for each in estimate(told)]
    assert names == ["1-rubrics", "1-refine", "2-instructions", "3-responses", "4-regrade"]


def test_a_rubric_that_cannot_be_refined_is_made_up_for(tmp_path: Path) -> None:
    spoilt: set[str] = set()

    def slips(request: Request) -> str:
        if request.about["stage"] != "refine" or len(spoilt) >= 2:
            return answer(request)
        spoilt.add(request.key.split(":")[0])
        return "I would rather not."

    built = build(recipe(tmp_path, refine=True, tries=1), tmp_path / "out", teacher=Scripted(slips))
    refined = [stage for stage in built.stages if "refine" in stage.name]
    assert sum(stage.rejects for stage in refined) == 2
    assert built.items == 45


def test_a_world_s_rubrics_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    for refine in (False, True):
        told = {"recipe": "feedback", "teacher": "world:text", "rubrics": 3, "instructions": 1, "refine": refine}
        path.write_bytes(orjson.dumps(told))
        build(load_recipe(path), tmp_path / f"{refine}")
    plain, refined = (
        [item.rubric for item in read_items(tmp_path / f"{each}" / "items.jsonl")] for each in (0 > 1, 1 > 0)
    )
    assert plain == refined


@pytest.mark.parametrize(("part", "n"), [(0.0, 0), (0.25, 10), (0.3, 12), (1.0, 40)])
def test_the_share_of_sensitive_content_is_exact_and_half_implied(part: float, n: int) -> None:
    told = Counter(sensitive_at(number, part) for number in range(40))
    assert told["explicit"] + told["implicit"] == n
    assert abs(told["explicit"] - told["implicit"]) <= 1


def test_sensitive_rubrics_are_asked_for_and_marked(tmp_path: Path) -> None:
    engine = Scripted(answer)
    build(recipe(tmp_path, sensitive=0.5, rubrics=17, refine=True), tmp_path / "out", teacher=engine)
    kinds: Counter[str] = Counter()
    for item in read_items(tmp_path / "out" / "items.jsonl"):
        kinds[item.meta.get("sensitive", "")] += 1
        assert item.meta.get("sensitive", "") == item.meta["lineage"].get("sensitive", "")
    assert kinds == {"explicit": 20, "implicit": 20, "": 45}
    for stage, said in (
        ("rubrics", ("matters that can hurt", "only implies")),
        ("refine", ("matters that can hurt", "only implied")),
        ("instructions", ("openly on what can hurt", "unfair assumption")),
    ):
        texts = [request.messages[0].text for request in engine.requests if request.about["stage"] == stage]
        counts = [sum(words in text for text in texts) for words in said]
        assert min(counts) > 0, stage
        assert sum(counts) < len(texts)
    with pytest.raises(DataError, match="no sensitive or biased content"):
        recipe(tmp_path, teacher="world:text", sensitive=0.5)


def test_every_prompt_asks_for_the_language(tmp_path: Path) -> None:
    engine = Scripted(answer)
    build(recipe(tmp_path, language="Basque", refine=True, regrade=False), tmp_path / "out", teacher=engine)
    assert all("rather than translating: Basque." in request.messages[0].text for request in engine.requests)
    for kind in KINDS.values():
        for name in kind.prompts:
            user = prompt(name).user
            assert "JSON object" not in user or "{{ language }}" in user, name  # the others are formats of judges


def test_a_teacher_of_garbage_is_stopped_at_once(tmp_path: Path) -> None:
    engine = Scripted(lambda request: "lorem ipsum")
    seeds = [{"criterion": f"Does it speak of the {word}?", "levels": LEVELS} for word in WORDS * 3]
    (tmp_path / "many.yaml").write_bytes(orjson.dumps(seeds))  # so many that the first round asks more than 20 times
    told = recipe(tmp_path, rubrics=200, a_call=1, seeds="many.yaml")
    with pytest.raises(RunError, match=r"(?s)'1-rubrics-1' stopped: 20 of 20.*no JSON object: 'lorem ipsum'"):
        build(told, tmp_path / "out", teacher=engine)
    kept = [record["status"] for record in finished(tmp_path / "out" / "1-rubrics-1.jsonl")]
    assert kept == ["rejected"] * 20
    assert len(engine.requests) < 100


def test_a_folder_of_another_recipe_is_refused(tmp_path: Path) -> None:
    build(recipe(tmp_path), tmp_path / "out", teacher=Scripted(answer))
    path = tmp_path / "pairs.yaml"
    for name in ("preference", "critic-pairwise"):
        path.write_bytes(orjson.dumps({"recipe": name, "teacher": "mock:constant", "source": "out/items.jsonl"}))
        with pytest.raises(UserError, match="was built by another recipe"):
            build(load_recipe(path), tmp_path / "out", teacher=Scripted(answer))
    assert sum(1 for _ in read_items(tmp_path / "out" / "items.jsonl")) == 45


def test_seeds_that_overlap_run_backwards_or_ask_twice_are_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "- criterion: How complete is it?\n"
        "  levels: {1: Half of the points are there., 2: half of the points are there, 3: c c., 4: d d., 5: e e.}\n"
        "- criterion: How clear is it?\n"
        "  levels: {1: Excellent throughout., 2: Much is clear., 3: Some is., 4: Little is., 5: Nothing is clear.}\n"
        "- criterion: Is it right? Is it brief?\n"
        "  levels: {1: a a., 2: b b., 3: c c., 4: d d., 5: e e.}\n"
        "- criterion: Does it fit the reader?\n"
        "  levels: {1: a a., 3: c c., 5: e e., 7: g g.}\n"
    )
    with pytest.raises(DataError) as caught:
        load_seeds(path)
    told = str(caught.value)
    for part in ("1 and 2 say the same", "run backwards", "asks two things", "no description of 2, 4", "7 is not on"):
        assert part in told
    for line in (1, 3, 5, 7):
        assert f":{line}: " in told


def test_what_ships_can_be_run() -> None:
    for name in ("text", "pictures"):
        assert len({each["criterion"] for each in load_seeds(SEEDS / f"{name}.yaml")}) == 50
    found = {path.stem: load_recipe(path) for path in SHIPPED.glob("*.yaml")}
    assert {"feedback", "preference", "critic-pairwise", "bench", "self-improvement"} <= found.keys()
    assert {each.recipe for each in found.values()} <= KINDS.keys()
    for name in ("feedback",):
        assert sum(each.calls for each in estimate(found[name])) > 10_000
