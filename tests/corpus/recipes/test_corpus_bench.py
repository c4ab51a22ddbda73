"""The recipe `bench`: the shape of held-out sets, and that they share nothing with the training data."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import read_items, write_items
from dikast.corpus.dedup.contamination import Apart
from dikast.corpus.pipeline.build import build, estimate
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.recipes import bench

pytest.importorskip("datasketch")


def recipe(folder: Path, name: str = "bench", **values: Any) -> Any:
    path = folder / f"{name}.yaml"
    path.write_bytes(orjson.dumps({"recipe": "bench", "teacher": "world:text", **values}))
    return load_recipe(path)


def made(name: str, criterion: str, instruction: str, word: str) -> list[Item]:
    """Five graded answers to one instruction."""
    return [
        Item.of(
            instruction, f"{word} {word}{score} {word}{score}{score} and so on to {word}", id=f"{name}-{score}",
            gold={"score": score}, rubric={"name": name.split("-")[0], "criterion": criterion, "scale": "1-5"},
        )
        for score in range(1, 6)
    ]  # fmt: skip


def options(**values: Any) -> bench.BenchOptions:
    return bench.BenchOptions(**{"rubrics": 2, "instructions": 1, **values})


LONG = "Does the answer say where every one of its numbers was taken from?"


def test_what_is_in_the_training_data_is_left_out_whole(tmp_path: Path) -> None:
    train = [
        *made("t0-a", LONG, "How many boats lay in the old harbour of the town last year?", "oak"),
        *made("t1-a", "Is it polite?", "Name the three largest lakes of the northern country.", "elm"),
    ]
    write_items(tmp_path / "train.jsonl", train)
    apart = Apart([tmp_path / "train.jsonl"])
    assert apart.rows == {"train.jsonl": 10}
    items = [
        *made("r0-a", LONG.replace("Does", "does").rstrip("?"), "What is a fjord?", "ash"),
        *made("r1-a", "Is it brief?", "Name the three largest lakes of the northern country?", "fir"),
        *made("r2-a", "Is it vivid?", "What is a delta?", "oak"),
        *made("r3-a", "Is it calm?", "What is a moraine?", "yew"),
        *made("r4-a", "Is it fair?", "What is a spit of land?", "bay"),
        *made("r5-a", "Is it kind?", "What is a lagoon?", "box"),
    ]
    dropped: Counter[str] = Counter()
    found = list(bench.chosen(items, options(), apart, dropped, near=True, seed=0))
    assert [item.id for item in found] == [f"r{n}-a-{score}" for n in (3, 4) for score in range(1, 6)]
    assert dropped == {
        "rubric in the training data": 5, "instruction in the training data": 5, "response in the training data": 5,
        "rubric with too few instructions": 2, "rubrics beyond the number asked for": 1,
    }  # fmt: skip


def test_a_rubric_short_of_an_instruction_or_a_score_is_left_out() -> None:
    whole = made("r0-a", "Is it calm?", "What is a moraine?", "yew") + made("r0-b", "Is it calm?", "And a fen?", "elm")
    short = made("r1-a", "Is it fair?", "What is a spit of land?", "bay")
    torn = made("r2-a", "Is it kind?", "A bog?", "box") + made("r2-b", "Is it kind?", "A mire?", "ash")[:4]
    dropped: Counter[str] = Counter()
    found = list(
        bench.chosen(
            [*short, *torn, *whole], options(instructions=2), Apart([]), dropped, near=False, seed=0
        )
    )  # fmt: skip
    assert [item.id for item in found] == [item.id for item in whole]
    assert dropped == {"rubric with too few instructions": 2, "rubrics short of the number asked for": 1}


@pytest.mark.parametrize("responses", [1, 2, 3, 4])
def test_fewer_responses_still_show_each_score_as_often(responses: int) -> None:
    draw = bench._Scores(responses, 3)
    drawn = [draw() for _ in range(500)]
    assert all(len(each) == responses for each in drawn)
    counts = Counter(score for each in drawn for score in each)
    assert max(counts.values()) - min(counts.values()) <= 0.1 * 100 * responses


def test_a_world_s_bench_has_its_shape_and_leaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(orjson.dumps({"recipe": "feedback", "teacher": "world:text", "rubrics": 20, "regrade": False}))
    build(load_recipe(path), tmp_path / "train")
    told = recipe(tmp_path, apart_from=["train/items.jsonl"], rubrics=5, instructions=2, regrade=False, spare=2)
    built = build(told, tmp_path / "out")
    assert (built.waits, built.items, built.kept) == ("", 50, {str(n): 10 for n in range(1, 6)})
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    assert len({item.rubric.criterion for item in items}) == 5  # type: ignore[union-attr]
    assert len({text_of(item.instruction[0].content) for item in items}) == 10
    learnt = {item.rubric.criterion.split()[0] for item in read_items(tmp_path / "train" / "items.jsonl")}  # type: ignore[union-attr]
    assert not {item.rubric.criterion.split()[0] for item in items} & learnt  # type: ignore[union-attr]
    report = orjson.loads((tmp_path / "out" / "apart.json").read_bytes())
    assert report == {
        "apart_from": {"items.jsonl": 200}, "items": 50, "found": {"rubric": 0, "instruction": 0, "response": 0},
    }  # fmt: skip
    check = check_file(
        tmp_path / "out" / "items.jsonl", CheckOptions(against=(str(tmp_path / "train" / "items.jsonl"),), draws=20)
    )
    leaked = [each.found for name, each in check.findings.items() if name.startswith("leaked")]
    assert leaked == [0, 0, 0]
    assert check.findings["near-duplicate rubrics"].found == 0
    assert [each.calls for each in estimate(told)] == [4, 15, 150]
    again = build(told, tmp_path / "out")
    assert again.items == 50


def test_one_rubric_an_image(tmp_path: Path) -> None:
    told = recipe(
        tmp_path, teacher="world:scenes", of="images", rubrics=3, instructions=1, responses=1, regrade=False, spare=0.4
    )
    built = build(told, tmp_path / "out")
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    assert (built.waits, built.items, len(items)) == ("", 3, 3)
    assert len({item.images[0].source for item in items}) == 3
    clash = recipe(
        tmp_path, "clash", teacher="world:scenes", of="images", rubrics=3, instructions=1, responses=1, regrade=False,
        apart_from=["out/items.jsonl"], spare=0.4,
    )  # fmt: skip
    other = build(clash, tmp_path / "other")
    assert other.items < 3  # the same seed draws the same pictures: what the first bench took is not taken again
    assert sum(n for reason, n in other.dropped.items() if reason.endswith("in the training data")) >= 15


def test_a_leak_that_got_through_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Apart, "leak", lambda self, item: "")
    told = recipe(tmp_path, rubrics=1, instructions=1, regrade=False, split="train", near=False, seed=4)
    build(told, tmp_path / "one")
    again = recipe(
        tmp_path, rubrics=1, instructions=1, regrade=False, split="train", near=False, seed=4,
        apart_from=["one/items.jsonl"],
    )  # fmt: skip
    with pytest.raises(RunError, match=r"shares content with items\.jsonl"):
        build(again, tmp_path / "two")


def test_bad_input(tmp_path: Path) -> None:
    for given, told in (
        ({"of": "sounds"}, "must be text or images"),
        ({"responses": 6}, "at most 5"),
        ({"teacher": "mock:constant", "words": 2000}, "set max_tokens to at least 4,000"),
        ({"of": "images", "teacher": "mock:constant"}, "needs 'images'"),
        ({"apart_from": 3}, "a list of text"),
    ):
        with pytest.raises(DataError, match=told):
            recipe(tmp_path, **given)
    with pytest.raises(UserError, match="does not exist"):
        build(recipe(tmp_path, apart_from=["no.jsonl"]), tmp_path / "out")
    with pytest.raises(UserError, match="no split 'wordngs'"):
        build(recipe(tmp_path, split="wordngs"), tmp_path / "out")
