import gzip
import io
import random
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import PIL.Image
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.part import Image, Text, text_of
from dikast.core.records import check_items, read_items
from dikast.core.records.content_ids import Ids


def put(folder: Path, name: str, raw: bytes | str) -> str:
    raw = raw.encode() if isinstance(raw, str) else raw
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def jsonl(*values: dict[str, Any]) -> bytes:
    return b"\n".join(map(orjson.dumps, values))


def read(path: str, **columns: str) -> list[Item]:
    return list(read_items(path, columns=columns))


def test_items_know_their_line_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "a.jsonl", b"\n" + jsonl({"response": "x", "image": "a.png"}, {"id": 7}))
    first, second = read(path)
    assert (first.id[:4], first.origin, second.id) == ("row-", f"{path}:2", "7")
    assert first.images == [Image("a.png", str(tmp_path))]
    monkeypatch.chdir(tmp_path)
    assert read("a.jsonl")[0].images == [Image("a.png", "")]


def test_csv(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        "a.csv",
        "id,instruction,response,reference,gold,image,rubric,meta,split\n"
        '1,"Why, though?",,,4,a.png,honesty,"{""k"": [1]}",test\n'
        "2,,[1],null,4.5,,,,\n"
        "007,Q,A,R,007,,,,x\n",
    )
    first, second, third = read(path)
    assert first.images == [Image("a.png", str(tmp_path))]
    assert text_of(first.instruction[0].content) == "Why, though?"
    assert first.responses == ((Text(""),),)  # a response that is empty, not one that is missing
    assert (first.reference, first.gold, first.meta) == (None, 4, {"k": [1], "split": "test"})
    assert first.rubric is not None
    assert (second.instruction, second.responses, second.gold) == ((), ((Text("[1]"),),), 4.5)
    assert second.reference == (Text("null"),)  # a cell is text
    assert (third.id, third.gold) == ("007", "007")


@pytest.mark.parametrize(
    ("cell", "gold"),
    [
        ("4", 4), ("-4", -4), ("+4", 4), ("0", 0), (" 4 ", 4), ("0.5", 0.5), (".5", 0.5), ("1e3", 1000.0),
        ("A", "A"), ("a b", "a b"), ("007", "007"), ("nan", "nan"), ("inf", "inf"), ("1e999", "1e999"),
        ("1_000", "1_000"),
        ("12345678901234567890", "12345678901234567890"), ("true", "true"), ("", None),
    ],
)  # fmt: skip
def test_gold_in_tables(tmp_path: Path, cell: str, gold: object) -> None:
    (item,) = read(put(tmp_path, "a.csv", f"id,gold\n1,{cell}\n"))
    assert item.gold == gold
    assert type(item.gold) is type(gold)


def test_several_responses(tmp_path: Path) -> None:
    expected = ((Text("x"),), (Text(""),))
    assert read(put(tmp_path, "a.csv", "id,response_0,response_1\n1,x,\n"))[0].responses == expected
    assert read(put(tmp_path, "a.csv", "id,response_2,response_1\n1,,x\n"))[0].responses == expected
    assert read(put(tmp_path, "a.csv", 'id,responses\n1,"[""x"", """"]"\n'))[0].responses == expected
    assert read(put(tmp_path, "a.jsonl", jsonl({"response_0": "x", "response_1": ""})))[0].responses == expected
    path = put(tmp_path, "a.tsv", "id\tleft\tright\n1\tx\t\n")
    assert read(path, response_0="left", response_1="right")[0].responses == expected


@pytest.mark.parametrize(
    ("raw", "field", "message"),
    [
        ("id,response_0,response_2\n1,a,b\n", "responses", "without a gap, this has response_0, response_2"),
        ("id,response_5\n1,a\n", "responses", "numbered from 0"),
        ("id,response,response_0\n1,a,b\n", "response_0", "keep one of them"),
        ("id,responses\n1,[a\n", "responses", r'not valid JSON .*write \["first", "second"\]'),
        ("id,responses\n1,5\n", "responses", "expected a list of responses"),
        ("id,meta\n1,{x\n", "meta", 'not valid JSON .*write {"split": "test"}'),
        ("id,rubric\n1,{\n", "rubric", "not valid JSON"),
        ("id,respnse\n1,a\n", "respnse", "did you mean 'response'"),
    ],
)
def test_tables_that_cannot_be_meant(tmp_path: Path, raw: str, field: str, message: str) -> None:
    path = put(tmp_path, "a.csv", raw)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (path, 2, field)


def test_columns(tmp_path: Path) -> None:
    value = {"idx": 3, "prompt": "Q", "output": "A", "id": "other", "score": 2, "meta": {"k": 1}}
    path = put(tmp_path, "a.jsonl", jsonl(value))
    (item,) = read(path, id="idx", instruction="prompt", response="output", gold="score")
    assert (item.id, item.gold, item.response) == ("3", 2, (Text("A"),))
    assert item.meta == {"id": "other", "k": 1}  # displaced, not lost
    with pytest.raises(
        DataError, match=r"no column 'promt' to read 'instruction' from: did you mean 'prompt'"
    ) as caught:
        read(path, instruction="promt")
    assert (caught.value.line, caught.value.field) == (1, "instruction")
    with pytest.raises(DataError, match="it has idx, prompt"):
        read(path, instruction="zzz")
    with pytest.raises(UserError, match="'instructions' is not a field of an item: did you mean 'instruction'"):
        read(path, instructions="prompt")
    with pytest.raises(UserError, match="the fields are id, instruction"):
        read(path, zzz="prompt")


def test_a_column_missing_from_one_record(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", jsonl({"id": 1, "prompt": "Q"}, {"id": 2, "promt": "Q"}))
    with pytest.raises(DataError, match=r"a\.jsonl:2: .*did you mean 'promt'"):
        read(path, instruction="prompt")


def test_duplicate_ids(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", jsonl({"id": 1}, {"id": 2}, {"id": "1"}))
    items = read_items(path)
    assert [next(items).id, next(items).id] == ["1", "2"]
    with pytest.raises(DataError, match=r"a\.jsonl:3: field 'id': the id '1' is on line 1 already: give each"):
        next(items)
    assert [item.id[:4] for item in read(put(tmp_path, "b.jsonl", jsonl({"id": "row-"}, {})))] == ["row-", "row-"]


def test_equal_hashes_are_not_equal_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dikast.core.records.content_ids.hash", lambda _: 5, raising=False)
    path = put(tmp_path, "a.jsonl", jsonl({"id": "a"}, {"id": "b"}))
    assert [item.id for item in read_items(path)] == ["a", "b"]
    with pytest.raises(DataError, match="line 1 already"):
        read(put(tmp_path, "a.jsonl", jsonl({"id": "a"}, {"id": "a"})))


def test_ids_find_every_repetition() -> None:
    ids, names = Ids(), [f"item-{i}" for i in range(20_000)]
    assert [ids.add(name, line) for line, name in enumerate(names, 1)] == [None] * len(names)
    random.Random(0).shuffle(names)
    assert [ids.add(name, 0) for name in names] == [int(name.removeprefix("item-")) + 1 for name in names]


def test_ids_take_little_memory() -> None:
    names = [f"item-{i}" for i in range(62_500)]
    tracemalloc.start()
    ids = Ids()
    for name in names:
        ids.add(name, 1)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The table doubles, so a million ids take sixteen times as much: 25 MB, and 38 MB while it grows.
    assert held < 25.5e6 / 16
    assert peak < 40e6 / 16


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    raw = b'{"id": 1}\n{"id": 2, "respnse": "x"}\n{"id": \n{"id": 1}\n[1]\n{"id": 6, "response": {}}\n{"id": 7}\n'
    report = check_items(put(tmp_path, "a.jsonl", raw))
    assert (report.n, report.complete) == (2, True)
    assert [(error.line, error.field) for error in report.errors] == [
        (2, "respnse"), (3, ""), (4, "id"), (5, ""), (6, "response"),
    ]  # fmt: skip
    with pytest.raises(DataError) as caught:
        report.raise_errors()
    told = str(caught.value).splitlines()
    assert told[0] == f"{tmp_path}/a.jsonl: 5 mistakes"
    assert told[1:] == [f"  {error}" for error in report.errors]
    assert caught.value.line == 2


def test_checking_stops_in_time(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", b"[]\n" * 1000)
    report = check_items(path, most_errors=3)
    assert (len(report.errors), report.complete) == (3, False)
    with pytest.raises(DataError, match="the first 3 mistakes"):
        report.raise_errors()
    assert len(check_items(path).errors) == 20
    one = check_items(put(tmp_path, "b.jsonl", jsonl({"id": 1}, {"id": 1})))
    with pytest.raises(DataError) as caught:
        one.raise_errors()
    assert caught.value is one.errors[0]
    check_items(put(tmp_path, "c.jsonl", jsonl({"id": 1}))).raise_errors()
    cut = check_items(put(tmp_path, "d.csv", 'id,response\n1,a,b\n2,"a\n'))
    assert ([error.line for error in cut.errors], cut.complete) == ([2, 3], False)
    with pytest.raises(UserError, match="standard input cannot be checked"):
        check_items("-")


def test_images_are_checked_with_their_place(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (32, 32)).save(buffer, "PNG")
    put(tmp_path, "good.png", buffer.getvalue())
    put(tmp_path, "bad.png", buffer.getvalue()[:50])
    talk = [{"role": "user", "content": "x"}, {"role": "user", "content": ["y", {"image": "bad.png"}]}]
    path = put(
        tmp_path,
        "a.jsonl",
        jsonl(
            {"id": 1, "image": "good.png"},
            {"id": 2, "image": "bad.png"},
            {"id": 3, "responses": ["a", [{"type": "image", "image": "no.png"}]]},
            {
                "id": 4,
                "context": [{"type": "video", "frames": ["good.png", "no.png"]}],
                "reference": {"image": "no.png"},
            },
            {"id": 5, "instruction": talk},
            {"id": 6, "response": {"type": "image", "image": "good.png"}},
        ),
    )
    report = check_items(path)
    assert report.n == 2
    assert [(error.line, error.field) for error in report.errors] == [
        (2, "instruction"), (3, "responses[1]"), (4, "context.frames[1]"), (4, "reference"),
        (5, "instruction[1].content"),
    ]  # fmt: skip
    assert f"{tmp_path}/no.png does not exist" in str(report.errors[1])
    assert check_items(path, images=False).errors == ()


def test_reading_takes_flat_memory(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        path = put(tmp_path, "a.jsonl", b"\n".join(b'{"id":"%d","response":"%s"}' % (i, b"x" * 2000) for i in range(n)))
        tracemalloc.start()
        count = sum(1 for _ in read_items(path))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == n
        return found

    assert peak(8000) < peak(1000) + 8000 * 40  # 14 MB more to read, and nothing kept but the ids


def test_a_near_miss_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dikast.core import key_slips

    asked: list[str] = []

    def counting(name: str, known: Any) -> None:
        asked.append(name)

    key_slips.slip_in.cache_clear()
    monkeypatch.setattr(key_slips, "near_miss", counting)
    assert (
        len(read(put(tmp_path, "a.jsonl", jsonl(*({"id": i, "source": "x", "split": "y"} for i in range(50)))))) == 50
    )
    assert asked == ["source", "split"]
    key_slips.slip_in.cache_clear()


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    arrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (32, 32)).save(buffer, "PNG")
    table = arrow.table(
        {
            "idx": [0, 1],
            "image": [{"bytes": buffer.getvalue(), "path": "x.png"}, {"bytes": None, "path": "no.png"}],
            "question": ["Q", "R"],
            "response": ["a", "b"],
            "label": [1.0, None],
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    return str(path)


def test_parquet_with_images_inside(parquet: str) -> None:
    first, second = read(parquet, id="idx", instruction="question", gold="label")
    assert first.images[0].source.startswith("data:")
    assert second.images == [Image("no.png", str(Path(parquet).parent))]
    assert (first.gold, second.gold, first.meta) == (1.0, None, {})
    report = check_items(parquet, columns={"id": "idx"})
    assert [(error.line, error.field) for error in report.errors] == [(2, "instruction")]
