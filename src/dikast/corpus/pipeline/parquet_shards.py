"""Parquet shards of a set, named as `datasets` expects them, with images embedded or by path (extra `parquet`)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import require
from dikast.core.item import Item, item_to
from dikast.core.media import image_file
from dikast.core.part import REMOTE, Image
from dikast.core.records import read_items
from dikast.core.records.parquet import WRITING, Columns
from dikast.core.records.writing import rebased
from dikast.core.runs.run_files import written_together

IMAGES = "images"
_CONTENT = ("instruction", "response", "responses", "reference", "context")
_BATCH = 64  # rows whose images are in memory at once


def write_shards(source: Path, folder: Path, name: str, *, rows: int, embed: bool) -> dict[str, int]:
    """Write the items of `source` as `folder/NAME-00000-of-00003.parquet`, `rows` to a shard; returns counts.

    Columns are the fields of items; what Parquet has no type for is stored as JSON text, so that `read_items` gives the
    items back and `train sft` can read them. Images at the head of an instruction go to the column `images` as structs
    of `bytes` and `path`, which `datasets` decodes; with `embed` false as paths only, relative to `folder`. Other
    images stay in place, with `embed` as data URLs; videos stay paths. DataError for an image that cannot be read.
    """
    require("pyarrow", "parquet")
    columns, n, pictured = Columns(), 0, False
    for item in read_items(source):
        row, images = _row(item, folder, embed=False)
        columns.see(row)
        pictured, n = pictured or bool(images), n + 1
    folder.mkdir(exist_ok=True)
    shards = -(-n // rows)
    items = read_items(source)
    for number in range(shards):
        path = folder / f"{name}-{number:05d}-of-{shards:05d}.parquet"
        _write(path, columns, islice(items, rows), pictured=pictured, embed=embed)
    return {"rows": n, "shards": shards}


def _write(path: Path, columns: Columns, items: Iterator[Item], *, pictured: bool, embed: bool) -> None:
    arrow, pq = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    struct = arrow.list_(arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())]))
    schema = columns.schema()
    if pictured:
        features: dict[str, Any] = {field.name: _feature(field, arrow) for field in schema}
        features[IMAGES] = {"_type": "List", "feature": {"_type": "Image"}}
        told = {"huggingface": orjson.dumps({"info": {"features": features}}).decode()}
        schema = schema.append(arrow.field(IMAGES, struct)).with_metadata(told)
    sums = path.parent.parent  # the folder itself holds nothing but Parquet files
    with written_together(path, sums=sums) as (part,), pq.ParquetWriter(part, schema, **WRITING) as writer:
        while batch := [_row(item, path.parent, embed=embed) for item in islice(items, _BATCH)]:
            table = columns.table([row for row, _ in batch])
            if pictured:
                table = table.append_column(schema.field(IMAGES), arrow.array([images for _, images in batch], struct))
            writer.write_table(table.cast(schema))


def _feature(field: Any, arrow: Any) -> dict[str, str]:
    names = {arrow.int64(): "int64", arrow.float64(): "float64", arrow.bool_(): "bool"}
    return {"_type": "Value", "dtype": names.get(field.type, "string")}


def _row(item: Item, folder: Path, *, embed: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The item without the images at the head of its last user turn, and those images as structs."""
    moved = rebased(item, str(folder))
    record, images = item_to(_bare(moved)), _head(moved)
    if not embed:
        return record, [{"bytes": None, "path": image.source} for image in images]
    inside = dict(zip((each.source for each in _bare(moved).images), _bare(item).images, strict=True))
    if inside:
        record = {key: _embedded(value, inside) if key in _CONTENT else value for key, value in record.items()}
    return record, [{"bytes": image_file(image), "path": _name(image)} for image in _head(item)]


def _head(item: Item) -> list[Image]:
    """The images at the head of the last user turn, where the reader puts a column of images."""
    content = next((turn.content for turn in reversed(item.instruction) if turn.role == "user"), ())
    return list(takewhile(lambda part: isinstance(part, Image) and part.frame is None, content))  # type: ignore[arg-type]


def _bare(item: Item) -> Item:
    """The item without the images at its head."""
    turns = list(item.instruction)
    for i in reversed(range(len(turns))):
        if turns[i].role == "user":
            turns[i] = replace(turns[i], content=turns[i].content[len(_head(item)) :])
            break
    return replace(item, instruction=tuple(turns))


def _embedded(value: Any, images: dict[str, Image]) -> Any:
    if isinstance(value, list):
        return [_embedded(each, images) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: Image.of(image_file(images[each])).source if key == "image" else _embedded(each, images)
        for key, each in value.items()
    }


def _name(image: Image) -> str | None:
    return None if image.source.startswith(("data:", *REMOTE)) else Path(image.source).name
