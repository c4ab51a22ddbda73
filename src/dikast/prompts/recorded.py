"""Replies recorded elsewhere, read by a dialect: for audits of judges that were asked by others."""

from collections.abc import Callable

from dikast.core.scale import Scale
from dikast.prompts.parse import get_dialect, parse_for
from dikast.prompts.parsed import Target


def reply_reader(dialect: str, scale: Scale | None, /) -> Callable[[str], tuple[str | None, str]]:
    """A reader of replies: the label (of `scale`, or `first`, `second`, `tie` of a pair) or None, and the status.

    UserError for a dialect that does not exist, with the near miss.
    """
    known, target = get_dialect(dialect), Target(scale)

    def read(reply: str) -> tuple[str | None, str]:
        found = parse_for(known, reply, target)
        return found.label, str(found.status.value)

    return read
