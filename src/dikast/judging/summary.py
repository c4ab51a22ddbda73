"""The summary of a run; every rate with its n and its 95 % interval.

Questions on one item (criteria, samples, both orders, several responses) are not independent observations: intervals
count items. Counts are exact and are kept in parts, since a run may be larger than memory.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.core.confidence import ALIKE, LEVEL, t_of, wilson, wilson_of_groups
from dikast.core.machine.spilled import GroupedNumbers
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.verdict import DISAGREE, Preference, Status, Usage
from dikast.judging.label_scores import FLOOR

OUTCOMES = ("a", "b", "tie", DISAGREE)  # of a pair, both orders together
_DIGITS = re.compile(r"\brow-[0-9a-f]+|\d+")  # reasons that differ only in numbers and ids of rows are one kind
_KINDS = 1000  # of reasons; rarer ones that come after as many are not counted by kind
_LONGEST_REASON = 240  # characters
_FAILED, _FORCED, _CONFLICT, _OK = 1, 2, 4, 8  # of a verdict
_LOST, _TWICE, _AGREE, _FIRST, _SECOND, _WITH_TIE = 1, 2, 4, 8, 16, 32  # of a pair


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its Wilson interval (Wilson 1927), or a mean with Student's; None where undefined."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL

    @classmethod
    def share(cls, count: int, n: int) -> "Rate":
        """`count` of `n` independent observations, with the Wilson score interval."""
        return cls(count / n, *wilson(count, n), n) if n else cls(None, None, None, 0)

    @classmethod
    def pooled(cls, parts: Iterable[tuple[ArrayLike, ArrayLike]]) -> "Rate":
        """The sum of whole counts (k,) over that of whole numbers (k,), each of k groups one independent observation.

        The groups come in parts, and only whole sums of them are kept: `audit.statistics.intervals.pooled_share` has
        the same interval of arrays.
        """
        groups = n = hits = 0
        squares = np.zeros(3, object)  # of counts, mixed, and of numbers: exact
        for counts, of in parts:
            some, many = np.asarray(counts, np.int64), np.asarray(of, np.int64)
            groups, n, hits = groups + int(np.count_nonzero(many)), n + int(many.sum()), hits + int(some.sum())
            squares += [int(some @ some), int(some @ many), int(many @ many)]
        if n == 0 or n == groups:
            return cls.share(hits, n)
        apart = n * n * squares[0] - 2 * n * hits * squares[1] + hits * hits * squares[2]
        error = math.sqrt(groups / (groups - 1) * apart) / (n * n) if apart else 0.0
        return cls(hits / n, *wilson_of_groups(hits / n, error, groups), n)

    @classmethod
    def mean(cls, values: Sequence[float], within: tuple[float, float] = (-math.inf, math.inf)) -> "Rate":
        """The mean of values (n,), each an independent observation, as `mean_of_groups`."""
        return cls.mean_of_groups([(np.arange(len(values)), np.asarray(values, np.float64))], within)

    @classmethod
    def mean_of_groups(
        cls, parts: Iterable[tuple[NDArray[Any], NDArray[Any]]], within: tuple[float, float] = (-math.inf, math.inf)
    ) -> "Rate":
        """The mean of values, with Student's interval; those of a group are one independent observation.

        `parts`, which are gone through twice, hold the groups (k,) and values (k,), each group in one of them. No
        interval for fewer than two groups, or if all groups are equal: a width of 0 would claim certainty. No end lies
        outside `within`, the values that the mean can have. Sums do not depend on the order of values.
        """
        n = groups = 0
        low, high = math.inf, -math.inf

        def given() -> Iterator[float]:
            nonlocal n, low, high
            for _, values in parts:
                n, low, high = n + len(values), values.min(initial=low), values.max(initial=high)
                yield from values.tolist()

        def squares(mean: float) -> Iterator[float]:
            nonlocal groups
            for names, values in parts:
                order = np.argsort(values, kind="stable")
                codes = np.unique(names[order], return_inverse=True)[1]
                sums = np.bincount(codes, (values[order] - mean) / n)
                groups += len(sums)
                yield from (sums * sums).tolist()

        total = math.fsum(given())
        if n == 0:
            return cls(None, None, None, 0)
        mean = total / n
        square = math.fsum(squares(mean))
        error = math.sqrt(groups / (groups - 1) * square) if groups > 1 else 0.0
        if low == high or not error > ALIKE * max(1.0, abs(mean)):
            return cls(mean, None, None, n)
        half = t_of(LEVEL, groups - 1) * error
        return cls(mean, max(within[0], mean - half), min(within[1], mean + half), n)


class Counts:
    """Flags of observations, each on an item, from which shares are made."""

    def __init__(self) -> None:
        self._flags = GroupedNumbers("B")

    def __len__(self) -> int:
        return len(self._flags)

    def add(self, item: str, flags: int) -> None:
        """Count one observation; `flags` has a bit for each share, from 0 to 255."""
        self._flags.add(item, flags)

    def share(self, flag: int, among: int = 0) -> Rate:
        """The share of observations with a flag, of those with all bits of `among`."""
        return Rate.pooled(self._by_item(flag, among))

    def _by_item(self, flag: int, among: int) -> Iterator[tuple[ArrayLike, ArrayLike]]:
        for items, flags in self._flags:
            due = (flags & among) == among
            _, codes, many = np.unique(items[due], return_inverse=True, return_counts=True)
            yield np.bincount(codes, (flags[due] & flag) > 0, len(many)), many


class Values:
    """Numbers, each on an item, from which a mean is made."""

    def __init__(self) -> None:
        self._numbers = GroupedNumbers("d")

    def add(self, item: str, number: float) -> None:
        """Count one number."""
        self._numbers.add(item, number)

    def mean(self, within: tuple[float, float] = (-math.inf, math.inf)) -> Rate:
        """Their mean, items counted; no end of its interval lies outside `within`."""
        return Rate.mean_of_groups(self._numbers, within)


@dataclass
class Tally:
    """Counts verdict records one by one; `summary()` gives the JSON value. Holds at most 2 MB a criterion.

    `rubrics` by hash give the scales: where those of a criterion differ, its mean is of goodness.
    """

    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    status: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # of each kind of reason, the first
    counts: Counts = field(default_factory=Counts)
    labels: dict[str, Counter[tuple[str, Scale | None]]] = field(default_factory=dict)
    orders: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)  # of pairs, by the response shown first
    scores: dict[str, Values] = field(default_factory=dict)
    good: dict[str, Values] = field(default_factory=dict)  # as `scores`, of goodness
    judged_by: dict[str, set[str]] = field(default_factory=dict)  # the hashes of a criterion's rubrics
    servers: Counter[str] = field(default_factory=Counter)  # verdicts by who answered, where there are several
    tokens: list[int] = field(default_factory=lambda: [0, 0, 0])  # in, cached, out
    seconds: float = 0.0
    cost: float | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record of `verdicts.jsonl`."""
        status, item = record["status"], record["question"]["item"]
        self.status[status] += 1
        self._add_usage(record["usage"])
        if server := record.get("server"):
            self.servers[server] += 1
        if status != Status.OK:
            self.counts.add(item, _FAILED)
            reason = f"{status}: {record['reason']}"[:_LONGEST_REASON]
            kind = _DIGITS.sub("#", reason)
            if kind in self.reasons or len(self.reasons) < _KINDS:  # reasons may quote the reply
                self.reasons[kind] += 1
                self.examples.setdefault(kind, reason)
            return
        forced = _FORCED * (record["marker"] == "forced")
        self.counts.add(item, _OK | forced | _CONFLICT * bool(record.get("conflict")))
        criterion = record["question"]["criterion"]
        responses = record["question"].get("responses") or [0]
        if len(responses) > 1:  # one order of a pair: not a verdict on the pair by itself
            order = "a first" if responses[0] < responses[1] else "b first"
            self.orders.setdefault(criterion, {}).setdefault(order, Counter())[record["label"]] += 1
            return
        if criterion not in self.labels:
            self.labels[criterion] = Counter()
        name = str((record.get("hashes") or {}).get("rubric"))
        rubric = self.rubrics.get(name)
        self.labels[criterion][record["label"], None if rubric is None else rubric.scale] += 1
        score = record["score"]
        if score is not None:
            if criterion not in self.scores:
                self.judged_by[criterion], self.scores[criterion], self.good[criterion] = set(), Values(), Values()
            self.judged_by[criterion].add(name)
            self.scores[criterion].add(item, score)
            if rubric is not None:
                self.good[criterion].add(item, rubric.scale.goodness(score))

    def _add_usage(self, usage: Mapping[str, Any]) -> None:
        tokens = self.tokens
        tokens[0] += usage["tokens_in"]
        tokens[1] += usage["tokens_cached"]
        tokens[2] += usage["tokens_out"]
        self.seconds += usage["seconds"]
        if usage["cost"] is not None:
            self.cost = (self.cost or 0.0) + usage["cost"]

    def _means(self, criterion: str) -> dict[str, Any]:
        """The mean score of a criterion; where its rubrics are on several scales, the mean goodness in its place."""
        rubrics = map(self.rubrics.get, self.judged_by.get(criterion, ()))
        scales: set[Scale | None] = {None if rubric is None else rubric.scale for rubric in rubrics}
        if len(scales) < 2:
            scores, scale = self.scores.get(criterion), next(iter(scales), None)
            bounds = (-math.inf, math.inf) if scale is None else (scale.low, scale.high)
            return {"mean_score": asdict(scores.mean(bounds)) if scores else None}
        good = self.good.get(criterion)
        return {"mean_score": None, "mean_goodness": asdict(good.mean((0.0, 1.0))) if good else None}

    def summary(self) -> dict[str, Any]:
        """Counts by status, the failure rate, shares of forced and conflicting verdicts, labels and means, usage.

        Verdicts on pairs are counted by criterion and order (`orders`), never pooled: the joint verdicts are in the
        summary of preferences. `failures` counts the commonest kinds of reason, each under its first reason.
        """
        n = sum(self.status.values())
        return {
            "verdicts": n,
            "status": {status.value: self.status[status] for status in Status if self.status[status]},
            "failure_rate": asdict(self.counts.share(_FAILED)),
            "forced_share": asdict(self.counts.share(_FORCED, _OK)),
            "conflict_share": asdict(self.counts.share(_CONFLICT, _OK)),
            "failures": {self.examples[kind]: count for kind, count in self.reasons.most_common(5)},
            "criteria": {
                criterion: {
                    "labels": _by_scale(labels),
                    **self._means(criterion),
                }
                for criterion, labels in sorted(self.labels.items())
            },
            **({"orders": self._orders()} if self.orders else {}),
            **({"servers": dict(sorted(self.servers.items()))} if self.servers else {}),
            "usage": asdict(Usage(self.tokens[0], self.tokens[1], self.tokens[2], self.seconds, self.cost)),
        }

    def _orders(self) -> dict[str, Any]:
        return {
            criterion: {order: dict(sorted(labels.items())) for order, labels in sorted(orders.items())}
            for criterion, orders in sorted(self.orders.items())
        }


def _by_scale(given: Counter[tuple[str, Scale | None]]) -> dict[str, int]:
    """How often each label was given; where they are of several scales, as `2 of 1-10`."""
    several = len({scale for _, scale in given}) > 1
    counts = Counter[str]()
    for (label, scale), n in given.items():
        counts[f"{label} of {scale}" if several and scale is not None else label] += n
    return dict(sorted(counts.items()))


def preference_summary(preferences: Iterable[Preference]) -> dict[str, Any]:
    """Joint outcomes (also by criterion), how often the orders agree, and position bias.

    Shares of flips are of the pairs with a verdict in both orders: `flips_to_first_slot` and `flips_to_second_slot` are
    won by the same slot both times, `flips_with_a_tie` hold a tie in one order only. They and `order_consistency` sum
    to 1. `one_order` is set if each pair was asked in one order: then a choice may be due to the slot.
    `position_bias_bounded` counts the pairs in which a response has a probability below FLOOR: how far the bias in nats
    goes beyond that is unknown.
    """
    choices: Counter[str] = Counter()
    by_criterion: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    counts, bias, bounded = Counts(), Values(), 0
    one_order = False
    for preference in preferences:
        one_order |= len(preference.orders) == 1 and len(preference.orders[0].question.responses) == 2
        if preference.choice is None:
            failed[preference.status.value] += 1
            counts.add(preference.item, _LOST)
            continue
        outcome = str(preference.outcome)
        choices[outcome] += 1
        by_criterion.setdefault(preference.criterion, Counter())[outcome] += 1
        counts.add(preference.item, _flips(preference))
        if preference.position_bias is not None:
            bias.add(preference.item, preference.position_bias)
            read = [order.distribution for order in preference.orders if order.distribution]
            bounded += any(min(each["a"], each["b"]) < FLOOR for each in read)
    decided = sum(choices.values())
    return {
        "pairs": decided + sum(failed.values()),
        **({"one_order": True} if one_order else {}),
        "choices": {name: choices[name] for name in OUTCOMES},
        "criteria": {
            name: {each: counts[each] for each in OUTCOMES if counts[each]}
            for name, counts in sorted(by_criterion.items())
        },
        "failed": dict(failed),
        "failure_rate": asdict(counts.share(_LOST)),
        "order_consistency": asdict(counts.share(_AGREE, _TWICE)),
        "flips_to_first_slot": asdict(counts.share(_FIRST, _TWICE)),
        "flips_to_second_slot": asdict(counts.share(_SECOND, _TWICE)),
        "flips_with_a_tie": asdict(counts.share(_WITH_TIE, _TWICE)),
        "position_bias_nats": asdict(bias.mean()),
        **({"position_bias_bounded": bounded} if bounded else {}),
    }


def _flips(preference: Preference) -> int:
    """The joint result of the two orders of a pair, as flags; none if it was asked in one order."""
    if preference.consistent is None:
        return 0
    if preference.consistent:
        return _TWICE | _AGREE
    in_first = [
        order.label == ("a" if order.question.responses[0] < order.question.responses[1] else "b")
        for order in preference.orders
    ]
    tied = any(order.label == "tie" for order in preference.orders)
    second = not any(in_first) and not tied
    return _TWICE | _FIRST * all(in_first) | _SECOND * second | _WITH_TIE * tied
