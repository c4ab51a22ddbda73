"""The outcome of requested changes: made, not made, made differently; and unrequested changes.

From version 4 of the worlds on, the number of changes is independent of how many requests were met.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dikast.worlds.domains.protocol import Draft, Slot, State
from dikast.worlds.domains.scene_graph import Scene

MADE, NOT_MADE, OTHERWISE = "made", "not made", "made differently"
SAID = {"recolour": "colour", "resize": "size", "retexture": "texture", "shift": "place"}


@dataclass(slots=True)
class EditDraft:
    """The requested changes: properties of things, removals and additions. `before` is drawn once and then kept.

    `targets` are the cells kept free for things to be moved or added.
    """

    free: list[str]
    room: int
    kept: int  # things that no request is about
    asked: dict[str, dict[str, str]] = field(default_factory=dict)  # shape -> colour, size, texture, place
    added: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)
    before: Scene | None = None
    done: set[str] = field(default_factory=set)  # shapes whose one request is already met in the picture before


def owed_most(draft: Draft) -> int:
    """How many requests may be left undone if another change has to replace each."""
    notes: EditDraft = draft.notes
    return max(1, notes.kept - 1)


def evened(
    draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None
) -> tuple[list[State], list[str]]:
    """States under which the number of changes is independent of how many requests were met, as far as possible.

    A request that was not met is met differently; or another thing is changed in that way (the second value says how);
    or another shape is added. If unrequested changes are counted (`missing`), as many requests change nothing, because
    they are not met or already fulfilled.
    """
    if missing is not None:
        return _exchanged(draft, slots, states, missing)
    notes: EditDraft = draft.notes
    spare = draft.rng.shuffled(notes.free[notes.kept :])
    found, owed = list(states), []
    for i in sorted(range(len(slots)), key=lambda i: slots[i].kind != "remove"):
        slot, shape = slots[i], slots[i].subject[0]
        if states[i] == MADE:
            continue
        if slot.kind == "remove":
            owed.append("going")
        elif slot.kind == "add" and spare and draft.rng.chance(50):
            found[i] = spare.pop()
        elif slot.kind == "add" or len(notes.asked[shape]) > 1 or len(owed) >= owed_most(draft) or draft.rng.chance(50):
            found[i] = OTHERWISE
        else:
            found[i] = NOT_MADE
            owed.append(SAID[slot.kind])
    return found, owed


def _exchanged(
    draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int
) -> tuple[list[State], list[str]]:
    """As many requests without a change as there are `missing` changes without a request, if possible of their kinds.

    A request is without a change if it is not made, or if the picture before already is as it asks. That picture is
    drawn once: for a further picture under the same request only those that are not made can vary.
    """
    notes: EditDraft = draft.notes
    found = [state if state == MADE or slot.kind == "remove" else OTHERWISE
             for slot, state in zip(slots, states, strict=True)]  # fmt: skip
    kinds = ["going" for slot, state in zip(slots, states, strict=True) if slot.kind == "remove" and state != MADE]
    new, instead = notes.before is None, 0
    spare = draft.rng.shuffled(notes.free[notes.kept :])
    for i in draft.rng.shuffled(range(len(slots))):
        slot, shape = slots[i], slots[i].subject[0]
        if len(kinds) + instead >= missing or slot.kind == "remove" or shape in notes.done:
            continue
        if slot.kind == "add":
            if found[i] != MADE and spare:
                found[i] = spare.pop()  # itself an unrequested change
                instead += 1
        elif len(notes.asked[shape]) == 1 and (found[i] != MADE or (new and slot.kind != "shift")):
            if found[i] == MADE:
                notes.done.add(shape)
            else:
                found[i] = NOT_MADE
            kinds.append(SAID[slot.kind])
    looks = [draft.rng.pick(("colour", "size", "texture")) for _ in range(missing)]
    return found, [*kinds, *looks][: missing - instead]
