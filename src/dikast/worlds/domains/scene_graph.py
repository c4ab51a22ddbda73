"""The scene graph: things, whether claims about them are true, and the placement of things on the grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dikast.worlds.domains.protocol import Claim, ClaimFinding
from dikast.worlds.domains.vocabulary import (
    CORNERS,
    HELD_OUT_PAIRS,
    NUMBERS,
    PLURALS,
    SHAPES,
    SIZES,
    colour_steps,
    region_of,
    region_steps,
)  # fmt: skip
from dikast.worlds.sampling.rng import Stream

GONE = 9  # the metric of a claim about a thing that is not in the scene: far off in every unit


@dataclass(slots=True)
class Thing:
    """One object. `dx`, `dy` shift it inside its grid cell, in hundredths of the cell."""

    shape: str
    colour: str
    size: str
    texture: str
    col: int = -1
    row: int = -1
    dx: int = 0
    dy: int = 0

    def to_json(self) -> dict[str, Any]:
        """The thing as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Scene:
    """Everything that is drawn. `covers` are grid cells hidden under a grey block; the rest is decoration.

    `bars` are indices of things crossed by a thin bar, `clutter` the number of grey specks, `noise` the largest change
    of a pixel, `style` the drawing style, `overlay` text painted over the picture.
    """

    grid: int
    things: list[Thing]
    covers: list[tuple[int, int]] = field(default_factory=list)
    bars: list[int] = field(default_factory=list)
    clutter: int = 0
    noise: int = 0
    style: int = 0
    overlay: str = ""
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The scene as JSON; `seed` draws the specks and the noise."""
        value = {name: getattr(self, name) for name in self.__slots__}
        value["things"] = [thing.to_json() for thing in self.things]
        value["covers"] = [list(cell) for cell in self.covers]
        return value

    def emptied(self) -> "Scene":
        """The same ground with nothing on it."""
        return Scene(self.grid, [], seed=self.seed)


def legal(colour: str, shape: str, pairs: str) -> bool:
    """Whether the split allows this pair in scenes and claims."""
    return pairs != "seen" or (colour, shape) not in HELD_OUT_PAIRS


def corner_cell(region: str, grid: int) -> tuple[int, int]:
    """The grid cell of a corner."""
    i = CORNERS.index(region)
    return (grid - 1) * (i % 2), (grid - 1) * (i // 2)


def measure(claim: Claim, scene: Scene) -> ClaimFinding:
    """How far off a claim is in a scene. If several things match its subject, the best fitting one decides."""
    return _MEASURES[claim.kind](claim.args, scene)


def _best(found: list[tuple[int, str]]) -> ClaimFinding:
    return ClaimFinding(*min(found)) if found else ClaimFinding(GONE, "it is not there", gone=True)


def _of(scene: Scene, shape: object) -> list[Thing]:
    return [thing for thing in scene.things if thing.shape == shape]


def _exists(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    shape, colour = args
    there = _of(scene, shape)
    if not there:
        return ClaimFinding(2, f"no {shape} is there")
    right = any(thing.colour == colour for thing in there)
    return ClaimFinding(0, "it is there") if right else ClaimFinding(1, f"the {shape} is {there[0].colour}")


def _colour(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    return _best([(colour_steps(args[1], t.colour), f"the {t.shape} is {t.colour}") for t in _of(scene, args[0])])


def _size(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    at = SIZES.index(args[1])
    return _best([(abs(at - SIZES.index(t.size)), f"the {t.shape} is {t.size}") for t in _of(scene, args[0])])


def _texture(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    return _best([(int(args[1] != t.texture), f"the {t.shape} is {t.texture}") for t in _of(scene, args[0])])


def _shape(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    colour, shape = args
    there = [t for t in scene.things if t.colour == colour]
    return _best([(int(t.shape != shape), f"the {colour} thing is a {t.shape}") for t in there])


def _position(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    found = []
    for t in _of(scene, args[0]):
        region = region_of(t.col, t.row, scene.grid)
        found.append((region_steps(args[1], region), f"the {t.shape} is at the {region}"))
    return _best(found)


def _relation(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    one, other, direction = args
    found = []
    for a in _of(scene, one):
        for b in _of(scene, other):
            d = lead(direction, a, b)
            words = (
                direction
                if d >= 1
                else OPPOSITE[direction]
                if d <= -1
                else f"neither {direction} nor {OPPOSITE[direction]}"
            )
            found.append((max(0, 1 - d), f"the {one} is {words} the {other}"))
    return _best(found)


OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}


def lead(direction: str, a: Thing, b: Thing) -> int:
    """The distance in grid cells of `a` from `b` in the stated direction; negative in the opposite direction."""
    if direction in ("left of", "right of"):
        return b.col - a.col if direction == "left of" else a.col - b.col
    return b.row - a.row if direction == "above" else a.row - b.row


def _count(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    shape, stated = args
    n = len(_of(scene, shape))
    words = f"there is one {shape}" if n == 1 else f"there are {NUMBERS[n] if n < 10 else n} {PLURALS[shape]}"
    return ClaimFinding(abs(stated - n), words, gone=n == 0)


def _binding(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    one, other, first, second = args
    found = []
    for a in _of(scene, one):
        for b in _of(scene, other):
            off = (a.colour != first) + (b.colour != second)
            found.append((off, f"the {one} is {a.colour} and the {other} is {b.colour}"))
    return _best(found)


def _more(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    a, b = len(_of(scene, args[0])), len(_of(scene, args[1]))
    if a + b == 0:
        return ClaimFinding(GONE, "they are not there", gone=True)
    words = f"{NUMBERS[a] if a < 10 else a} against {NUMBERS[b] if b < 10 else b}"
    return ClaimFinding(max(0, 1 - (a - b)), words)


def _larger(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    found = []
    for a in _of(scene, args[0]):
        for b in _of(scene, args[1]):
            d = SIZES.index(a.size) - SIZES.index(b.size)
            found.append((max(0, 1 - d), f"the {a.shape} is {a.size} and the {b.shape} is {b.size}"))
    return _best(found)


def _sure(args: tuple[Any, ...], scene: Scene) -> ClaimFinding:
    region, shape = args
    cell = corner_cell(region, scene.grid)
    if any((t.col, t.row) == cell and t.shape == shape for t in scene.things):
        return ClaimFinding(0, "it is there")
    hidden = cell in scene.covers
    return ClaimFinding(1, "the corner is covered" if hidden else f"no {shape} is there", gone=hidden)


_MEASURES = {
    "exists": _exists, "colour": _colour, "size": _size, "texture": _texture, "shape": _shape, "position": _position,
    "relation": _relation, "count": _count, "binding": _binding, "more": _more, "larger": _larger, "sure": _sure,
}  # fmt: skip


def missed(claims: Sequence[Claim], scene: Scene) -> int:
    """The number of things that no claim names by their shape or by a colour used as a name ("the red thing")."""
    return len(unnamed(claims, scene))


def unnamed(claims: Sequence[Claim], scene: Scene) -> list[Thing]:
    """The things that no claim names."""
    shapes: set[str | int] = set()
    colours: set[str | int] = set()
    for claim in claims:
        if claim.kind == "shape":
            colours.add(claim.args[0])
        shapes.update(arg for arg in claim.args if arg in SHAPES)
    return [t for t in scene.things if t.shape not in shapes and t.colour not in colours]


def place(scene: Scene, wishes: Mapping[int, Any], rng: Stream) -> bool:
    """Give every thing of `scene` its own cell. False if the wishes cannot be met.

    wishes: index of a thing -> a region, a cell, or (index of another thing, direction, cells to lead by).
    """
    grid = scene.grid
    free = set((col, row) for col in range(grid) for row in range(grid)) - set(scene.covers)
    linked = [(i, wish) for i, wish in wishes.items() if isinstance(wish, tuple) and len(wish) == 3]
    for i, wish in wishes.items():
        if isinstance(wish, tuple) and len(wish) == 2:
            if wish not in free:
                return False
            scene.things[i].col, scene.things[i].row = wish
            free.discard(wish)
    for i, wish in wishes.items():
        if isinstance(wish, str):
            fits = sorted(cell for cell in free if region_of(*cell, grid) == wish)
            if not fits:
                return False
            scene.things[i].col, scene.things[i].row = cell = rng.pick(fits)
            free.discard(cell)
    for i, (j, direction, by) in linked:
        if not _place_pair(scene, i, j, direction, by, free, rng):
            return False
    rest = [thing for thing in scene.things if thing.col < 0]
    for thing, cell in zip(rest, rng.shuffled(sorted(free)), strict=False):
        thing.col, thing.row = cell
    return len(rest) <= len(free)


def _place_pair(scene: Scene, i: int, j: int, direction: str, by: int, free: set[tuple[int, int]], rng: Stream) -> bool:
    """Choose cells for things i and j so that i is that many cells ahead of j; the perpendicular offset is random."""
    a, b = scene.things[i], scene.things[j]
    step = by if direction in ("right of", "below") else -by
    sideways = direction in ("left of", "right of")
    for _ in range(12):
        cell = rng.pick(sorted(free))
        across = rng.below(scene.grid)
        other = (cell[0] - step, across) if sideways else (across, cell[1] - step)
        if other in free and other != cell:
            a.col, a.row = cell
            b.col, b.row = other
            free -= {cell, other}
            return True
    return False
