"""The domain of clips: four to eight frames in which things move, appear and change colour, and claims about that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dikast.worlds.domains import clip_graph as facts
from dikast.worlds.domains.clip_graph import DIRECTIONS, STEPS, Clip, Event, phrase
from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State
from dikast.worlds.domains.scene_graph import GONE, Thing, legal
from dikast.worlds.domains.vocabulary import COLOURS, HELD_OUT_PAIRS, SHAPES, SIZES, TEXTURES, colour_steps, sentence_of
from dikast.worlds.drawing.raster import draw_scene

_KINDS = ("move", "appear", "recolour")
_LEADS: list[State] = [-2, -1, 0, 1, 2]  # frames by which one event comes before another
_NONE = "none"  # the claimed event does not happen
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "motion": (
        "The {a} moves {b}.",
        "The direction of the {a} is {b}.",
        "{a}: moves {b}.",
        "Look, the {a} moves {b}.",
        "{b} is the way the {a} goes.",
        "We note a move {b} for the {a}.",
    ),
    "turns": (
        "The {a} turns {b}.",
        "The colour of the {a} becomes {b}.",
        "{a}: turns {b}.",
        "Look, the {a} turns {b}.",
        "{b} is the new colour of the {a}.",
        "We note a change to {b} for the {a}.",
    ),
    "appears": (
        "A {b} {a} appears.",
        "A {b} {a} comes into view.",
        "New: {b} {a}.",
        "Look, a {b} {a} appears.",
        "Into view comes a {b} {a}.",
        "We note one new {b} {a}.",
    ),
    "moment": (
        "The {a} in frame {b}.",
        "In frame {b} the {a}.",
        "{a}: frame {b}.",
        "Look, the {a} in frame {b}.",
        "Frame {b} is when the {a}.",
        "We note that in frame {b} the {a}.",
    ),
    "before": (
        "The {a} before the {b}.",
        "First the {a} and later the {b}.",
        "{a}, then {b}.",
        "Look, the {a} before the {b}.",
        "Before the {b}, the {a}.",
        "We note that the {a} before the {b}.",
    ),
}
_WHAT = {"motion": "move", "turns": "recolour", "appears": "appear"}
_ABOUT = {
    "motion": ("which way the {} moves", "Which way does the {} move?"),
    "turns": ("what colour the {} turns", "What colour does the {} turn?"),
    "appears": ("the {} that appears", "Does a {} appear, and in which colour?"),
}


@dataclass(slots=True)
class Spoken:
    """The event that claims state about a thing, and which of `what` and `when` has been stated."""

    kind: str
    said: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ClipDraft:
    """The shapes and events in use while sentences are drawn. `room` counts free grid cells; a move needs two."""

    frames: int
    room: int
    free: list[str]
    used: dict[str, Spoken] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)  # shape -> the one that has its event if it has none itself


class Clips:
    """Things that move, appear and change colour over time."""

    name = "clips"
    kinds: Mapping[str, tuple[str, ...]] = {
        "motion": ("motion",), "change": ("turns",), "existence": ("appears",), "time": ("before",),
        "moment": ("moment",),
    }  # fmt: skip

    def begin(self, draft: Draft) -> None:
        """Draw the number of frames; all shapes are free."""
        rng, rules = draft.rng, draft.rules
        draft.budget = min(rules.objects[1], len(SHAPES)) - 1
        draft.notes = ClipDraft(4 + rng.below(5), rules.grid * (rules.grid - 1), rng.shuffled(SHAPES))

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot about a thing's event, about its time, or about which of two events is first."""
        notes: ClipDraft = draft.notes
        if kind in _WHAT:
            return self._what(draft, notes, kind)
        shapes = self._subjects(draft, notes, "when", _KINDS, 2 if kind == "before" else 1)
        if not shapes:
            return None
        events = [phrase(shape, notes.used[shape].kind) for shape in shapes]
        if kind == "moment":
            frames: list[State] = list(range(2, notes.frames + 1))
            about = f"the frame in which the {events[0]}"
            ask = f"When is it that the {events[0]}?"
            return Slot("moment", "moment", (events[0],), frames, draft.stated(frames), about, ask)
        a, b = events
        ways: list[State] = [(a, b), (b, a)]
        about = f"what is first, that the {a} or that the {b}"
        leads = [lead for lead in _LEADS if lead or draft.rules.version < 4]
        return Slot("before", "time", (a, b), leads, draft.stated(ways), about, f"W{about[1:]}?")

    def _what(self, draft: Draft, notes: ClipDraft, kind: str) -> Slot | None:
        shapes = self._subjects(draft, notes, "what", (_WHAT[kind],), 1)
        if not shapes:
            return None
        shape = shapes[0]
        values: Sequence[State] = DIRECTIONS if kind == "motion" else _hues(draft, shape)
        about, ask = (text.format(shape) for text in _ABOUT[kind])
        aspect = next(name for name, kinds in self.kinds.items() if kind in kinds)
        return Slot(kind, aspect, (shape,), [], draft.stated(values), about, ask)

    def _subjects(self, draft: Draft, notes: ClipDraft, what: str, kinds: Sequence[str], need: int) -> list[str] | None:
        """`need` things with events of these kinds of which `what` is not yet stated; known ones half the time."""
        known = [s for s, spoken in notes.used.items() if what not in spoken.said and spoken.kind in kinds]
        chosen: list[tuple[str, str]] = []
        room, budget = notes.room, draft.budget
        for i in range(need):
            kind = draft.rng.pick(kinds)
            cells = 2 if kind == "move" else 1
            fresh = len(notes.free) - i > 0 and budget > 0 and room >= cells
            if known and (not fresh or draft.rng.chance(50)):
                shape = known.pop(draft.rng.below(len(known)))
                chosen.append((shape, notes.used[shape].kind))
            elif fresh:
                chosen.append((notes.free[-1 - sum(s not in notes.used for s, _ in chosen)], kind))
                room, budget = room - cells, budget - 1
            else:
                return None
        notes.room, draft.budget = room, budget
        for shape, kind in chosen:
            if shape not in notes.used:
                notes.free.remove(shape)
            notes.used.setdefault(shape, Spoken(kind)).said.add(what)
        return [shape for shape, _ in chosen]

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """Close the universes: an event may be absent only if no claim states its time."""
        notes: ClipDraft = draft.notes
        for slot in slots:
            if slot.kind in _WHAT:
                shape = slot.subject[0]
                open_ = [c for c in COLOURS if legal(c, shape, draft.rules.pairs)]
                slot.universe = list(DIRECTIONS) if slot.kind == "motion" else open_
                absent = "when" not in notes.used[shape].said
                if absent and (draft.rules.version < 4 or self._twin(draft, notes, shape)):
                    slot.universe.append(_NONE)
        return slots

    def _twin(self, draft: Draft, notes: ClipDraft, shape: str) -> bool:
        """Find a thing that has the event of this one if this one has none, so that the number of events carries no
        information.
        """
        cells = 2 if notes.used[shape].kind == "move" else 1
        if not notes.free or draft.budget < 1 or notes.room < cells or draft.rng.chance(25):
            return False
        draft.budget, notes.room = draft.budget - 1, notes.room - cells
        notes.twins[shape] = notes.free.pop()
        return True

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """How far off a statement would be in that state; agrees with `measure` on the built clip."""
        if state == _NONE:
            return 2 if slot.kind == "appears" else GONE
        if slot.kind == "motion":
            return facts.turns(stated, state)
        if slot.kind == "turns":
            return colour_steps(stated, state)
        if slot.kind == "before":
            return max(0, 1 - (int(state) if stated[0] == slot.subject[0] else -int(state)))
        return abs(stated - state) if slot.kind == "moment" else int(stated != state)

    def build(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None) -> Clip | None:
        """A clip in which the slots have these states; None if there is no room for the moves."""
        return _Builder(draft, slots, states).clip()

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of the slot."""
        return Claim(slot.kind, slot.aspect, stated if slot.kind == "before" else (slot.subject[0], stated))

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""
        return sentence_of(_TEMPLATES[claim.kind][voice], *claim.args)

    def measure(self, claim: Claim, graph: Clip) -> ClaimFinding:
        """The truth about a claim in any clip."""
        return facts.measure(claim, graph)

    def missed(self, claims: Sequence[Claim], graph: Clip) -> int:
        """Nothing is asked to be complete here."""
        return 0

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """Questions, or a plain request."""
        if draft.rng.chance(35):
            return "answer", " ".join(slot.question for slot in slots)
        return "describe", draft.rng.pick(("Describe the clip.", "What happens in the clip?", "Say what changes."))

    def prompt(self, graph: Clip) -> str:
        """How many frames there are."""
        return f"These are the {graph.frames} frames of a clip, in order."

    def frames(self, graph: Clip) -> int:
        """Four to eight."""
        return graph.frames

    def render(self, graph: Clip, size: int) -> list[Picture]:
        """Every frame."""
        return [draw_scene(scene, size) for scene in graph.scenes()]

    def to_json(self, graph: Clip) -> dict[str, Any]:
        """The clip as JSON."""
        return graph.to_json()


def _hues(draft: Draft, shape: str) -> list[str]:
    """The colours that a claim may state of this shape; held-out pairs if the split tests them."""
    held = [c for c in COLOURS if (c, shape) in HELD_OUT_PAIRS]
    if draft.rules.pairs == "held_out" and len(held) >= min(draft.responses, 2):
        return held
    return [c for c in COLOURS if legal(c, shape, draft.rules.pairs)]


class _Builder:
    """Turns states into a clip."""

    def __init__(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State]) -> None:
        self.draft, self.rng, self.rules = draft, draft.rng, draft.rules
        self.notes: ClipDraft = draft.notes
        self.what: dict[str, State] = {}
        self.when: dict[str, int] = {}
        for slot, state in zip(slots, states, strict=True):
            shape = slot.subject[0].partition(" ")[0]
            if slot.kind in _WHAT:
                self.what[shape] = state
            elif slot.kind == "moment":
                self.when[shape] = state
            else:
                latest = self.notes.frames - abs(state)
                early = 2 + self.rng.below(latest - 1)
                other = slot.subject[1].partition(" ")[0]
                self.when[shape], self.when[other] = early + max(0, -state), early + max(0, state)

    def clip(self) -> Clip | None:
        """The finished clip; None if there is no room for the moves."""
        rng, rules, notes = self.rng, self.rules, self.notes
        kinds: dict[str, str] = {shape: spoken.kind for shape, spoken in notes.used.items()}
        for shape, twin in notes.twins.items():
            kinds[twin] = kinds[shape] if self.what[shape] == _NONE else _NONE
        room = notes.room
        least = rules.objects[0] - len(kinds)
        most = 1 + max(0, min(self.draft.budget, room))
        for shape in rng.shuffled(notes.free)[: max(least, min(most, rng.below(3)))]:
            kind = rng.pick((*_KINDS, *_KINDS, _NONE, _NONE))
            kinds[shape] = _NONE if kind == "move" and room < 3 else kind
            room -= 2 if kinds[shape] == "move" else 1
        for _ in range(8):
            clip = self._filled(rng.shuffled(list(kinds)), kinds)
            if clip is not None:
                return clip
        return None

    def _filled(self, shapes: Sequence[str], kinds: Mapping[str, str]) -> Clip | None:
        rng, rules, notes = self.rng, self.rules, self.notes
        things, events = [], []
        for shape in shapes:
            open_ = [c for c in COLOURS if legal(c, shape, rules.pairs)]
            thing = Thing(shape, rng.pick(open_), rng.pick(SIZES), rng.pick(TEXTURES))
            thing.dx, thing.dy = rng.below(13) - 6, rng.below(13) - 6
            things.append(thing)
            kind, state = kinds[shape], self.what.get(shape, "")
            if _NONE in (kind, state):
                continue
            event = Event(self.when.get(shape) or 2 + rng.below(notes.frames - 1), kind, shape)
            if kind == "appear":
                thing.colour = state or thing.colour
            elif kind == "recolour":
                event.to = state or rng.pick([c for c in open_ if c != thing.colour])
                thing.colour = rng.pick([c for c in open_ if c != event.to])
            else:
                event.to = state or rng.pick(DIRECTIONS)
            events.append(event)
        clip = Clip(notes.frames, rules.grid, things, sorted(events, key=lambda e: (e.frame, e.shape)))
        clip.style, clip.seed = rules.style, rng.fork()
        clip.clutter, clip.noise = rng.below(rules.clutter + 1), rng.below(rules.noise + 1)
        return clip if self._placed(clip) else None

    def _placed(self, clip: Clip) -> bool:
        """Give every thing its own cell, and every move a free cell to end in."""
        grid, rng = clip.grid, self.rng
        free = {(col, row) for col in range(grid) for row in range(grid)}
        for thing in clip.things:
            move = clip.event(thing.shape, "move")
            if move is None:
                continue
            right, down = STEPS[move.to]
            ends = [(c, r, by) for c, r in sorted(free) for by in (1, 2) if (c + right * by, r + down * by) in free]
            if not ends:
                return False
            thing.col, thing.row, move.by = rng.pick(ends)
            free -= {(thing.col, thing.row), (thing.col + right * move.by, thing.row + down * move.by)}
        rest = [thing for thing in clip.things if thing.col < 0]
        for thing, cell in zip(rest, rng.shuffled(sorted(free)), strict=False):
            thing.col, thing.row = cell
        return len(rest) <= len(free)
