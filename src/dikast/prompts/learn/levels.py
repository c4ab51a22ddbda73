"""The structure inside a slot: a rubric's levels as a numbered list."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_COUNTED = re.compile(r"^(?P<lead>[^\d\n]{0,24})(?P<n>\d{1,3})(?P<tail>[ \t]?[:.)\]=-]{1,2}[ \t]?)", re.M)
_RUBRIC = re.compile(r"rubric|criteri|scor|scale|level|grad|rat(?:e|ing)|mark|point", re.I)
LEVEL = "level "


@dataclass(frozen=True, slots=True)
class Fine:
    """The parts of a slot: literals and slots in turn, as in a skeleton. The empty name is the slot itself."""

    literals: tuple[str, ...]
    slots: tuple[str, ...]


def refine(values: Sequence[str], before: str) -> Fine:
    """The common structure of all values of a slot; without one, the slot itself.

    `before` is the fixed text in front of the slot. Numbered lines are a rubric's levels if it, or the words that are
    numbered, mention a rubric, a scale or scores; any other list is text of the field.
    """
    levels = counted(values)
    if levels is None:
        return Fine(("", ""), ("",))
    literals, labels = levels
    if not _RUBRIC.search(" ".join([*before.strip().split("\n")[-2:], literals[0]])):
        return Fine(("", ""), ("",))
    heads = [value[: value.index(literals[0])] for value in values]
    names = tuple(LEVEL + label for label in labels)
    if not any(heads):
        return Fine((*literals, ""), names)
    gap = "\n" if all(head.endswith("\n") for head in heads) else ""
    return Fine(("", gap + literals[0], *literals[1:], ""), ("", *names))


def counted(values: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The literals before each level's text, and the labels, if every value is numbered in the same way."""
    first = [(m["lead"], m["n"], m["tail"]) for m in _COUNTED.finditer(values[0])]
    for lead, tail in dict.fromkeys((lead, tail) for lead, _, tail in first):
        labels = [n for before, n, after in first if (before, after) == (lead, tail)]
        counted = [int(n) for n in labels]
        if len(labels) < 2 or counted != list(range(counted[0], counted[0] + len(counted))):
            continue
        pattern = re.compile(rf"^{re.escape(lead)}(\d{{1,3}}){re.escape(tail)}", re.M)
        if all(pattern.findall(value) == labels for value in values):
            gap = ["" if i == 0 else "\n" for i in range(len(labels))]
            return [f"{g}{lead}{n}{tail}" for g, n in zip(gap, labels, strict=True)], labels
    return None
