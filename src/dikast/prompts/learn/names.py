"""Names of slots: the user's, and suggestions from the words before a slot."""

import re
from collections.abc import Mapping, Sequence

from dikast.core.errors import UserError
from dikast.prompts.learn.document import SLOT_NAMES, folded
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.skeleton import Skeleton

_SHOWN = 60
_HINTS = (  # patterns for the words before a slot, most specific first
    ("levels", r"^$"),
    ("reference", r"reference|ground truth|gold"),
    ("criterion", r"rubric|criteri"),
    ("first", r"(?:response|answer|assistant|output)\W*(?:a|1)\b|\bfirst\b"),
    ("second", r"(?:response|answer|assistant|output)\W*(?:b|2)\b|\bsecond\b"),
    ("context", r"context|document|passage"),
    ("response", r"response|answer|output|completion"),
    ("instruction", r"instruction|question|prompt|query|task|input"),
)


def speaks_of_slot(words: str) -> bool:
    """Whether these words indicate what a slot contains."""
    return any(re.search(pattern, words.casefold()) for _, pattern in _HINTS[1:])


def propose(skeleton: Skeleton) -> dict[str, str]:
    """A suggested name for each unnamed slot from the words before it, or ""."""
    found: dict[str, str] = {}
    for slot, literal in zip(skeleton.slots, skeleton.literals, strict=False):
        if slot.startswith(LEVEL):
            continue
        lines = [line for line in literal.split("\n") if re.search(r"\w", line)]
        last = lines[-1][-80:].casefold() if lines else ""
        found[slot] = next((n for n, p in _HINTS if re.search(p, last) and n not in found.values()), "")
    return found


def named(
    skeleton: Skeleton, given: Mapping[str, str], example: str, *, accept: bool
) -> tuple[Skeleton, dict[str, str]]:
    """The skeleton with its names, and number to name; UserError with suggestions for slots without a name."""
    proposed = propose(skeleton)
    names = {**(proposed if accept else {}), **given}
    slots = folded(skeleton)
    unknown = sorted(set(names) - set(slots))
    wrong = sorted(set(names.values()) - set(SLOT_NAMES) - {""})
    if unknown or wrong:
        what = f"there is no slot {unknown[0]!r}" if unknown else f"{wrong[0]!r} is no name"
        raise UserError(f"--name: {what}; slots are {', '.join(slots)}, names are {', '.join(SLOT_NAMES)}")
    if missing := [slot for slot in slots if slot != "levels" and not names.get(slot)]:
        raise UserError(_unnamed(skeleton, proposed, missing, example))
    taken = [name for slot, name in names.items() if name]
    if len(set(taken)) < len(taken):
        raise UserError("two slots have the same name: give each its own (--name)")
    called = {slot: name for slot, name in names.items() if name}
    return skeleton.named(called), called


def _unnamed(skeleton: Skeleton, proposed: Mapping[str, str], missing: Sequence[str], example: str) -> str:
    values = skeleton.split(example)
    lines = [f"the prompts have {len(folded(skeleton))} slots, and {len(missing)} of them need a name:"]
    for slot, literal in zip(skeleton.slots, skeleton.literals, strict=False):
        if slot in missing:
            shown = values[slot][:_SHOWN] if isinstance(values, dict) else ""
            before = literal.strip().split("\n")[-1][-_SHOWN:]
            lines.append(
                f"  {slot}: after {before!r}, such as {shown!r}" + f"; {proposed[slot]}?" * bool(proposed[slot])
            )
    guess = " ".join(f"--name {slot}={proposed[slot] or 'NAME'}" for slot in missing)
    lines.append(f"  name them: {guess}" + (" (or --accept-names)" if all(proposed[each] for each in missing) else ""))
    return "\n".join(lines)
