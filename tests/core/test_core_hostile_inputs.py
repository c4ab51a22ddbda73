"""Files of items as nobody should write them: a message for each, never a traceback."""

import gzip
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from dikast.core.errors import DataError, DikastError
from dikast.core.media import media_files as media
from dikast.core.part import text_of
from dikast.core.records import hub, read_items
from dikast.core.records.items import scan_items
from dikast.core.records.sources import forget

ROWS = [
    {"id": f"i{n}", "instruction": f'Say, {n}\n"twice"', "response": f"it; is\t{n} é", "gold": n, "meta": {"a": [n]}}
    for n in range(4)
]
LONG = b"9" * 5000
DEEP = b'{"id": "a", "instruction": "x", "response": "y", "gold": %b}' % (b"[" * 300 + b"]" * 300)


def table(delimiter: str) -> bytes:
    cells = [[str(row[key]).replace('"', '""') for key in ("id", "instruction", "response", "gold")] for row in ROWS]
    lines = ["id,instruction,response,gold".replace(",", delimiter)]
    lines += [delimiter.join(f'"{cell}"' for cell in row) for row in cells]
    return ("\n".join(lines) + "\n").encode()


def parquet() -> bytes:
    arrow, write = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    raw = io.BytesIO()
    rows = [{**row, "meta": json.dumps(row["meta"]), "more": {"x": [row["id"]]}} for row in ROWS]
    write.write_table(arrow.Table.from_pylist(rows), raw)
    return raw.getvalue()


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


FILES: dict[str, Callable[[], bytes]] = {
    "a.csv": lambda: table(","),
    "a.tsv": lambda: table("\t"),
    "bare": lambda: table(";"),
    "a.jsonl": lines,
    "a.json": lambda: json.dumps(ROWS).encode(),
    "spaced.json": lambda: json.dumps(ROWS, indent=1).encode(),
    "a.jsonl.gz": lambda: gzip.compress(lines()),
    "a.parquet": parquet,
}
TOKENS = (
    b"\r", b"\0", b"\n", b'"', b"'", b"\\", b",", b"\t", b"{", b"}", b"[", b"]", b"null", b"true", b"NaN", b"-Infinity",
    b"1e999", b"../../x", b"=1+1", b"id", b"PAR1",
    LONG, b"-" + LONG, b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x1f\x8b",
    b"[" * 2000, b'{"a":' * 2000, b"a" * 300, b'"responses": 5,', b'"id": [],', b'"gold": {"x": 1e400},',
    b'"image": "\\u0000",', b'"video": {},', b'"messages": [{}],', b'"rubric": {"scale": "1-999999999999"},',
    b'"images": [[[]]],',
)  # fmt: skip


def mutated(raw: bytes, drawn: random.Random) -> bytes:
    for _ in range(drawn.choice((1, 1, 1, 2, 5))):
        at = drawn.randrange(len(raw) + 1)
        end = min(len(raw), at + drawn.choice((0, 1, 1, 4, 30)))
        way = drawn.randrange(5)
        if way == 0:
            raw = raw[:at] + drawn.choice(TOKENS) + raw[at:]
        elif way == 1:
            raw = raw[:at] + drawn.choice(TOKENS) + raw[end:]
        elif way == 2:
            raw = raw[:at] + raw[end:]
        elif way == 3:
            raw = raw[:at] + raw[at:end] * 3 + raw[end:]
        else:
            raw = raw[:at] + bytes([drawn.randrange(256)]) + raw[at + 1 :]
    return raw


def told(step: Callable[[], Any]) -> None:
    try:
        step()
    except DikastError:
        return


@pytest.mark.soak(50_000)
def test_no_input_gives_a_traceback(tmp_path: Path, tries: int) -> None:
    made = {name: make() for name, make in FILES.items()}
    drawn = random.Random(0)
    for number in range(tries):
        name = drawn.choice(list(made))
        path = tmp_path / name
        path.write_bytes(mutated(made[name], drawn))
        forget()
        try:
            told(lambda: list(scan_items(str(path), {})))  # noqa: B023 - called at once
            told(lambda: list(read_items(path)))  # noqa: B023
        except Exception as error:
            kept = Path("/tmp") / f"input-{number}-{name}"
            kept.write_bytes(path.read_bytes())
            raise AssertionError(f"try {number}, {name}: {error!r}; the file is kept as {kept}") from error


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.csv", b"id,instruction,response\ra,b,c\r", "lines end in a carriage return alone"),
        ("bare", b"id,instruction,response\ra,b,c\r", "lines end in a carriage return alone|broken row|not valid JSON"),
        ("a.csv", b"id,instruction,response\na,b\rx,c\n", "lines end in a carriage return alone"),
        ("a.json", b'[{"id": "a", "instruction": "x", "response": "y", "gold": ' + LONG + b"}]", "not a JSON number"),
        ("a.jsonl", b'{"id": "a", "instruction": "x", "response": "y", "gold": ' + LONG + b"}\n", "not a JSON number"),
        ("a.json", b"[%b]" % DEEP, "a.json:1: field 'gold': the value is nested in more than 100 levels"),
        ("a.jsonl", DEEP + b"\n", "a.jsonl:1: field 'gold': the value is nested in more than 100 levels"),
        (
            "a.jsonl",
            DEEP.replace(b"gold", b"seen") + b"\n",
            "field 'seen': the value is nested in more than 100 levels",
        ),
        ("a.csv", b'response,meta\nx,"{""a"": ' + b"[" * 200 + b"]" * 200 + b'}"\n', "nested in more than 100 levels"),
    ],
)
def test_what_once_gave_a_traceback_is_told(name: str, raw: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=message):
        list(read_items(tmp_path / name))


def folder_of_pictures(folder: Path, file_name: str) -> Path:
    folder.mkdir()
    Pillow.new("RGB", (32, 32)).save(folder / "a.png")
    (folder / "metadata.jsonl").write_text(json.dumps({"file_name": file_name, "caption": "A cat."}) + "\n")
    return folder


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "\ud800", "a/" * 3000, ""])
def test_a_file_name_that_no_file_has(name: str, tmp_path: Path) -> None:
    folder = folder_of_pictures(tmp_path / "f", name)
    with pytest.raises(DataError) as caught:
        list(read_items(folder))
    assert len(str(caught.value)) < 500


CARDS: tuple[Any, ...] = (
    5, None, "x", [5], [{}], [{"data_files": 5}], [{"data_files": [5]}], [{"data_files": {"a": 1}}], {"a": 1},
    [{"config_name": [], "data_files": "x"}], [{"config_name": "a", "data_files": [{"split": {}, "path": [[]]}]}],
    [{"data_files": [{"path": "[" * 5000}]}], [{"data_files": "*" * 5000}],
)  # fmt: skip


@pytest.mark.parametrize("configs", CARDS, ids=range(len(CARDS)))
@pytest.mark.parametrize("query", ["", "?config=a", "?split=train"])
def test_a_card_of_the_hub_is_data(configs: Any, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ["README.md", "data/train.jsonl", "data/test.jsonl"]
    (tmp_path / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    monkeypatch.setattr(hub, "_fetched", lambda api, address, name: str(tmp_path / name))
    text = f"hf://datasets/org/name{query}"
    told(lambda: hub._chosen(None, hub.Address.of(text), listed, text))


def test_captions_and_tables_that_are_links_stay_in_the_media_root(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0")
    beside, listed, shards = tmp_path / "root" / "beside", tmp_path / "root" / "listed", tmp_path / "root" / "shards"
    for folder in (beside, listed, shards):
        folder.mkdir(parents=True)
    Pillow.new("RGB", (32, 32)).save(beside / "a.png")
    (beside / "a.txt").symlink_to(secret)
    Pillow.new("RGB", (32, 32)).save(listed / "a.png")
    (tmp_path / "out.csv").write_text("file_name,caption\na.png,hidden\n")
    (listed / "metadata.csv").symlink_to(tmp_path / "out.csv")
    (tmp_path / "out.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    (shards / "one.jsonl").symlink_to(tmp_path / "out.jsonl")
    for folder, link in ((beside, "a.txt"), (listed, "metadata.csv"), (shards, "one.jsonl")):
        forget()
        assert len(list(read_items(folder))) == 1  # without a root, as before
        refused = pytest.raises(DataError, match=rf"{link}: is a link that leads outside the media root")
        with media.media_rules(root=tmp_path / "root"), refused as caught:
            list(read_items(folder))
        assert "root:x" not in str(caught.value)
    (beside / "a.txt").unlink()
    (beside / "words").write_text("A cat.")
    (beside / "a.txt").symlink_to("words")
    with media.media_rules(root=tmp_path / "root"):
        assert [text_of(item.response) for item in read_items(beside)] == ["A cat."]  # a link inside
        (tmp_path / "root" / "typed.jsonl").symlink_to(tmp_path / "out.jsonl")
        assert len(list(read_items(tmp_path / "root" / "typed.jsonl"))) == 1  # typed, not found


@pytest.mark.parametrize("named", ["pipe.yaml", "/dev/zero"])
def test_an_item_that_names_a_pipe_or_a_device_as_its_rubric_is_refused(named: str, tmp_path: Path) -> None:
    """Reading it would never end. What somebody types may be a pipe."""
    os.mkfifo(tmp_path / "pipe.yaml")
    item = {"id": "1", "instruction": "q", "response": "r", "rubric": named}
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n", "utf-8")
    with pytest.raises(DataError, match=r"items.jsonl:1: .*a pipe or a device in the place of a rubric"):
        list(read_items(tmp_path / "items.jsonl"))
