"""Which pairs of an item's responses are compared, round by round.

A schedule is a generator: it yields the ordered pairs of a round and is sent the strengths (k,) that all comparisons
so far give, NaN-free (0 for a response that has none yet). Draws come from the generator's own `rng`. What `top`,
`ends` and `graded` compare after these rounds is chosen among all items of a tournament together.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Literal

import numpy as np

from dikast.core.errors import UserError
from dikast.core.text import hint
from dikast.ranking.comparisons import Floats, OrderedPair

Name = Literal["full", "half", "knockout", "swiss", "top", "ends", "duel", "graded"]
Rounds = Generator[list[OrderedPair], Floats, None]
_SWISS = 3  # rounds
_MATRICES = 500  # responses of an item: its comparisons are fitted with matrices of so many rows and columns
_BROAD = 0.4  # share of the comparisons of `top` and `ends` before they turn to the most informative pairs


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named schedule. `calls` gives the comparisons of k responses, `least` and `most` are how many it takes.

    Above `most` an item has 100,000 comparisons, or choosing pairs takes minutes. `grades`: each response is first
    graded alone (k more calls), and its grades are the strengths at the start; `first` orders by them and by who won
    among those who met, `fitted` by grades and comparisons together. `signs`: after its rounds it compares the pairs
    that help most to choose the best (1) and the worst (-1); `calls` is then the mean over all items.
    `follows`: its pairs follow the answers so far, so that strengths need a prior.
    """

    name: Name
    what: str
    draw: Callable[[int, np.random.Generator, Floats], Rounds]
    calls: Callable[[int], int]
    least: int = 2
    most: int = _MATRICES
    grades: Literal["", "first", "fitted"] = ""
    signs: tuple[int, ...] = ()
    follows: bool = False

    def seeking(self, goal: str) -> "Schedule":
        """The schedule for a goal: beside grades, comparisons seek the best alone where nothing else is asked for."""
        return replace(self, signs=(1,)) if self.grades == "fitted" and goal == "best" else self

    def within(self, k: int, most: int) -> "Schedule":
        """The schedule of at most `most` calls for k responses: one that shares its comparisons out can have fewer.

        Down to half of its usual comparisons, or to one beside grades; unchanged where that is too many, and where
        their number is fixed.
        """
        usual = self.calls(k)
        calls = min(usual, most - (k if self.grades else 0))
        if not self.signs or calls < (1 if self.grades else usual / 2):
            return self
        return replace(self, calls=lambda _: calls)

    def in_all(self, k: int) -> int:
        """Comparisons and grades of k responses."""
        return self.calls(k) + (k if self.grades else 0)

    def too_many(self, k: int) -> str:
        """Why it does not take an item's k different responses, and what to do; "" where it does."""
        if k <= self.most:
            return ""
        cure = f"use knockout, which takes {_MATRICES}, or " if k <= _MATRICES else ""
        told = f"the schedule {self.name} takes at most {self.most} different responses of an item"
        return f"{told}, not {k:,}: {cure}rank fewer"


def full(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """Every pair in both orders."""
    yield [OrderedPair(i, j) for i, j in permutations(range(k), 2)]


def half(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """Every pair in one order, so that each response is shown first as often as second (for even k but for one)."""
    at = rng.permutation(k).tolist()
    pairs = []
    for i, j in combinations(range(k), 2):
        turned = (j - i) * 2 > k or ((j - i) * 2 == k and i % 2 == 1)
        pairs.append(OrderedPair(at[j], at[i]) if turned else OrderedPair(at[i], at[j]))
    yield pairs


def knockout(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """Winners advance, each pair in one random order; with an odd number the last gets a bye."""
    alive = rng.permutation(k).tolist()
    while len(alive) > 1:
        pairs = [_turned(alive[i], alive[i + 1], rng) for i in range(0, len(alive) - 1, 2)]
        strengths = yield pairs
        spare = alive[len(pairs) * 2 :]
        alive = [max(pair, key=lambda i: (strengths[i], -i)) for pair in pairs] + spare
        alive = spare + alive[: len(pairs)]  # who had a bye plays first


def swiss(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """Three rounds between neighbours in the current order who have not met (Swiss system)."""
    yield from _neighbours(k, rng, _SWISS * (k // 2), set())


def broad(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """Neighbours in the current order meet for the first comparisons of `top` and `ends`."""
    yield from _neighbours(k, rng, math.ceil(_BROAD * _half(k)), set())


def duel(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """The two best by their grades, in both orders; nothing where fewer than two responses have a grade."""
    first, second = np.lexsort((rng.permutation(k), -start))[:2].tolist()  # NaN comes last
    if not np.isnan(start[[first, second]]).any():
        yield [OrderedPair(first, second), OrderedPair(second, first)]


def none(k: int, rng: np.random.Generator, start: Floats) -> Rounds:
    """No round of its own."""
    yield from ()


def _neighbours(
    k: int, rng: np.random.Generator, calls: int, asked: set[OrderedPair]
) -> Generator[list[OrderedPair], Floats, Floats]:
    """Rounds of comparisons between neighbours in the order so far, at most `calls`; the strengths after them.

    Those who met least meet first, never twice in the same order; who was shown first less often is shown first.
    `asked` is added to.
    """
    strengths, shown = np.zeros(k), np.zeros(k)
    while calls > 0:
        order = np.lexsort((rng.permutation(k), -strengths)).tolist()
        pairs = [unasked(i, j, shown, asked, rng) for i, j in _matched(order, asked, rng)][:calls]
        asked |= set(pairs)
        calls -= len(pairs)
        strengths = yield pairs
    return strengths


def _matched(order: Sequence[int], asked: set[OrderedPair], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Match each response with the next one in the order that it has met least; an odd one stays out."""

    def met(i: int, j: int) -> int:
        return (OrderedPair(i, j) in asked) + (OrderedPair(j, i) in asked)

    left = list(order)
    if len(left) % 2:
        games = np.bincount(np.array([i for pair in asked for i in pair], int), minlength=len(order))[left].tolist()
        most = [place for place, n in enumerate(games) if n == max(games)]
        left.pop(most[int(rng.integers(len(most)))])
    pairs = []
    while left:
        one = left.pop(0)
        other = min(range(len(left)), key=lambda at: (met(one, left[at]), at))
        if met(one, left[other]) < 2:
            pairs.append((one, left[other]))
        left.pop(other)
    return pairs


def unasked(i: int, j: int, shown: Floats, asked: set[OrderedPair], rng: np.random.Generator) -> OrderedPair:
    """The order of a pair that was not asked, or by balance; `shown`: how much more often each was shown first."""
    if OrderedPair(i, j) in asked or OrderedPair(j, i) in asked:
        pair = OrderedPair(j, i) if OrderedPair(i, j) in asked else OrderedPair(i, j)
    else:
        pair = (
            _turned(i, j, rng)
            if shown[i] == shown[j]
            else OrderedPair(i, j)
            if shown[i] < shown[j]
            else OrderedPair(j, i)
        )
    shown[pair.first] += 1
    shown[pair.second] -= 1
    return pair


def _half(k: int) -> int:
    return k * (k - 1) // 2


def _turned(i: int, j: int, rng: np.random.Generator) -> OrderedPair:
    return OrderedPair(i, j) if rng.random() < 0.5 else OrderedPair(j, i)


SCHEDULES: dict[str, Schedule] = {
    each.name: each
    for each in (
        Schedule("full", "every pair in both orders", full, lambda k: k * (k - 1), most=316),
        Schedule("half", "every pair in one balanced order", half, _half, most=447),
        Schedule("knockout", "winners advance", knockout, lambda k: k - 1),
        Schedule("swiss", "three rounds between neighbours", swiss, lambda k: _SWISS * (k // 2), 3, follows=True),
        Schedule(
            "top", "neighbours, then what helps most to choose the best", broad, _half, 4, 64, signs=(1,), follows=True
        ),
        Schedule(
            "ends", "neighbours, then what helps most for both ends", broad, _half, 5, 64, signs=(1, -1), follows=True
        ),
        Schedule("duel", "grades, then the best two in both orders", duel, lambda k: 2, grades="first"),
        Schedule(
            "graded",
            "grades, then what helps most for both ends",
            none,
            lambda k: k * (k - 3) // 2,
            4,
            64,
            grades="fitted",
            signs=(1, -1),
        ),
    )
}


def schedule_named(name: str) -> Schedule:
    """The schedule of this name; UserError for any other, and for `auto`, which is of files."""
    if name == "auto":
        raise UserError(
            "schedule auto measures the judge on a pilot of a file's items (`dikast rank`, `dikast.rank`): for one item"
            f" name one of {', '.join(SCHEDULES)}"
        )
    if name not in SCHEDULES:
        raise UserError(f"there is no schedule {name!r:.40}: {hint(name, list(SCHEDULES))}")
    return SCHEDULES[name]
