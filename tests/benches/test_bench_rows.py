"""Rows of benches become items: hashes, fields, gold, groups, and what cannot be used."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benches.own_bench import own
from benches.published import lay_out
from dikast.benches.bench_rows import read_rows
from dikast.benches.brought import from_file
from dikast.benches.definition import Bench, bench_from, load_bench, names
from dikast.benches.subset import stratified
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.text import Located, parse_located
from hub_server import Hub, served, use_hub

ROWS = [
    {"q": "2 + 2?", "good": "4", "bad": "5", "topic": "sums", "label": "left"},
    {"q": "3 + 3?", "good": "6", "bad": "7", "topic": "sums", "label": "left"},
    {"q": "Spell cat.", "good": "dog", "bad": "cat", "topic": "words", "label": "right"},
]
TEXT = "".join(json.dumps(row) + "\n" for row in ROWS)
BENCH: dict[str, Any] = {
    "name": "tiny",
    "title": "Tiny",
    "about": "three pairs",
    "state": "schema only",
    "kind": "pairs",
    "source": {"hub": "org/tiny", "revision": "v1", "files": {"rows.jsonl": hashlib.sha256(TEXT.encode()).hexdigest()}},
    "fields": {"instruction": "q", "response_0": "good", "response_1": "bad"},
    "gold": {"column": "label", "values": {"left": "a", "right": "b"}},
    "groups": {"topic": "topic"},
    "official": {"metric": "accuracy"},
    "licence": "MIT",
    "citation": "nobody",
}


def tiny(**changes: Any) -> Bench:
    return bench_from(Located({**BENCH, **changes}, "tiny.yaml"))


def test_every_listed_bench_is_sound_short_and_named_as_its_file() -> None:
    assert len(names()) >= 32
    states = [load_bench(name).state for name in names()]
    assert states.count("verified") >= 8
    assert states.count("rows read") >= 10
    for name in names():
        assert load_bench(name).name == name


def test_what_was_not_read_claims_no_count_and_says_what_is_from_memory() -> None:
    for bench in map(load_bench, names()):
        if bench.state == "schema only":
            assert bench.from_memory, bench.name
            assert not bench.rows, bench.name


def test_rows_come_from_the_hub_and_one_whose_hash_moved_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Served(Hub):
        files: ClassVar = {"org/tiny": {"rows.jsonl": TEXT}}

    with served(Served) as address:
        use_hub(monkeypatch, address, tmp_path / "hub")
        found = read_rows(tiny())
        assert [item.gold for item in found.items] == ["a", "a", "b"]
        assert [item.meta["topic"] for item in found.items] == ["sums", "sums", "words"]
        assert text_of(found.items[2].responses[1]) == "cat"
        moved = tiny(source={**BENCH["source"], "files": {"rows.jsonl": "0" * 64}})
        with pytest.raises(UserError, match="it has moved since"):
            read_rows(moved)
        assert "SHA-256 of rows.jsonl differs" in read_rows(moved, unverified=True).notes[0]


def test_the_page_names_the_benches_whose_files_are_not_pinned() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benches.md").read_text()
    benches = [load_bench(name) for name in names()]
    free = [bench.name for bench in benches if not bench.source.revision]
    bare = [bench.name for bench in benches if not all(bench.source.files.values())]
    for start, told in (("- No commit is pinned of ", free), ("- No SHA-256 is known of ", bare)):
        line = next(line for line in page.splitlines() if line.startswith(start))
        assert re.findall(r"`([^`]+)`", line.partition(":")[0]) == told
    counts = f"Of the {len(benches)} benches {len(benches) - len(bare)} have the SHA-256 of every file, and"
    assert f"{counts} {len(benches) - len(free)} a commit." in page
    for bench in benches:
        assert re.fullmatch(r"[0-9a-f]{40}|", bench.source.revision), bench.name  # the Hub takes whole names only


def test_files_that_cannot_be_fetched_may_be_given_as_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(address: str) -> list[str]:
        raise UserError(f"{address} cannot be fetched")

    monkeypatch.setattr("dikast.benches.bench_files.files_of", unreachable)
    for name in ("judgebench", "rewardbench"):
        with pytest.raises(UserError, match=f"^{name}: .* cannot be fetched; a folder with its files .* --data"):
            read_rows(load_bench(name))


def test_a_folder_of_the_users_is_read_packed_or_not_and_must_hold_the_file(tmp_path: Path) -> None:
    import gzip

    with pytest.raises(UserError, match=re.escape("has no rows.jsonl: get it from hf.co/datasets/org/tiny @ v1")):
        read_rows(tiny(), tmp_path)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert len(read_rows(tiny(), tmp_path).items) == 3
    (tmp_path / "rows.jsonl").write_text(TEXT + json.dumps(ROWS[0]))
    with pytest.raises(UserError, match="another revision, or was changed"):
        read_rows(tiny(), tmp_path)


def test_a_path_with_a_star_is_every_file_that_matches(tmp_path: Path) -> None:
    parts = tiny(source={**BENCH["source"], "files": {"data/rows-*.jsonl": ""}})
    with pytest.raises(UserError, match=re.escape("has no data/rows-*.jsonl")):
        read_rows(parts, tmp_path)
    (tmp_path / "data").mkdir()
    for part in (1, 0):
        (tmp_path / f"data/rows-0{part}.jsonl").write_text(TEXT)
    found = read_rows(parts, tmp_path)
    assert [file.path for file in found.files] == ["rows-00.jsonl", "rows-01.jsonl"]
    assert len(found.items) == 6
    with pytest.raises(UserError, match="one SHA-256 cannot be of"):
        tiny(source={**BENCH["source"], "files": {"rows-*.jsonl": "0" * 64}})


def test_rows_that_cannot_be_used_are_told_at_once_with_line_and_field(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "label": "up"}, {"q": "?", "good": "x", "label": "left"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError) as told:
        read_rows(tiny(source={**BENCH["source"], "files": {"rows.jsonl": ""}}), tmp_path)
    assert "rows.jsonl:1: field 'label': 'up' is not a gold value of this bench: left, right" in str(told.value)
    assert "rows.jsonl:2: field 'bad': the row has no such column" in str(told.value)


@pytest.mark.parametrize("column", ["q", "bad", "topic", "label", "picture", "context"])
def test_a_mapped_column_that_rows_lack_is_a_mistake_with_bench_file_row_and_column(
    column: str, tmp_path: Path
) -> None:
    row = {**ROWS[0], "picture": "https://a.test/b.png", "context": "seen"}
    fields = {**BENCH["fields"], "image": "picture", "context": "In {context}"}
    keys = {"fields": fields, "source": {**BENCH["source"], "files": {"rows.jsonl": ""}}}
    lacking = {name: value for name, value in row.items() if name != column}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(lacking)}\n")
    with pytest.raises(UserError) as told:
        read_rows(tiny(**keys), tmp_path)
    assert "tiny: 1 row cannot be used" in str(told.value)
    assert f"rows.jsonl:2: field {column!r}: the row has no such column, which the bench maps" in str(told.value)


@pytest.mark.parametrize("wrong", [{"1": -1}, ["a"], None, {}, True])
def test_what_a_gold_value_means_is_a_text_or_a_number(wrong: Any, tmp_path: Path) -> None:
    fields = {"instruction": "q", "response_0": "a", "response_1": "b"}
    gold = {"column": "l", "values": {"1": "a", "2": wrong}}
    bench = own(tmp_path, [{"q": "?", "a": "x", "b": "y", "l": "2"}], kind="pairs", fields=fields, gold=gold)
    with pytest.raises(
        DataError, match=r"mine.yaml:\d+: field 'gold.values.2': expected text, a whole number or a numb"
    ):
        load_bench(bench)


def test_a_null_is_a_mistake_but_in_an_optional_field_which_is_left_out(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "known": "4"}, {**ROWS[1], "known": None}, ROWS[2]]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {
        "fields": {**BENCH["fields"], "reference": "known"},
        "source": {**BENCH["source"], "files": {"rows.jsonl": ""}},
    }
    with pytest.raises(UserError, match=r"2 rows cannot be used(.|\n)*rows.jsonl:2: field 'known': is null"):
        read_rows(tiny(**keys), tmp_path)
    found = read_rows(tiny(**keys, optional=["reference"]), tmp_path)
    assert [item.reference is None for item in found.items] == [False, True, True]
    assert "2 of 3 rows have no reference, which is optional: asked without it" in found.notes
    with pytest.raises(UserError, match="did you mean 'reference'"):
        tiny(**keys, optional=["refrence"])


def test_notes_on_optional_fields_are_of_the_rows_that_are_kept_and_of_fields_that_were_read(tmp_path: Path) -> None:
    rows = [{**row, "picture": f"{i}.png", "known": None, "said": "the whole prompt"} for i, row in enumerate(ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "0.png").write_bytes(b"PNG")
    keys: dict[str, Any] = {
        "fields": {**BENCH["fields"], "reference": "known", "image": "picture"}, "optional": ["reference"],
        "source": {"hub": "org/tiny", "files": {"rows.jsonl": ""}}, "rendered": "said",
    }  # fmt: skip
    found = read_rows(tiny(**keys), tmp_path, pictures="skip")
    assert "1 of 1 row have no reference, which is optional: asked without it" in found.notes
    assert not any(
        "reference" in note for note in read_rows(tiny(**keys), tmp_path, native=True, pictures="skip").notes
    )


def test_what_is_brought_replaces_no_group_of_the_bench_and_gold_of_its_rows_is_not_brought(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(TEXT)
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"instruction": "q"}, "responses": "to be brought",
        "official": {"metric": "mean score"}, "gold": {"column": "label", "values": {"left": 1, "right": 2}},
    }  # fmt: skip
    items, answers = read_rows(tiny(**keys), tmp_path).items, tmp_path / "answers.jsonl"
    answers.write_text('{"id": "1", "response": "4", "topic": "sums", "gold": 3}\n{"id": "2", "response": "6"}\n')
    brought = from_file(items, answers, ("topic",))
    assert [item.gold for item in brought.items] == [3, 1]
    assert "gold of 1 response from answers.jsonl" in brought.told[-1]
    answers.write_text(
        '{"id": "1", "response": "4", "human_score": 5}\n{"id": "2", "response": "6", "human_score": 4}\n'
    )
    guessed = from_file(items, answers, ("topic",))
    assert [item.gold for item in guessed.items] == [1, 1]  # a guess replaces no gold of the rows
    assert [item.meta["human_score"] for item in guessed.items] == [5, 4]
    assert not any("gold" in told for told in guessed.told)
    answers.write_text('{"id": "1", "response": "4", "topic": "words"}\n')
    with pytest.raises(UserError, match=r"answers.jsonl:1: field 'topic': 'words' here and 'sums' in the row '1'"):
        from_file(items, answers, ("topic",))


def test_runs_of_earlier_versions_are_of_the_same_bench_where_no_question_changed() -> None:
    before = {"vicuna": "98599a25c6a2fc14fc178056bcb3836b"}  # of 313152f
    before |= {"mmrb2": "493f23f9de68e90b88d8ae6ea1f10f3f", "mmrb2-built": "45c3316875c178b049b0bccf00fa2fb9"}
    before |= {"llava-w": "dd9a68bd4e062c35eb268ee235e720d0"}
    before |= {"feedback-collection-test": "41ebdcb87940ec9c9d32bc3f7035649a"}  # these three of 4564f09
    before |= {"mt-bench-human": "19772e8c1102d51cf4494520495e385f"}  # with one figure over all rows
    before |= {"judgebench": "515dd1d43cbb6b527f782301158d93c8", "evalbiasbench": "9681071cf47d042a693ff0ce001099a3"}
    before |= {"feedback-bench": "92a912395017e21b98910f65f7117fd0", "l-wilder": "e543e50e242a906ef5c3c34931dccd4c"}
    before |= {"preference-bench": "a21dd69ad4bf0258856f03b3bac75aa8"}  # both by other names of their files
    before |= {"imagedc": "fd6754b86713154b602d07df794de4a4", "mmhal": "46a051950929cfd108c46c4978b364b1"}
    before |= {"mmvet": "b62d48ec1341241679e3b8294c5c490c"}  # these without their traps
    assert {name for name, hash in before.items() if hash in load_bench(name).hashes} == set(before)
    keys = {"kind": "scores", "fields": {"instruction": "q", "response": "good"}, "gold": None}
    one, two = (tiny(**keys, official={"metric": ["mean score", more]}) for more in ("pearson", "spearman"))
    assert one.hash != two.hash  # whatever stands beside the mean score
    assert len({one.hash, two.hash, *one.hashes, *two.hashes}) == 3


def test_a_bench_whose_columns_are_from_memory_does_not_speak_of_published_fields() -> None:
    benches = [load_bench(name) for name in names()]
    guessed = [bench for bench in benches if "columns" in bench.from_memory]
    assert guessed
    assert not any("published fields;" in bench.standing for bench in guessed)
    assert "from the published fields" in load_bench("mm-judgebias").standing
    with pytest.raises(UserError, match="could be had"):
        load_bench("focus")


def test_a_row_whose_picture_is_missing_is_told_with_the_cure_or_left_out_and_counted(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "picture": "a.png"}, {**ROWS[1], "picture": "b.png"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.png").write_bytes(b"png")
    fields = {**BENCH["fields"], "image": "picture"}
    bench = tiny(fields=fields, source={**BENCH["source"], "files": {"rows.jsonl": ""}})
    with pytest.raises(UserError, match=r"rows.jsonl:2: the picture 'b.png' is not there: put it at .*b.png, or leave"):
        read_rows(bench, tmp_path)
    found = read_rows(bench, tmp_path, pictures="skip")
    assert len(found.items) == 1
    assert found.left_out == {"a picture is missing": 1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"knd": "pairs"}, "unknown key: did you mean 'kind'?"),
        ({"state": "verifed"}, "state"),
        ({"fields": {"respons_0": "a"}}, "unknown field of an item: did you mean 'response_0'?"),
        ({"source": {"hub": "a/b", "github": "c/d", "files": {"x": ""}}}, "a source is one of 'hub'"),
        ({"source": {"github": "c/d", "files": {"x": ""}}}, "needs the commit"),
        ({"source": {"hub": "a/b", "files": {"x": "abc"}}}, "not a SHA-256"),
        ({"official": {"metric": "pearson"}}, "'pearson' is not a metric of pairs"),
        ({"official": {"metric": "accuracy", "over": "groups", "group": "topc"}}, "did you mean 'topic'?"),
        ({"official": {"metric": "accuracy", "printed": ["sums"]}}, "'printed' names values of 'group'"),
        ({"official": {"metric": "accuracy", "over": "sections", "group": "topic", "sections": {"s": ["x", "math"]},
                       "weights": {"mth": 2}}}, "no section has this group: did you mean 'math'?"),
        ({"official": {"metric": "accuracy", "over": "sections", "group": "topic", "sections": {"s": ["x"]},
                       "weights": {"x": -1}}}, "a weight is a number above 0"),
        ({"official": {"metric": []}}, "name at least one figure of the authors"),
        ({"groups": {"task": "@fldr"}}, "did you mean '@folder'?"),
        ({"state": "verified"}, "'proof'"),
        ({"state": "rows read", "source": {"hub": "a/b", "files": {"x": ""}}}, "needs the SHA-256 of every file"),
        ({"rows": 3}, "these were not: leave it out"),
        ({"reader": "feedbak"}, "did you mean 'feedback'?"),
    ],
)  # fmt: skip
def test_mistakes_in_a_bench_are_told_with_the_near_match(change: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        tiny(**change)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"fields": {"instruction": "q", "response": "good"}}, "as 'response_0' and 'response_1' (or a list"),
        ({"kind": "scores", "fields": {"id": "q"}, "gold": None, "official": {"metric": "mean score"}},
         "as 'response'; where rows hold none, write 'responses: to be brought'"),
    ],
)  # fmt: skip
def test_rows_whose_responses_are_in_no_known_column_are_refused(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        read_rows(tiny(**change), tmp_path)


def test_mistakes_in_a_bench_are_told_together_with_their_lines() -> None:
    text = "name: x\nkin: pairs\nstate: verifed\n"
    with pytest.raises(UserError) as error:
        bench_from(parse_located(text, "x.yaml"))
    assert "x.yaml:2: field 'kin'" in str(error.value)
    assert "x.yaml:3: field 'state'" in str(error.value)


def test_a_sample_has_the_groups_in_their_proportions_and_is_the_seeds() -> None:
    items = [Item(str(i), meta={"g": "big" if i % 10 else "small"}) for i in range(100)]
    drawn = stratified(items, ["g"], 20, seed=1)
    # 90 of 100 are big: 18 of 20; 10 are small: 2
    assert sum(item.meta["g"] == "small" for item in drawn) == 2
    assert len(drawn) == 20
    assert drawn == stratified(items, ["g"], 20, seed=1) != stratified(items, ["g"], 20, seed=2)
    assert [int(item.id) for item in drawn] == sorted(int(item.id) for item in drawn)
    assert stratified(items, ["g"], None, 0) == stratified(items, ["g"], 500, 0) == items
    thirds = [Item(str(i), meta={"g": "abc"[i % 3]}) for i in range(9)]
    assert len(stratified(thirds, ["g"], 4, 0)) == 4  # 1.33 each: one of the three has two


def test_recorded_rows_of_every_bench_on_disk_are_read(recorded: Path, tmp_path: Path) -> None:
    counts = {}
    for name in lay_out(recorded, tmp_path):
        found = read_rows(load_bench(name), tmp_path, unverified=True, pictures="count")
        counts[name] = len(found.items)
        assert any("hold no instruction" in note for note in found.notes) == (name == "mmrb2"), name
        bench = load_bench(name)
        if bench.pairs and bench.responses == "in the rows":
            assert all(item.gold in ("a", "b", "tie", None) for item in found.items), name
    assert counts == {
        "auto-j": 1392, "biggen": 200, "hhh": 221, "llava-bench-coco": 90, "llmbar": 419, "mmrb2": 400, "mt-bench": 320,
        "mt-bench-turn-1": 80, "pandalm": 999, "perception-bench": 3, "tifa": 800, "vicuna": 320, "vicuna-turn-1": 80,
    }  # fmt: skip


def test_the_files_that_the_authors_of_mmrb2_build_hold_prompts_of_text_and_pictures(tmp_path: Path) -> None:
    pair: dict[str, Any] = {"prompt_content": [["text", "Draw it again."], ["image", "in.png"]], "chosen": "B"}
    pair |= {f"response_{which}": {"response_content": [["image", f"{which}.png"]]} for which in "ab"}
    for task in ("t2i", "edit", "interleaved", "reasoning"):
        (tmp_path / f"{task}.json").write_text(json.dumps({"pairs": [{"id": f"{task}-1", **pair}]}))
    found = read_rows(load_bench("mmrb2-built"), tmp_path, pictures="count")
    assert [item.meta["task"] for item in found.items] == ["t2i", "edit", "interleaved", "reasoning"]
    item = found.items[0]
    assert text_of(item.instruction[0].content) == "Draw it again."
    assert [each.source for each in item.images] == ["in.png", "a.png", "b.png"]
    assert item.gold == "b"
