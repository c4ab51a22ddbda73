"""The graph of a clip: things, their events by frame, and whether claims about it are true."""

from dataclasses import dataclass, field
from typing import Any

from dikast.worlds.domains.protocol import Claim, ClaimFinding
from dikast.worlds.domains.scene_graph import GONE, Scene, Thing
from dikast.worlds.domains.vocabulary import colour_steps

DIRECTIONS = ("up", "right", "down", "left")  # in quarter turns
STEPS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
VERBS = {"move": "moves", "appear": "appears", "recolour": "changes colour"}
KINDS = {verb: kind for kind, verb in VERBS.items()}


@dataclass(slots=True)
class Event:
    """An event of the thing with that shape, first visible in `frame` (counted from 1, so 2 or later).

    `to`: a direction for a move of `by` cells, the new colour for a recolouring, nothing for an appearance.
    """

    frame: int
    kind: str
    shape: str
    to: str = ""
    by: int = 0

    def to_json(self) -> dict[str, Any]:
        """The event as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Clip:
    """Things in their initial state, all of different shapes, with at most one event each. The rest is decoration."""

    frames: int
    grid: int
    things: list[Thing]
    events: list[Event] = field(default_factory=list)
    clutter: int = 0
    noise: int = 0
    style: int = 0
    overlay: str = ""
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The clip as JSON."""
        value = {name: getattr(self, name) for name in self.__slots__}
        return value | {name: [one.to_json() for one in getattr(self, name)] for name in ("things", "events")}

    def event(self, shape: object, kind: str) -> Event | None:
        """The event of that kind for the thing of that shape, None if there is none."""
        return next((e for e in self.events if e.shape == shape and e.kind == kind), None)

    def has(self, shape: object) -> bool:
        """Whether a thing of that shape is in the clip."""
        return any(thing.shape == shape for thing in self.things)

    def scenes(self) -> list[Scene]:
        """The scene of each frame."""
        by_shape = {event.shape: event for event in self.events}
        found = []
        for frame in range(1, self.frames + 1):
            things = [_at(thing, by_shape.get(thing.shape), frame) for thing in self.things]
            shown = [thing for thing in things if thing is not None]
            found.append(Scene(self.grid, shown, [], [], self.clutter, self.noise, self.style, self.overlay, self.seed))
        return found


def _at(thing: Thing, event: Event | None, frame: int) -> Thing | None:
    """The thing in that frame, None before it appears."""
    if event is None or frame < event.frame:
        return None if event and event.kind == "appear" else thing
    col, row, colour = thing.col, thing.row, thing.colour
    if event.kind == "move":
        right, down = STEPS[event.to]
        col, row = col + right * event.by, row + down * event.by
    if event.kind == "recolour":
        colour = event.to
    return Thing(thing.shape, colour, thing.size, thing.texture, col, row, thing.dx, thing.dy)


def turns(a: str, b: str) -> int:
    """Quarter turns between two directions, 0 to 2."""
    apart = abs(DIRECTIONS.index(a) - DIRECTIONS.index(b))
    return min(apart, 4 - apart)


def phrase(shape: str, kind: str) -> str:
    """An event in words: "star moves"."""
    return f"{shape} {VERBS[kind]}"


def measure(claim: Claim, clip: Clip) -> ClaimFinding:
    """How far off a claim is in a clip. A claim about an event that does not happen is far off."""
    first, second = claim.args
    if claim.kind == "before":
        return _before(str(first), str(second), clip)
    if claim.kind == "moment":
        event = _event(str(first), clip)
        if event is None:
            return _never(str(first), clip)
        return ClaimFinding(abs(int(second) - event.frame), f"the {first} in frame {event.frame}")
    if claim.kind == "appears":
        return _appears(str(first), str(second), clip)
    kind = "move" if claim.kind == "motion" else "recolour"
    event = clip.event(first, kind)
    if event is None:
        return _never(phrase(str(first), kind), clip)
    if kind == "move":
        return ClaimFinding(turns(str(second), event.to), f"the {first} moves {event.to}")
    return ClaimFinding(colour_steps(str(second), event.to), f"the {first} turns {event.to}")


def _event(words: str, clip: Clip) -> Event | None:
    shape, _, verb = words.partition(" ")
    return clip.event(shape, KINDS[verb])


def _never(words: str, clip: Clip) -> ClaimFinding:
    shape = words.partition(" ")[0]
    if not clip.has(shape):
        return ClaimFinding(GONE, "it is not there", gone=True)
    still = {"moves": "stays where it is", "appears": "is there from the start", "changes colour": "keeps its colour"}
    return ClaimFinding(GONE, f"the {shape} {still[words.partition(' ')[2]]}")


def _before(first: str, second: str, clip: Clip) -> ClaimFinding:
    one, other = _event(first, clip), _event(second, clip)
    if one is None or other is None:
        return _never(first if one is None else second, clip)
    words = f"the {first} in frame {one.frame} and the {second} in frame {other.frame}"
    return ClaimFinding(max(0, 1 - (other.frame - one.frame)), words)


def _appears(shape: str, colour: str, clip: Clip) -> ClaimFinding:
    if clip.event(shape, "appear") is None:
        return ClaimFinding(2, f"the {shape} is there from the start" if clip.has(shape) else f"no {shape} appears")
    [seen] = [thing.colour for thing in clip.things if thing.shape == shape]
    return ClaimFinding(int(seen != colour), f"the {shape} that appears is {seen}")
