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
    signed,
    stacks_of,
)
from dikast.ranking.graded_strengths import GradeLine, beyond_told, centred, grade_line, graded_strengths, less_mean
from dikast.ranking.informative import Belief, most_informative, pairs_of
from dikast.ranking.item_order import Ordered, connected, ordered_by
from dikast.ranking.pooled import ENOUGH, UNKNOWN, Pooled, pool
from dikast.ranking.schedules import Rounds, Schedule, unasked

_NOISE = 0.45  # assumed noise of a comparison, in standard deviations of strength within an item
_FREE = 10  # degrees of freedom that the assumption is worth
_BEYOND = 0.63  # assumed spread of strengths around what grades predict, in that of the predicted: correlation .85


@dataclass(slots=True)
class Contest:
    """One item: its schedule, and its comparisons so far.

    `asked` are the comparisons that were drawn; `grades` (k,) are those of its responses (NaN: none), where they were
    graded, and `grading` is what they cost.
    """

    k: int
    schedule: Schedule
    rounds: Rounds
    rng: np.random.Generator
    asked: set[OrderedPair] = field(default_factory=set)
    played: list[Comparison] = field(default_factory=list)
    began: bool = False
    over: bool = False
    grades: Floats | None = None
    grading: Usage = field(default_factory=Usage)

    @property
    def calls(self) -> int:
        """Its share of the comparisons of its schedule: fewer where responses have no grade."""
        calls = self.schedule.calls(self.k)
        if self.schedule.grades != "fitted" or self.grades is None:
            return calls
        known = int(np.isfinite(self.grades).sum())
        return min(calls, known * (known - 1))

    @property
    def counts(self) -> Floats:
        """How often the row's response was drawn to be shown first and the column's second (k, k)."""
        found = np.zeros((self.k, self.k))
        for pair in self.asked:
            found[pair] = 1
        return found

    def turned(self, i: int, j: int) -> OrderedPair:
        """An order of the pair that was not asked, counted as asked: who was shown first less often is shown first."""
        pair = unasked(i, j, signed(self.counts), self.asked, self.rng)
        self.asked.add(pair)
        return pair


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
        self._kinds: tuple[Values, ...] = ()  # the usual one, once it is known

    def enter(self, item: str, k: int, schedule: Schedule, grades: Floats | None = None) -> None:
        """Add an item with k responses.

        grades (k,): needed by a schedule that begins with grades, NaN where there is none; those of other items say how
        comparisons follow grades.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(item.encode("utf-8", "surrogatepass"))])
        rounds = schedule.draw(k, rng, np.zeros(k) if grades is None else grades)
        self.contests[item] = Contest(k, schedule, rounds, rng, grades=grades)

    def draw(self) -> dict[str, list[OrderedPair]]:
        """The pairs of the next round by item, without the items that have none: empty when all are over.

        When every schedule has drawn its own rounds, those that seek the best (or both ends) share out what is left of
        their comparisons over all their items, so that more go where they help more.
        """
        waiting = [item for item, contest in self.contests.items() if not contest.over]
        strengths, found = self.strengths([item for item in waiting if self.contests[item].began]), {}
        for item in waiting:
            contest = self.contests[item]
            try:
                found[item] = contest.rounds.send(strengths[item]) if contest.began else next(contest.rounds)
                contest.began = True
            except StopIteration:
                contest.over = True
        for item, pairs in found.items():
            self.contests[item].asked |= set(pairs)
        return found or self._shared()

    def _shared(self) -> dict[str, list[OrderedPair]]:
        """The next pairs of the items whose schedules seek an end, by how much each helps."""
        alike: dict[tuple[str, Values], list[str]] = {}
        for item, contest in self.contests.items():
            if contest.schedule.signs:
                alike.setdefault((contest.schedule.name, self.read(item)), []).append(item)
        found: dict[str, list[OrderedPair]] = {}
        for (_, kind), items in alike.items():
            contests = [self.contests[item] for item in items]
            left = sum(each.calls - len(each.asked) for each in contests)
            want = min(sum(max(each.k // 4, 1) for each in contests), left)
            signs, most = contests[0].schedule.signs, max(max(each.k // 2, 1) for each in contests)
            for at, i, j in most_informative(self._beliefs(items, kind), want, signs, most) if want > 0 else ():
                found.setdefault(items[at], []).append(contests[at].turned(i, j))
        return found

    def _beliefs(self, items: Sequence[str], kind: Values) -> list[Belief]:
        """What is known of these items' strengths so far, in units of the noise."""
        fitted = self.contests[items[0]].schedule.grades == "fitted"
        line = self.grade_line(kind) if fitted else GradeLine(0.0, self.pooled(kind))
        told = [
            line.slope * centred(self._grades(item)) if fitted else np.zeros(self.contests[item].k) for item in items
        ]
        if fitted and not self._piloted(kind):  # pairs chosen by grades do not tell how far these are off
            spread = _BEYOND * float(np.sqrt(np.mean(np.concatenate(told) ** 2))) or 1.0
            noise, ridge = spread, 1.0
        else:
            noise, ridge = _scale(line.left)
        found = []
        for item, each in zip(items, told, strict=True):
            contest, games = self.contests[item], self.games(item, kind)
            asked = contest.counts
            beyond, covariance = beyond_told(
                games, each, ridge, line.left.bias.shrunk, Games(asked, asked, asked.sum())
            )
            first, second = pairs_of(contest.k)
            left = (2 - asked - asked.T)[first, second]
            if 2 * games.n < asked.sum() >= contest.calls:
                left = np.zeros(len(left))  # what is mostly not answered gets no more than its share
            if contest.grades is not None and fitted:
                left = np.where(np.isfinite(contest.grades[first] + contest.grades[second]), left, 0.0)
            found.append(Belief((each + beyond) / noise, covariance, left))
        return found

    def _piloted(self, kind: Values) -> bool:
        """Whether there are graded items whose pairs were chosen without the grades."""
        return any(
            contest.grades is not None and not contest.schedule.grades and self.read(item) == kind
            for item, contest in self.contests.items()
        )

    def strengths(self, items: Sequence[str]) -> dict[str, Floats]:
        """Strengths (k,) of the items' responses by what was played so far; those with as many are fitted together."""
        alike: dict[tuple[int, Values, str], list[str]] = {}
        for item in items:
            contest = self.contests[item]
            alike.setdefault((contest.k, self.read(item), contest.schedule.name), []).append(item)
        found: dict[str, Floats] = {}
        for (_, kind, _), names in alike.items():
            at = 0
            for stack in stacks_of([self.games(item, kind) for item in names]):
                some = names[at : at + len(stack.counts)]
                found |= zip(some, self._fitted(stack, some, kind)[0], strict=True)
                at += len(some)
        return found

    def _fitted(self, stack: Games, items: Sequence[str], kind: Values) -> tuple[Floats, Floats, bool]:
        """Strengths of a stack of items of one schedule, their covariance for noise of variance 1, whether by a prior.

        Where pairs follow the answers so far, least squares would take for merit what was luck: there the strengths
        have a normal prior with the spread of all items, once noise and spread are known well enough.
        """
        schedule, pooled = self.contests[items[0]].schedule, self.pooled(kind)
        if schedule.grades == "fitted":
            grades = np.stack([self._grades(item) for item in items])
            return *graded_strengths(stack, grades, self.grade_line(kind)), True
        if schedule.follows and pooled.noise.free >= ENOUGH and pooled.noise.sd > 0 and pooled.spread > 0:
            ridge = (pooled.noise.sd / pooled.spread) ** 2
            return *beyond_told(stack, np.zeros(stack.counts.shape[:-1]), ridge, pooled.bias.shrunk), True
        fit = fit_strengths(stack, pooled.bias.shrunk)
        return fit.strengths, fit.covariance, False

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
        self._pooled, self._lines, self._kinds = {}, {}, ()

    def read(self, item: str) -> Values:
        """The kind of values that the item is ordered by."""
        if self.values is not None:
            return self.values
        played = self.contests[item].played
        return _kind(played) if played else self._usual()

    def _usual(self) -> Values:
        """The kind of values of most items that have comparisons, for those that have none."""
        if not self._kinds:
            found = [_kind(contest.played) for contest in self.contests.values() if contest.played] or ["verdict"]
            self._kinds = (max(dict.fromkeys(found), key=found.count),)
        return self._kinds[0]

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
        games, pooled = self.games(item, kind), self.pooled(kind)
        strengths, covariance, prior = self._fitted(next(stacks_of([games])), [item], kind)
        if contest.schedule.grades == "fitted":
            pooled = self.grade_line(kind).left
            inside = np.flatnonzero(np.isfinite(self._grades(item))).tolist()
            noise = pooled.noise if pooled.spread > 0 else UNKNOWN
            return ordered_by(
                strengths[0], covariance[0], inside if len(inside) > 1 else [], games, pooled.bias.shrunk, noise
            )
        inside = connected(games)
        if prior:
            covariance = less_mean(covariance, np.isin(np.arange(contest.k), inside))
        spread = np.inf if prior else pooled.spread
        return ordered_by(strengths[0], covariance[0], inside, games, pooled.bias.shrunk, pooled.noise, spread=spread)


def _kind(played: Sequence[Comparison]) -> Values:
    """Logits if every verdict has probabilities, else verdicts."""
    bare = any(np.isnan(each.logit) and not np.isnan(each.verdict) for each in played)
    return "verdict" if bare or all(np.isnan(each.logit) for each in played) else "logit"


def _scale(pooled: Pooled) -> tuple[float, float]:
    """The noise of a comparison, and its variance over that of the strengths, for choosing pairs.

    What is measured counts by its degrees of freedom, beside a few of a usual ratio.
    """
    known, sd, free = pooled.spread > 0, pooled.noise.sd, pooled.noise.free
    spread = pooled.spread if known else (sd / _NOISE if sd > 0 else 1.0)
    variance = ((sd * sd * free if free else 0.0) + _FREE * (_NOISE * spread) ** 2) / (free + _FREE)
    return float(np.sqrt(variance)), variance / spread**2
