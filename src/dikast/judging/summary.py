"""What a run says in one page of numbers; every rate with its n and its 95 % interval."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.text import counted
from dikast.core.verdict import DISAGREE, Preference, Status, Usage
from dikast.judging.label_scores import FLOOR

LEVEL = 0.95
OUTCOMES = ("a", "b", "tie", DISAGREE)  # of a pair, both orders together
_DIGITS = re.compile(r"\d+")  # reasons that differ only in numbers are one kind
_KINDS = 1000  # of reasons; rarer ones that come after as many are not counted by kind
_LONGEST_REASON = 240  # characters
_ROUNDING = 1e-12  # of a sum of squares
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its Wilson interval (Wilson 1927), or a mean with its normal one; None where undefined."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL

    @classmethod
    def share(cls, count: int, n: int) -> "Rate":
        """`count` of `n`, with the Wilson score interval."""
        if n == 0:
            return cls(None, None, None, 0)
        p, z2 = count / n, _Z * _Z
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        low, high = max(0.0, middle - half), min(1.0, middle + half)
        return cls(p, low if count else 0.0, high if count < n else 1.0, n)  # both ends are exact, rounding is not

    @classmethod
    def mean(cls, n: int, total: float, squares: float) -> "Rate":
        """The mean of n values with the given sum and sum of squares.

        No interval below two values, nor where all are alike: one of width 0 would claim a certainty nobody has.
        """
        if n == 0:
            return cls(None, None, None, 0)
        mean = total / n
        spread = squares - n * mean * mean
        if n == 1 or spread <= _ROUNDING * squares:
            return cls(mean, None, None, n)
        half = _Z * math.sqrt(spread / (n - 1) / n)
        return cls(mean, mean - half, mean + half, n)


@dataclass
class Tally:
    """Counts verdict records one by one; `summary()` gives the JSON value. Holds no verdicts.

    `rubrics` by hash give the scales: where those of a criterion differ, its mean is of goodness.
    """

    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    status: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # of each kind of reason, the first
    marker: Counter[str] = field(default_factory=Counter)
    conflicts: int = 0  # verdicts that other verdicts in the same reply contradict
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    orders: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)  # of pairs, by the response shown first
    sums: dict[str, list[float]] = field(default_factory=dict)
    good: dict[str, list[float]] = field(default_factory=dict)  # as `sums`, of goodness
    scales: dict[str, set[Scale | None]] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=lambda: [0, 0, 0])  # in, cached, out
    seconds: float = 0.0
    cost: float | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record of `verdicts.jsonl`."""
        status = record["status"]
        self.status[status] += 1
        self._add_usage(record["usage"])
        if status != Status.OK:
            reason = f"{status}: {record['reason']}"[:_LONGEST_REASON]
            kind = _DIGITS.sub("#", reason)
            if kind in self.reasons or len(self.reasons) < _KINDS:  # reasons may quote the reply
                self.reasons[kind] += 1
                self.examples.setdefault(kind, reason)
            return
        if record["marker"]:
            self.marker[record["marker"]] += 1
        self.conflicts += record.get("conflict", False)
        criterion = record["question"]["criterion"]
        responses = record["question"].get("responses") or [0]
        if len(responses) > 1:  # one order of a pair: says nothing by itself about the pair
            order = "a first" if responses[0] < responses[1] else "b first"
            self.orders.setdefault(criterion, {}).setdefault(order, Counter())[record["label"]] += 1
            return
        if criterion not in self.labels:
            self.labels[criterion] = Counter()
        self.labels[criterion][record["label"]] += 1
        score = record["score"]
        if score is not None:
            rubric = self.rubrics.get(str((record.get("hashes") or {}).get("rubric")))
            self.scales.setdefault(criterion, set()).add(rubric.scale if rubric is not None else None)
            _add(self.sums, criterion, score)
            if rubric is not None:
                _add(self.good, criterion, rubric.scale.goodness(score))

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
        if len(self.scales.get(criterion, ())) < 2:
            return {"mean_score": asdict(_mean(self.sums[criterion])) if criterion in self.sums else None}
        good = self.good.get(criterion)
        return {"mean_score": None, "mean_goodness": asdict(_mean(good)) if good else None}

    def summary(self) -> dict[str, Any]:
        """Counts by status, the failure rate, shares of forced and conflicting verdicts, labels and means, usage.

        Verdicts on pairs are counted by criterion and order (`orders`), never pooled: what both orders say together is
        in the summary of preferences. `failures` counts the commonest kinds of reason, each under its first reason.
        """
        n = sum(self.status.values())
        ok = self.status[Status.OK]
        return {
            "verdicts": n,
            "status": {status.value: self.status[status] for status in Status if self.status[status]},
            "failure_rate": asdict(Rate.share(n - ok, n)),
            "forced_share": asdict(Rate.share(self.marker["forced"], ok)),
            "conflict_share": asdict(Rate.share(self.conflicts, ok)),
            "failures": {self.examples[kind]: count for kind, count in self.reasons.most_common(5)},
            "criteria": {
                criterion: {
                    "labels": dict(sorted(labels.items())),
                    **self._means(criterion),
                }
                for criterion, labels in sorted(self.labels.items())
            },
            **({"orders": self._orders()} if self.orders else {}),
            "usage": asdict(Usage(self.tokens[0], self.tokens[1], self.tokens[2], self.seconds, self.cost)),
        }

    def _orders(self) -> dict[str, Any]:
        return {
            criterion: {order: dict(sorted(labels.items())) for order, labels in sorted(orders.items())}
            for criterion, orders in sorted(self.orders.items())
        }


def _add(to: dict[str, list[float]], criterion: str, value: float) -> None:
    sums = to.setdefault(criterion, [0, 0.0, 0.0])
    sums[0] += 1
    sums[1] += value
    sums[2] += value * value


def _mean(sums: list[float]) -> Rate:
    return Rate.mean(int(sums[0]), sums[1], sums[2])


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
    agreeing = judged_twice = first = second = with_tie = 0
    bias = [0, 0.0, 0.0]
    bounded = 0
    one_order = False
    for preference in preferences:
        one_order |= len(preference.orders) == 1 and len(preference.orders[0].question.responses) == 2
        if preference.choice is None:
            failed[preference.status.value] += 1
            continue
        outcome = str(preference.outcome)
        choices[outcome] += 1
        by_criterion.setdefault(preference.criterion, Counter())[outcome] += 1
        if preference.consistent is not None:
            judged_twice += 1
            agreeing += preference.consistent
            if not preference.consistent:
                in_first = [
                    o.label == ("a" if o.question.responses[0] < o.question.responses[1] else "b")
                    for o in preference.orders
                ]
                tied = any(o.label == "tie" for o in preference.orders)
                with_tie += tied
                first += all(in_first)
                second += not any(in_first) and not tied
        if preference.position_bias is not None:
            bias[0] += 1
            bias[1] += preference.position_bias
            bias[2] += preference.position_bias**2
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
        "failure_rate": asdict(Rate.share(sum(failed.values()), decided + sum(failed.values()))),
        "order_consistency": asdict(Rate.share(agreeing, judged_twice)),
        "flips_to_first_slot": asdict(Rate.share(first, judged_twice)),
        "flips_to_second_slot": asdict(Rate.share(second, judged_twice)),
        "flips_with_a_tie": asdict(Rate.share(with_tie, judged_twice)),
        "position_bias_nats": asdict(Rate.mean(int(bias[0]), bias[1], bias[2])),
        **({"position_bias_bounded": bounded} if bounded else {}),
    }


def bounded_told(preferences: Mapping[str, Any]) -> str:
    """What to mind of a position bias in nats where a response had a probability of 0; "" where none had."""
    if not (bounded := preferences.get("position_bias_bounded")):
        return ""
    n, most = preferences["position_bias_nats"]["n"], -math.log(FLOOR)
    return f"{bounded:,} of {counted(n, 'pair')} cut off at {most:.1f} nats: a probability of 0 counts as {FLOOR:g}"
