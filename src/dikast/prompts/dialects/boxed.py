r"""Answers in a box after thinking: `\boxed{A}` or `<answer>A</answer>`."""

import re

from dikast.prompts.dialects.label import read_whole
from dikast.prompts.parsed import Reading, Stated, Target

_OPEN = re.compile(r"\\(?:boxed|fbox)\s{0,4}+\{|<answer>", re.I)
_TAG_END = re.compile(r"</answer>", re.I)
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s?\{([^{}]{0,200})\}")
_BRACE = re.compile(r"[{}]")
_LONGEST = 200


def read_boxed(text: str, target: Target) -> Reading:
    """The last box that holds one label. Boxes with a list of the choices, or empty ones, are skipped."""
    reason = "no box in the reply"
    stated: list[Stated] = []  # from the last to the first
    for match in reversed(list(_OPEN.finditer(text))):
        end = _close(text, match)
        if end is None and not stated:
            reason = "the last box is not closed"
        if end is None:
            continue
        inside = text[match.end() : end]
        said = _TEXT.sub(r"\1", inside).strip(" $\n\t")
        after = end + (1 if match[0].endswith("{") else len("</answer>"))
        found = read_whole(said, target)
        if found.kind == "echo" or not said.strip(". "):
            continue
        if found.kind == "unreadable" and not stated:
            return Reading(None, f"the box holds {inside[:60]!r}, which is not one of {target}")
        if found.kind != "unreadable":
            stated.append(Stated(found.label, inside, match.start(), after))
    return Reading(stated[0], earlier=tuple(stated[1:])) if stated else Reading(None, reason)


def _close(text: str, opened: re.Match[str]) -> int | None:
    """Where the box ends: at its own brace, or at the closing tag; None if not within a few hundred characters."""
    begin = opened.end()
    if not opened[0].endswith("{"):
        tag = _TAG_END.search(text, begin, begin + _LONGEST)
        return tag.start() if tag else None
    depth = 1
    for brace in _BRACE.finditer(text, begin, begin + _LONGEST):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None
