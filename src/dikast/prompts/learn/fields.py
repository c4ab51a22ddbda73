"""From prompts with their fields to a skeleton: the position of each field's text, the same in every row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Any

from dikast.core.errors import UserError
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.skeleton import Skeleton

_MOST_TRIED = 20_000
_LEAST_FIXED = 20  # minimum characters of a prompt without its slots
# Names of columns in published datasets, each with its slot.
_KNOWN = {
    "instruction": ("orig_instruction", "instruction", "question", "input"),
    "response": ("orig_response", "original_response", "response", "answer"),
    "first": ("orig_response_A", "response_A", "response_a", "response1", "response 1"),
    "second": ("orig_response_B", "response_B", "response_b", "response2", "response 2"),
    "reference": ("orig_reference_answer", "reference_answer", "reference"),
    "criterion": ("orig_criteria", "criteria", "criterion"),
    "context": ("context", "relevant_context"),
}
_LEVEL_COLUMN = re.compile(r"(?:orig_)?score_?(\d+)_description")


@dataclass(frozen=True, slots=True)
class Fielded:
    """A prompt and the text of each of its fields, by slot name."""

    prompt: str
    fields: Mapping[str, str]


def find_columns(rows: Sequence[Mapping[str, Any]], prompt: str) -> dict[str, str]:
    """Slot to column, for columns whose names are known from published datasets and whose text is in the prompt."""
    found: dict[str, str] = {}
    for slot, names in _KNOWN.items():
        for name in names:
            if name != prompt and slot not in found and all(_within(row, name, prompt) for row in rows):
                found[slot] = name
    for name in rows[0]:
        match = _LEVEL_COLUMN.fullmatch(name)
        if match and all(_within(row, name, prompt) for row in rows):
            found[LEVEL + match[1]] = name
    return found


def named_columns(given: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The columns that the user named; `levels=score*_description` means one column per level."""
    found: dict[str, str] = {}
    for slot, column in given.items():
        if slot != "levels":
            found[slot] = column
            continue
        if column.count("*") != 1:
            raise UserError(
                f"--field levels={column}: write the columns with * for the label: levels=score*_description"
            )
        pattern = re.compile(re.escape(column).replace(r"\*", "(.+)"))
        labels = {match[1]: name for name in rows[0] if (match := pattern.fullmatch(name))}
        if not labels:
            raise UserError(f"--field levels={column}: there is no such column; there are {', '.join(rows[0])}")
        found.update({LEVEL + label: name for label, name in labels.items()})
    for slot, column in found.items():
        if column not in rows[0]:
            raise UserError(f"--field {slot}={column}: there is no such column; there are {', '.join(rows[0])}")
    return found


def from_fields(rows: Sequence[Fielded]) -> tuple[Skeleton, dict[str, bool]]:
    """The skeleton that renders every prompt from its fields, and the fields that the prompts contain stripped.

    UserError if there is none, if a field's text is not in its prompt, or if a field contains another one.
    """
    names = list(rows[0].fields)
    stripped = {name: _is_stripped(name, rows) for name in names}
    values = [{n: row.fields[n].strip() if stripped[n] else row.fields[n] for n in names} for row in rows]
    for row, each in zip(rows, values, strict=True):
        _refuse_holders(each, row.prompt)
    order = sorted(range(len(rows)), key=lambda i: sum(rows[i].prompt.count(v) for v in values[i].values()))
    template = order[0]
    best = 0
    for skeleton in islice(_candidates(rows[template].prompt, values[template]), _MOST_TRIED):
        held = 0
        for i in order:
            if skeleton.fill(values[i]) != rows[i].prompt:
                break
            held += 1
        best = max(best, held)
        if held == len(rows):
            if sum(len(each.strip()) for each in skeleton.literals) < _LEAST_FIXED:
                raise UserError("nothing is left of the prompt without its fields: a field contains the fixed text")
            return skeleton, stripped
    raise UserError(
        f"no one prompt makes these rows: what makes row {template + 1} of the {len(rows)} drawn makes"
        f" {max(best - 1, 0)} of the others; they may come from more than one prompt (--where COLUMN=VALUE), or a field"
        f" may be missing ({' or '.join(f'--field {slot}=COLUMN' for slot in _not_named(names))})"
    )


def flag_of(slot: str) -> str:
    """The slot's name for `--field`, which is the same for all levels."""
    return "levels" if slot.startswith(LEVEL) else slot


def _not_named(names: Sequence[str]) -> list[str]:
    """The slots without a column that a format with the others can show."""
    known = [*_KNOWN, "levels"]
    taken = {flag_of(name) for name in names}
    taken |= {"first", "second"} if "response" in taken else {"response"} if {"first", "second"} & taken else set()
    return [slot for slot in known if slot not in taken]


def _within(row: Mapping[str, Any], name: str, prompt: str) -> bool:
    value, text = row.get(name), row.get(prompt)
    return isinstance(value, str) and isinstance(text, str) and bool(value.strip()) and value.strip() in text


def _is_stripped(name: str, rows: Sequence[Fielded]) -> bool:
    exact = all(row.fields[name] in row.prompt for row in rows)
    if exact:
        return False
    for i, row in enumerate(rows, 1):
        value = row.fields[name]
        if not value.strip() or value.strip() not in row.prompt:
            raise UserError(
                f"the text of field {name!r} is not in the prompt of row {i} of those drawn: {value[:60]!r}; name"
                f" another column (--field {flag_of(name)}=COLUMN), or leave such rows out (--where COLUMN=VALUE)"
            )
    return True


def _refuse_holders(values: Mapping[str, str], prompt: str) -> None:
    for name, value in values.items():
        inside = [n for n, v in values.items() if n != name and len(v) > 12 and v in value and prompt.count(v) == 1]
        if value.strip() == prompt.strip() or inside:
            what = f"holds the text of {inside[0]!r}" if inside else "is the whole prompt"
            raise UserError(
                f"the field {name!r} {what}: a slot that contains the fixed text cannot be learnt; name another column"
                f" (--field {flag_of(name)}=COLUMN)"
            )


def _candidates(prompt: str, values: Mapping[str, str]) -> Iterator[Skeleton]:
    """Every way to remove the fields' texts from a prompt; a field may be used once, or wherever it occurs."""
    choices = []
    for name, value in values.items():
        places = _places(prompt, value)
        ways: list[tuple[int, ...]] = [(place,) for place in places]
        if len(places) > 1:
            ways.append(tuple(places))
        choices.append([(name, way) for way in ways])
    for combination in product(*choices):
        taken = sorted((at, at + len(values[name]), name) for name, way in combination for at in way)
        if any(a[1] > b[0] for a, b in pairwise(taken)):
            continue
        literals, at = [], 0
        for start, end, _ in taken:
            literals.append(prompt[at:start])
            at = end
        literals.append(prompt[at:])
        if all(literals[1:-1]) or len(taken) < 2:
            yield Skeleton(tuple(literals), tuple(name for *_, name in taken))


def _places(prompt: str, value: str) -> list[int]:
    found, at = [], prompt.find(value) if value else -1
    while at >= 0:
        found.append(at)
        at = prompt.find(value, at + len(value))
    return found
