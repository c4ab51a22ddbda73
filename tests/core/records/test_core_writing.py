import csv
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item, item_from
from dikast.core.part import Image, Part, Text, Turn, Video
from dikast.core.records import (
    escaped_formula,
    read_items,
    read_records,
    unescaped_formula,
    write_items,
    write_records,
)
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.testing.hostile import FORMULAS, HOSTILE

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
sources = st.sampled_from(["a.png", "b/c.png", "../d.png", "/e.png", "https://x/y.png", "data:image/png;base64,AA=="])


def image(root: str) -> st.SearchStrategy[Image]:
    return sources.map(lambda source: Image(source, "" if ":" in source else root))


def contents(root: str) -> st.SearchStrategy[tuple[Part, ...]]:
    clip = st.lists(image(root), min_size=1, max_size=3).flatmap(
        lambda frames: st.sampled_from([(), tuple(float(i) for i in range(len(frames)))]).map(
            lambda seconds: Video(tuple(frames), seconds)
        )
    )
    return st.lists(text.map(Text) | image(root) | clip, max_size=3).map(tuple)


def items(root: str) -> st.SearchStrategy[Item]:
    own = load_rubric({"criterion": "Is it kind?", "levels": {"1": "No.", "2": "Yes."}, "scale": "1-2", "weight": 2})
    assert isinstance(own, Rubric)
    turns = st.builds(Turn, st.sampled_from(["system", "user", "assistant"]), contents(root))
    return st.builds(
        Item,
        id=text.filter(bool),
        instruction=st.lists(turns, max_size=3).map(tuple),
        responses=st.lists(contents(root), max_size=3).map(tuple),
        reference=st.none() | contents(root),
        context=st.none() | contents(root),
        rubric=st.sampled_from([None, own, load_rubric("honesty"), Sheet("both", (own,))]),
        gold=json_values,
        meta=st.dictionaries(text, json_values, max_size=3),
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.parquet"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_items_come_back(tmp_path: Path, name: str, data: st.DataObject) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    given_ = data.draw(st.lists(items(str(tmp_path)), min_size=1, max_size=4, unique_by=lambda item: item.id))
    path = tmp_path / name
    assert write_items(path, given_) == len(given_)
    assert list(read_items(path)) == given_
    assert os.listdir(tmp_path) == [name]


plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
words = plain.filter(str.strip)  # in a table, a cell without any is empty
table_rows = st.fixed_dictionaries(
    {"id": words, "instruction": words, "responses": st.lists(plain, max_size=3)},
    optional={"gold": st.integers(0, 9) | st.floats(0, 1), "meta": st.dictionaries(text, json_values, max_size=2)},
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    rows=st.lists(table_rows, min_size=1, max_size=5, unique_by=lambda row: str(row["id"])),
    suffix=st.sampled_from(["csv", "tsv", "csv.gz"]),
)
def test_text_items_come_back_from_tables(tmp_path: Path, rows: list[dict[str, Any]], suffix: str) -> None:
    given_ = [item_from(row) for row in rows]
    path = tmp_path / f"a.{suffix}"
    write_items(path, given_)
    assert list(read_items(path)) == given_


@pytest.mark.parametrize(
    "value",
    [
        {"image": "a.png"},
        {"instruction": [{"role": "system", "content": "x"}]},
        {"gold": "4"},
        {"gold": [1]},
        {"gold": True},
        {"context": [{"type": "text", "text": ""}]},
        {"response": "a\0b"},
    ],
)
def test_tables_refuse_what_they_cannot_tell(tmp_path: Path, value: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"item 'x' cannot be written as a table of text: use JSONL or Parquet"):
        write_items(tmp_path / "a.csv", [item_from({"id": "x", **value})])
    assert os.listdir(tmp_path) == []


def test_images_resolve_from_the_new_folder(tmp_path: Path) -> None:
    for name in ("data", "out/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("out/deep")
    picture = tmp_path / "data" / "a.png"
    picture.write_bytes(b"here")
    value = {
        "id": "x",
        "image": "a.png",
        "response": [{"type": "video", "frames": ["a.png", "https://x/y", str(picture)]}],
    }
    item = item_from(value, root=str(tmp_path / "data"))
    for folder in ("out/deep", "data", ".", "link"):
        write_items(tmp_path / folder / "a.jsonl", [item])
        (back,) = read_items(tmp_path / folder / "a.jsonl")
        first, second, url, absolute = back.images
        for each in (first, second):
            assert Path(each.root, each.source).read_bytes() == b"here"
            assert not os.path.isabs(each.source)
        assert (url.source, absolute.source) == ("https://x/y", str(picture))


def test_images_beside_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "a.png").write_bytes(b"here")
    (tmp_path / "link").symlink_to("real/deep")
    item = item_from(
        {"id": "x", "image": "../a.png"}, root=str(tmp_path / "link")
    )  # a.png beside deep, not beside link
    write_items(tmp_path / "a.jsonl", [item])
    (image,) = next(iter(read_items(tmp_path / "a.jsonl"))).images
    assert Path(image.root, image.source).read_bytes() == b"here"


ROWS: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "x": 0.5, "ok": True, "mixed": 1, "deep": {"a": [1, None]}, "none": None, "big": 2**64 - 1},
    {"id": "b", "n": 2, "x": 1.0, "ok": None, "mixed": "1", "deep": [], "none": None, "big": 0},
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.json", "a.json.gz", "a.parquet"])
def test_records_come_back(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    assert write_records(tmp_path / name, iter(ROWS)) == 2
    back = [value for value, _ in read_records(tmp_path / name)]
    assert back == ROWS
    assert [list(map(type, value.values())) for value in back] == [list(map(type, value.values())) for value in ROWS]


def test_records_as_a_table(tmp_path: Path) -> None:
    write_records(tmp_path / "a.csv", ROWS)
    with (tmp_path / "a.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {
        "id": "a", "n": "1", "x": "0.5", "ok": "true", "mixed": "1", "deep": '{"a":[1,null]}', "none": "",
        "big": "18446744073709551615",
    }  # fmt: skip
    assert second["ok"] == ""
    with pytest.raises(DataError, match=r"record 2 has keys that the first has not \(z\): write JSONL"):
        write_records(tmp_path / "b.csv", [{"a": 1}, {"z": 1}])


def test_parquet_types_are_native_where_they_can_be(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    write_records(tmp_path / "a.parquet", ROWS)
    kinds = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "a.parquet")}
    assert kinds == {
        "id": "string", "n": "int64", "x": "double", "ok": "bool", "mixed": "string", "deep": "string",
        "none": "string", "big": "string",
    }  # fmt: skip


def test_parquet_in_several_batches(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [{"id": str(i), **({"late": [i]} if i > 900 else {})} for i in range(1000)]
    assert write_records(tmp_path / "a.parquet", rows) == 1000
    back = [value for value, _ in read_records(tmp_path / "a.parquet")]
    assert back == [{"late": None, **row} for row in rows]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.jsonl.gz"])
def test_a_file_is_whole_or_as_it_was(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")

    def failing() -> Any:
        yield {"id": "new"}
        raise ValueError("the source failed")

    path = tmp_path / name
    write_records(path, [{"id": "old"}])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="the source failed"):
        write_records(path, failing())
    with pytest.raises(DataError, match=r"record 2 cannot be written as JSON: .*serializable"):
        write_records(path, [{"id": "x"}, {"id": object()}])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.json"])
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    """Every byte written to /dev/full fails as on a full disk."""
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    path = tmp_path / name
    path.symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"cannot be written: No space left on device; what was there before is intact"):
        write_records(path, [{"id": "x" * 100_000}])


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="is a folder: name a file in it"):
        write_records(tmp_path, [{"id": 1}])  # a folder has no suffix, so it would be JSONL
    with pytest.raises(UserError, match=r"the folder .*/no does not exist: make it first"):
        write_records(tmp_path / "no" / "a.jsonl", [{"id": 1}])
    with pytest.raises(UserError, match="a spreadsheet is written and read as CSV"):
        write_records(tmp_path / "a.xlsx", [{"id": 1}])

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dikast.core.records.writing.os.replace", refuse)
    with pytest.raises(RunError, match="cannot be written: Permission denied"):
        write_records(tmp_path / "a.jsonl", [{"id": 1}])
    assert os.listdir(tmp_path) == []


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    write_records(tmp_path / "link.jsonl", [{"id": 1}])
    assert (tmp_path / "real.jsonl").read_text() == '{"id":1}\n'
    assert (tmp_path / "link.jsonl").is_symlink()


@pytest.mark.parametrize("redirected", ["| cat", "> out.txt"])
def test_a_device_is_written_to_and_never_replaced(redirected: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")  # as /dev/stdout itself is one, which root could replace
    code = "import sys; from dikast.core.records import write_file; write_file(sys.argv[1], b'whole')"
    line = f"{sys.executable} -c {shlex.quote(code)} link {redirected}; cat out.txt 2>/dev/null"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("whole", "")
    assert (tmp_path / "link").is_symlink()


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert write_records("-", [{"id": 1}, {"id": "é"}]) == 2
    assert capfdbinary.readouterr().out == '{"id":1}\n{"id":"é"}\n'.encode()


def test_bytes_on_disk(tmp_path: Path) -> None:
    write_records(tmp_path / "a.json", [{"a": 1}, {"b": float("nan")}])
    assert (tmp_path / "a.json").read_bytes() == b'[\n{"a":1},\n{"b":null}\n]\n'
    assert write_records(tmp_path / "none.jsonl", []) == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    write_records(tmp_path / "none.json", [])
    assert orjson.loads((tmp_path / "none.json").read_bytes()) == []
    write_records(tmp_path / "a.jsonl.gz", [{"a": 1}])
    first = (tmp_path / "a.jsonl.gz").read_bytes()
    os.utime(tmp_path / "a.jsonl.gz", (1, 1))
    write_records(tmp_path / "a.jsonl.gz", [{"a": 1}])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == first  # no clock in it
    assert gzip.decompress(first) == b'{"a":1}\n'


CELLS = [
    *HOSTILE, "-1", "+2.5e3", "-.5", "- a list", "plain", "", "'", "''=1", "1-5", " -1", "1;-2", "\r\n", "'\r",
    "\u2800=1+1", "\u115f=1", "\u1160\uffa0@x", "\u3164+x", "\u034f-1+2", "\ufe0f=1", "\u00a0\u17b4=x", "\U000e0020=x",
    "\u0301=1", "\U0001d159=1", "\ue000=1", "\u0378=1", "é=1", "가=1", "x\u3164=1",
]  # fmt: skip


def unseen(character: str) -> bool:
    """Whether nothing is drawn for a character, or only over the next one."""
    name = unicodedata.name(character, "")
    blank = any(word in name for word in ("FILLER", "BLANK", "NULL NOTEHEAD"))
    return blank or character.isspace() or unicodedata.category(character)[0] in "CM"


def runs(cell: str) -> bool:
    """Whether a spreadsheet may run the cell, by other means than ours: split at all it may split at, and stripped."""
    for piece in cell.replace("\r", "\n").replace(";", "\n").split("\n"):
        left = unicodedata.normalize("NFKC", piece).lstrip('"')
        while left and (left[0] == '"' or unseen(left[0])):
            left = left[1:]
        if left[:1] in ("=", "+", "-", "@", "\u2212"):
            try:
                float(left)
            except ValueError:
                return True
    return False


@pytest.mark.parametrize("cell", CELLS)
def test_formulas_are_escaped_and_come_back(cell: str) -> None:
    made = escaped_formula(cell)
    assert unescaped_formula(made) == cell
    assert not made.startswith(("=", "@", "\t", "\r"))
    assert not runs(made)
    if not runs(cell) and "'" not in cell and not cell.startswith(("\t", "\r")):
        assert made == cell


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("=+-@\uff1d1.e;,\n\r\t '\"a\ufeff\0"), max_size=9))
def test_any_cell_is_escaped_and_comes_back(cell: str) -> None:
    made = escaped_formula(cell)
    assert not runs(made)
    assert unescaped_formula(made) == cell


def test_a_formula_behind_any_invisible_character_is_escaped() -> None:
    regex = pytest.importorskip("regex")
    hidden = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{White_Space}\p{Cc}\p{Cf}\u2800]")
    found = [chr(point) for point in range(0x110000) if hidden.match(chr(point)) and chr(point) not in "\r\n"]
    assert len(found) > 4000
    for each in found:
        cell = f"{each}=1+1"
        assert escaped_formula(cell) == f"'{cell}", hex(ord(each))
        assert unescaped_formula(escaped_formula(cell)) == cell


def test_what_the_version_before_escaped_is_still_read() -> None:
    for cell in ("=1", "\t=1", "\rx", "''@a", "-a"):
        assert unescaped_formula("'" + cell) == cell


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_escaped_tables_hold_in_programs_with_other_separators(name: str, tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": f"x{sign}{cell}"} for n, cell in enumerate(FORMULAS) for sign in (";", ",", "\t")]
    write_records(tmp_path / name, rows, escape_formulas=True)
    made = (tmp_path / name).read_text("utf-8").replace("\0", "")
    with (tmp_path / name).open(encoding="utf-8", newline="") as file:
        back = list(csv.DictReader(file, delimiter="," if name == "a.csv" else "\t"))
    assert [{key: unescaped_formula(cell) for key, cell in row.items()} for row in back] == rows
    own = "," if name == "a.csv" else "\t"
    semicolons = [cell for row in csv.reader(io.StringIO(made, newline=""), delimiter=";") for cell in row]
    assert not any(map(runs, semicolons))  # quotation marks do not help where other cells come before on the line
    guessed = [cell for line in made.splitlines() for cell in re.split(r'(?<=")[,;\t](?=")', line)]
    assert own in made
    assert not any(runs(cell) for cell in guessed)


def test_numbers_are_no_formulas(tmp_path: Path) -> None:
    rows = [{"id": "a", "score": -1, "text": "-1"}, {"id": "b", "score": 2.5, "text": "=1+1"}]
    write_records(tmp_path / "a.csv", rows, escape_formulas=True)
    assert (tmp_path / "a.csv").read_text() == "id,score,text\na,-1,-1\nb,2.5,'=1+1\n"
    write_records(tmp_path / "a.csv", rows)
    assert (tmp_path / "a.csv").read_text().endswith("b,2.5,=1+1\n")


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    code = f"""
import os, signal
from dikast.core.records import write_records
def rows():
    yield {{"id": "a"}}
    os.kill(os.getpid(), signal.SIGKILL)
write_records({str(target)!r}, rows())
"""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)})
        (left,) = tmp_path.glob("a.jsonl.*.part")
    others = tmp_path / "b.jsonl.1.part"
    others.write_text("another target's")
    seen: list[Path] = []

    def rows() -> Iterator[dict[str, str]]:
        seen.extend(tmp_path.glob("a.jsonl.*.part"))
        other = code.replace("    os.kill", "    #")  # another process writes the same file, and leaves this part alone
        subprocess.run([sys.executable, "-c", other], check=True, env={"PYTHONPATH": ":".join(sys.path)})
        assert seen[0].exists()
        yield {"id": "a"}

    write_records(target, rows())
    assert len(seen) == 1
    assert seen != [left]
    assert others.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl.1.part"]
    assert target.read_text() == '{"id":"a"}\n'
