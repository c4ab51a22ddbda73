"""From prompts without headings to a skeleton: text shared by all rows in the same order, and slots between."""

import re
from collections import Counter
from collections.abc import Sequence

from dikast.core.errors import UserError
from dikast.prompts.learn.headings import numbered
from dikast.prompts.learn.levels import refine
from dikast.prompts.learn.skeleton import Skeleton, joined

_TOKEN = re.compile(r"\w+|\n|[^\S\n]+|[^\w\s]")
_SHINGLE = 3  # tokens, including spaces, that must occur exactly once in every row to be an anchor
_MOST_ANCHORS = 600
_LEAST = 20  # length from which a shared text without a delimiter counts as part of the prompt
# A shared text ends before a slot, and begins after one, with one of these; words beyond them are coincidence.
_OPENS = re.compile(r"^.*[:\[\](){}<>\"*#=|\n][ \t]*", re.S)
_CLOSES = re.compile(r"[\[\](){}<>\"*#=|\n].*$", re.S)


def from_common(texts: Sequence[str]) -> Skeleton:
    """The skeleton of the text that all share: runs of tokens that occur once in each, in the same order in all."""
    rows = [_TOKEN.findall(text) for text in texts]
    if len(set(texts)) < 2:
        raise UserError("all rows are the same prompt: there is nothing to learn from them")
    head = _shared(rows)
    tail = _shared([row[head:][::-1] for row in rows])
    inner = _anchors([row[head : len(row) - tail] for row in rows])
    literals, slots = [_opening("".join(rows[0][:head]))], []
    for starts, size in inner:
        begin = head + starts[0]
        text = _edges("".join(rows[0][begin : begin + size]))
        if text:
            literals.append(text)
            slots.append("")
    literals.append(_closing("".join(rows[0][len(rows[0]) - tail :])))
    slots.append("")
    skeleton = Skeleton(tuple(literals), tuple(str(i) for i in range(1, len(slots) + 1)))
    if sum(len(each.strip()) for each in literals) < _LEAST:
        raise UserError(
            "the rows have no common prompt that can be distinguished from their contents: learn from rows with their"
            " fields (--field), or from rows of one kind (--where COLUMN=VALUE)"
        )
    return _refined(skeleton, texts)


def _refined(skeleton: Skeleton, texts: Sequence[str]) -> Skeleton:
    parts = [found for text in texts if isinstance(found := skeleton.split(text), dict)]
    if len(parts) < 2:
        return skeleton
    literals: list[str] = [skeleton.literals[0]]
    slots: list[str | None] = []
    for slot, literal in zip(skeleton.slots, skeleton.literals[1:], strict=True):
        values = [each[slot] for each in parts]
        if len(set(values)) == 1:  # the same in every row: part of the adjacent fixed text
            literals[-1] += values[0] + literal
            continue
        fine = refine(values, literals[-1])
        literals[-1] += fine.literals[0]
        for name, inner in zip(fine.slots, fine.literals[1:], strict=True):
            slots.append(name)
            literals.append(inner)
        literals[-1] += literal
    return numbered(joined(literals, slots))


def _shared(rows: Sequence[Sequence[str]]) -> int:
    """The number of tokens that all rows have in common at the start."""
    shortest = min(map(len, rows))
    return next((i for i in range(shortest) if len({row[i] for row in rows}) > 1), shortest)


def _anchors(rows: Sequence[Sequence[str]]) -> list[tuple[list[int], int]]:
    """Runs of tokens in the order that all rows share: where each begins in every row, and how many tokens it has."""
    places: list[dict[tuple[str, ...], int]] = []
    for row in rows:
        shingles = [tuple(row[i : i + _SHINGLE]) for i in range(len(row) - _SHINGLE + 1)]
        once = {each for each, count in Counter(shingles).items() if count == 1}
        places.append({each: i for i, each in enumerate(shingles) if each in once})
    shared = [each for each in places[0] if all(each in other for other in places[1:])][:_MOST_ANCHORS]
    starts = sorted([place[each] for place in places] for each in shared)
    chain = _chain(starts)
    runs: list[tuple[list[int], int]] = []
    for each in chain:
        if runs and all(a + runs[-1][1] + 1 - _SHINGLE == b for a, b in zip(runs[-1][0], each, strict=True)):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        elif not runs or all(a + runs[-1][1] < b for a, b in zip(runs[-1][0], each, strict=True)):
            runs.append((each, _SHINGLE))
    return _extended(rows, runs)


def _extended(rows: Sequence[Sequence[str]], runs: list[tuple[list[int], int]]) -> list[tuple[list[int], int]]:
    """Each run with the tokens on both sides that all rows have there, up to its neighbours."""
    found: list[tuple[list[int], int]] = []
    for i, (starts, size) in enumerate(runs):
        floor = [at + found[-1][1] for at in found[-1][0]] if found else [0] * len(rows)
        ceiling = runs[i + 1][0] if i + 1 < len(runs) else [len(row) for row in rows]
        begin, end = list(starts), [at + size for at in starts]
        while all(a > low for a, low in zip(begin, floor, strict=True)) and _same(rows, [a - 1 for a in begin]):
            begin = [a - 1 for a in begin]
        while all(a < high for a, high in zip(end, ceiling, strict=True)) and _same(rows, end):
            end = [a + 1 for a in end]
        found.append((begin, end[0] - begin[0]))
    return found


def _same(rows: Sequence[Sequence[str]], places: Sequence[int]) -> bool:
    return len({row[at] for row, at in zip(rows, places, strict=True)}) == 1


def _chain(starts: list[list[int]]) -> list[list[int]]:
    """The longest chain of anchors that rises in every row."""
    length, before = [1] * len(starts), [-1] * len(starts)
    for i, later in enumerate(starts):
        for j in range(i):
            if length[j] >= length[i] and all(a < b for a, b in zip(starts[j], later, strict=True)):
                length[i], before[i] = length[j] + 1, j
    at = max(range(len(starts)), key=lambda i: length[i], default=-1)
    found = []
    while at >= 0:
        found.append(starts[at])
        at = before[at]
    return found[::-1]


def _opening(text: str) -> str:
    match = _OPENS.match(text)
    return match[0] if match else ""


def _closing(text: str) -> str:
    match = _CLOSES.search(text)
    return match[0] if match else ""


def _edges(text: str) -> str:
    """A shared text between two slots, without words at its edges that may be coincidence."""
    trimmed = _closing(_opening(text))
    return trimmed or (text if len(text) >= _LEAST else "")
