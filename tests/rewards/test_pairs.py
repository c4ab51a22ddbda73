"""Pairs from runs: which are taken, which are left out and why, and each trainer's form read back."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image
from typer.testing import CliRunner

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from
from dikast.core.part import Content, Text, Turn, text_of
from dikast.core.records import read_items, read_records
from dikast.corpus.convert import to_record
from dikast.corpus.schemas import get_schema, guess_schema
from dikast.engines.mock import Failures, Oracle, Random
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from dikast.ranking.rank_file import rank_file
from dikast.ranking.rank_options import RankOptions
from dikast.rewards.pairs import Pair, Pairs, matched, pairs_of
from dikast.surface.cli import app
from dikast.surface.export.preference_file import SCHEMA_OF, write_preferences

SCORES = {"q0": [5, 1, 3], "q1": [2, 2, 2], "q2": [3, 4, 4], "q3": [1, 5, 2]}


def rows(folder: Path, *, apart: bool = False) -> Path:
    """Items with gold; with `apart` each response is an item of its own."""
    found: list[dict[str, Any]] = []
    for name, scores in SCORES.items():
        responses = [f"{name} response {i} {'word ' * (3 * score)}".strip() for i, score in enumerate(scores)]
        asked = {"instruction": f"Tell me about {name}."}
        if apart:
            found += [{**asked, "id": f"{name}-{i}", "response": r, "gold": s}
                      for i, (r, s) in enumerate(zip(responses, scores, strict=True))]  # fmt: skip
        else:
            found.append({**asked, "id": name, "responses": responses, "gold": scores})
    path = folder / "items.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in found))
    return path


def exact() -> Judge:
    return Judge(Oracle(r=1.0), "helpfulness")


def texts(pair: Pair) -> list[str]:
    return [" ".join(text_of(each).split()[:3]) for each in pair.item.responses]


@pytest.mark.parametrize("apart", [False, True])
def test_best_and_worst_of_grades(apart: bool, tmp_path: Path) -> None:
    grade_file(exact(), rows(tmp_path, apart=apart), tmp_path / "run")
    found = pairs_of(tmp_path / "run", margin=0.3)
    assert [texts(each) for each in found.pairs] == [
        ["q0 response 0", "q0 response 1"],
        ["q3 response 1", "q3 response 0"],
    ]
    assert all(each.item.gold == {"preference": "a"} and each.margin > 0.5 for each in found.pairs)
    assert found.prompts == 4
    assert sum(found.dropped.values()) == 2  # q1 is equal, q2 too close
    assert found.dropped["less than the margin apart"] >= 1


def test_all_pairs_of_grades(tmp_path: Path) -> None:
    grade_file(exact(), rows(tmp_path), tmp_path / "run")
    found = pairs_of(tmp_path / "run", margin=0.1, take="all")
    by_prompt = Counter(each.item.id.partition("#")[0] for each in found.pairs)
    assert by_prompt == {"q0": 3, "q2": 2, "q3": 3}
    assert sum(found.dropped.values()) == 4


def test_best_and_worst_of_comparisons(tmp_path: Path) -> None:
    compare_file(exact(), rows(tmp_path), tmp_path / "run")
    found = pairs_of(tmp_path / "run", margin=0.2)
    assert texts(found.pairs[0]) == ["q0 response 0", "q0 response 1"]
    assert texts(found.pairs[-1]) == ["q3 response 1", "q3 response 0"]
    assert all(0.2 <= each.margin <= 1 for each in found.pairs)


@pytest.mark.parametrize("apart", [False, True])
def test_responses_that_were_edited_after_the_run_make_no_pairs(apart: bool, tmp_path: Path) -> None:
    items, out = rows(tmp_path, apart=apart), tmp_path / "run"
    (grade_file if apart else compare_file)(Judge(Random(), "helpfulness"), items, out)
    assert not any("changed" in each for each in pairs_of(out).dropped)
    items.write_bytes(items.read_bytes().replace(b"q0 response 0", b"Never judged", 1))
    found = pairs_of(out, take="all")
    assert found.dropped["items that changed since they were judged"] == 1
    assert not any("Never judged" in text for pair in found.pairs for text in texts(pair))


def test_orders_that_disagree_are_left_out_and_counted(tmp_path: Path) -> None:
    biased = Judge(Oracle(r=1.0, nats=60.0), "helpfulness")
    compare_file(biased, rows(tmp_path), tmp_path / "run")
    found = pairs_of(tmp_path / "run")
    assert found.pairs == []
    assert found.dropped["the two orders disagree"] >= 3


def test_pairs_of_one_order_are_told(tmp_path: Path) -> None:
    out = tmp_path / "run"
    compare_file(Judge("mock:first-slot", "helpfulness"), rows(tmp_path), out, both_orders=False)
    assert pairs_of(out).summary()["one_order"] is True
    done = CliRunner().invoke(app, ["prefs", str(out), "--format", "trl", "--out", str(tmp_path / "p.jsonl")])
    assert "each pair was asked in one order only" in done.output


def test_missing_verdicts_leave_the_prompt_out(tmp_path: Path) -> None:
    judge = Judge(Random(failures=Failures(refused=0.4)), "helpfulness")
    grade_file(judge, rows(tmp_path), tmp_path / "run")
    found = pairs_of(tmp_path / "run")
    assert found.dropped["a verdict is missing"] >= 2
    assert len(found.pairs) + sum(found.dropped.values()) == 4


@pytest.mark.parametrize("way", ["grade", "compare", "rank"])
def test_empty_responses_count_for_nothing(way: str, tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    asked = [
        {"id": "three", "instruction": "Name a prime.", "responses": ["7", " ", "9"], "gold": [5, 1, 2]},
        {"id": "one", "instruction": "Name an even prime.", "responses": ["2", ""], "gold": [5, 1]},
        {"id": "same", "instruction": "Name a prime number.", "responses": ["7", "7"], "gold": [5, 5]},
    ]
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in asked))
    if way == "rank":
        rank_file(exact(), source, tmp_path / "run")
    else:
        (grade_file if way == "grade" else compare_file)(exact(), source, tmp_path / "run")
    found = pairs_of(tmp_path / "run")
    assert [[text_of(each) for each in pair.item.responses] for pair in found.pairs] == [["7", "9"]]
    assert found.dropped == {"fewer than two different responses that are not empty": 2}
    assert len(pairs_of(tmp_path / "run", take="all").pairs) == 1


def differing(lengths: Sequence[int]) -> list[Pair]:
    """Pairs whose preferred response is so many words longer."""
    asked = (Item.of(f"Question {n}?") for n in range(len(lengths)))
    return [Pair(item, 1.0, words) for item, words in zip(asked, lengths, strict=True)]


def test_matched_pairs_by_hand() -> None:
    """10 goes with -10, 28 with -29 (30 is further), 11 with -9 (two words); 5, 3, 100 and -60 have no match. The
    matches lean 0 - 1 + 2 = 1, and without the last they would lean -1: it stays.
    """
    lengths = [30, 28, 10, 11, 5, -10, -9, 0, -29, 3, 100, -60]
    found = matched(differing(lengths))
    assert [each.words for each in found] == [28, 10, 11, -10, -9, 0, -29]
    assert Pairs(found).words_longer.value == pytest.approx((28 + 10 + 11 - 10 - 9 + 0 - 29) / 7)  # 1/7
    # 10 with -9, 20 with -19, 31 with -32: 1 + 1 - 1 = 1, and one of the first two makes it 0
    found = matched(differing([10, 20, 31, -9, -19, -32]))
    assert [each.words for each in found] == [20, 31, -19, -32]
    assert [matched(differing(each)) for each in ([], [4], [4, 5], [7, -4])] == [[], [], [], []]  # 7 and 4: 3 apart
    assert [each.words for each in matched(differing([55, -50]))] == []  # a tenth apart, but leaning by 5 all together
    assert [each.words for each in matched(differing([55, -50, 100, -105]))] == [55, -50, 100, -105]


@pytest.mark.parametrize("seed", range(5))
def test_the_length_of_matched_pairs_says_nothing_of_the_preference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = differing(np.rint(rng.normal(4, 12, 3000)).astype(int).tolist())
    plain, found = Pairs(pairs), Pairs(matched(pairs))
    words = np.array([each.words for each in found.pairs])
    assert plain.words_longer.low > 3
    assert abs(found.words_longer.value) < 0.01
    assert found.words_longer.low < -0.3
    assert found.words_longer.high > 0.3
    assert (words > 0).sum() == (words < 0).sum() > 0.95 * sum(each.words < 0 for each in pairs)
    assert words[words > 0].mean() == pytest.approx(-words[words < 0].mean(), abs=0.01)
    for low, high in ((1, 4), (5, 9), (10, 19), (20, 99)):  # at every size of the difference either is preferred
        inside = words[(abs(words) >= low) & (abs(words) <= high)]
        assert (inside > 0).mean() == pytest.approx(0.5, abs=0.03)


def test_matching_length_on_a_judge_that_likes_it_long(tmp_path: Path) -> None:
    items = [
        {"id": str(n), "instruction": f"Question {n}?", "gold": [5, 1] if n % 4 else [1, 5],
         "responses": [f"long {n} " + "word " * 20, f"short {n}"]}
        for n in range(40)
    ]  # fmt: skip
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in items))
    grade_file(exact(), path, tmp_path / "run")
    plain, even = pairs_of(tmp_path / "run"), pairs_of(tmp_path / "run", match_length=True)
    assert (plain.summary()["chosen_longer"], plain.summary()["chosen_shorter"]) == (30, 10)
    assert (even.summary()["chosen_longer"], even.summary()["chosen_shorter"]) == (10, 10)
    assert even.summary()["mean_words_longer"] == 0
    assert even.unmatched == 20
    told = CliRunner().invoke(
        app, ["prefs", str(tmp_path / "run"), "--format", "trl", "--out", str(tmp_path / "p.jsonl"), "--match-length"]
    )
    assert "left out: 20 (so that the others differ in length as much one way as the other)" in told.output
    assert "longer in 10 pairs, shorter in 10: on average 0.0 [-9.6, 9.6] words longer" in told.output


def test_a_response_that_is_preferred_in_one_pair_and_not_in_another_has_no_mark(tmp_path: Path) -> None:
    grade_file(exact(), rows(tmp_path), tmp_path / "run")
    pairs = pairs_of(tmp_path / "run", take="all").pairs
    assert len(pairs) == 8  # q0 and q3 have three each, q2 two
    for form, ending in (("kto", "jsonl"), ("llamafactory-kto", "json")):
        written = write_preferences(pairs, tmp_path / f"marked.{ending}", form)
        assert written == (7, 2)  # q0 and q3: the best and the worst; q2: both of the best, and the worst
        read = [row for row, _ in read_records(tmp_path / f"marked.{ending}")]
        said = [str(row.get("completion") or row["conversations"][-1]) for row in read]
        assert len(set(said)) == len(said) == 7
        assert not any(f"{name} response 2" in each for each in said for name in ("q0", "q3"))
    arguments = ["prefs", str(tmp_path / "run"), "--format", "kto", "--take", "all", "--out", str(tmp_path / "a.jsonl")]
    told = CliRunner().invoke(app, arguments)
    assert "left out: 2 responses (preferred in one pair and rejected in another" in told.output
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["both_ways"] == 2


def test_no_pair_is_an_error_that_says_why(tmp_path: Path) -> None:
    items = [
        {"id": str(n), "instruction": f"Question {n}?", "gold": [5, 1], "responses": ["long " + "word " * 9, f"no {n}"]}
        for n in range(4)
    ]
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in items))
    grade_file(exact(), path, tmp_path / "run")
    out = tmp_path / "p.jsonl"
    for more, told in (
        ("--match-length", r"4 pairs left out by --match-length, as none has a counterpart with the other one longer"),
        ("--margin=.1", None),
    ):
        done = CliRunner().invoke(app, ["prefs", str(tmp_path / "run"), "--format", "trl", "--out", str(out), more])
        assert (done.exit_code == 0) == out.exists() == (told is None)
        if told is not None:
            assert re.search(f"is left, so .* is not written: {told}", f"{done.output} {done.exception}")


@pytest.mark.parametrize("form", ["swift", "llamafactory"])
def test_a_refused_export_leaves_nothing(form: str, graded: Path, tmp_path: Path) -> None:
    pairs = pairs_of(graded).pairs
    wrong = replace(pairs[0].item, responses=((Text("An <image> mark."),), (Text("None."),)))
    out = tmp_path / ("pairs.json" if form == "llamafactory" else "pairs.jsonl")
    with pytest.raises(DataError, match="a text holds '<image>'"):
        write_preferences([*pairs, Pair(wrong, 1.0, 0)], out, form)
    assert list(tmp_path.iterdir()) == []
    write_preferences(pairs, out, form)  # and pictures that were there stay
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="a text holds '<image>'"):
        write_preferences([*pairs, Pair(wrong, 1.0, 0)], out, form)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_list_of_data_sets_is_told_before_anything_is_written(graded: Path, tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("[")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        write_preferences(pairs_of(graded).pairs, tmp_path / "pairs.json", "llamafactory")
    assert [each.name for each in tmp_path.iterdir()] == ["dataset_info.json"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over items with pictures: a path, and one inside the item."""
    folder = tmp_path_factory.mktemp("graded")
    Image.new("RGB", (32, 32), "red").save(folder / "red.png")
    inside = Item.of("x", image=Image.new("RGB", (32, 32), "blue")).images[0].source
    items = [
        {"id": str(n), "image": "red.png" if n % 2 else inside, "instruction": f"What is it, {n}?",
         "responses": [f"It is red, {n}.", f"It is blue, {n}."], "gold": [1, 5]}
        for n in range(4)
    ]  # fmt: skip
    path = folder / "items.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in items))
    grade_file(exact(), path, folder / "run")
    return folder / "run"


@pytest.mark.parametrize("form", [form for form in SCHEMA_OF if form != "openrlhf"])
def test_each_form_is_read_back(form: str, graded: Path, tmp_path: Path) -> None:
    ending = {"verl": "parquet", "llava": "json"}.get(form, "json" if form.startswith("llama") else "jsonl")
    out = tmp_path / f"pairs.{ending}"
    pairs = pairs_of(graded).pairs
    assert len(pairs) == 4
    n = write_preferences(pairs, out, form).rows
    read = [row for row, _ in read_records(out)]
    marked = form in ("kto", "llamafactory-kto")
    assert n == len(read) == (8 if marked else 4)
    for place, row in enumerate(read):
        assert guess_schema(row).name == SCHEMA_OF[form]
        item = item_from({"id": "x", **to_record(row, get_schema(SCHEMA_OF[form]))})
        number = place // 2 if marked else place
        said = [text_of(each) for each in item.responses]
        best, worst = f"It is blue, {number}.", f"It is red, {number}."
        assert said == ([[best], [worst]][place % 2] if marked else [best, worst])
        assert item.gold == (1 - place % 2 if marked else {"preference": "a"})
        assert f"What is it, {number}?" in text_of(item.instruction[-1].content)
        (image,) = item.images
        assert Path(image.source).is_absolute()
        assert Image.open(image.source).getpixel((0, 0)) == ((255, 0, 0) if number % 2 else (0, 0, 255))


def test_text_for_openrlhf_with_its_margin(tmp_path: Path) -> None:
    grade_file(exact(), rows(tmp_path), tmp_path / "run")
    out = tmp_path / "pairs.jsonl"
    write_preferences(pairs_of(tmp_path / "run").pairs, out, "openrlhf")
    for row, _ in read_records(out):
        assert [each["role"] for each in row["prompt"] + row["chosen"]] == ["user", "assistant"]
        assert 0 < row["margin"] <= 1


def test_pictures_are_refused_where_the_form_has_none(graded: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="OpenRLHF's pairs are text"):
        write_preferences(pairs_of(graded).pairs, tmp_path / "pairs.jsonl", "openrlhf")
    assert not (tmp_path / "pairs.jsonl").exists()


def test_llamafactory_is_entered_beside_what_is_there(graded: Path, tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text('{"mine": {"file_name": "mine.json"}}')
    for form in ("llamafactory", "llamafactory-kto"):
        write_preferences(pairs_of(graded).pairs, tmp_path / f"{form}.json", form)
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    assert list(info) == ["mine", "llamafactory", "llamafactory-kto"]
    assert info["llamafactory"]["ranking"] is True
    assert info["llamafactory-kto"]["columns"]["kto_tag"] == "kto_tag"


def test_the_verb(graded: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    done = CliRunner().invoke(app, ["prefs", str(graded), "--format", "trl", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 4
    told = CliRunner().invoke(app, ["prefs", str(graded), "--format", "trl", "--out", str(out)])
    assert "4 rows from 4 pairs" in told.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--format", "llave", "--out", "x.jsonl"], "did you mean 'llava'"),
        (["--format", "trl", "--out", "x.csv"], "NAME.jsonl"),
        (["--format", "verl", "--out", "x.jsonl"], "NAME.parquet"),
        (["--format", "trl", "--out", "x.jsonl", "--margin", "2"], "range|margin"),
        (["--format", "trl", "--out", "x.jsonl", "--criterion", "style"], "no criterion 'style'"),
        (["--format", "trl", "--out", "x.jsonl", "--items", "gone.jsonl"], "no longer at gone.jsonl"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: list[str], told: str, graded: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["prefs", str(graded), *arguments])
    assert result.exit_code != 0
    assert re.search(told, f"{result.output} {result.exception}")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Pairs without a picture, with one before the text, between texts, and in the first of two turns."""
    folder = tmp_path_factory.mktemp("mixed")
    Image.new("RGB", (32, 32), "red").save(folder / "red.png")
    shown = {"type": "image", "image": "red.png"}
    asked: list[Any] = [
        "Name a prime.", [shown, "What is it?"], ["What is", shown, "this?"],
        [{"role": "user", "content": [shown, "What is it?"]}, {"role": "assistant", "content": "Red."},
         {"role": "user", "content": "Sure?"}],
    ]  # fmt: skip
    path = folder / "items.jsonl"
    rows = [
        {"id": str(n), "instruction": each, "responses": ["It is wrong.", "It is good."], "gold": [1, 5]}
        for n, each in enumerate(asked)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    grade_file(exact(), path, folder / "run")
    return pairs_of(folder / "run").pairs


def test_rows_of_trl_are_messages_with_parts_only_where_their_pictures_need_a_place(
    mixed: list[Pair], tmp_path: Path
) -> None:
    out = tmp_path / "pairs.jsonl"
    write_preferences(mixed, out, "trl")
    rows = [row for row, _ in read_records(out)]
    text, first, between, two = (row["prompt"] for row in rows)
    assert text == [{"role": "user", "content": "Name a prime."}]
    assert first == [{"role": "user", "content": "What is it?"}]
    assert [part["type"] for part in between[0]["content"]] == ["text", "image", "text"]
    assert [[part["type"] for part in turn["content"]] for turn in two] == [["image", "text"], ["text"], ["text"]]
    for row in rows:
        assert row["chosen"] == [{"role": "assistant", "content": "It is good."}]
        assert row["rejected"] == [{"role": "assistant", "content": "It is wrong."}]
    assert [len(row["images"]) for row in rows] == [0, 1, 1, 1]
    for pair, row, item in zip(mixed, rows, read_items(str(out)), strict=True):  # by the corpus, and as items
        assert guess_schema(row).name == "trl-preference"
        for read in (item_from({"id": "x", **to_record(row, get_schema("trl-preference"))}), item):
            assert [map_of(turn.content) for turn in read.instruction] == [
                map_of(turn.content) for turn in pair.item.instruction
            ]
            assert [text_of(each) for each in read.responses] == ["It is good.", "It is wrong."]


@pytest.mark.parametrize("form", ["verl", "llamafactory", "llamafactory-kto", "swift"])
def test_rows_with_and_without_pictures_keep_their_pictures(form: str, mixed: list[Pair], tmp_path: Path) -> None:
    """The column of verl's table and the entry of LLaMA-Factory followed the first row, which has none here."""
    out = tmp_path / f"pairs.{'parquet' if form == 'verl' else 'json'}"
    write_preferences(mixed, out, form)
    rows = [dict(row) for row, _ in read_records(out)]
    assert [len(row["images"]) for row in rows] == [n for n in (0, 1, 1, 1) for _ in range(1 + form.endswith("kto"))]
    read = [item_from({"id": "x", **to_record(row, get_schema(SCHEMA_OF[form]))}) for row in rows]
    assert [len(item.images) for item in read] == [len(row["images"]) for row in rows]
    write_preferences(mixed[:1] * 2, out, form)
    assert all("images" not in row for row, _ in read_records(out))
    if form.startswith("llamafactory"):
        columns = json.loads((tmp_path / "dataset_info.json").read_text())["pairs"]["columns"]
        assert "images" not in columns


@pytest.mark.parametrize("form", sorted(SCHEMA_OF))
def test_a_context_is_in_the_prompt(form: str, mixed: list[Pair], tmp_path: Path) -> None:
    """Two prompts that differ in their context alone were the same prompt, with opposite preferences."""
    pair = replace(mixed[0], item=replace(mixed[0].item, context=(Text("Only odd ones."),)))
    out = tmp_path / f"pairs.{'parquet' if form == 'verl' else 'json'}"
    write_preferences([pair], out, form)
    row = next(dict(each) for each, _ in read_records(out))
    assert "Only odd ones.\\n\\nName a prime." in orjson.dumps(row, default=str).decode()


@pytest.mark.parametrize("form", sorted(SCHEMA_OF))
def test_a_text_with_the_mark_of_a_picture_is_refused_where_a_form_has_it(
    form: str, mixed: list[Pair], tmp_path: Path
) -> None:
    asked = replace(mixed[0].item, instruction=(Turn("user", (Text("What is <image> in HTML?"),)),))
    out = tmp_path / f"pairs.{'parquet' if form == 'verl' else 'json'}"
    pair = replace(mixed[0], item=asked)
    if form in ("trl", "kto", "openrlhf"):
        assert write_preferences([pair], out, form)
        return
    with pytest.raises(DataError, match="holds '<image>', which this form has for a picture: use --format trl"):
        write_preferences([pair], out, form)


def map_of(content: Content) -> list[str]:
    """The parts: texts, and a mark for each picture."""
    return [part.text if isinstance(part, Text) else "<picture>" for part in content]


@pytest.mark.parametrize("form", ["trl", "kto"])
@pytest.mark.parametrize("pictures", [True, False])
def test_trl_trains_on_its_rows(form: str, pictures: bool, mixed: list[Pair], tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from datasets import Image as Picture
    from datasets import List, load_dataset
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

    import tiny_models
    from trl_alone import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer

    out = tmp_path / "pairs.jsonl"
    (bare,) = mixed[0].item.instruction
    alike = [
        replace(mixed[0].item, instruction=(replace(bare, content=(Text(f"Name a prime. {n}"),)),)) for n in range(4)
    ]
    write_preferences(mixed if pictures else [replace(mixed[0], item=each) for each in alike], out, form)
    rows = load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert ("images" in rows.column_names) is pictures
    policy = tiny_models.build("llava" if pictures else "llama", tmp_path / "policy")
    loaded: Any = AutoProcessor if pictures else AutoTokenizer
    model: Any = AutoModelForImageTextToText if pictures else AutoModelForCausalLM
    config, trainer = (DPOConfig, DPOTrainer) if form == "trl" else (KTOConfig, KTOTrainer)
    made = trainer(
        model=model.from_pretrained(policy),
        processing_class=loaded.from_pretrained(policy),
        args=config(
            output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=4, use_cpu=True, bf16=False,
            report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1, max_length=None,
        ),
        train_dataset=rows.cast_column("images", List(Picture())) if pictures else rows,
    )  # fmt: skip
    tokenizer = made.processing_class.tokenizer if pictures else made.processing_class
    batch = made.data_collator([made.train_dataset[n] for n in range(4)])
    told = [tokenizer.decode(ids) for ids in batch["input_ids"]]
    begin = "USER: " if pictures else "<|begin_of_text|><|start_header_id|>user"  # of the chat template
    assert all(text.startswith(begin) and "Name a prime." in text for text in told if "<image>" not in text)
    shown = [n // (1 if form == "trl" else 2) > 0 for n in range(4)] if pictures else [False] * 4
    assert [text.startswith("USER: <image>") for text in told[:4]] == shown
    made.train()
    losses = [line["loss"] for line in made.state.log_history if "loss" in line]
    assert len(losses) == 2
    if form == "trl":
        assert losses[0] == pytest.approx(0.6931, abs=1e-3)


def test_pairs_of_a_ranking_are_those_of_its_places(tmp_path: Path) -> None:
    asked = [
        {"id": f"r{k}", "instruction": f"Say {k}?", "responses": [f"{k} {j}" for j in range(4)], "gold": [1, 4, 2, 5]}
        for k in range(6)
    ]
    source = tmp_path / "items.jsonl"
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in asked))
    for judge in ("mock:first-slot", "mock:oracle,r=1,nats=3"):
        out = tmp_path / judge.split(":")[1][:5]
        rank_file(Judge(judge, "helpfulness"), source, out, RankOptions(schedule="half"))
        found, places = pairs_of(out), list(read_records(out / "rankings.jsonl"))
        if "slot" in judge:  # nothing but the slot speaks: nobody is better
            assert not found.pairs
            assert found.dropped["equal"] == 6
            continue
        ends = [f"{line.value['order'][0]}{line.value['order'][-1]}" for line in places]
        assert [texts(each)[0][-1] + texts(each)[1][-1] for each in found.pairs] == ends
        assert all(0 < each.margin <= 1 for each in found.pairs)


def test_pairs_of_a_full_ranking_whose_orders_disagree_are_dropped(tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    near, far = [2, 3, 3], [1, 5, 3]  # in levels of the scale: a slot bias of 2 decides between 2 and 3, not 1 and 5
    rows = [
        {"id": f"r{n}", "instruction": f"Say {n}?", "responses": [f"{n} {j}" for j in range(3)], "gold": gold}
        for n, gold in enumerate([near, far, near, far])
    ]
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    rank_file(Judge("mock:oracle,r=1,nats=2", "helpfulness"), source, tmp_path / "run", RankOptions(schedule="full"))
    found = pairs_of(tmp_path / "run")
    assert [pair.item.id for pair in found.pairs] == ["r1", "r3"]
    assert found.dropped == {"the two orders disagree": 2}


@pytest.mark.parametrize("schedule", ["half", "graded", "duel"])
def test_margins_of_a_ranking_are_of_its_comparisons_and_empty_responses_are_not_missing(
    schedule: str, tmp_path: Path
) -> None:
    source = tmp_path / "items.jsonl"
    rows = [
        {"id": f"r{n}", "instruction": f"Say {n}?", "responses": [*(f"{n} {j}" for j in range(4)), " ", f"{n} 0"],
         "gold": [1, 4, 2, 5, 1, 1]}
        for n in range(6)
    ]  # fmt: skip
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    how: Any = schedule
    rank_file(Judge("mock:oracle,r=.9", "helpfulness"), source, tmp_path / "run", RankOptions(schedule=how))
    found = pairs_of(tmp_path / "run")
    assert len(found.pairs) == 6
    for pair, place in zip(found.pairs, read_records(tmp_path / "run" / "rankings.jsonl"), strict=True):
        line = place.value
        best, worst = line["order"][0], line["order"][-1]
        assert line["left_out"] == {"4": "empty", "5": 0}
        if schedule == "duel":  # grades alone tell how far the others are apart
            assert pair.margin == pytest.approx(abs(line["grades"][best] - line["grades"][worst]))
        else:  # rewards are 2k times strengths in nats, of k = 4 responses that were compared
            nats = (line["rewards"][best] - line["rewards"][worst]) / 8
            assert pair.margin == pytest.approx(math.tanh(nats / 2))
