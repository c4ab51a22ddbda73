"""Replies recorded elsewhere, read by a dialect: for audits of judges that were asked by others."""

from collections.abc import Callable

from dikast.core.scale import Scale
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.parse import get_dialect, parse_for
from dikast.prompts.parsed import Target

_SLOTS = {"A>B": "first", "B>A": "second", "A=B": "tie"}


def reply_reader(dialect: str, scale: Scale | None, /) -> Callable[[str], tuple[str | None, str]]:
    """A reader of replies: the label (of `scale`, or `first`, `second`, `tie` of a pair) or None, and the status.

    Of a pair the dialect `arena` gives `A>>B` and `B>>A` where the preference is a strong one.
    UserError for a dialect that does not exist, with the near miss.
    """
    known = get_dialect(dialect)
    strengths = scale is None and dialect == "arena"
    target = Target(ARENA if strengths else scale)

    def read(reply: str) -> tuple[str | None, str]:
        found = parse_for(known, reply, target)
        label = _SLOTS.get(found.label, found.label) if strengths and found.label else found.label
        return label, str(found.status.value)

    return read
