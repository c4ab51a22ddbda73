"""Labels in double brackets as MT-bench asks for them: `[[A]]`, `[[B]]`, `[[C]]` for a tie, `[[7]]` for a rating."""

import re

from dikast.prompts.dialects.arena import meant, without_lists
from dikast.prompts.dialects.label import read_whole
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_LABEL = re.compile(r"\[\[(?P<said>[^\[\]\n]{1,40}+)\]\]")
_SLOTS: dict[str, Slot] = {"a": "first", "b": "second", "c": "tie", "tie": "tie"}


def labels(text: str, target: Target) -> list[Stated]:
    """Every label in double brackets, in order; other things in double brackets are left out."""
    found = []
    for match in _LABEL.finditer(text):
        said = match["said"].strip(" *_`")
        if target.scale is None:
            slot = _SLOTS.get(said.casefold())
            if slot is not None:
                found.append(Stated(slot if slot in target else None, match[0], match.start(), match.end()))
            continue
        read = read_whole(said, target)
        if read.kind in ("label", "off_scale") and (read.label is not None or re.match(r"[-+]?\d", said)):
            found.append(Stated(read.label, match[0], match.start(), match.end()))
    return meant(text, without_lists(found))


def read_brackets(text: str, target: Target) -> Reading:
    """The last label in double brackets."""
    found = labels(text, target)
    if not found:
        return Reading(None, "no label in double brackets, such as [[A]], in the reply")
    return Reading(found[-1], earlier=tuple(found[:-1]))
