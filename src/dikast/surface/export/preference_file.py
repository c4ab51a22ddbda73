"""`dikast prefs`: the pairs of a run as the file that a trainer of preferences reads."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, UserError, require
from dikast.core.item import Item
from dikast.core.media import image_file, resolved
from dikast.core.output_folder import refuse_address, replacing
from dikast.core.part import STORES, Content, Image, Text, Turn
from dikast.core.records import write_file, write_records
from dikast.core.records.files import kind_of
from dikast.core.text import near_miss
from dikast.corpus.schemas import get_schema
from dikast.rewards.pairs import Pair

SCHEMA_OF = {
    "trl": "trl-preference", "kto": "trl-kto", "llava": "llava-preference", "llamafactory": "llamafactory",
    "llamafactory-kto": "llamafactory-kto", "swift": "swift", "verl": "verl", "openrlhf": "openrlhf",
}  # fmt: skip
_OF_PARTS = ("trl", "kto", "openrlhf")  # a picture is a part of a message, or there is none
_OTHERWISE = ("llava", "openrlhf")  # one `image` or none
_MARK = "<image>"
_MARKED = ("kto", "llamafactory-kto")
_KINDS = {"verl": "parquet", "llava": "json", "llamafactory": "json", "llamafactory-kto": "json"}


def write_preferences(pairs: Sequence[Pair], out: str | Path, form: str) -> int:
    """Write pairs in a trainer's form; returns the number of rows.

    Paths of pictures are absolute; pictures inside items are written as files beside `out`, in `NAME-images`. verl's
    file is Parquet, LLaMA-Factory's JSON, which is also entered in `dataset_info.json` beside it. Where some rows show
    pictures, all have `images`, if empty ones, as collators and tables need. A context stands before the question, in
    its turn. UserError for a form or a suffix that do not fit, DataError for a text that holds `<image>` where a form
    has that for a picture.
    """
    refuse_address(out)
    if form not in SCHEMA_OF:
        near = near_miss(form, SCHEMA_OF)
        told = f"--format {form!r}: use {', '.join(SCHEMA_OF)}"
        raise UserError(told + (f"; did you mean {near!r}?" if near else ""))
    path, kind = Path(out), kind_of(str(out))
    wanted = _KINDS.get(form)
    if str(out) == "-" or (wanted and kind != wanted) or (not wanted and kind not in ("jsonl", "json")):
        raise UserError(f"--out {out}: --format {form} is a file called NAME.{wanted or 'jsonl'}")
    schema = get_schema(SCHEMA_OF[form])
    images = path.parent / f"{path.name.split('.')[0]}-images"

    some_show = form not in _OTHERWISE and any(pair.item.images for pair in pairs)

    def rows() -> Iterator[dict[str, Any]]:
        for pair in pairs:
            for item in _marked(pair.item) if form in _MARKED else [pair.item]:
                if form not in _OF_PARTS:
                    _check_marks(item)
                row = schema.writes(_placed(item, images)) | ({"margin": pair.margin} if form == "openrlhf" else {})
                yield {**row, "images": row.get("images", [])} if some_show else row

    if kind == "parquet":
        return _write_nested(path, list(rows()))
    n = write_records(path, rows())
    if form.startswith("llamafactory"):
        _enter(path, form, images=some_show)
    return n


def _marked(item: Item) -> Iterator[Item]:
    """Each response by itself, the first wanted, the second not."""
    for place, response in enumerate(item.responses):
        yield replace(item, id=f"{item.id}#{place}", responses=(response,), gold=1 - place)


def _placed(item: Item, folder: Path) -> Item:
    """The item with its pictures at absolute paths; those inside it as files in `folder`."""

    def moved(content: Content) -> Content:
        return tuple(_image(part, folder) if isinstance(part, Image) else part for part in content)

    if item.videos:
        raise DataError(f"item {item.id!r} shows a video, and these forms hold pictures", field="instruction")
    turns = list(item.instruction)
    if item.context:
        last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=len(turns))
        asked = (Text("\n\n"), *turns[last].content) if last < len(turns) else ()
        turns[last : last + 1] = [Turn("user", (*item.context, *asked))]
    placed = tuple(Turn(turn.role, moved(turn.content)) for turn in turns)
    return replace(item, instruction=placed, context=None)


def _check_marks(item: Item) -> None:
    """DataError for an item whose texts hold what stands for a picture: it would move a picture there, or lack one."""
    contents = [*(turn.content for turn in item.instruction), *item.responses, item.context or ()]
    if any(isinstance(part, Text) and _MARK in part.text for content in contents for part in content):
        told = f"item {item.id!r}: a text holds {_MARK!r}, which this form has for a picture: use --format trl, or"
        raise DataError(f"{told} change the text and judge it again")


def _image(image: Image, folder: Path) -> Image:
    if image.source.startswith(("http://", "https://")):
        return image
    if not image.source.startswith(("data:", *STORES)):  # a trainer has no login of a store
        return Image(str(Path(resolved(image)).absolute()))
    raw = image_file(image)
    ending = "jpg" if raw[:3] == b"\xff\xd8\xff" else "webp" if raw[8:12] == b"WEBP" else "png"
    place = folder / f"{hashlib.sha256(raw).hexdigest()[:16]}.{ending}"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_file(place, raw)
    return Image(str(place.absolute()))


def _write_nested(path: Path, rows: list[dict[str, Any]]) -> int:
    """Parquet with lists and structs as they are, which is what verl reads."""
    pq, pa = require("pyarrow.parquet", "parquet"), require("pyarrow", "parquet")
    with replacing(str(path)) as temporary:
        pq.write_table(pa.Table.from_pylist(rows), temporary)
    return len(rows)


def _enter(path: Path, form: str, *, images: bool) -> None:
    """Enter the file in `dataset_info.json` beside it, other entries left as they are."""
    info = path.parent / "dataset_info.json"
    try:
        known = orjson.loads(info.read_bytes()) if info.exists() else {}
    except ValueError as error:
        raise DataError(f"cannot be read as JSON ({error}): repair it or remove it", path=str(info)) from None
    if not isinstance(known, dict):
        raise DataError("is not a JSON object of data sets: repair it or remove it", path=str(info))
    columns = {"messages": "conversations", **({"images": "images"} if images else {})}
    columns |= {"kto_tag": "kto_tag"} if form.endswith("kto") else {"chosen": "chosen", "rejected": "rejected"}
    entry: dict[str, Any] = {"file_name": path.name, "formatting": "sharegpt", "columns": columns}
    if not form.endswith("kto"):
        entry["ranking"] = True
    known[path.name.split(".")[0]] = entry
    write_file(info, orjson.dumps(known, option=orjson.OPT_INDENT_2) + b"\n")
