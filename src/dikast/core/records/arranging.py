"""Bringing a file's own columns into the fields of an item."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.item import FILES, ITEM_KEYS, NAMES, SPOKEN, Item, is_of_texts, item_from, plain_name
from dikast.core.part import number_as_text, text_of
from dikast.core.records import column_cures as cures
from dikast.core.records.column_names import (
    SYSTEMS,
    Recognised,
    check_order,
    is_model,
    recognise,
    since,
    system_columns,
    two_groups,
    with_models,
)
from dikast.core.records.conversations import asked_in_context, turns_in, with_conversations, with_system_turn
from dikast.core.records.reading import NUMBERED, Record, cell_value, jq_to_records
from dikast.core.records.shapes.arrangement import Arrangement
from dikast.core.records.shapes.dialogue_text import with_dialogues
from dikast.core.records.shapes.foreign_records import foreign_record
from dikast.core.records.shapes.pair_winners import one_hot_winner, winner
from dikast.core.records.sniffing import form_of
from dikast.core.runs.table_columns import told_by_a_judge
from dikast.core.text import near_miss, number_in, one_line

_MEASURED = 20  # records whose texts are measured
_CONTENT = (*SPOKEN, "responses")
_TOLD = tuple(name for name in ITEM_KEYS if name not in ("id", "meta", "gold_from"))
_SHAPES = 1000  # sets of keys whose arrangement is remembered


class Arranger:
    """Arranges records by the columns that were named and those that are recognised."""

    def __init__(self, columns: Mapping[str, str], reading: Arrangement, *, cells: bool = False) -> None:
        for name in columns:
            if name not in ITEM_KEYS and not NUMBERED.fullmatch(name):
                near = near_miss(name, ITEM_KEYS)
                hint = f"did you mean {near!r}?" if near else f"the fields are {', '.join(ITEM_KEYS)}"
                if columns[name] in ITEM_KEYS:
                    hint = f"the field comes first: {columns[name]}={name}"
                raise UserError(f"columns: {name!r} is not a field of an item: {hint}")
        self._columns, self._cells, self.reading = columns, cells, reading
        reading.named = {column: name for name, column in columns.items() if column}
        self._left_out = [name for name, column in columns.items() if not column]
        if any(map(NUMBERED.fullmatch, columns)):
            self._left_out += [name for name in ("response", "responses") if name not in columns]
        self._path = ""  # of the current record
        self._shapes: dict[tuple[str, ...], tuple[Recognised, tuple[str, ...], dict[str, str]]] = {}
        self._first: tuple[tuple[str, ...], set[str]] | None = None  # the keys of the first record, and those used
        self._measured = 0

    @property
    def fields(self) -> dict[str, str]:
        """What each column is that was recognised or named."""
        return {**self.reading.mapped, **self.reading.named}

    def item(self, record: Record, *, path: str = "", root: str = "") -> Item:
        """The item of a record, without a name ("") if the record has no id and gets one from its content."""
        self._path = path
        arranged = self(record)
        named = not self.reading.names or arranged.get("id") is not None
        try:
            found = item_from(arranged if named else {**arranged, "id": "?"}, path=path, line=record.line, root=root)
        except DataError as error:
            raise self._with_column(error, record) from None
        if self._measured == 1:
            asked = any(text_of(turn.content).strip() for turn in found.instruction)
            alone = not asked and bool(found.responses and self.reading.names)
            self.reading.bare, self.reading.pictured = alone and not found.images, alone and bool(found.images)
            if alone and self.reading.names > 6:
                inside = (cures.asked_inside(*each) for each in record.value.items())
                self.reading.asked_inside = self._to_run(next(filter(None, inside), ""))
            self.reading.systems = system_columns(found) if self.reading.names else ()
            if self.reading.names > 6 and not found.images:
                names = (each for each, cell in record.value.items() if cures.is_picture(cell))
                self.reading.pictures = next((each for each in names if each not in self.fields), "")
        return found if named else replace(found, id="")

    def _with_column(self, error: DataError, record: Record) -> DataError:
        """The error with the file's own name for the field that is wrong."""
        at = (error.field or "").partition("[")[0].partition(".")[0]
        moves = dict(self._shapes[tuple(record.value)][0].moves) if tuple(record.value) in self._shapes else {}
        if at not in moves or moves[at] == at:
            return error
        start = f"{error.path}:{error.line}: field {error.field!r}: "
        told = str(error).removeprefix(start)
        if isinstance(cell := record.value.get(moves[at]), Mapping) and (cure := cures.member_cure(moves[at], cell)):
            told = self._to_run(cure)
        return DataError(f"column {moves[at]!r}: {told}", path=error.path, line=error.line, field=error.field)

    def __call__(self, record: Record) -> dict[str, Any]:
        """The record with the names of an item's fields."""
        value, keys = record.value, tuple(record.value)
        mapped = any(name.startswith("response") for name in self._columns)
        if not mapped and (told := foreign_record(value, self.reading.names)):
            raise ShapeError(self._to_run(told), path=self._path, line=record.line)
        if keys not in self._shapes:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            found, numbered = self._shape(keys, record)
            self._shapes[keys] = found, numbered, dict(found.moves)
        shape, numbered, columns = self._shapes[keys]
        if self._measured < _MEASURED:
            self._measure(value)
        guessed = self._guessed(shape, record)
        displaced: dict[str, Any] = {}
        if shape.moves or self._left_out:
            value, displaced = _moved(value, shape.moves, self._left_out)
        if self._cells:
            value = {key: cell_value(key, cell, path=self._path, line=record.line) for key, cell in value.items()}
            if "responses" in value and value.get("response") == "":
                del value["response"]  # a table with both columns fills one of them
        if displaced and isinstance(meta := value.get("meta") or {}, dict):
            value["meta"] = {**displaced, **meta}
        responses = shape.responses or numbered
        if responses:
            if value.get("responses") is not None or value.get("response") is not None:
                message = f"{responses[0]!r} is given together with 'response' or 'responses': keep one of them"
                raise DataError(message, path=self._path, line=record.line, field=responses[0])
            said = [value[key] for key in responses]
            value = {key: each for key, each in value.items() if key not in responses}
            value = with_models({**value, "responses": said}, shape.models)
        if shape.gold and guessed not in (None, "") and guessed == guessed:  # NaN, as in data frames, is no value
            columns_of = [self._columns.get(name) or name for name in responses]
            value = value | self._guess(guessed, shape, record, columns_of)
        if self.reading.names:
            value = self._with_turns(value, shape, record)
        self._check_lists(value, record, responses or (columns.get("response", "response"),))
        return value if self._cells else self._in_text(value, record, columns)

    def _with_turns(self, value: dict[str, Any], shape: Recognised, record: Record) -> dict[str, Any]:
        """The record with its conversations, and the dialogues that are written out as text, as turns."""
        if self.reading.dialogues is not False and self.reading.names > 6:
            split = with_dialogues(value)
            if self.reading.dialogues is None:
                self.reading.dialogues = split is not None
            value = split or value
        try:
            value = with_conversations(value, shape.messages, names=self.reading.names)
            value = with_system_turn(value, shape.system, names=self.reading.names)
        except DataError as error:
            told = str(error).removeprefix(f"field {error.field!r}: ")
            raise DataError(told, path=self._path, line=record.line, field=error.field) from None
        if shape.system and shape.system not in value:
            self.reading.mapped.setdefault(shape.system, "system turn")
        return value

    def _check_lists(self, value: Mapping[str, Any], record: Record, columns: Sequence[str]) -> None:
        """DataError for a response that is a list of texts, which may be several responses or the parts of one."""
        said = value.get("responses") if value.get("response") is None else [value["response"]]
        said = said if isinstance(said, list | tuple) else ()
        lists = [i for i, each in enumerate(said) if is_of_texts(each)]
        if lists and self.reading.names > 5:
            if "responses" not in value or len(columns) == len(said):
                at, names = columns[lists[0]], [self._columns.get(each) or each for each in columns]
                told = cures.several_texts(names, names[lists[0]], record.value)
            else:
                at = self._columns.get("responses") or "responses"
                told = f"response {lists[0]} of {at!r} is itself a list of texts: write each response as one text"
            error = DataError(self._to_run(told), path=self._path, line=record.line, field=at)
            raise _of_all(error, self._measured == 1)

    def _in_text(self, value: dict[str, Any], record: Record, columns: Mapping[str, str]) -> dict[str, Any]:
        """The record with numbers as text where content is expected, as a CSV holds it; DataError where a column has
        numbers and text.
        """
        found: dict[str, Any] = {}
        numbers = self.reading.numbers
        for name in _CONTENT:
            said = value.get(name)
            if said is None:
                continue
            column = columns.get(name, name)
            if name == "responses" and isinstance(said, list | tuple):
                found[name] = [self._one_kind(name, column, each, record) for each in said]
            elif not isinstance(said, str) or numbers.get(column) is not False:  # text in a column of text is common
                found[name] = self._one_kind(name, column, said, record)
        return {**value, **found} if found else value

    def _one_kind(self, name: str, column: str, said: Any, record: Record) -> Any:
        number = isinstance(said, int | float)
        if said == "" or not (number or isinstance(said, str)):
            return said
        if self.reading.numbers.setdefault(column, number) != number:
            kind, other, what = ("a number", "text", "it") if number else ("text", "numbers", "all of them")
            shown = one_line(repr(said), 40)
            told = f"column {column!r}: got {kind} ({shown}) where earlier records hold {other}: write {what} as text"
            raise DataError(told, path=self._path, line=record.line, field=name)
        return number_as_text(said)

    def _measure(self, value: Mapping[str, Any]) -> None:
        self._measured += 1
        for key, each in value.items():
            if isinstance(each, str) and isinstance(number_in(each.strip()), str) and not cures.is_picture(each):
                length = len(each)
            else:
                length = sum(len(str(turn["content"])) for turn in turns_in(each) or [])
            if length:
                self.reading.lengths[key] = self.reading.lengths.get(key, 0) + length
            elif cure := cures.nested_cure(key, each):
                self.reading.nested[key] = self._to_run(cure)

    def _to_run(self, cure: str) -> str:
        """The cure with commands that read the current file."""
        kind = form_of(self._path).kind if os.path.isfile(self._path) else ""
        if kind == "json" and "(jq " in cure:
            return cures.seeing_records(cure, jq_to_records(self._path))
        return cures.with_table_written(cure, kind) if kind in ("parquet", "csv", "tsv") else cure

    def _guessed(self, shape: Recognised, record: Record) -> Any:
        """What the column says that gold is guessed from, or the columns of outcomes; None without any."""
        if not shape.one_hot:
            return record.value.get(shape.gold) if shape.gold else None
        try:
            return one_hot_winner(record.value, shape.one_hot)
        except DataError as error:
            told = str(error).removeprefix(f"field {error.field!r}: ")
            raise DataError(told, path=self._path, line=record.line, field=error.field) from None

    def _guess(self, said: Any, shape: Recognised, record: Record, responses: Sequence[str]) -> dict[str, Any]:
        """Gold that nobody named, of a pair as "a", "b" or "tie"; `responses` are the columns of the responses."""
        value = record.value
        if shape.preferred:
            texts, better = [value[each] for each in responses], [value[each] for each in shape.preferred]
            if better not in (texts, texts[::-1]):
                told = two_groups([shape.preferred, responses], list(value))
                error = DataError(told, path=self._path, line=record.line, field="responses")
                raise _of_all(error, self._measured == 1)
            return {"gold": "ab"[better != texts], "gold_from": shape.gold}
        if shape.gold in responses:
            return {"gold": "ab"[list(responses).index(shape.gold)], "gold_from": shape.gold}
        if isinstance(said, str) and self._cells:
            said = number_in(said.strip())
        if plain_name(shape.gold) in NAMES["gold of a pair"]:
            names = {plain_name(key): key for key in value}
            both = next(([value[names[a]], value[names[b]]] for a, b in SYSTEMS if {a, b} <= set(names)), None)
            said = winner(said, both or shape.models, responses)
        return {"gold": said, "gold_from": shape.gold}

    def _shape(self, keys: tuple[str, ...], record: Record) -> tuple[Recognised, tuple[str, ...]]:
        path, first = self._path, not self._shapes
        if first and not self.reading.own:
            self.reading.columns = self.reading.columns or keys
        for name, column in self._columns.items():
            if column and column not in keys:
                near = near_miss(column, keys)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(keys)}"
                message = f"there is no column {column!r} to read {name!r} from: {hint}"
                raise _of_all(DataError(message, path=path, line=record.line, field=name), first)
        moved = set(self._columns.values())
        named = [name for name, column in self._columns.items() if column]
        free = [key for key in keys if key not in moved]
        others = {"response", "responses"} & {*named} or any(
            NUMBERED.fullmatch(each) and each in free for each in named
        )
        if others and self.reading.names:
            free = []  # other responses than the file's own are named
        numbered = {int(match[1]): key for key in (*free, *named) if (match := NUMBERED.fullmatch(key))}
        if first and not self.reading.own:
            own = [key for key in keys if key in numbered.values() or key in _TOLD]
            self.reading.own = tuple(key for key in own if key not in moved and key not in self._columns)
        low = min(numbered, default=0)
        if low > 1 or sorted(numbered) != list(range(low, low + len(numbered))):
            message = f"responses are numbered from 0 without a gap, this has {', '.join(sorted(numbered.values()))}"
            raise _of_all(DataError(message, path=path, line=record.line, field="responses"), first)
        chosen = tuple((name, column) for name, column in self._columns.items() if column)
        own_names = tuple(numbered[i] for i in sorted(numbered))
        if not self.reading.names:
            return Recognised(chosen), own_names
        mapped = any(name in self._columns for name in own_names)
        settled = {**self._columns, **({"responses": "", "response": ""} if mapped else {})}
        if len(own_names) == 1:
            settled["response"] = ""
        try:
            found = recognise(self._known(keys, record.value), settled, () if mapped else own_names)
            if self.reading.names > 6:
                found = asked_in_context(found, keys, record.value)
            if self.reading.names == 1 and (own_names or found.responses):  # `answer` was metadata beside pairs
                moves = [each for each in found.moves if each[0] != "reference" or plain_name(each[1]) != "answer"]
                found = found._replace(moves=tuple(moves))
            if first and self.reading.names > 3 and (told := cures.unsure_answer(found, keys, record.value, moved)):
                raise DataError(told, field="response")
            check_order([self._columns.get(name) or name for name in own_names], keys)
            self._note(found)
            self._check_slips(keys, {*found.guessed(), *numbered.values(), *self._columns.values()})
        except DataError as error:
            told = str(error).removeprefix(f"field {error.field!r}: ")
            raise _of_all(DataError(told, path=path, line=record.line, field=error.field), first) from None
        return found._replace(moves=(*chosen, *found.moves)), own_names

    def _known(self, keys: Sequence[str], value: Mapping[str, Any]) -> Sequence[str]:
        """The columns whose names had a meaning when the folder was begun. Those called like models are left out where
        one holds a number, such as a score, and those called like files that hold no picture.
        """
        told = [*(told_by_a_judge(keys) if self.reading.names > 5 else ())]
        models = [each for each in keys if is_model(each)]
        if not all(isinstance(_number_in(value[each]), str) for each in models):
            told += models
        told += [each for each in keys if plain_name(each) in FILES and not cures.is_picture(value[each])]
        return [each for each in keys if since(each) <= self.reading.names and each not in told]

    def _note(self, found: Recognised) -> None:
        """Keep what was guessed; DataError where a column was something else in an earlier record."""
        mapped = self.reading.mapped
        for column, name in found.guessed().items():
            if mapped.setdefault(column, name) != name:
                raise DataError(
                    f"the column {column!r} is the {name} here, and was the {mapped[column]} in earlier records, which "
                    f"have other columns: say what it is with --map",
                    field=column,
                )

    def _check_slips(self, keys: tuple[str, ...], used: set[str]) -> None:
        """DataError where a key that is not used is nearly one that only the first record has, or the reverse; slips of
        a field's own name are `item_from`'s.
        """
        used |= {key for key in keys if key in ITEM_KEYS}
        if self._first is None:
            self._first = keys, used
            return
        others, used_there = self._first
        for key in keys:
            if (
                key not in used
                and key not in others
                and (near := near_miss(key, used_there.difference(keys, ITEM_KEYS)))
            ):
                told = (
                    f"unknown key {key!r}: did you mean {near!r}, as in the first record? Otherwise put it under 'meta'"
                )
                raise DataError(told, field=key)
        for key in others:
            if (
                key not in used_there
                and key not in keys
                and (near := near_miss(key, used.difference(others, ITEM_KEYS)))
            ):
                told = f"{near!r} is called {key!r} in the first record: give it one name, or put one under 'meta'"
                raise DataError(told, field=near)


def _number_in(cell: Any) -> Any:
    return number_in(cell.strip()) if isinstance(cell, str) else cell


class ShapeError(DataError):
    """A mistake in the columns of a whole file, not in one record."""


def _of_all(error: DataError, first: bool) -> DataError:
    if not first:
        return error
    told = str(error).removeprefix(f"{error.path}:{error.line}: field {error.field!r}: ")
    return ShapeError(told, path=error.path, line=error.line, field=error.field)


def _moved(
    value: dict[str, Any], moves: tuple[tuple[str, str], ...], empty: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record with fields filled from their columns, and the earlier values under a field's name, for `meta`."""
    taken = {column for _, column in moves}
    moved = {key: each for key, each in value.items() if key not in taken}
    displaced = {name: moved.pop(name) for name in (*empty, *(name for name, _ in moves)) if name in moved}
    moved.update((name, value[column]) for name, column in moves)
    return moved, displaced
