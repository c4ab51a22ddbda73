"""Splits by rubric, balance and Parquet: splits share no wording, and dropped rows are counted."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image as Pillow

from dikast.audit.statistics.correlation import pearson
from dikast.core.errors import DataError, RunError
from dikast.core.item import Item, item_to
from dikast.core.media import load_image
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.corpus.dedup.shared_wording import alike, components, runs_of
from dikast.corpus.observations import words_of
from dikast.corpus.pipeline.balance import capped, shares, uncorrelated
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.parquet_shards import write_shards
from dikast.corpus.pipeline.post_processing import finish
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.rubric_splits import split
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.quality.topics import topics

LEVELS = {str(n): f"Level {n} of it." for n in range(1, 6)}


def jaccard(a: str, b: str) -> float:
    one, two = runs_of(words_of(a)), runs_of(words_of(b))
    return len(one & two) / len(one | two) if one and two else 0.0


def recipe(tmp_path: Path, **values: Any) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(orjson.dumps({"recipe": "feedback", "teacher": "world:text", **values}))
    return load_recipe(path)


def row(number: int, score: int, words: int, *, criterion: str = "Is it clear?", **more: Any) -> Item:
    return Item.of(
        f"Tell of {number // 5}.", " ".join(["word"] * words) + f" {number}", id=str(number),
        rubric={"criterion": criterion, "scale": "1-5", "levels": LEVELS},
        gold={"score": score, "feedback": "It is so."}, **more,
    )  # fmt: skip


@pytest.mark.parametrize("likeness", [0.3, 0.5, 0.8, 1.0])
def test_the_join_finds_what_comparing_all_pairs_finds(likeness: float) -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choice("abcdefgh") for _ in range(rng.randrange(9))) for _ in range(250)]
    texts += ["one two three four five six", "One, two three four five seven", "one two", "one two"]
    due = {
        (i, j) for i in range(len(texts)) for j in range(i + 1, len(texts)) if jaccard(texts[i], texts[j]) >= likeness
    }
    assert {(i, j) for i, j in alike(texts, likeness).tolist()} == due
    assert (252, 253) in due


def test_components_join_through_others() -> None:
    assert components(5, np.array([[0, 1], [1, 3]])).tolist() == [0, 0, 1, 0, 2]


def test_splits_of_a_world_share_no_wording(tmp_path: Path) -> None:
    told = recipe(tmp_path, rubrics=60, instructions=1, regrade=False, splits={"train": 0.7, "dev": 0.1, "test": 0.2})
    built = build(told, tmp_path / "out")
    criteria: dict[str, set[str]] = {}
    n = {}
    for name in told.splits:
        items = list(read_items(tmp_path / "out" / f"items.{name}.jsonl"))
        n[name] = len(items)
        criteria[name] = {item.rubric.criterion for item in items if isinstance(item.rubric, Rubric)}
    assert sum(n.values()) == built.items == 300
    assert abs(n["train"] - 210) <= 10
    assert n["dev"] >= 20
    likest = max(
        jaccard(a, b)
        for one in criteria
        for two in criteria
        if one != two
        for a in criteria[one]
        for b in criteria[two]
    )
    assert 0.2 < likest < told.apart  # worlds do share some wording, so the test could fail
    out = tmp_path / "out"
    found = check_file(
        out / "items.test.jsonl", CheckOptions(against=(str(out / "items.train.jsonl"),), draws=20)
    ).findings
    assert all(found[f"leaked: {what}"].found == 0 for what in ("rubric", "instruction", "response"))
    assert found["leaked: rubric"].n > 5
    again = finish(told, tmp_path / "out", read_items(_copied(out / "items.jsonl", tmp_path)))
    assert again.figures["splits"] == built.figures["splits"]


def _copied(path: Path, folder: Path) -> Path:
    to = folder / "copied.jsonl"
    to.write_bytes(path.read_bytes())
    return to


def test_one_wording_cannot_be_split() -> None:
    with pytest.raises(RunError, match=r"nothing is left for test: 3 rubrics make 1 groups .* raise 'apart' \(now 0.6"):
        split(["is it clear to read", "is it clear to read!", "Is it CLEAR to read"], [5, 5, 5],
              {"train": 0.9, "test": 0.1}, seed=0, likeness=0.6)  # fmt: skip
    found, told = split(["is it short", "does it rhyme", "who is named"], [5, 5, 10],
                        {"a": 0.5, "b": 0.5}, seed=0, likeness=0.6)  # fmt: skip
    assert found[0] == found[1] != found[2]
    assert told["splits"]["a"]["rows"] == told["splits"]["b"]["rows"] == 10


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"splits": {"train": 0.9}}, "at least two splits"),
        ({"splits": {"train": 0.9, "test": 0.2}}, "sum to 1"),
        ({"splits": {"train": float("nan"), "test": 0.2}}, "splits"),
        ({"splits": {"Train": 0.9, "test": 0.1}}, "lower-case letters"),
        ({"splits": [1]}, "a mapping of names to numbers"),
        ({"parquet": -1}, "of at least 0"),
        ({"parquet_images": "inside"}, "'bytes' or 'path'"),
        ({"length_r": 2}, "from 0 to 1"),
    ],
)
def test_bad_keys_are_told(keys: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        recipe(tmp_path, **keys)


def test_how_items_are_written_may_change_without_asking(tmp_path: Path) -> None:
    values: dict[str, Any] = {"rubrics": 12, "instructions": 1, "regrade": False}
    build(recipe(tmp_path, **values, splits={"a": 0.5, "b": 0.5}), tmp_path / "out")
    assert (tmp_path / "out" / "items.a.jsonl").is_file()
    built = build(recipe(tmp_path, **values, parquet=20), tmp_path / "out", budget={"calls": 0})
    assert (built.items, built.waits) == (60, "")
    assert not list((tmp_path / "out").glob("items.*.jsonl"))
    assert len(list((tmp_path / "out" / "parquet").glob("train-*-of-00003.parquet"))) == 3


def test_length_is_balanced_by_leaving_groups_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    items = []
    for i in range(600):
        biased = i // 5 % 3 == 0  # a third of the instructions have longer answers for better scores
        items.append(row(i, i % 5 + 1, 40 + int(rng.integers(0, 9)) + (4 * (i % 5) if biased else 0)))
    done = finish(recipe(tmp_path), tmp_path, items)
    length = done.figures["length"]["graded"]
    assert length["r_before"] > 0.3
    assert abs(length["r"]) <= length["bound"] == pytest.approx(1.96 / math.sqrt(length["rows"]))
    assert done.dropped["length tells the score"] == 600 - done.items == 5 * length["dropped_groups"] > 0
    assert set(done.kept.values()) == {done.items / 5}  # whole instructions go, so that scores stay uniform
    words = check_file(tmp_path / "items.jsonl", CheckOptions(near=False, draws=20)).information[0]
    assert words.r == pytest.approx(length["r"], abs=1e-6)


def test_graded_responses_and_pairs_are_balanced_each_by_itself(tmp_path: Path) -> None:
    rng, items = np.random.default_rng(2), []
    for i in range(1500):  # better responses are slightly longer; in pairs the shorter one wins slightly more often
        items.append(row(5 * i, i % 5 + 1, 40 + int(rng.integers(0, 15)) + i % 5 // 2))
        a, b = (int(each) for each in rng.integers(30, 50, 2))
        better = "b" if rng.random() < (0.6 if a > b else 0.4) else "a"
        answers = (" ".join(["word"] * a), " ".join(["other"] * b))
        items.append(Item.of(f"Compare {i}.", responses=answers, id=f"p{i}", gold={"preference": better}))
    done = finish(recipe(tmp_path, length_r=0.02), tmp_path, items)
    graded, pairs = done.figures["length"]["graded"], done.figures["length"]["pairs"]
    assert graded["r_before"] > 0.1 > -0.1 > pairs["r_before"]
    assert abs(graded["r"]) <= graded["bound"] == 0.02 == pairs["bound"] >= abs(pairs["r"])
    assert 2 * 1300 < done.items == graded["rows"] + pairs["rows"]
    assert orjson.loads(orjson.dumps(done.figures))["length"]["graded"] == graded  # the report is written from these
    told = check_file(tmp_path / "items.jsonl", CheckOptions(near=False, draws=20))
    assert told.information[0].r == pytest.approx(graded["r"], abs=1e-6)
    assert told.pairs[0].r == pytest.approx(pairs["r"], abs=1e-6)


def test_a_bound_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    done = finish(recipe(tmp_path), tmp_path, [row(i, i % 5 + 1, 20 * (i % 5 + 1)) for i in range(200)])
    assert "above the bound" in done.notes[0]
    constant = finish(recipe(tmp_path), tmp_path, [row(i, i % 5 + 1, 20) for i in range(200)])
    assert (constant.items, constant.notes) == (200, [])
    assert math.isnan(constant.figures["length"]["graded"]["r"])


def test_uncorrelated_by_hand() -> None:
    # groups of two rows; the first rises by 2 a point, the second falls by 1, the third is level:
    # x - mean = (-1, 1, .5, -.5, 0, 0), y - mean = (-.5, .5) each: sxy = 1 - .5 = .5, sxx = 2.5, syy = 1.5
    groups, x, y = np.array([0, 0, 1, 1, 2, 2]), np.array([0.0, 2, 1.5, 0.5, 1, 1]), np.array([1.0, 2, 1, 2, 1, 2])
    kept, told = uncorrelated(groups, x, y, 1.0)
    assert told["r_before"] == pytest.approx(0.5 / math.sqrt(2.5 * 1.5))
    assert kept.all()


def test_the_correlation_told_is_that_of_the_rows_that_are_kept() -> None:
    # ten groups hold nearly all of the spread: sums without them must not be differences of large sums
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(60), rng.standard_normal(60)
    x[:20] = y[:20] = 1e9 * np.repeat(np.arange(-4.5, 5), 2)
    groups = np.repeat(np.arange(30), 2)
    kept, told = uncorrelated(groups, x, y, 0.01)
    assert told["dropped_groups"] == 10
    assert kept.tolist() == [False] * 10 + [True] * 20
    assert told["r"] == pytest.approx(pearson(x[20:], y[20:]), abs=1e-6)


def test_a_family_and_a_topic_have_their_share(tmp_path: Path) -> None:
    families = [["seed 0"]] * 60 + [["seed 1"]] * 20 + [["seed 0", "seed 2"]] * 20
    items = [
        row(5 * i + k, k + 1, 30, meta={"families": family}) for i, family in enumerate(families) for k in range(5)
    ]
    done = finish(recipe(tmp_path, family_share=0.4), tmp_path, items)
    told = {each["name"]: each for each in done.figures["families"]["largest"]}
    assert max(each["share"] for each in told.values()) <= 0.4 + 1e-9
    assert done.dropped["family share"] == 500 - done.items > 100
    assert told["seed 1"]["rows"] == 100
    assert told["seed 1"]["mean_score"] == 3
    whole = finish(recipe(tmp_path), tmp_path, items).figures["families"]
    assert {each["name"]: (each["rows"], each["share"]) for each in whole["largest"]} == {
        "seed 0": (400, 0.7), "seed 1": (100, 0.2), "seed 2": (100, 0.1),
    }  # fmt: skip
    few = finish(recipe(tmp_path, family_share=0.1), tmp_path, items[:400]).figures["families"]  # two families
    assert [each["share"] for each in few["largest"]] == [0.5, 0.5]


def test_topics_are_what_shares_rare_words(tmp_path: Path) -> None:
    rng = random.Random(5)
    themes = [[a + b for a in start for b in "aeiou"] for start in ("kmpt", "bdgw", "flrs")]
    due = [0] * 60 + [1] * 20 + [2] * 20
    rng.shuffle(due)
    texts = ["Please write about " + " ".join(rng.sample(themes[each], 12)) for each in due]
    found = topics(texts)
    assert len(found.names) == 3
    assert len({(each, of) for each, of in zip(due, found.of.tolist(), strict=True)}) == 3
    assert "write" not in " ".join(found.names)
    items = [Item.of(text, "An answer.", id=str(i), gold=3) for i, text in enumerate(texts)]
    done = finish(recipe(tmp_path, topic_share=0.5), tmp_path, items)
    assert done.dropped["topic share"] == 20
    assert [each["share"] for each in done.figures["topics"]["largest"]] == [0.5, 0.25, 0.25]
    assert topics([]).names == ()


def test_capped_by_hand() -> None:
    # 6 of 10 rows in class 0; at most half: 6 - k <= .5 (10 - k), so two go
    members, sizes = [(0,)] * 6 + [(1,)] * 4, np.ones(10, np.int64)
    kept = capped(members, sizes, 0.5, seed=1)
    assert kept.sum() == 8
    assert kept[6:].all()
    assert shares(members, sizes, 2).tolist() == [0.6, 0.4]
    assert capped([()] * 3, sizes[:3], 0.5, seed=1).all()


@pytest.fixture
def pictured(tmp_path: Path) -> Path:
    for i in range(3):
        Pillow.new("RGB", (32, 32), (80 * i, 10, 10)).save(tmp_path / f"p{i}.png")

    def shown(n: int) -> dict[str, str]:
        return {"type": "image", "image": str(tmp_path / f"p{n}.png")}

    items = [
        Item.of(f"What is in {i}?", "A colour.", id=str(i), image=f"p{i}.png", gold={"score": i + 1, "feedback": "So."},
                rubric={"criterion": "Is it true?", "scale": "1-5", "levels": LEVELS}, meta={"n": i})
        for i in range(3)
    ]  # fmt: skip
    talk = [
        {"role": "user", "content": [shown(0), "One."]},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": [shown(1), "And this?", shown(2)]},
    ]
    items.append(Item.of(talk, "Two.", id="talk", gold=2))
    items.append(Item.of("No picture?", "None.", id="bare", gold=1))
    records = [orjson.dumps(item_to(item)) for item in items]
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(records))
    return tmp_path


@pytest.mark.parametrize("embed", [True, False])
def test_shards_give_the_items_back(embed: bool, pictured: Path) -> None:
    pytest.importorskip("pyarrow")
    done = write_shards(pictured / "items.jsonl", pictured / "parquet", "train", rows=2, embed=embed)
    assert done == {"rows": 5, "shards": 3}
    files = sorted((pictured / "parquet").iterdir())
    assert [each.name for each in files] == [f"train-0000{i}-of-00003.parquet" for i in range(3)]
    back = [item for file in files for item in read_items(file)]
    before = list(read_items(pictured / "items.jsonl"))
    assert [item.id for item in back] == [item.id for item in before]
    for old, new in zip(before, back, strict=True):
        assert (new.gold, new.rubric, new.responses, new.meta) == (old.gold, old.rubric, old.responses, old.meta)
        assert [[type(part) for part in turn.content] for turn in new.instruction] == [
            [type(part) for part in turn.content] for turn in old.instruction
        ]
        pixels = [[load_image(image).picture.getpixel((0, 0)) for image in item.images] for item in (old, new)]
        assert pixels[0] == pixels[1]
        assert all(image.source.startswith("data:") == embed for image in new.images)


def test_datasets_reads_the_shards(pictured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_shards(pictured / "items.jsonl", pictured / "parquet", "train", rows=2, embed=True)
    write_shards(pictured / "items.jsonl", pictured / "parquet", "test", rows=9, embed=True)
    found = datasets.load_dataset(str(pictured / "parquet"), cache_dir=str(pictured / "cache"))
    assert {name: len(each) for name, each in found.items()} == {"train": 5, "test": 5}
    first = found["train"][2]
    assert first["images"][0].getpixel((0, 0)) == (160, 10, 10)
    assert (first["id"], first["response"], orjson.loads(first["gold"])["score"]) == ("2", "A colour.", 3)
    assert found["train"][4]["images"] == []
