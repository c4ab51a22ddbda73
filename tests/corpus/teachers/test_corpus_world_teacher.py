"""The world as a teacher: given rubrics, and feedback that a small model can learn from."""

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from benchmarks.independent_gold import READERS, sentences

from dikast.core.errors import DataError, UserError
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.corpus.observations import words_of
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.recipes.feedback import FeedbackOptions
from dikast.corpus.teachers.picture_teacher import PictureTeacher
from dikast.corpus.teachers.world_teacher import WorldTeacher
from dikast.engines.base import Request
from dikast.prompts.format import load_format
from dikast.prompts.gold import gold_of
from dikast.worlds.scoring.penalty import Spec, level_of

SPECS = (
    Spec((("fact", 1),), False, (0, 1, 2, 3), "1-5", False, (0, 0, 0, 0)),
    Spec((("fact", 2), ("number", 3)), False, (0, 2, 3, 5), "1-5", False, (8, 3, 3, 2)),
)


def test_rubrics_can_be_given(tmp_path: Path) -> None:
    def made(name: str, seed: int) -> list[str]:
        teacher = WorldTeacher("text", seed=seed, per_rubric=3, specs=SPECS, split="all")
        options = FeedbackOptions(rubrics=2, instructions=3, rounds=1, regrade=True)
        built = build(Recipe("feedback", "world:text", seed=seed, options=options), tmp_path / name, teacher=teacher)
        assert built.kept == dict.fromkeys("12345", 6)
        return (tmp_path / name / "items.jsonl").read_text("utf-8").splitlines()

    assert made("one", 1) == made("again", 1) != made("other", 2)
    for item in read_items(str(tmp_path / "one" / "items.jsonl")):
        assert isinstance(item.rubric, Rubric)
        spec = SPECS[int(item.id[1])]
        assert {claim["aspect"] for claim in item.gold["claims"]} <= {"fact", "number"}
        points = dict(spec.weights)
        lost = sum(points.get(c["aspect"], 0) for c in item.gold["claims"] if c["verdict"] != "right")
        assert item.gold["score"] == 5 - level_of(lost, spec.cuts)
        said = load_format("scout").target(gold_of(item, item.rubric, (0,)), item.rubric).text
        assert int(re.findall(r"^Lost: (\d+)$", said, re.M)[0]) == lost
        assert len(re.findall(r"^Finding: ", said, re.M)) == len(item.gold["claims"])


def test_given_rubrics_are_part_of_what_the_teacher_is() -> None:
    plain, given = WorldTeacher("text"), WorldTeacher("text", specs=SPECS)
    assert plain.identity() != given.identity() != WorldTeacher("text", specs=SPECS[:1]).identity()


def test_a_rubric_that_no_answer_can_fail_is_refused(tmp_path: Path) -> None:
    beyond = Spec((("fact", 1),), False, (0, 1, 2, 90), "1-5", False, (0, 0, 0, 0))
    recipe = Recipe("feedback", "world:text", options=FeedbackOptions(rubrics=1, instructions=1, rounds=1))
    with pytest.raises(UserError, match="rubric number 0 has no instruction of all levels"):
        build(recipe, tmp_path / "out", teacher=WorldTeacher("text", specs=(beyond,), split="all"))


@pytest.mark.parametrize("words", [30, 120])
def test_version_4_obeys_words(words: int, tmp_path: Path) -> None:
    """Responses have the length that the recipe asks for, and their scores follow from what the rubric says."""
    path = tmp_path / "recipe.yaml"
    path.write_text(
        f"recipe: feedback\nteacher: world:text\nworld_version: 4\nwords: {words}\nrubrics: 4\ninstructions: 2\n"
    )
    built = build(load_recipe(path), tmp_path / "out")
    assert built.kept == dict.fromkeys("12345", 8)
    told = orjson.loads((tmp_path / "out" / "build.json").read_bytes())["teacher"]
    assert (told["version"], told["words"]) == ("worlds/4.5", words)
    items = list(read_items(str(tmp_path / "out" / "items.jsonl")))
    lengths = [len(words_of(text_of(item.responses[0]))) for item in items]
    assert all(abs(n - words) <= 0.3 * words for n in lengths)
    assert abs(sum(lengths) / len(lengths) - words) <= 0.1 * words
    by_rubric: dict[str, list[tuple[float, int]]] = {}
    for item in items:
        lost = int(re.findall(r"Lost: (\d+)", item.gold["feedback"])[-1])
        assert lost == sum(claim["cost"] for claim in item.gold["claims"])
        by_rubric.setdefault(str(item.rubric), []).append((item.gold["score"], lost))
    assert len(by_rubric) == 4
    for pairs in by_rubric.values():
        assert all(less < more for high, less in pairs for low, more in pairs if high > low)
    unweighed = [c for item in items for c in item.gold["claims"] if c["verdict"] != "right" and not c["cost"]]
    assert len(unweighed) > len(items)  # a judge that counts every mistake is wrong


def test_version_3_has_no_length_and_stays_as_it_was(tmp_path: Path) -> None:
    told = [FeedbackOptions(words=words) for words in (40, 120)]
    recipes = [Recipe("feedback", "world:text", options=each) for each in told]
    assert "world_version" not in recipes[0].told
    for name, recipe in zip("ab", recipes, strict=True):
        build(replace(recipe, options=replace(recipe.options, rubrics=2, rounds=1)), tmp_path / name)
    one, other = (list(read_items(str(tmp_path / name / "items.jsonl"))) for name in "ab")
    assert [item.responses for item in one] == [item.responses for item in other]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("teacher: world:text\nwords: 300\n", "3: field 'words': world:text draws responses of 20 to 130 words"),
        ("teacher: http://localhost:1/v1#m\n", "3: field 'world_version': version 4 is taught by world:text alone"),
    ],
)
def test_what_no_world_can_draw_is_told_first(keys: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(f"recipe: feedback\n{keys}world_version: 4\n")
    with pytest.raises(DataError) as caught:
        load_recipe(path)
    assert told in str(caught.value)


def test_pictures_are_taught_by_version_3(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("recipe: bench\nof: images\nteacher: world:scenes\nworld_version: 4\n")
    with pytest.raises(DataError, match="version 4 is taught by world:text alone"):
        load_recipe(path)


@pytest.mark.parametrize("domain", ["text", "scenes", "plates", "charts"])
def test_references_are_flawless(domain: str) -> None:
    """Each sentence of a reference is read back from English, and looked up, by code that shares none with worlds."""
    teacher: WorldTeacher = WorldTeacher(domain, per_rubric=2) if domain == "text" else PictureTeacher(domain)
    read = differ = 0
    for number in range(12):
        if isinstance(teacher, PictureTeacher):
            sample = teacher._views(number)[0]
            reference = teacher.reference(number, 4)
        else:
            sample = teacher._plan(number).instructions[0]
            about = {"stage": "instructions", "lineage": {"world": number}, "count": 1}
            [reply] = teacher.stream([Request("k", (), about=about)])
            reference = orjson.loads(reply.text)["instructions"][0]["reference"]
        reader = READERS[domain](sample.domain.to_json(sample.graph))
        for sentence in sentences(reference, False):
            read += 1
            assert reader.off(*reader.read(sentence))[1] == 0, (number, sentence)
        differ += reference not in {each.text for each in sample.responses}
    assert read > 40
    assert differ > 8
