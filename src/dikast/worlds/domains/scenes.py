"""The domain of scenes: shapes on a grid, and claims about them that can each be made true or false.

Every claim is about its own part of the scene (a thing's colour, the number of a shape, the relation of two things),
so that any pattern of correct and wrong claims is possible. A shape that is mentioned as "the star" occurs once;
fillers have shapes and colours that no claim mentions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dikast.worlds.domains import scene_graph as facts
from dikast.worlds.domains.paraphrases import say
from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State
from dikast.worlds.domains.scene_building import Builder
from dikast.worlds.domains.scene_graph import Scene, legal
from dikast.worlds.domains.vocabulary import (
    COLOURS,
    CORNERS,
    HELD_OUT_PAIRS,
    PLURALS,
    REGIONS,
    SHAPES,
    SIZES,
    TEXTURES,
    colour_steps,
    region_steps,
)  # fmt: skip

_MORE = [(2, 1), (3, 1), (3, 2), (2, 2), (1, 1), (1, 2), (1, 3), (2, 3)]
_MOST = 5  # things of one shape that are counted
_SPARE = 2  # shapes that are never mentioned, for fillers and mistaken shapes


@dataclass(slots=True)
class SceneDraft:
    """The shapes and colours in use while sentences are drawn."""

    free: list[str]
    used: dict[str, set[str]] = field(default_factory=dict)  # shapes mentioned as "the ...": what is stated of each
    reserved: set[str] = field(default_factory=set)  # colours that name a thing ("the red thing")
    spoken: set[str] = field(default_factory=set)  # colours that a claim states
    regions: set[str] = field(default_factory=set)
    corners: set[str] = field(default_factory=set)
    rivals: dict[str, str] = field(
        default_factory=dict
    )  # corner of a claim -> the corner that matches it if the claim is wrong


class Scenes:
    """Shapes on a grid."""

    name = "scenes"
    kinds: Mapping[str, tuple[str, ...]] = {
        "colour": ("colour",), "size": ("size",), "shape": ("shape",), "texture": ("texture",),
        "position": ("position",), "relation": ("relation",), "count": ("count",), "existence": ("exists",),
        "binding": ("binding",), "comparison": ("more", "larger"), "certainty": ("sure",), "completeness": (),
    }  # fmt: skip

    def begin(self, draft: Draft) -> None:
        """All shapes are free; some room is reserved for fillers."""
        most = draft.rules.objects[1]
        draft.budget = most - (3 if most >= 10 else 2 if most >= 5 else 1)
        draft.notes = SceneDraft(draft.rng.shuffled(SHAPES))

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot of this kind, or None when shapes, colours or room have run out."""
        return getattr(self, f"_draw_{kind}")(draft, draft.notes)  # type: ignore[no-any-return]

    def _subject(self, draft: Draft, notes: SceneDraft, what: str, need: int = 1) -> list[str] | None:
        """`need` shapes of which `what` has not been stated: known ones half the time, else new ones."""
        known = [shape for shape, said in notes.used.items() if what not in said]
        fresh = min(len(notes.free) - _SPARE, draft.budget)
        chosen: list[str] = []
        for _ in range(need):
            if known and (fresh <= 0 or draft.rng.chance(50)):
                chosen.append(known.pop(draft.rng.below(len(known))))
            elif fresh > 0:
                chosen.append(notes.free[-1 - sum(c not in notes.used for c in chosen)])
                fresh -= 1
            else:
                return None
        return chosen

    def _take(self, draft: Draft, notes: SceneDraft, shapes: list[str], what: str) -> None:
        for shape in shapes:
            if shape not in notes.used:
                notes.free.remove(shape)
                notes.used[shape] = set()
                draft.budget -= 1
            notes.used[shape].add(what)

    def _exclusive(self, draft: Draft, notes: SceneDraft, room: int) -> str | None:
        if len(notes.free) <= _SPARE or draft.budget < room:
            return None
        draft.budget -= room
        return notes.free.pop()

    def _hues(self, draft: Draft, notes: SceneDraft, shape: str) -> list[str]:
        """The colours a claim may state of this shape."""
        pairs = draft.rules.pairs
        if pairs == "held_out":
            found = [c for c in COLOURS if (c, shape) in HELD_OUT_PAIRS and c not in notes.reserved]
            if len(found) > draft.responses - 1 or (draft.responses == 1 and found):
                return found
        return [c for c in COLOURS if c not in notes.reserved and legal(c, shape, pairs)]

    def _draw_colour(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        shapes = self._subject(draft, notes, "colour")
        hues = self._hues(draft, notes, shapes[0]) if shapes else []
        if not shapes or len(hues) < 1:
            return None
        self._take(draft, notes, shapes, "colour")
        stated = draft.stated(hues)
        notes.spoken.update(stated)
        shape = shapes[0]
        return Slot(
            "colour", "colour", (shape,), [], stated, f"the colour of the {shape}", f"What colour is the {shape}?"
        )

    def _plain(self, draft: Draft, notes: SceneDraft, kind: str, values: tuple[str, ...], question: str) -> Slot | None:
        shapes = self._subject(draft, notes, kind)
        if not shapes:
            return None
        self._take(draft, notes, shapes, kind)
        about = f"the {kind} of the {shapes[0]}"
        return Slot(kind, kind, (shapes[0],), list(values), draft.stated(values), about, question.format(shapes[0]))

    def _draw_size(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        return self._plain(draft, notes, "size", SIZES, "How big is the {}?")

    def _draw_texture(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        return self._plain(draft, notes, "texture", TEXTURES, "What texture has the {}?")

    def _draw_position(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        open_ = [region for region in REGIONS if region not in notes.regions | notes.corners]
        shapes = self._subject(draft, notes, "place")
        if not shapes or len(open_) < 5:
            return None
        self._take(draft, notes, shapes, "place")
        stated = draft.stated(open_)
        notes.regions.update(stated)
        shape = shapes[0]
        return Slot("position", "position", (shape,), [], stated, f"the place of the {shape}", f"Where is the {shape}?")

    def _draw_relation(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        shapes = self._subject(draft, notes, "place", 2)
        if not shapes:
            return None
        self._take(draft, notes, shapes, "place")
        axis = ("left of", "right of") if draft.rng.chance(50) else ("above", "below")
        a, b = shapes
        about, ask = f"how the {a} lies to the {b}", f"How does the {a} lie to the {b}?"
        return Slot("relation", "relation", (a, b, axis[0]), [-2, -1, 1, 2], draft.stated(axis), about, ask)

    def _draw_count(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        if draft.rules.version >= 4:
            return self._draw_even_count(draft, notes)
        one = draft.responses == 1
        tops = [top for top in (2, 3, 4) if draft.budget >= (top + 2 if one else 5)]
        shape = self._exclusive(draft, notes, 0) if tops else None
        if shape is None:
            return None
        stated = draft.stated(tops if one else (2, 3, 4))
        most = stated[0] + 2 if one else 5
        draft.budget -= most
        about, ask = f"the number of {PLURALS[shape]}", f"How many {PLURALS[shape]} are there?"
        return Slot("count", "count", (shape,), list(range(1, most + 1)), stated, about, ask)

    def _draw_even_count(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        """Stated and true numbers have the same range, so that the number of things carries no information about the
        claim.
        """
        shape = self._exclusive(draft, notes, 0) if draft.budget >= 3 else None
        if shape is None:
            return None
        most = 3 + draft.rng.below(min(_MOST, draft.budget) - 2)
        draft.budget -= most
        numbers: list[State] = list(range(2, most + 1))
        about, ask = f"the number of {PLURALS[shape]}", f"How many {PLURALS[shape]} are there?"
        return Slot("count", "count", (shape,), numbers, draft.stated(numbers), about, ask)

    def _draw_exists(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        shape = self._exclusive(draft, notes, 1)
        hues = self._hues(draft, notes, shape) if shape else []
        if shape is None or not hues:
            return None
        stated = draft.stated(hues)
        notes.spoken.update(stated)
        return Slot("exists", "existence", (shape,), [], stated, f"the {shape} that is named", f"Is there a {shape}?")

    def _draw_shape(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        hues = [c for c in COLOURS if c not in notes.reserved | notes.spoken]
        values = notes.free[_SPARE + 1 :]
        hue = draft.rng.pick(hues) if len(hues) > 4 else ""
        values = [s for s in values if hue and self._pair_fits(draft, hue, s)]
        if len(values) < min(2, draft.responses) or draft.budget < 1:
            return None
        even = draft.rules.version >= 4
        kept = values[: max(2, draft.responses)] if even else values[: draft.responses]
        stated = draft.stated(kept)
        for shape in kept if even else set(stated):  # from version 4 on fillers never have the shape that is there
            notes.free.remove(shape)
        draft.budget -= 1
        notes.reserved.add(hue)
        return Slot(
            "shape",
            "shape",
            (hue,),
            list(kept) if even else [],
            stated,
            f"the shape of the {hue} thing",
            f"What is the {hue} thing?",
        )

    def _pair_fits(self, draft: Draft, hue: str, shape: str) -> bool:
        """Whether claims may state this pair; in the split of held-out pairs they state held-out ones if possible."""
        if draft.rules.pairs == "held_out" and draft.responses == 1:
            return (hue, shape) in HELD_OUT_PAIRS
        return legal(hue, shape, draft.rules.pairs)

    def _draw_binding(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        shapes = self._subject(draft, notes, "colour", 2)
        if not shapes:
            return None
        a, b = shapes
        both = [c for c in COLOURS if c not in notes.reserved and all(legal(c, s, draft.rules.pairs) for s in shapes)]
        if len(both) < 2:
            return None
        self._take(draft, notes, shapes, "colour")
        c, d = draft.rng.shuffled(both)[:2]
        notes.spoken.update((c, d))
        ask = f"What colours are the {a} and the {b}?"
        return Slot("binding", "binding", (a, b), [(c, d), (d, c)], draft.stated([(c, d), (d, c)]),
                    f"the colours of the {a} and the {b}", ask)  # fmt: skip

    def _draw_more(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        if draft.budget < 5 or len(notes.free) <= _SPARE + 1:
            return None
        a, b = self._exclusive(draft, notes, 5), notes.free.pop()
        stated = draft.stated([(a, b), (b, a)])
        ask = f"Are there more {PLURALS[str(a)]} or {PLURALS[b]}?"
        return Slot(
            "more",
            "comparison",
            (str(a), b),
            [each for each in _MORE if draft.rules.version < 4 or each[0] != each[1]],
            stated,
            f"if more {PLURALS[str(a)]} or {PLURALS[b]} are there",
            ask,
        )

    def _draw_larger(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        shapes = self._subject(draft, notes, "size", 2)
        if not shapes:
            return None
        self._take(draft, notes, shapes, "size")
        a, b = shapes
        universe = [(x, y) for x in range(3) for y in range(3) if draft.rules.version < 4 or x != y]
        ask = f"Which is larger, the {a} or the {b}?"
        return Slot(
            "larger",
            "comparison",
            (a, b),
            universe,
            draft.stated([(a, b), (b, a)]),
            f"which is larger, the {a} or the {b}",
            ask,
        )

    def _draw_sure(self, draft: Draft, notes: SceneDraft) -> Slot | None:
        open_ = [corner for corner in CORNERS if corner not in notes.regions | notes.corners]
        need = 2 if draft.rules.version >= 4 else 1
        shape = self._exclusive(draft, notes, 1) if len(open_) >= need and len(notes.corners) < 2 else None
        if shape is None:
            return None
        corner = draft.rng.pick(open_)
        notes.corners.add(corner)
        if draft.rules.version >= 4:
            notes.rivals[corner] = draft.rng.pick([each for each in open_ if each != corner])
            notes.corners.add(notes.rivals[corner])
        stated = [shape] * draft.responses
        return Slot(
            "sure",
            "certainty",
            (corner, shape),
            ["seen", "covered"],
            stated,
            f"the {corner} corner",
            f"What is in the {corner} corner?",
        )

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """Close the universes, now that it is known which shapes and colours are mentioned."""
        notes: SceneDraft = draft.notes
        for slot in slots:
            if slot.kind in ("colour", "exists"):
                slot.universe = [
                    c for c in COLOURS if c not in notes.reserved and legal(c, slot.subject[0], draft.rules.pairs)
                ]
                if slot.kind == "exists":
                    slot.universe.append("none")
            elif slot.kind == "shape" and draft.rules.version < 4:
                pool = [s for s in notes.free if legal(slot.subject[0], s, draft.rules.pairs)]
                slot.universe = [*dict.fromkeys(slot.stated), *pool]
            elif slot.kind == "position":
                slot.universe = [region for region in REGIONS if region not in notes.corners]
        return slots

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """How far off the statement is when the slot has that state; agrees with `measure` on the built scene."""
        kind = slot.kind
        if kind == "colour":
            return colour_steps(stated, state)
        if kind in ("size", "texture", "shape", "sure"):
            if kind == "size":
                return abs(SIZES.index(stated) - SIZES.index(state))
            return int(state == "covered" if kind == "sure" else stated != state)
        if kind == "position":
            return region_steps(stated, state)
        if kind == "relation":
            lead: int = state if stated == slot.subject[2] else -state
            return max(0, 1 - lead)
        if kind == "count":
            return int(abs(stated - state))
        if kind == "exists":
            return 2 if state == "none" else int(stated != state)
        if kind == "binding":
            return 0 if stated == state else 2
        a: int
        b: int
        a, b = state if stated[0] == slot.subject[0] else (state[1], state[0])
        return max(0, 1 - (a - b))

    def build(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None) -> Scene | None:
        """Things with the properties that the states require, everything else at random, each in its own cell."""
        return Builder(draft, slots, states).scene(missing)

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of the slot."""
        kind, subject = slot.kind, slot.subject
        if kind in ("more", "larger"):
            args: tuple[Any, ...] = stated
        elif kind == "binding":
            args = (*subject, *stated)
        elif kind == "relation":
            args = (subject[0], subject[1], stated)
        elif kind == "sure":
            args = subject
        else:
            args = (subject[0], stated)
        return Claim(kind, slot.aspect, args)

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""
        return say(claim.kind, claim.args, voice)

    def measure(self, claim: Claim, graph: Scene) -> ClaimFinding:
        """The truth about a claim in any scene."""
        return facts.measure(claim, graph)

    def missed(self, claims: Sequence[Claim], graph: Scene) -> int:
        """How many things the claims leave out."""
        return facts.missed(claims, graph)

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """A task that the slots answer."""
        kinds = {slot.kind for slot in slots}
        for task, fits, text in _TASKS:
            if kinds <= fits and draft.rng.chance(60):
                return task, draft.rng.pick(text)
        if draft.rng.chance(35):
            return "answer", " ".join(slot.question for slot in slots)
        return "describe", draft.rng.pick(("Describe the picture.", "What is in the picture?", "Say what you see."))

    def prompt(self, graph: Scene) -> str:
        """Nothing: the picture is shown."""
        return ""

    def render(self, graph: Scene, size: int) -> list[Picture]:
        """The picture."""
        from dikast.worlds.drawing.raster import draw_scene

        return [draw_scene(graph, size)]

    def frames(self, graph: Scene) -> int:
        """One."""
        return 1

    def to_json(self, graph: Scene) -> dict[str, Any]:
        """The scene graph as JSON."""
        return graph.to_json()


_TASKS = (
    ("count", {"count"}, ("Count the things.", "How many of each are there?")),
    ("compare", {"more", "larger"}, ("Compare the things.",)),
    ("locate", {"position", "relation"}, ("Say where things are.", "Locate the things.")),
)  # fmt: skip
