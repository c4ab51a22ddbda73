"""Sources beside files: folders, addresses, and a server that speaks as the Hub does."""

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pillow

from dikast.core.errors import DataError, UserError
from dikast.core.media.media_files import load_image, media_rules
from dikast.core.part import Image, Video, content_from, text_of
from dikast.core.records import read_items
from dikast.core.records.files import folder_of
from dikast.core.records.sources import files_of, forget
from hub_server import Hub, served
from runs import Nursery, dikast, dikast_here, lines, nursery, rows, write_jsonl

ROWS: list[dict[str, Any]] = [{"question": f"q{i}", "answer": f"a{i}"} for i in range(3)]


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def said(source: str | Path) -> list[str]:
    forget()
    return [text_of(item.response) for item in read_items(source)]


def picture(path: Path, colour: str = "red") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.new("RGB", (32, 32), colour).save(path)
    return path


def test_a_folder_of_images_with_texts(tmp_path: Path) -> None:
    for name in ("b/cat.png", "a.jpg"):
        picture(tmp_path / name).with_suffix(".txt").write_text(f" {name} \n", "utf-8")
    items = list(read_items(tmp_path))
    assert [(item.id, text_of(item.response), item.images[0].root) for item in items] == [
        ("a.jpg", "a.jpg", str(tmp_path)), ("b/cat.png", "b/cat.png", str(tmp_path))
    ]  # fmt: skip
    (tmp_path / "a.txt").unlink()
    with pytest.raises(
        DataError, match=r"a\.jpg: the image has no caption: write its caption to a\.txt, or list all in"
    ):
        said(tmp_path)


@pytest.mark.parametrize("name", ["metadata.jsonl", "captions.csv", "metadata.csv", "captions.txt"])
def test_a_folder_of_images_with_a_table(tmp_path: Path, name: str) -> None:
    picture(tmp_path / "cat.png"), picture(tmp_path / "dog.png")
    rows = [("cat.png", "A cat.", "gpt"), ("dog.png", "A dog.", "llama")]
    if name.endswith("jsonl"):
        jsonl(tmp_path / name, [dict(zip(("file_name", "caption", "model"), row, strict=True)) for row in rows])
    else:
        (tmp_path / name).write_text("file_name,caption,model\n" + "\n".join(",".join(row) for row in rows), "utf-8")
    items = list(read_items(tmp_path))
    assert [(item.id, text_of(item.response), item.meta["model"]) for item in items] == rows
    assert all(len(item.images) == 1 for item in items)
    (tmp_path / "dog.png").unlink()
    with pytest.raises(DataError, match=r"there is no image 'dog\.png' in the folder"):
        said(tmp_path)


def test_captions_in_a_text_file(tmp_path: Path) -> None:
    picture(tmp_path / "cat.png"), picture(tmp_path / "captions.jpg")
    (tmp_path / "captions.txt").write_text("image,caption\ncat.png,A cat.\ncat.png,Its tail\n", "utf-8")
    with pytest.raises(DataError, match=r"cat\.png: the image has no caption"):
        said(tmp_path)  # it is the caption of captions.jpg
    (tmp_path / "captions.jpg").unlink()
    assert [(item.id, text_of(item.response)) for item in read_items(tmp_path)] == [
        ("cat.png", "A cat."), ("cat.png#2", "Its tail"),
    ]  # fmt: skip
    (tmp_path / "captions.txt").write_text("cat.png\tA cat.\n", "utf-8")
    with pytest.raises(DataError, match=r"captions\.txt:1: the first line has to name the columns, such as image,cap"):
        said(tmp_path)


@pytest.mark.parametrize("name", ["metadata.txt", "captions.txt"])
def test_a_text_beside_captions_or_data_is_no_table(tmp_path: Path, name: str) -> None:
    picture(tmp_path / "cat.png"), (tmp_path / "cat.txt").write_text("A cat.", "utf-8")
    (tmp_path / name).write_text("Made by me, in May.\n", "utf-8")
    assert [item.id for item in read_items(tmp_path)] == ["cat.png"]
    jsonl(tmp_path / "data.jsonl", ROWS)
    assert said(tmp_path) == ["a0", "a1", "a2"]
    (tmp_path / "captions.csv").write_text("image,caption\ncat.png,Tom\n", "utf-8")
    assert said(tmp_path) == ["Tom"]


def test_a_folder_with_a_script_of_its_name_is_refused_as_on_the_hub(tmp_path: Path) -> None:
    jsonl(tmp_path / "qa" / "train.jsonl", ROWS), (tmp_path / "qa" / "clean.py").write_text("open('ran', 'w')")
    assert said(tmp_path / "qa") == ["a0", "a1", "a2"]
    (tmp_path / "qa" / "qa.py").write_text("open('ran', 'w')")
    with pytest.raises(UserError, match=r"a data set with a script \(qa\.py\).*: name a data file"):
        said(tmp_path / "qa")
    assert said(tmp_path / "qa" / "train.jsonl") == ["a0", "a1", "a2"]


def test_a_folder_of_shards_and_of_a_world(tmp_path: Path) -> None:
    jsonl(tmp_path / "one" / "b.jsonl", ROWS[1:]), jsonl(tmp_path / "one" / "a.jsonl", ROWS[:1])
    assert said(tmp_path / "one") == ["a0", "a1", "a2"]
    (origin,) = [item.origin for item in read_items(tmp_path / "one") if text_of(item.response) == "a2"]
    assert origin.endswith("b.jsonl:2")
    (
        jsonl(tmp_path / "one" / "b.jsonl", [{"id": "x", **ROWS[1]}]),
        jsonl(tmp_path / "one" / "a.jsonl", [{"id": "x", **ROWS[0]}]),
    )
    with pytest.raises(DataError, match=r"b\.jsonl:1: field 'id': the id 'x' is the id of record 1 already"):
        said(tmp_path / "one")
    (tmp_path / "one" / "c.csv").write_text("question,answer\n", "utf-8")
    with pytest.raises(UserError, match=r"files of several kinds \(a.jsonl, b.jsonl, c.csv\): name one|several kinds"):
        said(tmp_path / "one")
    done = subprocess.run(
        [sys.executable, "-m", "dikast", "world", "make", "-n", "4", "--out", str(tmp_path / "world")],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list(read_items(tmp_path / "world"))) == 4


CARD = """---
configs:
- config_name: en
  data_files:
  - split: test
    path: en/*.jsonl
- config_name: de
  data_files: de.jsonl
---
Words.
"""
FILES: dict[str, dict[str, Any]] = {
    "org/plain": {"data/train-00000-of-00002.jsonl": ROWS[:1], "data/train-00001-of-00002.jsonl": ROWS[1:2],
                  "data/test-00000-of-00001.jsonl": ROWS[2:]},
    "org/carded": {"README.md": CARD,
                   "en/a.jsonl": ROWS[:2], "de.jsonl": ROWS[2:]},
    "org/scripted": {"scripted.py": "open('ran', 'w')", "data.jsonl": ROWS},
    "org/odd": {"README.md": "---\nconfigs: 5\n---\n", "train.jsonl": ROWS[:1], "test.jsonl": ROWS[1:]},
    "org/bare": {"README.md": "Nothing.\n"},
}  # fmt: skip


class Filled(Hub):
    """A Hub that holds the data sets of this module."""

    files = FILES


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with served(Filled) as address:
        yield address


def settings(hub: str, folder: Path, offline: str = "0") -> dict[str, str]:
    """The environment of a process whose Hub is the server, with a cache in the folder."""
    return {"HF_ENDPOINT": hub, "HF_HUB_OFFLINE": offline, "HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "127.0.0.1"}  # fmt: skip


def grade(source: str, folder: Path, *flags: str) -> list[str]:
    judged = ["--judge", "mock:constant", "--rubric", "helpfulness"]
    return ["grade", source, *judged, "--out", str(folder / "run"), *flags]


@pytest.fixture(scope="module")
def forks(hub: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Processes whose Hub is the server, with one cache."""
    pytest.importorskip("huggingface_hub")
    with nursery("huggingface_hub.hf_api", **settings(hub, tmp_path_factory.mktemp("hub"))) as found:
        yield found


@pytest.mark.parametrize(
    ("source", "flags", "verdicts"),
    [
        ("hf://datasets/org/plain/data/test-00000-of-00001.jsonl", (), 1),
        ("hf://datasets/org/plain@v1/data/train-*.jsonl", (), 2),
        ("hf://datasets/org/plain", ("--split", "train"), 2),
        ("hf://datasets/org/plain?split=test", (), 1),
        ("hf://datasets/org/carded", ("--config-name", "en"), 2),
        ("hf://datasets/org/carded", ("--config-name", "de", "--split", "train"), 1),
        ("hf://datasets/org/carded/en", (), 2),
    ],
)
def test_data_sets_of_the_hub(hub: str, tmp_path: Path, source: str, flags: tuple[str, ...], verdicts: int) -> None:
    pytest.importorskip("huggingface_hub")
    words = grade(source, tmp_path, *flags)
    done = dikast(*words, cwd=tmp_path, **settings(hub, tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"verdicts    {verdicts} ({verdicts} asked now)" in done.stdout
    if "*" not in source and source.endswith("jsonl"):  # what is in the cache needs no network
        again = dikast(*words, cwd=tmp_path, **settings("http://127.0.0.1:9", tmp_path, offline="1"))
        assert again.returncode == 0, again.stderr
        assert f"verdicts    {verdicts} (0 asked now)" in again.stdout


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("hf://datasets/org/plain", "the data set has several splits; choose with --split: test, train"),
        ("hf://datasets/org/plain?split=trian", "no split 'trian': did you mean 'train'?"),
        ("hf://datasets/org/carded", "several configurations; choose with --config-name: en, de"),
        ("hf://datasets/org/carded?config=fr", "several configurations; known: en, de"),
        ("hf://datasets/org/scripted", "a data set with a script (scripted.py), and Dikast runs no foreign code"),
        ("hf://datasets/org/scripted/scripted.py", "a data set with a script"),
        ("hf://datasets/org/bare", "no data files there; the data set holds README.md"),
        ("hf://datasets/org/nothing", "there is no such data set, or it is private"),
        ("hf://datasets/org/plain@v9", "the data set has no such revision"),
        ("hf://datasets/org/plain/x.jsonl", "the data set has no file 'x.jsonl'"),
        ("hf://datasets/org/plain/../x", "'..' is no part of an address on the Hub"),
        ("hf://datasets/org/plain/data/%2e%2e/x.jsonl", "'..' is no part of an address on the Hub"),
        ("hf://datasets/org/odd", "the data set has several splits"),
        ("hf://models/org/plain", "not the address of a data set on the Hub: write hf://datasets/ORG/NAME"),
    ],
)
def test_what_the_hub_does_not_have(forks: Nursery, tmp_path: Path, source: str, told: str) -> None:
    forks.said()
    code, said = forks.run(grade(source, tmp_path)), forks.said()
    assert (code, told in said) == (2, True), said
    assert not Path("ran").exists()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("offline", "told"),
    [
        ("1", "the Hub is needed to list its files"),
        pytest.param("0", "cannot be fetched (", marks=pytest.mark.slow),  # the library tries for half a minute
    ],
)
def test_a_hub_that_cannot_be_reached_is_told(tmp_path: Path, offline: str, told: str) -> None:
    """Listing its files fails in the library's own client, whose errors are none of the system's."""
    pytest.importorskip("huggingface_hub")
    environment = settings("http://127.0.0.1:9", tmp_path, offline=offline)
    done = dikast(*grade("hf://datasets/org/plain/data/*.jsonl", tmp_path), cwd=tmp_path, **environment)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_choices_of_the_hub_are_of_the_hub(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ROWS)
    done = dikast_here(*grade(str(file), tmp_path, "--split", "train"))
    assert done.returncode == 2
    assert "--config-name and --split choose among the files of a data set on the Hub" in done.stderr


class Pages(BaseHTTPRequestHandler):
    """A file, a page where a file was expected, and a body that is cut short."""

    def do_GET(self) -> None:
        raw = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
        body = {"/rows.jsonl": raw, "/blob/rows.jsonl": b"<!DOCTYPE html><html>Sign in</html>", "/cut": raw[:20],
                "/export": b"question;answer\nq;a\n"}.get(self.path.partition("?")[0])  # fmt: skip
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(raw) if self.path == "/cut" else len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_files_behind_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        assert said(f"{at}/rows.jsonl?version=2") == ["a0", "a1", "a2"]
        assert said(f"{at}/export") == ["a"]  # told by content: the address has no suffix
        for path, told in {
            "/blob/rows.jsonl": "a web page",
            "/none.csv": "the server answers 404",
            "/cut": "cannot be fetched",
        }.items():
            with pytest.raises(UserError, match=told):
                said(at + path)
        server.shutdown()
    with pytest.raises(UserError, match="cannot be fetched"):
        said(f"{at}/rows.jsonl")
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_files_that_fsspec_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fsspec.open("memory://bucket/rows.jsonl", "wb") as file:
        file.write(b"".join(orjson.dumps(row) + b"\n" for row in ROWS))
    assert said("memory://bucket/rows.jsonl") == ["a0", "a1", "a2"]
    with pytest.raises(UserError, match=r"cannot be fetched \(FileNotFoundError"):
        said("memory://bucket/none.jsonl")
    with pytest.raises(UserError, match="unknownscheme:// is not known: addresses of http, https, hf"):
        said("unknownscheme://bucket/none.jsonl")
    fsspec.filesystem("memory").pipe("/bucket/nothing.jsonl", b"")
    with pytest.raises(UserError, match="an empty file, or a folder: name a file"):
        said("memory://bucket/nothing.jsonl")
    for extra, package in (("s3", "s3fs"), ("gs", "gcsfs")):
        if importlib.util.find_spec(package) is None:
            with pytest.raises(UserError, match=rf"pip install 'dikast\[{extra}\]'"):
                files_of(f"{extra}://bucket/rows.jsonl")


def test_a_file_address_is_the_path_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is copied, paths of pictures in it start where it lies, and the media root holds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "a folder"
    folder.mkdir()
    picture(folder / "a.png")
    rows = [{"id": "a", "instruction": "q", "response": "r", "images": ["a.png"]}]
    path = jsonl(folder / "a.jsonl", rows)
    address = "file://" + str(path).replace(" ", "%20")
    assert files_of(address) == (str(path),)
    (item,) = read_items(address)
    assert load_image(item.images[0]).size
    assert not (tmp_path / "cache").exists()
    for wrong in ("file://elsewhere/a.jsonl", "file://a.jsonl"):
        with pytest.raises(UserError, match="no file of this machine; write file:///PATH"):
            files_of(wrong)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "a.jsonl").symlink_to(path)
    with media_rules(root=linked), pytest.raises(DataError, match="leads outside the media root"):
        list(read_items(f"file://{linked}"))


def test_media_of_a_file_address_are_not_read(tmp_path: Path) -> None:
    rows = [{"id": "a", "instruction": "q", "response": "r", "images": ["file:///etc/passwd"]}]
    (item,) = read_items(str(jsonl(tmp_path / "a.jsonl", rows)))
    with pytest.raises(DataError, match="'file:///etc/passwd' is an address that is not read"):
        load_image(item.images[0])


@pytest.mark.parametrize("scheme", ["s3", "S3", "gs"])
def test_a_picture_of_a_store_whose_package_is_missing_costs_its_item(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, module, None)
    Pillow.new("RGB", (32, 32)).save(tmp_path / "a.png")
    images = ("a.png", f"{scheme}://bucket/a.png", "a.png")
    items = write_jsonl(
        tmp_path / "i.jsonl", [{**row, "image": each} for row, each in zip(rows(3), images, strict=True)]
    )
    done = dikast_here("grade", items, "--judge", "mock:random", "--rubric", "helpfulness", "--out", tmp_path / "run")
    assert done.returncode == 3, done.stderr
    told = {each["question"]["item"]: each for each in lines(tmp_path / "run/verdicts.jsonl")}
    assert [told[f"i{k}"]["status"] for k in range(3)] == ["ok", "bad_item", "ok"]
    reason = told["i1"]["reason"]
    assert f"i.jsonl:2: image {scheme.lower()}://bucket/a.png: " in reason
    assert f"pip install 'dikast[{scheme.lower()}]'" in reason


@pytest.mark.parametrize("source", ["HTTP://h/a.png", "Https://h/a.png", "S3://b/a.png", "DATA:image/png;base64,AAAA"])
def test_schemes_of_media_are_the_same_in_capitals(source: str) -> None:
    scheme, _, rest = source.partition(":")
    plain = f"{scheme.lower()}:{rest}"
    (image,) = content_from([{"type": "image", "image": source}], field="response", root="/here")
    (clip,) = content_from([{"type": "video", "video": source}], field="response", root="/here")
    assert image == Image(plain)
    assert clip == Video(source=plain)
    assert folder_of("S3://Bucket/June/i.jsonl") == "s3://Bucket/June"
