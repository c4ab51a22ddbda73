"""Tournaments between the responses of many items, played round by round together."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dikast.core.verdict import Usage
from dikast.ranking.comparisons import (
    Comparison,
    Floats,
    Games,
    OrderedPair,
    Values,
    fit_strengths,
    games_of,
    stacks_of,
)
from dikast.ranking.item_order import Ordered, order_of
from dikast.ranking.pooled import Pooled, pool
from dikast.ranking.schedules import Rounds, Schedule


@dataclass(slots=True)
class Contest:
    """One item: its schedule, and its comparisons so far; `grading` is what the grades before them cost."""

    k: int
    schedule: Schedule
    rounds: Rounds
    played: list[Comparison] = field(default_factory=list)
    began: bool = False
    over: bool = False
    grading: Usage = field(default_factory=Usage)


class Tournament:
    """The contests of many items. `values` None: logits for items whose verdicts all have probabilities, else verdicts.

    All items of a round are asked together (`draw`, then `note`), since the slot bias, which affects who advances, is
    pooled over items. Draws depend on the seed and the item's id alone.
    """

    def __init__(self, seed: int = 0, values: Values | None = None) -> None:
        self.seed, self.values = seed, values
        self.contests: dict[str, Contest] = {}
        self._pooled: dict[Values, Pooled] = {}

    def enter(self, item: str, k: int, schedule: Schedule, start: Floats | None = None) -> None:
        """Add an item with k responses.

        start: the grades (k,) for a schedule that begins with grades, NaN where there is none.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(item.encode("utf-8", "surrogatepass"))])
        rounds = schedule.draw(k, rng, np.zeros(k) if start is None else start)
        self.contests[item] = Contest(k, schedule, rounds)

    def draw(self) -> dict[str, list[OrderedPair]]:
        """The pairs of the next round by item, without the items that are over: empty when all are."""
        waiting = [item for item, contest in self.contests.items() if not contest.over]
        strengths, found = self._strengths([item for item in waiting if self.contests[item].began]), {}
        for item in waiting:
            contest = self.contests[item]
            try:
                found[item] = contest.rounds.send(strengths[item]) if contest.began else next(contest.rounds)
                contest.began = True
            except StopIteration:
                contest.over = True
        return found

    def _strengths(self, items: Sequence[str]) -> dict[str, Floats]:
        """Strengths (k,) by item, those with the same number of responses fitted together."""
        alike: dict[tuple[int, Values], list[str]] = {}
        for item in items:
            alike.setdefault((self.contests[item].k, self.read(item)), []).append(item)
        found: dict[str, Floats] = {}
        for (_, kind), names in alike.items():
            stacks, bias = stacks_of([self.games(item, kind) for item in names]), self.pooled(kind).bias.shrunk
            strengths = (each for stack in stacks for each in fit_strengths(stack, bias).strengths)
            found |= zip(names, strengths, strict=True)
        return found

    def games(self, item: str, kind: Values) -> Games:
        """The comparisons of an item so far that have a value of this kind."""
        contest = self.contests[item]
        return games_of(contest.played, contest.k, kind)

    def note(self, comparisons: Mapping[str, Sequence[Comparison]]) -> None:
        """Add the results of the round's comparisons, by item."""
        for item, found in comparisons.items():
            self.contests[item].played += found
        self._pooled = {}

    def read(self, item: str) -> Values:
        """The kind of values that the item is ordered by."""
        if self.values is not None:
            return self.values
        played = self.contests[item].played
        bare = any(np.isnan(each.logit) and not np.isnan(each.verdict) for each in played)
        return "verdict" if bare or all(np.isnan(each.logit) for each in played) else "logit"

    def pooled(self, kind: Values) -> Pooled:
        """Slot bias and noise pooled over all items that are ordered by these values."""
        if kind not in self._pooled:
            items = [item for item in self.contests if self.read(item) == kind]
            self._pooled[kind] = pool([self.games(item, kind) for item in items])
        return self._pooled[kind]

    def strengths(self, item: str) -> Floats:
        """The strengths (k,) of an item's responses by what was played so far."""
        return self._strengths([item])[item]

    def order(self, item: str) -> list[int]:
        """All responses of an item by their strength, best first, connected or not."""
        strengths = self.strengths(item)
        return [int(i) for i in np.lexsort((np.arange(len(strengths)), -strengths))]

    def ordered(self, item: str) -> Ordered:
        """The order of an item's responses."""
        contest, kind = self.contests[item], self.read(item)
        pooled = self.pooled(kind)
        return order_of(contest.played, contest.k, kind, pooled.bias.shrunk, pooled.noise)
