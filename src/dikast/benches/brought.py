"""Responses for benches without any: read from a file or sampled from a model, and added to the items."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import Content, Text, text_of
from dikast.core.records import read_records, write_records
from dikast.core.records.items import read_repeated
from dikast.core.secrets import without_secrets
from dikast.core.text import counted, listing
from dikast.engines.base import Engine, Request, Sampling
from dikast.engines.sampled_replies import sampled_replies
from dikast.prompts.ask import prompt_alone

RESPONSES = "responses.jsonl"  # sampled ones, in the run folder
MODEL = "model"  # in the metadata of an item: whose response it holds
EMPTY = "(empty response)"  # what a judge is shown of a response without a word
_PROMPT = "prompt"  # a column of brought responses
_LISTED = 5
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Brought:
    """Items with their responses, and notes about items without a response and responses without an item.

    `rows` is the id of the row of each item that has another, and None where a record brought gold of its own.
    `prompts` are those of the bench's authors, rendered for a response, of the items whose records have one.
    """

    items: list[Item]
    told: tuple[str, ...]
    rows: Mapping[str, str | None] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)

    def raters(self, said: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """What the raters of each item's row said (by row), by item; of brought gold there are none."""
        rows = {item.id: self.rows.get(item.id, item.id) for item in self.items}
        return {name: said[row] for name, row in rows.items() if row is not None and row in said}


def from_file(
    items: Sequence[Item], path: Path, groups: Collection[str] = (), *, rows: Collection[str] = ()
) -> Brought:
    """Put the responses of a file (records with `id` and `response`, as `grade` takes them) into the items.

    If a row already has a response, that is the baseline, and the added one is the second of a pair. A record may also
    have `gold` (what a reference judge or people said of the response), a `rubric` and a `reference` in place of the
    row's, and a `model`: responses of several models to one prompt become items ID/MODEL. Other columns are metadata.

    Ids that are none of the bench's `rows` (by default, of the items) are counted and listed; items without a response
    are left out, counted and listed. UserError where no id fits, one model answers a prompt twice, or a column
    contradicts one of the bench's `groups`.
    """
    given: dict[str, dict[str, Item]] = {}
    for each in read_repeated(path):
        if len(each.responses) != 1:
            cure = "name its column 'response'" if not each.responses else "give each a record of its own"
            raise UserError(f"{each.origin}: {len(each.responses)} responses where one is needed: {cure}")
        if not each.id:
            raise UserError(f"{each.origin}: a response without an id: give each the id of its prompt, as 'id'")
        model, answers = str(each.meta.get(MODEL, "")), given.setdefault(each.id, {})
        if model in answers:
            of = f"of model {model!r}" if model else "(say whose each is in a column 'model')"
            raise UserError(f"{each.origin}: a second response {of} to the prompt {each.id!r}")
        answers[model] = each
    known = {*rows, *(item.id for item in items)}
    strange, lacking = [name for name in given if name not in known], [i.id for i in items if i.id not in given]
    if len(lacking) == len(items):
        raise UserError(
            f"{path}: none of its ids ({listing(list(given), _LISTED)}) is one of the bench's"
            f" ({listing([i.id for i in items], _LISTED)}): "
            "give each response the id of its prompt"
        )
    told = []
    if strange:
        n = sum(len(given[name]) for name in strange)
        told.append(f"{counted(n, 'response')} for other ids left out: {listing(strange, _LISTED)}")
    if lacking:
        told.append(f"{counted(len(lacking), 'prompt')} without a response left out: {listing(lacking, _LISTED)}")
    pairs = [(item, each) for item in items for each in given.get(item.id, {}).values()]
    for item, each in pairs:
        for name in groups:
            if name in item.meta and str(each.meta.get(name, item.meta[name])) != str(item.meta[name]):
                of = f"in the row {item.id!r}, where it is a group of the bench"
                told_of = f"field {name!r}: {each.meta[name]!r:.40} here and {item.meta[name]!r:.40} {of}"
                raise UserError(f"{each.origin}: {told_of}: give the column another name")
    found = [_with(item, each, groups, alone=len(given[item.id]) == 1) for item, each in pairs]
    golden = [each for item, each in pairs if _has_gold(item, each)]
    if golden:
        guessed = next((each.gold_from for each in golden if each.gold_from), "")
        of = f", guessed from the column {guessed!r}" if guessed else ""
        told.append(f"gold of {counted(len(golden), 'response')} from {path.name}{of}")
    row_of = {
        new.id: None if _has_gold(item, each) else item.id for new, (item, each) in zip(found, pairs, strict=True)
    }
    prompts = {new.id: said for new, (_, each) in zip(found, pairs, strict=True) if (said := _prompt_of(each))}
    return Brought(found, (_answered(path, found), *told), row_of, prompts)


def _answered(path: Path, items: Sequence[Item]) -> str:
    models = {str(item.meta[MODEL]) for item in items if MODEL in item.meta}
    of = f" of {counted(len(models), 'model')}" if models else ""
    return f"responses: {path.name}, {counted(len(items), 'response')}{of}"


def _prompt_of(record: Item) -> str:
    """The rendered prompt of a record: its column `prompt`, which is also a name of the instruction."""
    said = record.meta.get(_PROMPT)
    return said if isinstance(said, str) else "\n\n".join(text_of(turn.content) for turn in record.instruction)


def _has_gold(item: Item, brought: Item) -> bool:
    """Whether a record's gold counts: named gold always does, a guess only where the row has none."""
    return brought.gold is not None and (not brought.gold_from or item.gold is None)


def _with(item: Item, brought: Item, groups: Collection[str], *, alone: bool) -> Item:
    """The item with a response, and what its record says beside it."""
    return replace(
        item,
        id=item.id if alone else f"{item.id}/{brought.meta[MODEL]}",
        responses=(*item.responses, *brought.responses),
        gold=brought.gold if _has_gold(item, brought) else item.gold,
        gold_from=brought.gold_from if _has_gold(item, brought) else "",
        rubric=brought.rubric or item.rubric,
        reference=brought.reference or item.reference,
        origin=brought.origin if _has_gold(item, brought) else item.origin,
        meta={
            **item.meta,
            **{name: value for name, value in brought.meta.items() if name != _PROMPT},
            **{name: item.meta[name] for name in groups if name in item.meta},
        },
    )


def from_policy(items: Sequence[Item], engine: Engine, sampling: Sampling, folder: Path) -> Brought:
    """Sample a response to each prompt, sent unchanged; responses are kept in the folder, so none is asked twice.

    A prompt without an answer is left out and counted.
    """
    path = folder / RESPONSES
    before = [each.value for each in read_records(path)] if path.exists() and path.stat().st_size else []
    if others := sorted({str(each["policy"]) for each in before} - {engine.name}):
        raise UserError(f"{path}: holds responses of {', '.join(others)}, not of {engine.name}: give another --out")
    known, failed = {str(each["id"]): str(each["response"]) for each in before}, 0
    left, why = [item for item in items if item.id not in known], ""

    for start in range(0, len(left), _AT_ONCE):
        part = left[start : start + _AT_ONCE]
        asked = (Request(item.id, prompt_alone(item), sampling, about={"item": item.id}) for item in part)
        for each in sampled_replies(engine, asked):
            if each.problem or not each.text.strip():
                failed, why = failed + 1, why or each.problem or "an empty answer"
            else:
                known[each.key] = each.text
        if known:  # a file without records would stand in the way of another try
            write_records(path, ({"id": i, "response": text, "policy": engine.name} for i, text in known.items()))
    if not known:
        raise UserError(f"{engine.name}: answered none of {counted(len(items), 'prompt')}: {without_secrets(why)}")
    found = [replace(i, responses=(*i.responses, (Text(known[i.id]),))) for i in items if i.id in known]
    told = (f"responses sampled from {engine.name}",)
    return Brought(found, (*told, f"{counted(failed, 'prompt')} without an answer left out") if failed else told)


def with_empty_shown(items: Sequence[Item]) -> tuple[list[Item], tuple[str, ...]]:
    """The items with a text in the place of each empty response, and what to tell of them.

    Formats refuse an empty response, and the authors' judges were asked about theirs.
    """
    found = [replace(item, responses=tuple(map(_shown, item.responses))) for item in items]
    n = sum(new.responses != item.responses for new, item in zip(found, items, strict=True))
    told = f"{n:,} of {counted(len(items), 'item')} hold an empty response: the judge is shown {EMPTY!r}"
    return found, (told,) if n else ()


def _shown(response: Content) -> Content:
    blank = all(isinstance(part, Text) and not part.text.strip() for part in response)
    return (Text(EMPTY),) if blank else response
