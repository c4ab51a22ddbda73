"""What the columns of a bench's row say: the fields of an item, its gold, its raters, its groups."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dikast.audit.tables.scored import consensus
from dikast.benches.definition import Bench, GoldMap
from dikast.core.errors import DataError
from dikast.core.gold import is_preference
from dikast.core.text import counted
from dikast.corpus.schemas import sections

_COLUMN = re.compile(r"\{([^{}]+)\}")
_COLUMNS = 12  # of a row that are named in a message
_ABSENT = object()
_FRAMES = 32  # of a folder of frames


def fields_of_row(bench: Bench, row: Mapping[str, Any], only: Sequence[str] = (), variant: str = "") -> dict[str, Any]:
    """The mapped fields of a row. DataError for a column that the row lacks or that is null, since the judge would then
    be asked about something else than the authors' judges; a field that the bench lists as optional is left out.
    """
    found: dict[str, Any] = {}
    parts: list[Any] = []
    for name, paths in {**bench.fields, **bench.variants.get(variant, {})}.items():
        if only and name not in only:
            continue
        listed = paths if isinstance(paths, list) else [paths]
        values = [_value(row, path, optional=name in bench.optional) for path in listed]
        if name == "responses":
            found[name] = [each for value in values for each in (value if isinstance(value, list) else [value])]
            continue
        value = values[0] if len(values) == 1 else "\n\n".join(str(each) for each in values if each)
        if name in ("response_0", "response_1"):
            parts.append(value)
        elif value not in (None, ""):
            found[name] = str(value) if name == "id" else value
    return {**found, "responses": parts} if parts else found


def _value(row: Mapping[str, Any], path: str, *, optional: bool) -> Any:
    """The value of a field's path: a column, `image:COLUMN` as an image, or text with `{COLUMN}` in it."""
    take = value_at if optional else due_at
    if path.startswith("image:"):
        source = take(row, path.removeprefix("image:"))
        return None if source is None else [{"type": "image", "image": source}]
    if "{" in path:
        return _COLUMN.sub(lambda found: str(due_at(row, found[1])), path)
    return content(take(row, path))


def clip_part(clip: Any, root: str) -> dict[str, Any]:
    """The part of a clip: a video file, or a folder of its frames, of which at most 32 are shown, evenly spaced."""
    folder = Path(root, clip) if isinstance(clip, str) and "://" not in clip and not clip.startswith("data:") else None
    frames = sorted(each.name for each in folder.iterdir() if each.is_file()) if folder and folder.is_dir() else []
    if not frames:
        return {"type": "video", "video": clip}
    shown = range(len(frames)) if len(frames) <= _FRAMES else np.linspace(0, len(frames) - 1, _FRAMES, dtype=int)
    return {"type": "video", "frames": [str(Path(clip, frames[place])) for place in shown]}


def due_at(row: Any, path: str, *, nullable: bool = False) -> Any:
    """The value at a dotted path; DataError where the row has no such column, or null there (unless `nullable`)."""
    value = value_at(row, path, _ABSENT)
    if value is _ABSENT:
        there = ", ".join(list(row)[:_COLUMNS]) if isinstance(row, Mapping) else "no columns"
        raise DataError(f"the row has no such column, which the bench maps (it has {there})", field=path)
    if value is None and not nullable:
        raise DataError("is null; where rows may lack it, the bench lists its field under 'optional'", field=path)
    return value


def content(value: Any) -> Any:
    """Lists of pairs `["text", ...]`, `["image", PATH]` as parts; true, false and numbers as text; others unchanged."""
    if isinstance(value, bool | int | float):
        return str(value)
    if not (isinstance(value, list) and value and all(isinstance(each, list) and len(each) == 2 for each in value)):
        return value
    if not all(each[0] in ("text", "image") for each in value):
        return value
    return [{"type": kind, kind: each} for kind, each in value if each]


def value_at(row: Any, path: str, absent: Any = None) -> Any:
    """The value at a dotted path, whose numbers index lists; `absent` if there is none."""
    if isinstance(row, Mapping) and path in row:
        return row[path]
    for key in path.split("."):
        if isinstance(row, Mapping) and key in row:
            row = row[key]
        elif isinstance(row, list) and key.isdigit() and int(key) < len(row):
            row = row[int(key)]
        else:
            return absent
    return row


def gold_of_row(bench: Bench, row: Mapping[str, Any]) -> Any:
    """The gold of a row; None if it has none. DataError for a value that the bench does not define."""
    gold = bench.gold
    if gold is None:
        return None
    if gold.default:
        return gold.default
    if gold.count:
        number = _number(due_at(row, gold.column[0]), gold.column[0])
        if not number.is_integer():
            raise DataError(f"{number:g} is no count of responses", field=gold.column[0])
        return {"right": int(number)}
    if gold.order:
        return {"order": str(due_at(row, gold.column[0])).strip()}
    said = list(_said(gold, row).values())
    if not said:
        return None
    chosen = said if bench.pairs and gold.rule != "mean" else []
    indices = [int(each) if isinstance(each, str) and each.strip() in ("0", "1") else each for each in chosen]
    if unknown := [each for each in indices if not is_preference(each, 2)]:
        shown = unknown[0] if isinstance(unknown[0], str | int) else "WORD"
        cure = f"say under 'values' of 'gold' what its values mean, such as {{{shown}: a}} (a, b or tie)"
        raise DataError(f"{unknown[0]!r:.60} is no choice between two responses: {cure}", field=gold.column[0])
    if gold.rule == "first":
        return said[0]
    if gold.rule == "majority":
        return _majority(said)
    numbers = [_number(each, gold.column[0]) for each in said]
    return float(consensus(np.array(numbers)[:, None], "mean")[0])


def _majority(said: Sequence[Any]) -> Any:
    """What more than half of the raters who spoke said, by the audit's rule; None without such a majority."""
    labels = {str(each): place for place, each in enumerate(said)}
    found = consensus(np.array([[labels[str(each)]] for each in said], np.float64), "majority")[0]
    return None if np.isnan(found) else said[int(found)]


def raters_of_row(bench: Bench, row: Mapping[str, Any]) -> dict[str, Any]:
    """What each rater of a row said, by the rater's column; empty where gold is no rater's."""
    gold = bench.gold
    return {} if gold is None or gold.default or gold.count or gold.order else _said(gold, row)


def _said(gold: GoldMap, row: Mapping[str, Any]) -> dict[str, Any]:
    """The gold of each rater that said something: a column each, or the entries of a list in one."""
    found: dict[str, Any] = {}
    for column in gold.column:
        value = due_at(row, column, nullable=True)  # null: this rater said nothing
        several = isinstance(value, list) and not gold.values
        for place, each in enumerate(value if several else [value]):
            if each is not None and each != "":
                found[f"{column} {place}" if several else column] = _meant(gold.values, each, column)
    return found


def gold_by_response(bench: Bench, gold: Any, found: Mapping[str, Any]) -> Any:
    """Gold of each response: `{"right": [1, 0, 0, 0]}` of a count of right ones, which come first; `{"places": [...]}`,
    from 1, of letters from best to worst. DataError for letters that are no order of the responses.
    """
    told = bench.gold
    if told is None or not (told.count or told.order):
        return gold
    n = len(found.get("responses", ()))
    if told.count:
        if not 1 <= gold["right"] <= n:
            said = f"says that {gold['right']} of {counted(n, 'response')} are right: at least 1, and no more"
            raise DataError(said, field=told.column[0])
        return {"right": [int(place < gold["right"]) for place in range(n)]}
    letters = [chr(ord("A") + place) for place in range(n)]
    if sorted(gold["order"]) != letters:
        said = f"{gold['order']!r:.60} is no order of {n} responses, such as {''.join(letters)!r}"
        raise DataError(said, field=told.column[0])
    return {"places": [gold["order"].index(letter) + 1 for letter in letters]}


def check_count(bench: Bench, n: int) -> None:
    """DataError where a row has fewer or more responses than its kind of bench asks about; brought ones come later."""
    if bench.responses == "to be brought":
        return
    if bench.pairs and n != 2:
        raise DataError(f"{counted(n, 'response')} where two are compared", field="responses")
    if not n:
        raise DataError("no response, where each is graded", field="responses")


def _meant(values: Mapping[str, Any], value: Any, column: str) -> Any:
    if not values:
        return value
    word = value if isinstance(value, str) else orjson.dumps(value).decode()
    if word not in values:
        raise DataError(f"{word!r:.60} is not a gold value of this bench: {', '.join(values)}", field=column)
    return values[word]


def _number(value: Any, column: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r:.40} is not a number", field=column) from None


def group_of_row(row: Mapping[str, Any], column: str, path: str) -> str:
    """The group of a row of the file at `path`: its column, text with `{COLUMN}` in it, the file's or folder's name;
    with `~one,two` the first of these words that it holds, "none" without one, where `{COLUMN}` may be absent.
    """
    column, among, words = column.partition("~")
    if among:
        several = "{" in column
        held = _COLUMN.sub(lambda found: str(row.get(found[1]) or ""), column) if several else str(row.get(column))
        return next((word for word in words.split(",") if word in held), "none")
    if column == "@folder":
        return folder_of(path)
    if column == "@file":
        return Path(path).name.partition(".")[0]
    if "{" in column:
        return _COLUMN.sub(lambda found: group_of_row(row, found[1], path), column)
    column, ends, cut = column.partition("/")
    value = due_at(row, column, nullable=True)
    word = "none" if value is None else str(value)
    return re.split(f"[{re.escape(cut)}]", word, maxsplit=1)[0] if ends else word


def folder_of(path: str) -> str:
    """The folder of a published path, or its name if it has no folder."""
    parts = Path(path).parts
    return parts[-2] if len(parts) > 1 else Path(path).name.partition(".")[0]


def rendered_pair(row: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Two rendered prompts, of the better response and of the worse, as one item with two responses."""
    better, worse = (sections.fields_of(str(due_at(row, str(name)))) for name in _pair_columns(bench))
    responses = [better.pop("response"), worse.pop("response")]
    return {**better, "responses": responses}


def _pair_columns(bench: Bench) -> tuple[str, str]:
    return str(bench.fields["response_0"]), str(bench.fields["response_1"])
