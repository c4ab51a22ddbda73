"""Whether an item is still what its verdicts are about: its texts, and the bytes of its pictures and clips."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from dikast.core.item import Item
from dikast.core.media.media_files import forget
from dikast.core.part import Image, Text, Video
from dikast.core.runs.as_judged import content_hash, is_as_judged

Records = list[dict[str, Any]]


def asked(item: Item) -> Records:
    return [{"question": {"responses": [0]}, "hashes": {"item": content_hash(item, [0], False)[0]}}]


@pytest.fixture(params=["picture", "clip", "frames"])
def shown(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Item, Path]:
    """An item that shows one file, whose bytes alone count here, and that file."""
    path = tmp_path / "shown"
    path.write_bytes(b"red")
    image = Image("shown", str(tmp_path))
    part = {"picture": image, "frames": Video((image,)), "clip": Video(source="shown", root=str(tmp_path))}
    return Item.of([Text("What is it?"), part[request.param]], "It is red.", id="i", reference="Red."), path


def test_media_are_compared_by_their_bytes(shown: tuple[Item, Path]) -> None:
    item, path = shown
    records, when = asked(item), os.stat(path)
    os.utime(path, ns=(1, 1))  # read or copied again, with the same bytes
    assert is_as_judged(item, records)
    path.write_bytes(b"sky")  # of the same size and time of change
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert not is_as_judged(item, records)
    path.write_bytes(b"red")
    assert is_as_judged(item, records)


@pytest.mark.parametrize("lack", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_media_that_cannot_be_read_are_not_compared(shown: tuple[Item, Path], lack: Callable[[Path], None]) -> None:
    item, path = shown
    records = asked(item)
    lack(path)
    forget()
    assert is_as_judged(item, records)


def test_a_run_without_media_is_compared_by_its_texts(shown: tuple[Item, Path]) -> None:
    item, path = shown
    records = asked(item.text_only())
    path.write_bytes(b"sky")
    assert is_as_judged(item, records)
    other = Item.of([Text("What is that?"), *item.instruction[0].content[1:]], "It is red.", id="i")
    assert not is_as_judged(other, records)


def test_media_on_the_web_are_not_fetched() -> None:
    item = Item.of([Text("What is it?"), Image("http://127.0.0.1:9/a.png")], "It is red.", id="i")
    assert is_as_judged(item, [{"question": {"responses": [0]}, "hashes": {"item": "0" * 32}}])


def test_a_response_of_a_picture_alone_is_compared(tmp_path: Path) -> None:
    Pictures.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    item = Item.of("Draw it.", Image("a.png", str(tmp_path)), id="i")
    records = asked(item)
    assert is_as_judged(item, records)
    Pictures.new("RGB", (8, 8), "blue").save(tmp_path / "a.png")
    assert not is_as_judged(item, records)
