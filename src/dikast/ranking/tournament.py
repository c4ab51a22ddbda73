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
from dikast.ranking.graded_strengths import GradeLine, grade_line, graded_strengths
from dikast.ranking.item_order import Ordered, order_of, ordered_by
from dikast.ranking.pooled import UNKNOWN, Pooled, pool
from dikast.ranking.schedules import Rounds, Schedule


@dataclass(slots=True)
class Contest:
    """One item: its schedule, and its comparisons so far.

    `grades` (k,) are those of its responses (NaN: none), where they were graded, and `grading` is what they cost.
    """

    k: int
    schedule: Schedule
    rounds: Rounds
    played: list[Comparison] = field(default_factory=list)
    began: bool = False
    over: bool = False
    grades: Floats | None = None
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
        self._lines: dict[Values, GradeLine] = {}

    def enter(self, item: str, k: int, schedule: Schedule, grades: Floats | None = None) -> None:
        """Add an item with k responses.

        grades (k,): needed by a schedule that begins with grades, NaN where there is none; those of other items say how
        comparisons follow grades.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(item.encode("utf-8", "surrogatepass"))])
        rounds = schedule.draw(k, rng, np.zeros(k) if grades is None else grades)
        self.contests[item] = Contest(k, schedule, rounds, grades=grades)

    def draw(self) -> dict[str, list[OrderedPair]]:
        """The pairs of the next round by item, without the items that are over: empty when all are."""
        waiting = [item for item, contest in self.contests.items() if not contest.over]
        strengths, found = self.strengths([item for item in waiting if self.contests[item].began]), {}
        for item in waiting:
            contest = self.contests[item]
            try:
                found[item] = contest.rounds.send(strengths[item]) if contest.began else next(contest.rounds)
                contest.began = True
            except StopIteration:
                contest.over = True
        return found

    def strengths(self, items: Sequence[str]) -> dict[str, Floats]:
        """Strengths (k,) of the items' responses by what was played so far; those with as many are fitted together."""
        alike: dict[tuple[int, Values, bool], list[str]] = {}
        for item in items:
            contest = self.contests[item]
            alike.setdefault((contest.k, self.read(item), contest.schedule.grades == "fitted"), []).append(item)
        found: dict[str, Floats] = {}
        for (_, kind, graded), names in alike.items():
            at = 0
            for stack in stacks_of([self.games(item, kind) for item in names]):
                some = names[at : at + len(stack.counts)]
                fitted = (
                    graded_strengths(stack, np.stack([self._grades(item) for item in some]), self.grade_line(kind))[0]
                    if graded
                    else fit_strengths(stack, self.pooled(kind).bias.shrunk).strengths
                )
                found |= zip(some, fitted, strict=True)
                at += len(some)
        return found

    def _grades(self, item: str) -> Floats:
        grades = self.contests[item].grades
        assert grades is not None
        return grades

    def games(self, item: str, kind: Values) -> Games:
        """The comparisons of an item so far that have a value of this kind."""
        contest = self.contests[item]
        return games_of(contest.played, contest.k, kind)

    def note(self, comparisons: Mapping[str, Sequence[Comparison]]) -> None:
        """Add the results of the round's comparisons, by item."""
        for item, found in comparisons.items():
            self.contests[item].played += found
        self._pooled, self._lines = {}, {}

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

    def grade_line(self, kind: Values) -> GradeLine:
        """How comparisons follow grades, pooled over the graded items that are ordered by these values.

        Of those whose pairs were chosen without the grades, if there are any: chosen pairs are closer than others.
        """
        if kind not in self._lines:
            graded = [
                each for item, each in self.contests.items() if each.grades is not None and self.read(item) == kind
            ]
            plain = [each for each in graded if not each.schedule.grades]
            contests, grades = list[Games](), list[Floats]()
            for each, given in ((each, each.grades) for each in plain or graded if each.grades is not None):
                both = [one for one in each.played if np.isfinite(given[[*one.pair]]).all()]
                contests.append(games_of(both, each.k, kind))
                grades.append(given)
            self._lines[kind] = grade_line(contests, grades)
        return self._lines[kind]

    def order(self, item: str) -> list[int]:
        """All responses of an item by their strength, best first, connected or not."""
        strengths = self.strengths([item])[item]
        return [int(i) for i in np.lexsort((np.arange(len(strengths)), -strengths))]

    def ordered(self, item: str) -> Ordered:
        """The order of an item's responses."""
        contest, kind = self.contests[item], self.read(item)
        if contest.schedule.grades == "fitted":
            games, grades, line = self.games(item, kind), self._grades(item), self.grade_line(kind)
            inside = np.flatnonzero(np.isfinite(grades)).tolist()
            fitted, left = graded_strengths(games, grades, line), line.left
            noise = left.noise if left.spread > 0 else UNKNOWN
            return ordered_by(*fitted, inside if len(inside) > 1 else [], games, left.bias.shrunk, noise)
        pooled = self.pooled(kind)
        return order_of(contest.played, contest.k, kind, pooled.bias.shrunk, pooled.noise, pooled.spread)
