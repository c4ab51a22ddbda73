"""Image edits (the domain `retouch`): an image, the requested changes, and the edited image, which is judged.

Every requested change is a claim, correct if it was made as requested. Unrequested changes are counted by thing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dikast.worlds.domains.edit_states import MADE, NOT_MADE, OTHERWISE, SAID, EditDraft, evened, owed_most
from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State
from dikast.worlds.domains.scene_graph import Scene, Thing, legal
from dikast.worlds.domains.vocabulary import (
    COLOURS,
    HELD_OUT_PAIRS,
    REGIONS,
    SHAPES,
    SIZES,
    TEXTURES,
    region_of,
    sentence_of,
)
from dikast.worlds.drawing.raster import draw_scene
from dikast.worlds.sampling.rng import Stream

ASK = "Change the picture like this."
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "recolour": (
        "Make the {a} {b}.",
        "The colour of the {a} should become {b}.",
        "{a}: now {b}.",
        "Please make the {a} {b}.",
        "{b} is what the {a} should be.",
        "We ask for {b} for the {a}.",
    ),
    "shift": (
        "Move the {a} to the {b}.",
        "The place of the {a} should become the {b}.",
        "{a}: to the {b}.",
        "Please move the {a} to the {b}.",
        "To the {b} with the {a}.",
        "We ask for the {a} at the {b}.",
    ),
    "remove": (
        "Remove the {a}.",
        "The {a} should be gone.",
        "{a}: out.",
        "Please remove the {a}.",
        "Away with the {a}.",
        "We ask for no {a}.",
    ),
    "add": (
        "Add a {b} {a}.",
        "A {b} {a} should be added.",
        "New: {b} {a}.",
        "Please add a {b} {a}.",
        "To be added is a {b} {a}.",
        "We ask for one more thing, a {b} {a}.",
    ),
}
_TEMPLATES["resize"] = tuple(text.replace("colour", "size") for text in _TEMPLATES["recolour"])
_TEMPLATES["retexture"] = tuple(text.replace("colour", "texture") for text in _TEMPLATES["recolour"])


@dataclass(slots=True)
class Retouched:
    """A picture before and after. Things keep their shapes, and no two have the same."""

    before: Scene
    after: Scene

    def to_json(self) -> dict[str, Any]:
        """Both scenes as JSON."""
        return {"before": self.before.to_json(), "after": self.after.to_json()}


class Retouch:
    """The image before, the requested changes, and the image after."""

    name = "retouch"
    kinds: Mapping[str, tuple[str, ...]] = {
        "edit": ("recolour", "resize", "retexture"), "shift": ("shift",), "addition": ("add",), "removal": ("remove",),
        "preservation": (),
    }  # fmt: skip

    def begin(self, draft: Draft) -> None:
        """All shapes are free; some are reserved for things without a request, which can be changed unrequested."""
        most = min(draft.rules.objects[1], len(SHAPES))
        kept = min(3, most - 1)
        draft.budget = kept - 2  # at most two more unrequested changes than this
        draft.notes = EditDraft(draft.rng.shuffled(SHAPES), most - kept, kept)

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """One requested change: of a thing that already has a request half the time, else of a new one."""
        rng, notes = draft.rng, draft.notes
        if kind in SAID:
            return self._property(draft, notes, kind)
        if not notes.room:
            return None
        even = draft.rules.version >= 4
        if even and kind == "remove" and len(notes.removed) >= owed_most(draft):
            return None
        notes.room -= 1
        shape = notes.free.pop()
        if kind == "remove":
            notes.removed.append(shape)
            return Slot(kind, "removal", (shape,), [MADE, NOT_MADE], ["gone"], f"the {shape} that is to go")
        hue = rng.pick(_hues(draft, shape))
        notes.added[shape] = hue
        return Slot(kind, "addition", (shape,), [MADE, NOT_MADE, OTHERWISE], [hue], f"the {shape} that is to come")

    def _property(self, draft: Draft, notes: EditDraft, kind: str) -> Slot | None:
        rng, what = draft.rng, SAID[kind]
        known = [shape for shape, asked in notes.asked.items() if what not in asked]
        moves = [asked["place"] for asked in notes.asked.values() if "place" in asked]
        if not (known or notes.room) or (kind == "shift" and len(moves) >= draft.rules.grid - 2):
            return None
        if known and (not notes.room or (draft.rules.version < 4 and rng.chance(50))):
            shape = rng.pick(known)
        else:
            notes.room -= 1
            shape = notes.free.pop()
        open_ = {
            "colour": _hues(draft, shape),
            "size": list(SIZES),
            "texture": list(TEXTURES),
            "place": [region for region in REGIONS if region not in moves],
        }[what]
        value = rng.pick(open_)
        notes.asked.setdefault(shape, {})[what] = value
        aspect = "shift" if kind == "shift" else "edit"
        return Slot(kind, aspect, (shape,), [MADE, NOT_MADE, OTHERWISE], [value], f"the new {what} of the {shape}")

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """All changes can be made or not. At most as many unrequested changes are possible as requests without a
        change.
        """
        notes: EditDraft = draft.notes
        if draft.rules.version >= 4:
            alone = [s for s in slots if s.kind in SAID and s.kind != "shift" and len(notes.asked[s.subject[0]]) == 1]
            draft.budget = min(notes.kept, len(alone)) - 2
        return slots

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """0 if the change was made as requested, else 1."""
        return int(state != MADE)

    def build(
        self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None
    ) -> Retouched | None:
        """The image before, and one after in which these changes are made and `missing` things changed unrequested."""
        notes: EditDraft = draft.notes
        first, owed = notes.before is None, [""] * (missing or 0)
        if draft.rules.version >= 4:
            states, owed = evened(draft, slots, states, missing)
        notes.before = notes.before or _before(draft, notes)
        if notes.before is None:
            notes.done = set()
            return None
        after = _After(draft, notes.before)
        for slot, state in zip(slots, states, strict=True):
            after.change(slot, state)
        most = notes.kept
        if missing is None and draft.rules.version < 4:
            owed = [""] * (draft.rng.below(most + 1) * draft.rng.below(2))
        elif missing is None:
            owed += [""] * draft.rng.below(2 if most > 1 else 1)
        after.spoil(owed)
        if after.fits:
            return Retouched(notes.before, after.scene)
        if first and draft.rules.version >= 4:
            notes.before, notes.done = None, set()
        return None

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The requested change as a claim."""
        return Claim(slot.kind, slot.aspect, (slot.subject[0], stated))

    def say(self, claim: Claim, voice: int) -> str:
        """The request as a sentence."""
        return sentence_of(_TEMPLATES[claim.kind][voice], *claim.args)

    def measure(self, claim: Claim, graph: Retouched) -> ClaimFinding:
        """Whether the requested change was made."""
        shape, wish = str(claim.args[0]), str(claim.args[1])
        before, after = _find(graph.before, shape), _find(graph.after, shape)
        if claim.kind == "remove":
            if before is None:
                return ClaimFinding(1, f"there was no {shape}", gone=True)
            return ClaimFinding(
                int(after is not None), "it is gone" if after is None else f"the {shape} is still there"
            )
        if after is None:
            return ClaimFinding(1, f"no {shape} is there", gone=claim.kind != "add")
        what = SAID.get(claim.kind, "colour")
        seen = region_of(after.col, after.row, graph.after.grid) if what == "place" else getattr(after, what)
        return ClaimFinding(int(seen != wish), f"the {shape} is {'at the ' if what == 'place' else ''}{seen}")

    def missed(self, claims: Sequence[Claim], graph: Retouched) -> int:
        """The number of things with unrequested changes: appearance, place, addition or removal."""
        asked: dict[str, set[str]] = {}
        for claim in claims:
            asked.setdefault(str(claim.args[0]), set()).add(SAID.get(claim.kind, claim.kind))
        return sum(_unasked(shape, asked.get(shape, set()), graph) for shape in SHAPES)

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """One task: to change what is shown."""
        return "edit", ASK

    def prompt(self, graph: Retouched) -> str:
        """Nothing: the picture is shown."""
        return ""

    def frames(self, graph: Retouched) -> int:
        """Before and after."""
        return 2

    def render(self, graph: Retouched, size: int) -> list[Picture]:
        """Before and after."""
        return [draw_scene(graph.before, size), draw_scene(graph.after, size)]

    def to_json(self, graph: Retouched) -> dict[str, Any]:
        """Both scenes as JSON."""
        return graph.to_json()


def _hues(draft: Draft, shape: str) -> list[str]:
    """The colours that may be requested; held-out pairs if the split tests them."""
    held = [c for c in COLOURS if (c, shape) in HELD_OUT_PAIRS]
    if draft.rules.pairs == "held_out" and held:
        return held
    return [c for c in COLOURS if legal(c, shape, draft.rules.pairs)]


def _find(scene: Scene, shape: str) -> Thing | None:
    return next((thing for thing in scene.things if thing.shape == shape), None)


def _unasked(shape: str, asked: set[str], graph: Retouched) -> bool:
    """Whether anything about that shape changed without a request."""
    before, after = _find(graph.before, shape), _find(graph.after, shape)
    if before is None:
        return after is not None and "add" not in asked
    if after is None:
        return "remove" not in asked
    looks = any(what not in asked and getattr(before, what) != getattr(after, what) for what in list(SAID.values())[:3])
    return looks or ("place" not in asked and (before.col, before.row) != (after.col, after.row))


def _before(draft: Draft, notes: EditDraft) -> Scene | None:
    """The image before: no requested change is already true in it, and the requested places are free."""
    rng, rules, grid = draft.rng, draft.rules, draft.rules.grid
    fillers = notes.free[: notes.kept]
    notes.targets.clear()
    free = {(col, row) for col in range(grid) for row in range(grid)}
    wishes = {shape: asked["place"] for shape, asked in notes.asked.items() if "place" in asked}
    for shape in (*wishes, *notes.added):
        open_ = sorted(c for c in free if region_of(*c, grid) == wishes[shape]) if shape in wishes else sorted(free)
        taken = set(wishes.values()) if shape not in wishes else set()
        open_ = [cell for cell in open_ if region_of(*cell, grid) not in taken] or open_
        if not open_:
            return None
        notes.targets[shape] = rng.pick(open_)
        free.discard(notes.targets[shape])
    scene = Scene(grid, [], seed=rng.fork(), style=rules.style)
    scene.clutter, scene.noise = rng.below(rules.clutter + 1), rng.below(rules.noise + 1)
    for shape in rng.shuffled([*notes.asked, *notes.removed, *fillers]):
        asked = notes.asked.get(shape, {})
        cells = [cell for cell in sorted(free) if region_of(*cell, grid) != asked.get("place")]
        if not cells:
            return None
        col, row = rng.pick(cells)
        free.discard((col, row))
        colour = rng.pick([c for c in COLOURS if c != asked.get("colour") and legal(c, shape, rules.pairs)])
        size = rng.pick([s for s in SIZES if s != asked.get("size")])
        texture = rng.pick([t for t in TEXTURES if t != asked.get("texture")])
        if shape in notes.done:
            colour, size, texture = (asked.get(what, value) for what, value in zip(
                ("colour", "size", "texture"), (colour, size, texture), strict=True))  # fmt: skip
        scene.things.append(Thing(shape, colour, size, texture, col, row, rng.below(13) - 6, rng.below(13) - 6))
    return scene


class _After:
    """The image after, changed step by step. `fits` becomes False if there is no free place."""

    def __init__(self, draft: Draft, before: Scene) -> None:
        self.rng: Stream = draft.rng
        self.pairs = draft.rules.pairs
        self.notes: EditDraft = draft.notes
        self.fits = True
        self.scene = replace(before, things=[replace(thing) for thing in before.things])

    def was(self, shape: str) -> bool:
        """Whether a thing of this shape was there before."""
        return self.notes.before is not None and _find(self.notes.before, shape) is not None

    def change(self, slot: Slot, state: State) -> None:
        """Make one change, make it differently, or leave it out."""
        shape, wish = slot.subject[0], slot.stated[0]
        thing = _find(self.scene, shape)
        if state == NOT_MADE:
            return
        if slot.kind == "add":
            instead = state if state in SHAPES else shape
            exact = state == MADE or instead != shape
            hue = wish if exact and legal(wish, instead, self.pairs) else self._other("colour", instead, {wish})
            col, row = self.notes.targets[shape]
            size, texture = self.rng.pick(SIZES), self.rng.pick(TEXTURES)
            self.scene.things.append(Thing(instead, hue, size, texture, col, row))
        elif thing and slot.kind == "remove":
            self.scene.things.remove(thing)
        elif thing and slot.kind == "shift":
            grid = self.scene.grid
            away = {wish, region_of(thing.col, thing.row, grid)}
            cell = (
                self.notes.targets[shape] if state == MADE else self._cell(lambda at: region_of(*at, grid) not in away)
            )
            thing.col, thing.row = cell or (thing.col, thing.row)
        elif thing:
            what = SAID[slot.kind]
            now = getattr(thing, what)
            setattr(thing, what, wish if state == MADE else self._other(what, shape, {wish, now}))

    def spoil(self, kinds: Sequence[str]) -> None:
        """Make an unrequested change of each kind, each to another thing; "" is any kind."""
        notes = self.notes
        quiet = [
            t
            for t in self.scene.things
            if t.shape not in notes.asked | notes.added and t.shape not in notes.removed and self.was(t.shape)
        ]
        for thing, kind in zip(self.rng.shuffled(quiet), kinds, strict=False):
            what = kind or self.rng.pick((*SAID.values(), "going"))
            if what == "going":
                self.scene.things.remove(thing)
            elif what == "place":
                cell = self._cell(lambda at: True)
                thing.col, thing.row = cell or (thing.col, thing.row)
            else:
                setattr(thing, what, self._other(what, thing.shape, {getattr(thing, what)}))

    def _other(self, what: str, shape: str, taken: set[str]) -> str:
        values = {"size": SIZES, "texture": TEXTURES}.get(what) or [c for c in COLOURS if legal(c, shape, self.pairs)]
        return self.rng.pick([value for value in values if value not in taken])

    def _cell(self, fits: Callable[[tuple[int, int]], bool]) -> tuple[int, int] | None:
        """A free cell that is not the target of a move."""
        grid = self.scene.grid
        taken = {(t.col, t.row) for t in self.scene.things} | set(self.notes.targets.values())
        cells = [(c, r) for c in range(grid) for r in range(grid) if (c, r) not in taken and fits((c, r))]
        if not cells:
            self.fits = False
            return None
        return self.rng.pick(cells)
