"""`dikast prefs`: the pairs of a run as the file that a trainer of preferences reads."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError, require
from dikast.core.item import Item, item_to
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


class PreferenceFile(NamedTuple):
    """Rows of a file, and how many responses it lacks since they were preferred in one pair and not in another."""

    rows: int
    both_ways: int = 0


def write_preferences(pairs: Sequence[Pair], out: str | Path, form: str) -> PreferenceFile:
    """Write pairs in a trainer's form.

    Paths of pictures are absolute; pictures inside items are written as files beside `out`, in `NAME-images`. verl's
    file is Parquet, LLaMA-Factory's JSON, which is also entered in `dataset_info.json` beside it. Where some rows show
    pictures, all have `images`, if empty ones, as collators and tables need. A context stands before the question, in
    its turn. Forms of single responses (`kto`) have each once; those that are preferred in one pair and not in another
    are left out. UserError for a form or a suffix that do not fit, DataError for a text that holds `<image>` where a
    form has that for a picture; then nothing is written.
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
    known = _entries(path) if form.startswith("llamafactory") else {}
    pictures = _Pictures(path.parent / f"{path.name.split('.')[0]}-images")
    some_show = form not in _OTHERWISE and any(pair.item.images for pair in pairs)
    single, both_ways = _marked(pairs) if form in _MARKED else ([], 0)

    def rows() -> Iterator[dict[str, Any]]:
        shown = [(item, 0.0) for item in single] if form in _MARKED else [(pair.item, pair.margin) for pair in pairs]
        for item, margin in shown:
            if form not in _OF_PARTS:
                _check_marks(item)
            row = schema.writes(_placed(item, pictures)) | ({"margin": margin} if form == "openrlhf" else {})
            yield {**row, "images": row.get("images", [])} if some_show else row

    try:
        n = _write_nested(path, list(rows())) if kind == "parquet" else write_records(path, rows())
    except BaseException:
        pictures.undo()
        raise
    if form.startswith("llamafactory"):
        _enter(path, form, known, images=some_show)
    return PreferenceFile(n, both_ways)


def _marked(pairs: Sequence[Pair]) -> tuple[list[Item], int]:
    """Each response by itself, gold 1 where it is preferred and 0 where not; how many are both, which are left out."""
    found: dict[str, Item] = {}
    both = set[str]()
    for pair in pairs:
        for place, response in enumerate(pair.item.responses):
            one = replace(pair.item, id=f"{pair.item.id}#{place}", responses=(response,), gold=1 - place)
            shown = fingerprint(item_to(replace(one, id="x", gold=None)))
            if found.setdefault(shown, one).gold != one.gold:
                both.add(shown)
    return [one for shown, one in found.items() if shown not in both], len(both)


class _Pictures:
    """Pictures at absolute paths; those inside items as files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._made = folder, list[Path]()  # files, and the folder if it was not there

    def of(self, image: Image) -> Image:
        """The picture at its place."""
        if image.source.startswith(("http://", "https://")):
            return image
        if not image.source.startswith(("data:", *STORES)):  # a trainer has no login of a store
            return Image(str(Path(resolved(image)).absolute()))
        raw = image_file(image)
        ending = "jpg" if raw[:3] == b"\xff\xd8\xff" else "webp" if raw[8:12] == b"WEBP" else "png"
        place = self.folder / f"{hashlib.sha256(raw).hexdigest()[:16]}.{ending}"
        if not place.exists():
            if not self.folder.exists():
                self.folder.mkdir(parents=True)
                self._made.append(self.folder)
            self._made.append(place)
            write_file(place, raw)
        return Image(str(place.absolute()))

    def undo(self) -> None:
        """Remove what was written."""
        for each in reversed(self._made):
            if each.is_dir():
                each.rmdir()
            else:
                each.unlink(missing_ok=True)


def _placed(item: Item, pictures: _Pictures) -> Item:
    """The item with its pictures at their places, and its context in the prompt."""

    def moved(content: Content) -> Content:
        return tuple(pictures.of(part) if isinstance(part, Image) else part for part in content)

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


def _write_nested(path: Path, rows: list[dict[str, Any]]) -> int:
    """Parquet with lists and structs as they are, which is what verl reads."""
    pq, pa = require("pyarrow.parquet", "parquet"), require("pyarrow", "parquet")
    with replacing(str(path)) as temporary:
        pq.write_table(pa.Table.from_pylist(rows), temporary)
    return len(rows)


def _entries(path: Path) -> dict[str, Any]:
    """The entries of `dataset_info.json` beside the file."""
    info = path.parent / "dataset_info.json"
    try:
        known = orjson.loads(info.read_bytes()) if info.exists() else {}
    except ValueError as error:
        raise DataError(f"cannot be read as JSON ({error}): repair it or remove it", path=str(info)) from None
    if not isinstance(known, dict):
        raise DataError("is not a JSON object of data sets: repair it or remove it", path=str(info))
    return known


def _enter(path: Path, form: str, known: dict[str, Any], *, images: bool) -> None:
    """Enter the file in `dataset_info.json` beside it, other entries left as they are."""
    columns = {"messages": "conversations", **({"images": "images"} if images else {})}
    columns |= {"kto_tag": "kto_tag"} if form.endswith("kto") else {"chosen": "chosen", "rejected": "rejected"}
    entry: dict[str, Any] = {"file_name": path.name, "formatting": "sharegpt", "columns": columns}
    if not form.endswith("kto"):
        entry["ranking"] = True
    known[path.name.split(".")[0]] = entry
    write_file(path.parent / "dataset_info.json", orjson.dumps(known, option=orjson.OPT_INDENT_2) + b"\n")
