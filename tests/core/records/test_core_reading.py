import gzip
import io
import json
import random
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import DataError, MissingExtra, UserError
from dikast.core.records import Record, read_items, read_records, write_records
from dikast.core.records.files import lines_of
from runs import environment


def put(folder: Path, name: str, raw: bytes | str) -> str:
    raw = raw.encode() if isinstance(raw, str) else raw
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def refused(path: str, message: str, line: int | None = None) -> None:
    with pytest.raises(DataError, match=message) as caught:
        list(read_records(path))
    assert (caught.value.path, caught.value.line) == (path, line)


ROWS: list[dict[str, Any]] = [{"id": "a", "text": 'é\n"x", y'}, {"id": "b", "text": "\U0001f600"}]
JSONL = "\n".join(json.dumps(row) for row in ROWS)


@pytest.mark.parametrize(
    ("name", "raw", "lines"),
    [
        ("a.jsonl", JSONL, [1, 2]),
        ("a.jsonl", JSONL + "\n", [1, 2]),
        ("a.ndjson", "\n \n" + JSONL.replace("\n", "\r\n\r\n") + "\r\n\t\n", [3, 5]),  # blank lines, Windows endings
        ("a.jsonl", "\ufeff" + JSONL, [1, 2]),
        ("a.jsonl.gz", JSONL, [1, 2]),
        ("A.JSONL", JSONL, [1, 2]),
        ("pipe", JSONL, [1, 2]),
        ("a.json", JSONL, [1, 2]),
        ("a.json", json.dumps(ROWS), [1, 1]),
        ("a.json", "\ufeff" + json.dumps(ROWS, ensure_ascii=False), [1, 1]),
        ("a.json", "\n" + json.dumps(ROWS, indent=2), [3, 7]),
        ("a.json.gz", json.dumps(ROWS, indent=2), [2, 6]),
        ("a.csv", 'id,text\na,"é\n""x"", y"\nb,\U0001f600\n', [2, 4]),
        ("a.csv", '\ufeffid,text\r\n\r\na,"é\n""x"", y"\r\nb,\U0001f600', [3, 5]),
        ("a.csv.gz", 'id,text\na,"é\n""x"", y"\nb,\U0001f600\n', [2, 4]),
        ("a.tsv", 'id\ttext\na\t"é\n""x"", y"\nb\t\U0001f600\n', [2, 4]),
    ],
)
def test_one_set_of_records_in_every_format(tmp_path: Path, name: str, raw: str, lines: list[int]) -> None:
    assert list(read_records(put(tmp_path, name, raw))) == [Record(*each) for each in zip(ROWS, lines, strict=True)]


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    raw = gzip.compress(JSONL.encode()) if packed else JSONL.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw))))
    assert [value for value, _ in read_records("-")] == ROWS


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"", None, "holds no records"),
        (b"\n\n", None, "holds no records"),
        (b'{"a": 1}\n{"a": }', 2, "not valid JSON at column 7, near '}'"),
        (b'{"a": 1}\n{"a": 1', 2, "does not end on its line: write one object a line"),
        (b'{"a": 1} {"a": 2}', 1, "not valid JSON at column 10"),
        (b'{"a": NaN}', 1, "NaN at column 7 is not a JSON number: write null"),
        (b'{"a": -Infinity}', 1, "Infinity at column .* is not a JSON number: write null"),
        (b'{"a": 1e999}', 1, "is not a JSON number"),
        (b"[1, 2]", 1, "one JSON object.*one JSON array is named .json"),
        (b'[1,\n{"a": 2}]', 1, "starts an array: a file that is one JSON array is named .json"),
        (b'"text"', 1, 'each line holds one JSON object, this one "text"'),
        (b'{"a": 1}\n{"a": "\xff\xfe"}', 2, r"broken UTF-8 \(ff\) at byte 7 of the line \(byte 16 of the file\): save"),
        (b'\xef\xbb\xbf{"a": "\xe9"}', 1, r"broken UTF-8 \(e9\) at byte 7 of the line \(byte 10 of the file\)"),
        (b'{"a": 1}\n{"a": "\x00"}', 2, r"NUL byte at byte 7 of the line \(byte 16 of the file\)"),
        ('{"a": 1}'.encode("utf-16"), 1, "UTF-16: save it as UTF-8"),
        (b'{"a": "\\ud800"}', 1, "not valid JSON at column 8"),
        (b'{"a":' * 2000, 1, "not valid JSON at column"),
    ],
)
def test_broken_jsonl(tmp_path: Path, raw: bytes, line: int | None, message: str) -> None:
    refused(put(tmp_path, "a.jsonl", raw), message, line)
    refused(put(tmp_path, "a.jsonl.gz", raw), message, line)


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"", None, "holds no records"),
        (b"[]", None, "holds no records"),
        (b'[{"a": 1}\n{"a": 2}]', 2, "expected ',' or ']'"),
        (b'[{"a": 1},\n{"a": 2}', 2, "the file is cut short"),
        (b'[{"a": 1},\n', 2, "the array does not end"),
        (b'[{"a": 1},\n{"a": 2', 2, "Expecting ',' delimiter"),
        (b'[{"a": 1},\n{"a":\n\n"b', 4, "Unterminated string"),
        (b'[{"a": 1}]\nx', 2, "after the end of the array"),
        (b'{"a": 1}\n]', 2, "without its '\\['"),
        (b"[1, 2]", 1, "expected a JSON object, found '1'"),
        (b'[{"a": 1},\n\n{"a": NaN}]', 3, "NaN .* write null"),
        (b'[{"a": 1},\n{"a" 1}]', 2, "Expecting ':' delimiter, near '1"),
        (b'[{"a": 1},\n{"a": "\xff"}]', 2, "broken UTF-8 at byte 18 of the file"),
        (b'[{"a": 1},\n{"a": "\xe9', 2, "broken UTF-8 at byte 18 of the file"),
        (b'[{"a": "\x00"}]', 1, "NUL byte at byte 8"),
        ('[{"a": 1}]'.encode("utf-16"), 1, "UTF-16"),
        (b'[{"a":' + b"[" * 5000, 1, "nested too deeply"),
    ],
)
def test_broken_json(tmp_path: Path, raw: bytes, line: int | None, message: str) -> None:
    refused(put(tmp_path, "a.json", raw), message, line)


@pytest.mark.parametrize("space", [None, 1])
def test_a_json_table_by_columns(tmp_path: Path, space: int | None) -> None:
    table = {"question": ["q", "r", None], "answer": ["a", "b", "c"], "human_score": [3, 4.5, 1]}
    found = list(read_records(put(tmp_path, "a.json", json.dumps(table, indent=space))))
    assert [tuple(value.values()) for value, _ in found] == [("q", "a", 3), ("r", "b", 4.5), (None, "c", 1)]
    assert [line for _, line in found] == [1, 2, 3]
    one = {"id": "x", "instruction": ["What is ", "this?"], "responses": ["a", "b"]}  # lists of parts and of responses
    assert [value for value, _ in read_records(put(tmp_path, "b.json", json.dumps(one)))] == [one]
    refused(
        put(tmp_path, "c.json", '{"question": ["q", "r"], "answer": ["a"]}'), "different lengths: question 2, a", None
    )
    split = put(tmp_path, "d.json", '{"columns": ["question"], "index": [0], "data": [["q"]]}')
    refused(split, r"a table by its columns or its index: write a list of records \(in pandas", 1)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ({"version": 1, "data": [{"question": "q"}]}, [{"question": "q"}]),
        ({"id": "e", "results": {"version": 3, "results": [{"vars": {}}]}}, [{"vars": {}}]),
        ({"features": [], "rows": [{"row_idx": 7, "row": {"question": "q"}, "truncated_cells": []}], "partial": False},
         [{"question": "q"}]),
        ({"data": {"question": ["q", "r"], "answer": ["a", "b"]}},
         [{"question": "q", "answer": "a"}, {"question": "r", "answer": "b"}]),
    ],
)  # fmt: skip
def test_a_table_inside_one_object_is_read(table: dict[str, Any], rows: list[Any], tmp_path: Path) -> None:
    found = list(read_records(put(tmp_path, "a.json", json.dumps(table))))
    assert [record.value for record in found] == rows
    assert [record.line for record in found] == [*range(1, len(rows) + 1)]


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"question": "q", "samples": [{"question": "q", "answer": "a"}]}, "'samples' could be the records"),
        ({"rows": [{"question": "q", "answer": "a"}], "data": [{"answer": "b"}]}, "'data' and 'rows' could be"),
    ],
)
def test_tables_that_are_not_clear_have_a_command_that_works(table: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told) as caught:
        list(read_records(put(tmp_path, "FILE", json.dumps(table)) and put(tmp_path, "a.json", json.dumps(table))))
    for command in re.findall(r"jq -c '.*?' FILE > OTHER\.jsonl", str(caught.value)):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        found = [record.value for record in read_records(tmp_path / "OTHER.jsonl")]
        assert all(row["answer"] in ("a", "b") for row in found)


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize("under", ["", "data"])
def test_members_that_are_records_have_a_command_that_works(under: str, tmp_path: Path) -> None:
    """Only where items are read: other files, such as those of benches, are one record with such members."""
    table = {"x": {"question": "q", "answer": "a"}, "y": {"question": "r", "answer": "b"}}
    path = put(tmp_path, "FILE", json.dumps({under: table} if under else table))
    (Path(path)).rename(path + ".json")
    assert [record.value for record in read_records(path + ".json")] == [{under: table} if under else table]
    with pytest.raises(DataError, match="one object with a member for each record") as caught:
        list(read_items(path + ".json"))
    (command,) = re.findall(r"jq -c '.*?' FILE > OTHER\.jsonl", str(caught.value))
    subprocess.run(command.replace(" FILE ", " FILE.json "), shell=True, cwd=tmp_path, check=True)
    assert [item.id for item in read_items(tmp_path / "OTHER.jsonl")] == ["x", "y"]


def test_a_page_of_the_hub_whose_cells_are_cut_is_refused(tmp_path: Path) -> None:
    page = {"rows": [{"row_idx": 0, "row": {"answer": "It is lon"}, "truncated_cells": ["answer"]}]}
    with pytest.raises(DataError, match=r"cells are cut short \(answer\): give the data set itself"):
        list(read_records(put(tmp_path, "a.json", json.dumps(page))))


def test_json_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": i, "text": 'é😀\\"}]{[' * (i % 7), "deep": [{"a": [i]}]} for i in range(300)]
    path = put(tmp_path, "a.json", json.dumps(rows, ensure_ascii=False, indent=1))
    whole = list(read_records(path))
    assert [value for value, _ in whole] == rows
    for chunk in (1, 2, 3, 7, 64, 1000):  # pieces that end inside characters, strings and escapes
        monkeypatch.setattr("dikast.core.records.reading._CHUNK", chunk)
        assert list(read_records(path)) == whole


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"", None, "holds no records"),
        (b"id,text\n", None, "holds no records"),
        (b"id,text\na,b\n\nc,d,e\n", 4, "has 3 cells where the header has 2: quote"),
        (b"id,text\na\n", 2, "has 1 cells where the header has 2"),
        (b"id,id\na,b\n", 1, "columns 1 and 2 are both called 'id': rename one"),
        (b"id,\na,b\n", 1, "column 2 of the header has no name"),
        (b"My results,,\nid,text,x\na,b,c\n", 1, "column 2 of the header has no name"),
        (b"id,,text\na,,b\n", 1, "column 2 of the header has no name"),
        (b"id,text,\na,b,,c\n", 2, "has 4 cells where the header has 2"),
        (b'id,text\na,b\nc,"d\ne,f\n', 3, r"broken row \(unexpected end of data\): put cells"),
        (b'id,text\na,"b"c\n', 2, "broken row .*put cells"),
        (b"id,text\na,b\nc,\xff\n", 3, r"broken UTF-8 \(ff\) at byte 2 of the line \(byte 14 of the file\)"),
        (b"id,text\na,b\0\n", 2, "NUL byte"),
        ("id,text\na,b".encode("utf-16"), 1, "UTF-16"),
    ],
)
def test_broken_tables(tmp_path: Path, raw: bytes, line: int | None, message: str) -> None:
    refused(put(tmp_path, "a.csv", raw), message, line)
    if b'"' not in raw:  # in a table with tabs, quotation marks that do not pair are text
        refused(put(tmp_path, "a.tsv", raw.replace(b",", b"\t")), message, line)


def test_what_is_empty_in_a_spreadsheet_is_left_out(tmp_path: Path) -> None:
    raw = "id,text,,\n1,a,,\n,,,\n2,b\n3,, ,\n, \n4,d,\n"
    for name, text in (("a.csv", raw), ("a.tsv", raw.replace(",", "\t"))):
        found = list(read_records(put(tmp_path, name, text)))
        assert [tuple(value.items()) for value, _ in found] == [
            (("id", "1"), ("text", "a")), (("id", "2"), ("text", "b")), (("id", "3"), ("text", "")),
            (("id", "4"), ("text", "d")),
        ]  # fmt: skip
        assert [line for _, line in found] == [2, 4, 5, 7]
    one = put(tmp_path, "one.csv", 'text\n""\na\n')  # of one column an empty cell is a value
    assert [value["text"] for value, _ in read_records(one)] == ["", "a"]


def test_the_encoding_to_name_is_told_by_how_much_of_it_there_is(tmp_path: Path) -> None:
    text = "id,text\n1,\u52a0\u4e8c\u7b49\u4e8e\u51e0\n"
    for name in ("gb18030", "shift_jis"):
        raw = text.replace("\u51e0", "\u4e00").replace("\u4e8e", "\u4e8c").encode(name)
        refused(put(tmp_path, "a.csv", raw), r"iconv -f ENCODING .* where ENCODING may be GB18030, SHIFT_JIS", 2)
    refused(
        put(tmp_path, "b.csv", "id,text\n1,caf\u00e9 au lait\n".encode("cp1252")), "iconv -f WINDOWS-1252 -t UTF-8", 2
    )
    mixed = "id,text\n1,How do you say hello in Chinese, please? It is \u4f60\u597d and this is very common.\n"
    refused(put(tmp_path, "d.csv", mixed.encode("gb18030")), r"where ENCODING may be GB18030", 2)
    both = "id,text\n1,caf\u00e9\n".encode() + "2,na\u00efve\n".encode("cp1252")
    refused(put(tmp_path, "e.csv", both), r"lines before it are UTF-8, so the file is of several encodings", 3)
    marked = b"\xef\xbb\xbfid,text\n" + "1,na\u00efve\n".encode("cp1252")
    refused(put(tmp_path, "f.csv", marked), r"iconv -f WINDOWS-1252", 2)
    refused(put(tmp_path, "c.txt", "id\ttext\r\n1\ta\r\n".encode("utf-16")), "the file is UTF-16: save it as UTF-8", 1)


def test_long_cells(tmp_path: Path) -> None:
    text = "x" * 1_000_000  # the csv module stops at 131,072 characters unless told
    assert [value["text"] for value, _ in read_records(put(tmp_path, "a.csv", f"id,text\na,{text}\n"))] == [text]


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress((JSONL + "\n").encode() * 5000)
    path = put(tmp_path, "cut.jsonl", whole[:-30])
    cut = str(Path(path).rename(tmp_path / "cut.jsonl.gz"))
    refused(cut, "cut short: copy or download it again")
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    refused(cut, "not a sound gzip file")
    (tmp_path / "cut.jsonl.gz").write_bytes(JSONL.encode())
    refused(cut, "not a sound gzip file .*drop '.gz'")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("no.jsonl", "no.csv", "no.json", "no.jsonl.gz"):
        refused(str(tmp_path / name), "cannot be opened: No such file or directory; fix the path")
    with pytest.raises(UserError, match="no folder of items: it holds nothing"):
        list(read_records(tmp_path))
    with pytest.raises(UserError, match=r"suffix '\.txt' is not a known format: use one of \.jsonl"):
        list(read_records("a.txt"))
    with pytest.raises(UserError, match="Parquet is compressed already"):
        list(read_records("a.parquet.gz"))


def test_a_folder_with_a_script_is_refused_and_the_script_not_run(tmp_path: Path) -> None:
    """Where data files are beside a script that does not bear the folder's name, they are read."""
    ran = tmp_path / "ran"
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "load.py").write_text(f"open({str(ran)!r}, 'w')")
    with pytest.raises(UserError, match=r"a data set with a script \(load\.py\), and Dikast runs no foreign code"):
        list(read_records(tmp_path / "set"))
    put(tmp_path / "set", "a.jsonl", JSONL)
    assert [each.value for each in read_records(tmp_path / "set")] == ROWS
    assert not ran.exists()


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    records = read_records(put(tmp_path, "a.jsonl", JSONL + "\nbroken"))
    assert [next(records).value for _ in ROWS] == ROWS
    with pytest.raises(DataError, match=r"a\.jsonl:3: "):
        next(records)


def test_line_limit(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", b"1234\n12345\n123456")
    assert [line.raw for line in lines_of(path, most=6)] == [b"1234\n", b"12345\n", b"123456"]
    with pytest.raises(DataError, match=r"a\.jsonl:2: the line is longer than 5 bytes: one record a line"):
        list(lines_of(path, most=5))


_READ_WITH_LITTLE_MEMORY = """
import sys
from dikast.core.errors import DataError
from dikast.core.records import read_records
try:
    list(read_records(sys.argv[1]))
except DataError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "head", "message"),
    [
        ("a.jsonl", b'{"id": 1}\n{"id": "', r":2: the line is longer than 67,108,864 bytes"),
        ("a.csv", b'id,text\n1,"', r":2: the line is longer"),
        ("a.json", b'[{"id": 1},\n{"id": "', r":2: not valid JSON: one object is longer than 67,108,864 characters"),
        ("rows.csv", b'id,text\n1,"', r":2: the row that begins here has more than 67,108,864 bytes: is a quotation"),
    ],
)
def test_a_gigabyte_line_never_gets_into_memory(tmp_path: Path, name: str, head: bytes, message: str) -> None:
    path = tmp_path / name
    filling = (b"x" * 999 + (b"\n" if name == "rows.csv" else b"x")) * 1000
    with path.open("wb") as file:
        file.write(head)
        # Letters as far as anybody may read, then a hole: a gigabyte that takes 160 MB of disk.
        for _ in range(160):
            file.write(filling)
        file.truncate(2**30)
    result = subprocess.run(
        [sys.executable, "-c", _READ_WITH_LITTLE_MEMORY, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20, 900 * 2**20)),
    )
    assert re.search(re.escape(str(path)) + message, result.stdout), result


def test_parquet(tmp_path: Path) -> None:
    arrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import datetime

    path = str(tmp_path / "a.parquet")
    table = arrow.table(
        {
            "id": [1, 2],
            "text": ["a", None],
            "score": [1.5, float("nan")],
            "image": [{"bytes": b"\x89PNG", "path": None}, {"bytes": None, "path": "b.png"}],
            "turns": [[{"role": "user", "content": "x"}], []],
            "day": [datetime.date(2024, 1, 2)] * 2,
        }
    )
    pq.write_table(table, path)
    assert list(read_records(path)) == [
        Record(
            {
                "id": 1, "text": "a", "score": 1.5, "turns": [{"role": "user", "content": "x"}], "day": "2024-01-02",
                "image": {"bytes": "data:application/octet-stream;base64,iVBORw=="},
            },
            1,
        ),
        Record(
            {"id": 2, "text": None, "score": None, "image": {"path": "b.png"}, "turns": [], "day": "2024-01-02"}, 2
        ),
    ]  # fmt: skip
    pq.write_table(table.slice(0, 0), path)
    refused(path, "holds no records")
    refused(put(tmp_path, "b.parquet", b"PAR1 and no more"), "not a sound Parquet file")
    refused(str(tmp_path / "no.parquet"), "cannot be opened: No such file")


UNPACKED = """
import resource, sys
from dikast.core.records import parquet, read_records
import pyarrow.parquet
parquet._MOST_SHARED = 16 * 2**20
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 3 * 2**28,) * 2)
print(sum(len(record.value["response"]) for record in read_records(sys.argv[1])))
"""


@pytest.mark.parametrize(("size", "n"), [(4, 256), pytest.param(60, 16, marks=pytest.mark.slow)])
def test_a_parquet_dictionary_that_every_row_repeats_is_read_in_bounded_memory(
    size: int, n: int, tmp_path: Path
) -> None:
    """A file of a few kB that stands for 1 GB, which Arrow and Python would each hold, is read within .8."""
    arrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, large = tmp_path / "a.parquet", "x" * (size * 2**20)
    column = arrow.DictionaryArray.from_arrays(arrow.array([0] * n, arrow.int32()), arrow.array([large]))
    pq.write_table(arrow.table({"response": column}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 20_000
    done = subprocess.run(
        [sys.executable, "-c", UNPACKED, str(path)], capture_output=True, text=True, env=environment()
    )
    assert done.stdout == f"{size * n * 2**20}\n", done.stderr[-500:]


@pytest.mark.parametrize("lists", [False, True])
def test_parquet_that_unpacks_to_what_no_data_does_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lists: bool
) -> None:
    arrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("dikast.core.records.parquet._MOST_UNPACKED", 2**20)
    monkeypatch.setattr("dikast.core.records.parquet._MOST_VALUES", 2**18)
    rng, path = random.Random(0), str(tmp_path / "a.parquet")
    sound = [rng.randrange(99) for _ in range(2**19)] if lists else rng.randbytes(2**21).hex()
    pq.write_table(arrow.table({"x": [sound]}), path, compression="zstd")
    assert list(read_records(path)) == [Record({"x": sound}, 1)]
    bomb = [7] * 2**19 if lists else "x" * 2**22
    pq.write_table(arrow.table({"x": [bomb]}), path, compression="zstd", use_dictionary=lists)
    refused(path, r"field 'x(\.list\.element)?': row group 1: [\d,]+ bytes would unpack to [\d,]+ and .* no data does")


@pytest.mark.soak(10_000)
def test_damaged_parquet_is_told_and_never_read_as_something_else(tmp_path: Path, tries: int) -> None:
    """Damage to the rows of our own files is found by the pages' checksums; the footer, which has none, at least ends
    in an error or in rows."""
    pytest.importorskip("pyarrow")
    rows = [{"id": str(n), "text": "é" * n, "n": n, "x": n / 4, "deep": {"a": [n]}} for n in range(60)]
    path = tmp_path / "a.parquet"
    write_records(path, rows)
    sound, rng = path.read_bytes(), random.Random(0)
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    found = 0
    for number in range(tries):
        raw = bytearray(sound)
        at, size = rng.randrange(len(raw)), rng.randrange(1, 40)
        if number % 4 == 0:
            raw[at] ^= 1 << rng.randrange(8)
        elif number % 4 == 1:
            del raw[at : at + size]
        elif number % 4 == 2:
            raw[at : at + size] = bytes(len(raw[at : at + size]))
        else:
            raw[at : at + size] = raw[: len(raw[at : at + size])]
        path.write_bytes(raw)
        try:
            back = [record.value for record in read_records(path)]
        except DataError:
            found += 1
            continue
        assert at + size > footer or back == rows, number
    assert found > tries / 2


@pytest.mark.parametrize(
    ("kind", "value"),
    [("string", b"\xff\xfe"), ("timestamp[us]", 2**62), ("date32", 2**31 - 1), ("json", "{"), ("json", "[" * 5000)],
)
def test_parquet_whose_cells_cannot_be_read(kind: str, value: object, tmp_path: Path) -> None:
    arrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    types = {"json": arrow.string(), "timestamp[us]": arrow.timestamp("us"), "date32": arrow.date32()}
    if kind == "string":
        column = arrow.array([value]).view(arrow.string())
    elif kind == "json":
        column = arrow.array([value])
    else:
        column = arrow.array([value], arrow.int32() if kind == "date32" else arrow.int64()).view(types[kind])
    field = arrow.field("x", column.type, metadata={b"dikast": b"json"} if kind == "json" else None)
    path = str(tmp_path / "a.parquet")
    pq.write_table(arrow.Table.from_arrays([column], schema=arrow.schema([field])), path)
    refused(path, "not a sound Parquet file .*after 0 rows")


def test_parquet_without_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dikast\[parquet\]'"):
        list(read_records(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl"])
@pytest.mark.parametrize(
    "text", ['[{"id": "x"}, {"id": "y"}]', '[\n {"id": "x"},\n {"id": "y"}\n]', '{"id":"x"}\n{"id": "y"}\n']
)
def test_json_under_another_suffix_is_json(text: str, name: str, tmp_path: Path) -> None:
    assert [value["id"] for value, _ in read_records(put(tmp_path, name, text))] == ["x", "y"]
