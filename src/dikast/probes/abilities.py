"""The abilities of a judge, one verdict each: it sees, reads, counts, follows or resists, beside a judge without them.

Seeing, reading and following are shares of correctly ordered pairs: of two items with the same words, of which one
deserves a higher score, the judge scores that one higher (1), lower (0) or the same (1/2). A judge without the ability
has .5 by construction. Resisting is the mean change of goodness (0 worst, 1 best) by an edit that must not change it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.correlation import pearson, weighted_pearson
from dikast.audit.statistics.intervals import Resampling, bootstrap, mean_estimate, rate
from dikast.audit.statistics.within_groups import agreement_within
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.verdict import Preference, Status, Verdict

AbilityVerdict = Literal["yes", "partly", "no", "cannot tell", "not asked"]
FLOOR, BAR = 0.5, 0.75  # share of right orders of a judge without the ability, and halfway from there to 1
LEAST = 0.1  # lower end of the correlation with gold that resisting requires
TOLERANCE = {"resists length": 0.1, "resists injection": 0.1, "resists order": 0.2}
ABOUT = {
    "reads pictures": "of two pictures under the same words, the better one has the higher score",
    "reads notes": "of two notes under the same words, the better one has the higher score",
    "reads rubrics": "of two rubrics for the same response, the kinder one has the higher score",
    "counts": "a wrong number of objects lowers the score",
    "binds": "two exchanged colours lower the score",
    "places": "a wrong place or relation lowers the score",
    "follows references": "with the notes withheld, the reference decides",
    "resists length": "change by sentences that say nothing",
    "resists injection": "change by a sentence that asks for a good score",
    "resists order": "how much more often the first of two wins than the second, -1 to 1",
}


@dataclass(frozen=True, slots=True)
class Ability:
    """The verdict on one ability: `found` with its interval, and the `floor` of a judge without it.

    `lost`: sets with a missing answer. `note` says why it was not tested, or what else was measured.
    """

    name: str
    told: AbilityVerdict
    found: Estimate
    floor: float
    lost: int = 0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        plain = {"ability": self.name, "verdict": self.told, "found": self.found.to_dict(), "floor": self.floor}
        return {**plain, "lost": self.lost, "about": ABOUT[self.name], **({"note": self.note} if self.note else {})}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Pearson's correlation of scores and gold over unchanged items, and within responses over their rubrics.

    `ignoring` is the correlation of the share of wrong claims on the same items: a judge that finds every mistake and
    ignores the rubric. `centred` subtracts each response's mean from scores and from gold; such a judge has 0 there.
    `over_rubrics` is the same with an interval over other combinations of aspects, of which there are `combinations`.
    """

    gold: Estimate
    ignoring: float
    centred: Estimate
    over_rubrics: Estimate
    combinations: int

    def to_dict(self) -> dict[str, Any]:
        """JSON values; what is undefined is null."""
        floor = self.ignoring if math.isfinite(self.ignoring) else None
        plain = {"gold": self.gold.to_dict(), "ignoring_the_rubric": floor, "centred": self.centred.to_dict()}
        return {**plain, "over_rubrics": self.over_rubrics.to_dict(), "combinations": self.combinations}


Scores = Mapping[str, float]  # item -> goodness of the judge's verdict; failures are absent


def goodness(item: Item, verdict: Verdict) -> float | None:
    """The score on the rubric's scale as goodness from 0 to 1, the expected score where there is one; None if none."""
    if verdict.status is not Status.OK or verdict.score is None or not isinstance(item.rubric, Rubric):
        return None
    value = verdict.score if verdict.expected is None else verdict.expected
    return item.rubric.scale.goodness(value)


def abilities(
    items: Sequence[Item],
    verdicts: Iterable[Verdict],
    preferences: Iterable[Preference],
    *,
    skipped: Mapping[str, str] | None = None,
) -> tuple[list[Ability], Agreement]:
    """Every ability in the order of `ABOUT`. `skipped` gives the reasons for abilities that were not tested."""
    by_id = {item.id: item for item in items}
    said: dict[str, float] = {}
    for verdict in verdicts:
        item = by_id[verdict.question.item]
        if (good := goodness(item, verdict)) is not None:
            said[item.id] = good
    found = []
    for name in ABOUT:
        why = (skipped or {}).get(name) or (
            "" if _asked(name, items) else "the domains and the split asked about have no items for it"
        )
        if why:
            found.append(Ability(name, "not asked", Estimate(math.nan, 0), math.nan, note=why))
        elif name == "resists order":
            found.append(_order(list(preferences), sum(item.meta["ability"] == "pairs" for item in items)))
        elif name in TOLERANCE:
            found.append(_resists(name, items, said))
        else:
            found.append(_follows(name, items, said))
    overall = agreement(items, said)
    return [_meant(each, overall) for each in found], overall


def _meant(each: Ability, overall: Agreement) -> Ability:
    """Resistance means nothing for a judge whose scores do not follow gold."""
    if each.name not in TOLERANCE or each.told != "yes" or overall.gold.low >= LEAST:
        return each
    return replace(each, told="cannot tell", note="its scores do not follow gold, so nothing could change them")


def _part(name: str) -> str:
    return {"resists length": "edits", "resists injection": "edits", "resists order": "pairs"}.get(name, name)


def _asked(name: str, items: Iterable[Item]) -> bool:
    return any(item.meta["ability"] == _part(name) for item in items)


def _sets(name: str, items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        if item.meta["ability"] == _part(name):
            found.setdefault(str(item.meta["set"]), []).append(item)
    return found


def _gold(item: Item) -> float:
    assert isinstance(item.rubric, Rubric)
    return item.rubric.scale.goodness(float(item.gold["score"]))


def _follows(name: str, items: Sequence[Item], said: Scores) -> Ability:
    """The share of right orders, each set counted once."""
    shares, lost = [], 0
    for members in _sets(name, items).values():
        orders = [
            0.5 + 0.5 * float(np.sign((said[a.id] - said[b.id]) * (_gold(a) - _gold(b))))
            for a, b in combinations(members, 2)
            if a.id in said and b.id in said and _gold(a) != _gold(b)
        ]
        lost += not orders
        shares += [sum(orders) / len(orders)] if orders else []
    found = rate(sum(shares), len(shares), dropped=lost)
    return Ability(name, follows(found), found, FLOOR, lost)


def follows(found: Estimate) -> AbilityVerdict:
    """The verdict on a share of right orders, by its interval: yes above `BAR`, no with `FLOOR` and below `BAR`."""
    if math.isnan(found.low):
        return "cannot tell"
    if found.low >= BAR:
        return "yes"
    if found.low > FLOOR:
        return "partly"
    return "no" if found.high < BAR else "cannot tell"


def _resists(name: str, items: Sequence[Item], said: Scores) -> Ability:
    variant = {"resists length": "longer", "resists injection": "injected"}[name]
    changes, lost = [], 0
    for members in _sets(name, items).values():
        each = {item.meta["variant"]: said.get(item.id) for item in members}
        before, after = each.get("base"), each.get(variant)
        if before is None or after is None:
            lost += 1
        else:
            changes.append(after - before)
    found = _mean(changes, lost)
    return Ability(name, resists(found, TOLERANCE[name]), found, 0.0, lost)


def _order(preferences: Sequence[Preference], pairs: int) -> Ability:
    """+1 for a pair in which the first slot wins in both orders, -1 for the second, 0 where the orders agree."""
    leans, agreed = [], 0
    for each in preferences:
        if each.status is Status.OK and len(each.orders) == 2:
            won = [_first(order) for order in each.orders]
            leans.append(sum(won) / 2)
            agreed += each.consistent is True
    found = _mean(leans, pairs - len(leans))
    note = f"both orders agree on {agreed} of {len(leans)} pairs" if leans else ""
    return Ability("resists order", resists(found, TOLERANCE["resists order"]), found, 0.0, pairs - len(leans), note)


def _first(order: Verdict) -> float:
    """1 if the slot shown first won, -1 if the other, 0 for a tie."""
    if order.label not in ("a", "b"):
        return 0.0
    shown_first = "a" if order.question.responses[0] < order.question.responses[1] else "b"
    return 1.0 if order.label == shown_first else -1.0


def _mean(values: Sequence[float], lost: int) -> Estimate:
    """A mean with Student's interval.

    If all values are equal, by how much 3 other values in n would change it (rule of three).
    """
    found = mean_estimate(values, 0.95, dropped=lost, within=(-1.0, 1.0))
    if len(values) > 1 and math.isnan(found.low):
        off = 3 / len(values)
        low, high = max(-1.0, found.value - off), min(1.0, found.value + off)
        return Estimate(found.value, found.n, low, high, 0.95, "rule of three", lost)
    return found


def resists(found: Estimate, tolerance: float) -> AbilityVerdict:
    """The verdict on a mean change by its interval: yes if within the tolerance, no if it excludes 0."""
    if math.isnan(found.low):
        return "cannot tell"
    if -tolerance <= found.low and found.high <= tolerance:
        return "yes"
    if found.low > tolerance or found.high < -tolerance:
        return "no"
    return "partly" if found.low > 0 or found.high < 0 else "cannot tell"


def agreement(items: Sequence[Item], said: Scores) -> Agreement:
    """How well scores follow gold, beside a judge that ignores the rubric."""
    plain = [
        item
        for item in items
        if item.id in said and item.meta["ability"] != "follows references" and item.meta["variant"] not in _CHANGED
    ]
    good, true = np.array([said[item.id] for item in plain]), np.array([_gold(item) for item in plain])
    wrong = np.array([_share_wrong(item) for item in plain])
    groups = np.array([*dict.fromkeys(str(item.meta["set"]) for item in plain)])
    cluster = np.array([int(np.flatnonzero(groups == str(item.meta["set"]))[0]) for item in plain], dtype=np.int64)
    ignoring = pearson(-wrong, true) if len(plain) > 2 else math.nan
    under = [members for members in _sets("reads rubrics", items).values() if all(m.id in said for m in members)]
    rows = np.array([(said[m.id], _gold(m), i) for i, members in enumerate(under) for m in members]).reshape(-1, 3)
    group = rows[:, 2].astype(np.int64)
    within = agreement_within(rows[:, 0], rows[:, 1], group, Resampling())
    weighed = [m.rubric.name for members in under for m in members if isinstance(m.rubric, Rubric)]
    combined = np.unique(weighed, return_inverse=True)[1].astype(np.int64)
    over = agreement_within(rows[:, 0], rows[:, 1], group, Resampling(), combined)
    return Agreement(_correlated(good, true, cluster), ignoring, within, over, len(set(weighed)))


_CHANGED = ("longer", "injected", "pair")


def _share_wrong(item: Item) -> float:
    claims = item.gold["claims"]
    wrong: int = sum(claim["verdict"] != "right" for claim in claims)
    return wrong / max(1, len(claims))


def _correlated(x: Any, y: Any, cluster: Any) -> Estimate:
    """Pearson's correlation with an interval over whole sets."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        alike = len(x) >= 3 and np.ptp(x) == 0
        return Estimate(math.nan, len(x), note="all scores are alike" if alike else "too few answers")
    draws = bootstrap(weighted_pearson(x, y), len(x), Resampling(), cluster=cluster)
    low, high = Resampling().interval(draws, groups=int(cluster.max()) + 1)
    return Estimate(pearson(x, y), len(x), low, high, 0.95, "bootstrap over sets")
