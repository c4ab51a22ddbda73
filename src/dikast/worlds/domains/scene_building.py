"""Building a scene from the states of slots: things with the required properties, everything else at random."""

from collections.abc import Sequence
from typing import Any

from dikast.worlds.domains.protocol import Draft, Slot, State
from dikast.worlds.domains.scene_graph import OPPOSITE, Scene, Thing, corner_cell, legal, place
from dikast.worlds.domains.vocabulary import COLOURS, CORNERS, SIZES, TEXTURES, region_of

CROWDED = 12  # with a range that ends above it, from version 4 on, the number of things is uniform over the range


class Builder:
    """Builds a scene in which slots have given states."""

    def __init__(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State]) -> None:
        self.rng = draft.rng
        self.draft, self.notes, self.rules = draft, draft.notes, draft.rules
        self.unique = {shape: Thing(shape, "", "", "") for shape in draft.notes.used}
        self.others: list[Thing] = []
        self.covers: list[tuple[int, int]] = []
        self.absent = 0  # things that are claimed and not there
        self.wishes: dict[int, Any] = {}  # id(thing) -> wish
        for slot, state in zip(slots, states, strict=True):
            self._apply(slot, state)

    def _apply(self, slot: Slot, state: State) -> None:
        kind, subject = slot.kind, slot.subject
        if kind in ("colour", "size", "texture"):
            setattr(self.unique[subject[0]], kind, state)
        elif kind in ("binding", "larger"):
            for shape, value in zip(subject, state, strict=True):
                setattr(
                    self.unique[shape],
                    "colour" if kind == "binding" else "size",
                    value if kind == "binding" else SIZES[value],
                )
        elif kind == "position":
            self.wishes[id(self.unique[subject[0]])] = state
        elif kind == "relation":
            direction = subject[2] if state > 0 else OPPOSITE[subject[2]]
            self.wishes[id(self.unique[subject[0]])] = (self.unique[subject[1]], direction, abs(state))
        elif kind == "exists":
            self.others += [] if state == "none" else [Thing(subject[0], state, "", "")]
            self.absent += state == "none"
        elif kind == "shape":
            self.others.append(Thing(state, subject[0], "", ""))
        elif kind in ("count", "more"):
            for shape, n in zip(subject, (state,) if kind == "count" else state, strict=True):
                self.others += [Thing(shape, "", "", "") for _ in range(n)]
        else:
            self._corner(subject[0], subject[1], seen=state == "seen")

    def _corner(self, corner: str, shape: str, *, seen: bool) -> None:
        """A thing in a corner, or a cover. From version 4 on the rival corner has the other one."""
        rival = self.notes.rivals.get(corner)
        if seen or rival:
            thing = Thing(shape, "", "", "")
            self.others.append(thing)
            self.wishes[id(thing)] = corner_cell(corner if seen else rival, self.rules.grid)
        if not seen or rival:
            self.covers.append(corner_cell(rival if seen else corner, self.rules.grid))

    def scene(self, missing: int | None) -> Scene | None:
        """The finished scene; None if the required places cannot all be met."""
        rng, rules = self.rng, self.rules
        things = [*self.unique.values(), *self.others]
        low, high = rules.objects
        even = rules.version >= 4
        if missing is None:
            named = len(things) + (self.absent if even else 0)
            room = max(0, min(high, rules.grid**2 - len(self.covers)) - named)
            more = low + rng.below(high - low + 1) - named if even and high > CROWDED else rng.below(min(3, room) + 1)
            missing = min(room, max(more, low - named, 0))
            missing += self.absent if even else 0  # another thing stands for each that is claimed and absent
        pool = [s for s in self.notes.free if any(self._colours(s))]
        shapes = self._fillers(pool, missing) if even else [rng.pick(pool) for _ in range(missing)]
        things += [Thing(shape, "", "", "") for shape in shapes]
        things = rng.shuffled(things)
        hidden = set(self.covers)
        if (not self.covers and rng.chance(25)) if even else (self.covers and rng.chance(40)) or rng.chance(8):
            self._decoy(things, hidden)
        for thing in things:
            thing.colour = thing.colour or rng.pick(self._colours(thing.shape))
            thing.size = thing.size or rng.pick(SIZES)
            thing.texture = thing.texture or rng.pick(TEXTURES)
            thing.dx, thing.dy = rng.below(13) - 6, rng.below(13) - 6
        scene = Scene(rules.grid, things, self.covers, seed=rng.fork(), style=rules.style)
        index = {id(thing): i for i, thing in enumerate(things)}
        wishes = {
            index[i]: (index[id(w[0])], w[1], w[2]) if isinstance(w, tuple) and len(w) == 3 else w
            for i, w in self.wishes.items()
        }
        return self._placed(scene, wishes)

    def _fillers(self, pool: list[str], n: int) -> list[str]:
        """Shapes of things that no claim names: all different as long as there are enough."""
        found: list[str] = []
        while len(found) < n:
            found += self.rng.shuffled(pool)[: n - len(found)]
        return found

    def _placed(self, scene: Scene, wishes: dict[int, Any]) -> Scene | None:
        rng, rules = self.rng, self.rules
        for _ in range(8):
            for thing in scene.things:
                thing.col = thing.row = -1
            if place(scene, wishes, rng):
                break
        else:
            return None
        scene.clutter = rng.below(rules.clutter + 1)
        scene.noise = rng.below(rules.noise + 1)
        if rules.occlusion and rng.chance(rules.occlusion):
            scene.bars = sorted(rng.shuffled(range(len(scene.things)))[: 1 + rng.below(2)])
        return scene

    def _decoy(self, things: list[Thing], hidden: set[tuple[int, int]]) -> None:
        """Add a cover that hides nothing a claim is about."""
        wanted = {corner_cell(c, self.rules.grid) for c in self.notes.corners | self.notes.regions & set(CORNERS)}
        open_ = [
            corner_cell(c, self.rules.grid) for c in CORNERS if corner_cell(c, self.rules.grid) not in wanted | hidden
        ]
        placed = {w for w in self.wishes.values() if isinstance(w, str)}
        open_ = [cell for cell in open_ if region_of(*cell, self.rules.grid) not in placed]
        if open_ and len(things) + len(hidden) < self.rules.grid**2 - 2:
            self.covers.append(self.rng.pick(open_))

    def _colours(self, shape: str) -> list[str]:
        return [c for c in COLOURS if c not in self.notes.reserved and legal(c, shape, self.rules.pairs)]
