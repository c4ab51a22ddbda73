"""From prompts with headings to a skeleton: lines in every row divide it; differing text under them are slots."""

import re
from collections import Counter
from collections.abc import Sequence

from dikast.core.errors import UserError
from dikast.prompts.learn.levels import LEVEL, refine
from dikast.prompts.learn.skeleton import Skeleton, joined

_SIGIL = re.compile(r"[ \t]*(#+|\*\*|={2,}|-{3,}|</?|\[+|\|+|@+|>{2,})")
_MOST_LINES = 2000
_SWALLOWED = 0.25  # share of rows with a heading inside a slot from which it counts as missed


def find_headings(texts: Sequence[str], pattern: re.Pattern[str] | None = None) -> list[str]:
    """The heading lines that all texts have, in their common order; empty if there are none.

    Without a pattern, headings are the largest group of two or more shared lines that begin with the same sign (`###`,
    `[`, `**`, `<`, ...).
    """
    if pattern is not None:
        return _in_order([[line for line in _lines(text) if pattern.search(line)] for text in texts])
    families: Counter[str] = Counter()
    counts = [Counter(_lines(text)) for text in texts]
    shared = {line: min(count[line] for count in counts) for line in set(counts[0]).intersection(*counts[1:])}
    for line, often in shared.items():  # a repeated line of dashes divides as two lines do
        if match := _SIGIL.match(line):
            families[match[1]] += often
    best = max(families, key=lambda sigil: (families[sigil], len(sigil)), default="")
    if families[best] < 2:
        return []
    return _in_order([[line for line in _lines(text) if line in shared and _sigil(line) == best] for text in texts])


def from_headings(texts: Sequence[str], headings: Sequence[str]) -> Skeleton:
    """The skeleton whose slots are the differing texts between headings; their boundaries are still undecided."""
    rows = [_sections(text, headings) for text in texts]
    sections = [[row[i] for row in rows] for i in range(len(headings) + 1)]
    differs = [len(set(each)) > 1 for each in sections]
    _refuse_swallowed(sections, headings)
    if not any(differs):
        raise UserError("all rows are the same prompt: there is nothing to learn from them")
    literals: list[str] = [""]
    slots: list[str | None] = []
    for i, (values, differ) in enumerate(zip(sections, differs, strict=True)):
        literals[-1] += headings[i - 1] if i else ""
        if not differ:
            literals[-1] += values[0]
            continue
        fine = refine(values, literals[-1])
        literals[-1] += fine.literals[0]
        for name, literal in zip(fine.slots, fine.literals[1:], strict=True):
            slots.append(name)
            literals.append(literal)
    return numbered(joined(literals, slots))


def numbered(skeleton: Skeleton) -> Skeleton:
    """Slots named by their number; the levels of a rubric count as one, and there is at most one such list."""
    levels = [slot for slot in skeleton.slots if slot.startswith(LEVEL)]
    if len(set(levels)) < len(levels):
        raise UserError(
            "two lists in the prompts are counted up and differ from row to row: only a rubric's levels can be such a"
            " list; these rows may come from more than one prompt (--where COLUMN=VALUE)"
        )
    names: list[str] = []
    count = 0
    for i, slot in enumerate(skeleton.slots):
        if slot.startswith(LEVEL):
            count += not (i and skeleton.slots[i - 1].startswith(LEVEL))
            names.append(slot)
        else:
            count += 1
            names.append(str(count))
    return Skeleton(skeleton.literals, tuple(names))


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]


def _sigil(line: str) -> str:
    match = _SIGIL.match(line)
    return match[1] if match else ""


def _in_order(rows: list[list[str]]) -> list[str]:
    """The longest sequence that all rows have in this order."""
    common = rows[0]
    for row in rows[1:]:
        common = _longest_common(common, row)
    return common


def _longest_common(a: list[str], b: list[str]) -> list[str]:
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            best[i][j] = best[i + 1][j + 1] + 1 if a[i] == b[j] else max(best[i + 1][j], best[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append(a[i])
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _sections(text: str, headings: Sequence[str]) -> list[str]:
    """The texts before, between and after the headings."""
    found, lines, start, at, waiting = [], text.split("\n"), 0, 0, list(headings)
    for line in lines:
        if waiting and line == waiting[0]:
            found.append(text[start:at])
            start = at + len(line)
            waiting.pop(0)
        at += len(line) + 1
    return [*found, text[start:]]


def _refuse_swallowed(sections: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Refuse a heading inside a slot that many rows have and others lack."""
    sigils = {_sigil(heading) for heading in headings} - {""}
    rows = len(sections[0])
    for values in sections:
        held = Counter(line for value in values for line in set(_lines(value)) if _sigil(line) in sigils)
        for line, count in held.most_common(1):
            if max(2, _SWALLOWED * rows) <= count < rows:
                raise UserError(
                    f"a slot contains a part of the prompt: {line!r} stands inside it in {count} of {rows} rows and is"
                    " missing from the others. These rows come from more than one prompt: learn from one kind at a time"
                    " (--where COLUMN=VALUE)"
                )
