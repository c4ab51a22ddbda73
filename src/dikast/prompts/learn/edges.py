"""Boundaries of slots: text that every row shares next to or inside a slot is assigned, reported or refused.

Rendered prompts show only where rows differ. A text that all rows share at the edge of a slot may be part of the
prompt, or every field may begin or end with it. A rule decides, the decision is listed as an `Edge` and can be
overridden (`--edge`); without a safe rule the prompts are refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from dikast.core.errors import UserError
from dikast.prompts.learn.inside import fixed_inside
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.names import speaks_of_slot
from dikast.prompts.learn.skeleton import Skeleton

_SIDES = ("begin", "end", "inside")
_OWNERS = ("prompt", "field")
_LABEL = re.compile(r"[#*\-]*[ \t]*[^\W\d_][\w ()/&'#-]*[*_]*[:>=|]+[*_]*[ \t]*|[\w ()]+\)[ \t]+")
_INLINE = re.compile(r"[ \t]+[|/;#=~>-]+[ \t]+\S[^\n]*\Z")  # a sign between spaces, followed by more of the prompt
_FIELD_LINE = re.compile(r"\w|[-•*+>][ \t]|```|~~~|[|$\\{}<]")  # starts of lines in fields: words, lists, code, tables
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_OPENING = re.compile(r"([\[(<{])\1*|([\"'`*_~|#=-])\2*")
_TAG = re.compile(r"<([\w-]+)[^<>\n]*>[ \t]*")
_TAG_LINE = re.compile(r"</?([\w-]+)[^<>\n]*>")
_TAG_BEFORE = re.compile(r"<([\w-]+)[^<>\n]*>[ \t]*\Z")
_BRACKET_BEFORE = re.compile(r"(?:^|\s)(\[+|<+)\Z")
_MIRROR = str.maketrans("[(<{", "])>}")
_SHOWN = 80

_SPACE = "white space that all rows share: publishers strip fields, and prompts set them apart with blank lines"
_LINES = "whole lines that all rows share"
_MARK = "a label that all rows share"
_PAIR = "signs that open before the slot and close after it in all rows"
_SAID = "as --edge says"


@dataclass(frozen=True, slots=True)
class Edge:
    """A text that all rows share at one side of a slot, its owner (`prompt` or `field`), and the rule."""

    slot: str
    side: str
    text: str
    owner: str
    why: str

    def __str__(self) -> str:
        where = {"begin": "before", "end": "after"}[self.side]
        if self.owner == "field":
            where = {"begin": "at the beginning of", "end": "at the end of"}[self.side]
        return f"{self.text[:_SHOWN]!r} {where} {self.slot}: part of the {self.owner} ({self.why})"


@dataclass(frozen=True, slots=True)
class _Settled:
    """The parts of a slot's values that move to the adjacent literals, and undecided texts: (side, text)."""

    before: str
    after: str
    edges: list[Edge]
    open: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Place:
    """A slot and the adjacent fixed texts. `rubric`: a rubric's levels follow; `labelled`: these prompts use labels.

    `lines_before` and `lines_after`: whole lines of words that all rows share there belong to the prompt.
    """

    slot: str
    before: str
    after: str
    rubric: bool
    labelled: bool
    lines_before: bool
    lines_after: bool


def check_edges(given: Mapping[str, str], slots: Sequence[str]) -> None:
    """UserError for an `--edge` that names no slot, no side, or neither `prompt` nor `field`."""
    for key, owner in given.items():
        slot, _, side = key.partition(".")
        if slot not in slots or (side and side not in _SIDES):
            raise UserError(
                f"--edge {key}={owner}: write SLOT, SLOT.begin, SLOT.end or SLOT.inside; slots are {', '.join(slots)}"
            )
        if owner not in _OWNERS or (side == "inside" and owner == "prompt"):
            raise UserError(f"--edge {key}={owner}: say prompt or field (text inside a slot belongs to the field)")


def settle_edges(
    skeleton: Skeleton, texts: Sequence[str], given: Mapping[str, str], *, headings: bool
) -> tuple[Skeleton, tuple[Edge, ...]]:
    """The skeleton with the boundaries of its slots set by the rules, over all texts that it fits, and the decisions.

    `headings`: the literals are heading lines, which alone divide the prompt; otherwise lines and labels divide it.
    Slots that hold the same text in every row become one. UserError lists every shared text that no rule settles, with
    the cure.
    """
    rows = [found for text in texts if isinstance(found := skeleton.split(text), dict)]
    literals = list(skeleton.literals)
    labelled = _is_labelled(skeleton)
    edges: list[Edge] = []
    refused: list[str] = []
    cores: dict[str, list[str]] = {}
    for i, slot in enumerate(skeleton.slots):
        values = [row[slot] for row in rows]
        if len(set(values)) < 2:
            continue
        owners = _owners(given, slot)
        place = _Place(
            slot, literals[i], skeleton.literals[i + 1], labelled=labelled,
            rubric=any(each.startswith(LEVEL) for each in skeleton.slots[i + 1 : i + 2]),
            lines_before=not headings or not literals[i],
            lines_after=not headings or slot.startswith(LEVEL) or i == len(skeleton.slots) - 1,
        )  # fmt: skip
        settled = _settle(values, place, owners)
        edges += _divider(place) if not headings else []
        edges += settled.edges
        refused += [_edge_question(slot, side, text) for side, text in settled.open]
        literals[i] += settled.before
        literals[i + 1] = settled.after + literals[i + 1]
        cores[slot] = [value[len(settled.before) : len(value) - len(settled.after)] for value in values]
        held = "" if slot.startswith(LEVEL) or owners["inside"] or settled.open else fixed_inside(cores[slot])
        refused += [f"{slot} holds {held[:_SHOWN]!r} in every row: a part of the prompt may be inside it"] * bool(held)
    if refused:
        raise UserError(
            "the prompts alone do not show where these slots begin and end:\n  "
            + "\n  ".join(refused)
            + "\n  cure: learn from the fields (--field SLOT=COLUMN), or assign the texts: --edge"
            " SLOT[.begin|.end|.inside]=prompt or =field"
        )
    first = {slot: next(s for s, v in cores.items() if v == values) for slot, values in cores.items()}
    return Skeleton(tuple(literals), tuple(first.get(slot, slot) for slot in skeleton.slots)), tuple(edges)


def _settle(values: Sequence[str], place: _Place, owners: Mapping[str, str]) -> _Settled:
    slot = place.slot
    head = _shared(values)
    tail = _shared([value[len(head) :][::-1] for value in values])[::-1]
    before, opened, edges = _begin(head, place)
    after, closed = _end(tail, place)
    edges += _spaces(slot, before, after)
    left, right, wrapped = _pair(opened, closed, values, place)
    if left or right:
        edges += [Edge(slot, "begin", left, "prompt", _PAIR), Edge(slot, "end", right, "prompt", _PAIR)]
    before, opened = before + left, opened[len(left) :]
    after, closed = right + after, closed[: len(closed) - len(right)]
    unclear: list[tuple[str, str]] = []
    line = (place.before + before).split("\n")[-1]
    fixed: list[tuple[str, str]] = []  # text outside the slot in all rows, which cannot become part of it
    if not wrapped and not slot.startswith(LEVEL) and not _clear(line, labelled=place.labelled):
        fixed.append(("begin", line))
    if not head.strip() and _FENCE.match(above := place.before.rstrip().split("\n")[-1]):
        fixed.append(("begin", above))
    if not tail.strip() and _FENCE.match(below := place.after.lstrip().split("\n")[0]):
        fixed.append(("end", below))
    unclear += [(side, text) for side, text in (("begin", opened), ("end", closed)) if text.strip()]
    if not closed.strip() and not wrapped and not _ends_clear(after + place.after):
        fixed.append(("end", (after + place.after).split("\n")[0]))
    for side, text in fixed:
        if owners[side] == "field":
            raise UserError(
                f"--edge {slot}.{side}=field: {text[:_SHOWN]!r} is outside the slot in every row; learn from the"
                " fields (--field SLOT=COLUMN)"
            )
    unclear += fixed
    settled = _Settled(before, after, edges, [each for each in unclear if not owners[each[0]]])
    return _overruled(settled, slot, head, tail, owners)


def _begin(head: str, place: _Place) -> tuple[str, str, list[Edge]]:
    """The text that moves to the prompt, the rest of the shared beginning, and the decisions."""
    space = head[: len(head) - len(head.lstrip())]
    whole = max(head.rfind("\n") + 1, len(space))
    if not place.lines_before and _of_a_field(head[:whole].rstrip().split("\n")[-1]):
        whole = len(space)
    before, rest = head[:whole], head[whole:]
    edges = []
    if before.strip():
        indent = len(rest) - len(rest.lstrip(" \t"))
        before, rest = before + rest[:indent], rest[indent:]
        edges.append(Edge(place.slot, "begin", before, "prompt", _LINES))
    label = _LABEL.match(rest)
    if label and place.labelled and _starts_line(place.before + before):
        edges.append(Edge(place.slot, "begin", label[0], "prompt", _MARK))
        before, rest = before + label[0], rest[label.end() :]
    return before, rest, edges


def _end(tail: str, place: _Place) -> tuple[str, str]:
    """The text that moves to the prompt, and the rest of the shared ending."""
    cut = tail.find("\n") if "\n" in tail else len(tail)
    if not place.lines_after and _of_a_field(tail[cut:].lstrip()):
        cut = len(tail)
    kept = tail[:cut].rstrip()
    return tail[len(kept) :], kept


def _spaces(slot: str, before: str, after: str) -> list[Edge]:
    found = []
    if before and not before.strip() and before != "\n":
        found.append(Edge(slot, "begin", before, "prompt", _SPACE))
    if after.strip():
        found.append(Edge(slot, "end", after, "prompt", _LINES))
    elif after not in ("", "\n"):
        found.append(Edge(slot, "end", after, "prompt", _SPACE))
    return found


def _pair(opened: str, closed: str, values: Sequence[str], place: _Place) -> tuple[str, str, bool]:
    """The signs at the edges that are a pair, and whether the slot is inside a pair, of these or of the literals.

    Brackets around every value belong to the field if they make it JSON, and tags unless they name the field.
    """
    if (tag := _TAG.match(opened)) and closed.endswith(f"</{tag[1]}>") and speaks_of_slot(tag[1]):
        size = len(tag[1]) + 3
        return tag[0], closed[len(closed[:-size].rstrip(" \t")) :], True
    if place.rubric and (sign := _OPENING.match(opened)):
        right = sign[0].translate(_MIRROR)
        json = sign[0] in "[{" and all(map(_is_json, values))
        return (sign[0], right, True) if closed.endswith(right) and not json else ("", "", False)
    after = (closed + place.after).lstrip(" \t")
    if tag := _TAG_BEFORE.search(place.before):
        return "", "", speaks_of_slot(tag[1]) and after.startswith(f"</{tag[1]}>")
    outer = _BRACKET_BEFORE.search(place.before)
    return "", "", bool(outer and place.after.startswith(outer[1].translate(_MIRROR)))


def _divider(place: _Place) -> list[Edge]:
    """The line before a slot if it is shared but not a heading: its end may be the start of every field."""
    line = place.before.rstrip().split("\n")[-1]
    return [Edge(place.slot, "begin", line, "prompt", _LINES)] if line else []


def _overruled(settled: _Settled, slot: str, head: str, tail: str, owners: Mapping[str, str]) -> _Settled:
    """The user's decisions about this slot, which override the rules; line breaks remain part of the prompt."""
    before, after, edges = settled.before, settled.after, settled.edges
    if owners["begin"]:
        space = head[: len(head) - len(head.lstrip("\n"))]
        before = head if owners["begin"] == "prompt" else space
        edges = [each for each in edges if each.side != "begin"]
        edges += [Edge(slot, "begin", head, owners["begin"], _SAID)] if head.strip() else []
    if owners["end"]:
        space = tail[len(tail.rstrip("\n")) :]
        after = tail if owners["end"] == "prompt" else space
        edges = [each for each in edges if each.side != "end"]
        edges += [Edge(slot, "end", tail, owners["end"], _SAID)] if tail.strip() else []
    return _Settled(before, after, edges, settled.open)


def _owners(given: Mapping[str, str], slot: str) -> dict[str, str]:
    slot = "levels" if slot.startswith(LEVEL) else slot
    return {side: given.get(f"{slot}.{side}", given.get(slot, "")) for side in _SIDES}


def _shared(values: Sequence[str]) -> str:
    """The common prefix of all values, up to the end of a word in each."""
    low, high = min(values), max(values)
    found = low[
        : next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    ]
    if found and re.match(r"\w", found[-1]) and any(re.match(r"\w", value[len(found) :]) for value in values):
        found = re.sub(r"\w+\Z", "", found)
    return found


def _of_a_field(line: str) -> bool:
    """Whether a line may be the first or last line of every field."""
    tag = _TAG_LINE.match(line)
    return _FIELD_LINE.match(line) is not None and not (tag and speaks_of_slot(tag[1]))


def _starts_line(before: str) -> bool:
    return not before or before.rstrip(" \t").endswith("\n")


def _ends_line(after: str) -> bool:
    return not after.strip() or after.lstrip(" \t").startswith("\n")


def _clear(line: str, *, labelled: bool) -> bool:
    """Whether the text before a slot on its line is empty, or one label among others."""
    return not line.strip() or (labelled and _LABEL.fullmatch(line) is not None)


def _is_labelled(skeleton: Skeleton) -> bool:
    """Whether a label alone sets two slots apart somewhere: then labels are how these prompts are written. One after a
    heading or a whole line may as well be how every field begins.
    """
    return any(_LABEL.fullmatch(literal.strip("\n")) for literal in skeleton.literals[1:-1])


def _ends_clear(after: str) -> bool:
    """Whether the prompt's text after a slot begins at a clear end of the field: at a line's end, or with a sign."""
    return _ends_line(after) or bool(_INLINE.match(after))


def _is_json(value: str) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


def _edge_question(slot: str, side: str, text: str) -> str:
    verb = "begins with" if side == "begin" else "ends with"
    return f"{slot} {verb} {text[:_SHOWN]!r} in every row: part of the prompt, or of the field?"
