"""Pairwise verdicts as arrays, with failures separated from choices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.plan import TwoGames
from dikast.audit.statistics.intervals import Resampling, bootstrap, clusters_of, merged
from dikast.audit.statistics.intervals import share as mean_share
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.choices import DISAGREE, FIRST, NONE, SECOND, TIE, WRONG, Choices, Share
from dikast.audit.tables.columns import Words
from dikast.audit.tables.derived_roles import MOST_UNREAD
from dikast.audit.tables.load import Data
from dikast.audit.tables.refs import SLOTS
from dikast.audit.tables.scored import consensus, split_rows
from dikast.audit.tables.soft_preferences import worth_of
from dikast.audit.tables.statuses import failed_before, joined_status, statuses
from dikast.core.errors import UserError
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
_SHOWN = 5
_SPELT = {**dict(enumerate(pairs.NAMES)), DISAGREE: "disagree"}
_UNSCORED = {"drop": NONE, "tie": TIE, "wrong": WRONG}


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Choices as codes (n,): in the order shown, in the swapped order (as responses) or None, gold, raters (R, n).

    `known` and `known_swapped` say where an order has a verdict, whatever the rule (`unscored`, a code) made of the
    others; `joint` says that no choice depends on one order; `soft` is what the first response earns in each order
    (n,), where preferences may lie between the choices; `strong` where every order has a strong one; `status` is that
    of the pair, its orders' stand beside it; `split` are the pairs without gold since raters have no majority.
    """

    choice: Codes | None
    swapped: Codes | None
    known: Masks
    known_swapped: Masks
    unscored: int
    strong: Masks
    gold: Codes
    raters: Floats
    status: Words | None
    status_shown: Words | None
    status_swapped: Words | None
    cluster: Codes | None
    level: float
    how: Resampling
    two_games: TwoGames = "both"
    soft: tuple[Floats, ...] = ()
    joint: bool = False
    split: Masks | None = None

    @property
    def softly(self) -> Floats | None:
        """What the first response earns (n,), the mean of the orders; NaN without a verdict, None without --soft."""
        return np.asarray(np.mean(self.soft, axis=0)) if self.soft else None

    @property
    def scored(self) -> Masks:
        """Pairs with a verdict: in both orders, or in the only one."""
        return self.known if self.swapped is None else self.known & self.known_swapped

    @property
    def one_order(self) -> bool:
        """Whether the verdicts are of one order of each pair."""
        return self.swapped is None and self.choice is not None and not self.joint

    @property
    def may_disagree(self) -> bool:
        """Whether a disagreement of the orders is one of the outcomes."""
        return self.swapped is not None or (self.choice is not None and bool((self.choice == DISAGREE).any()))

    @property
    def final(self) -> Codes | None:
        """The judge's final verdict: both orders together (`pairs.joint`), or the only one."""
        if self.choice is None or self.swapped is None:
            return self.choice
        return np.where(self.scored, pairs.joint(self.choice, self.swapped, self.two_games), self.unscored).astype(
            np.int64
        )

    @property
    def undecided(self) -> int:
        """How many pairs with a verdict have no gold since their raters have no majority."""
        return 0 if self.split is None else int((self.split & self.scored).sum())

    @property
    def alike(self) -> tuple[str | None, str | None]:
        """The one verdict of all pairs with a verdict and gold, and their one gold; None where there are several."""
        due = (self.gold != NONE) & self.scored
        views = [each[due] for each in (self.final, self.gold) if each is not None]
        said = [_SPELT.get(int(each[0])) if len(each) and np.ptp(each) == 0 else None for each in views]
        return (said[0], said[1]) if len(said) == 2 else (None, None)

    def unscored_told(self, rows: Masks) -> str:
        """How the rule counted pairs without a verdict among the chosen rows (n,); "" where it counted none."""
        return rule_told(int((rows & ~self.scored).sum()), self.unscored)

    def fillings(self) -> Iterator[Codes]:
        """The verdicts (n,) if all missing ones had been one and the same choice, for each order separately."""
        for one in (FIRST, SECOND, TIE):
            shown = np.where(self.known, one if self.choice is None else self.choice, one).astype(np.int64)
            if self.swapped is None:
                yield shown
                continue
            for two in (FIRST, SECOND, TIE):
                yield pairs.joint(shown, np.where(self.known_swapped, self.swapped, two), self.two_games)

    def estimate(self, share: Share, rows: Masks | None = None) -> Estimate:
        """A share with Wilson's interval, or a Student's interval over clusters."""
        counts = share.counts if rows is None else share.counts & rows
        dropped = int((~counts).sum() if rows is None else (rows & ~counts).sum())
        return mean_share(share.worth[counts], self.level, self.clusters(counts), dropped=dropped)

    def clusters(self, chosen: Masks) -> Codes | None:
        """Cluster codes of the chosen rows, from 0 without gaps."""
        return None if self.cluster is None else clusters_of(self.cluster[chosen])


def paired(data: Data) -> Paired:
    """Read choices, gold and raters; tell failures from verdicts."""
    plan = data.plan
    choice, status = _verdicts(data, "score", plan.score)
    swapped, status_swapped = _verdicts(data, "swapped", plan.swapped)
    if swapped is not None and plan.swapped_as == "slots":
        turned = None if swapped.soft is None else 1 - swapped.soft
        swapped = swapped._replace(codes=pairs.swap(swapped.codes), soft=turned)
    golds = [read_column(data, f"gold {i}", name) for i, name in enumerate(plan.gold)]
    decided = [np.isin(each.codes, (FIRST, SECOND, TIE)) for each in golds]
    raters = np.array([np.where(known, each.codes, np.nan) for known, each in zip(decided, golds, strict=True)])
    raters = raters.reshape(len(golds), len(data))
    gold, split = np.full(len(data), NONE, np.int64), None
    if len(golds):
        label = consensus(raters, _rule(plan.gold_rule))
        split = split_rows(raters, label, _rule(plan.gold_rule))
        gold = np.where(np.isnan(label), NONE, label).astype(np.int64)
        if undecided := int(split.sum()):
            data.notes.append(f"{counted(undecided, 'pair')} without a majority among raters: no gold")
        if absent := int(np.isnan(raters).all(0).sum()):
            data.notes.append(f"{counted(absent, 'pair')} without gold")
    nothing = np.zeros(len(data), bool)
    strong = nothing if choice is None else choice.strong
    return Paired(
        ruled(choice, plan.unscored),
        ruled(swapped, plan.unscored),
        nothing if choice is None else choice.codes != NONE,
        nothing if swapped is None else swapped.codes != NONE,
        _UNSCORED[plan.unscored],
        strong if swapped is None else strong & swapped.strong,
        gold,
        raters,
        status if status is None or status_swapped is None else joined_status(status, status_swapped),
        status,
        status_swapped,
        data.words["cluster"].codes if "cluster" in data.words else None,
        plan.resampling.level,
        plan.resampling,
        plan.two_games,
        tuple(each.soft for each in (choice, swapped) if each is not None and each.soft is not None),
        # a column with disagreements joins both orders, whoever wrote it
        swapped is None and choice is not None and (plan.joint or bool((choice.codes == DISAGREE).any())),
        split,
    )


def _rule(name: str) -> str:
    if name in ("mean", "median"):
        raise UserError(f"--gold-rule {name}: choices have no {name}; use majority or first")
    return name or "majority"


def _verdicts(data: Data, role: str, column: str) -> tuple[Choices | None, Words | None]:
    if role not in data.words:
        return None, None
    words = data.words[role]
    status = data.words.get("status_swapped" if role == "swapped" else "status", data.words.get("status"))
    failed = failed_before(status, len(data))
    words = Words(np.where(failed, -1, words.codes), words.names)  # what a failed row holds is no choice
    found = read_column(data, role, column, words)
    missing = (words.codes < 0) & ~failed
    told = statuses(found.codes != NONE, status, {"missing": missing, "unparsed": ~missing & ~failed})
    return found, told


def read_column(data: Data, role: str, column: str, words: Words | None = None) -> Choices:
    """The choices in a column; other words are reported, and refused if they are more than a tenth.

    `words` are those of the role with the rows left out that failed already. Words in --failed mark failures, so they
    are not what could not be read. UserError over MOST_UNREAD of the rows that hold something, unless `allow_unread`.
    """
    words, plan = words or data.words[role], data.plan
    words = pairs.in_slots(words, [data.words[slot] for slot in SLOTS if slot in data.words], plan.pair_labels)
    worth = worth_of(words, plan.pair_labels) if plan.soft else None
    found = pairs.read_choices(words, plan.pair_labels, column, worth)
    lost = sum(count for word, count in found.other.items() if word not in plan.failed)
    held = int((words.codes >= 0).sum())
    named, unread = _counted_words(found.other), [at for at, name in enumerate(words.names) if name in found.other]
    first = data.first(role, np.isin(words.codes, unread))[1] if unread else ""
    if lost > MOST_UNREAD * held and not plan.allow_unread:
        raise UserError(
            f"{first}: {lost:,} of the {held:,} values in column {column!r} are no choice: {named}. Say how "
            "choices are spelt with --pair-labels FIRST,SECOND,TIE (several spellings of one: 0|1.5), which words mark "
            "a failure with --failed TEXT, or go on with --allow-unread"
        )
    if found.other:
        data.notes.append(f"no choice in column {column!r}: {named} (the first in {first})")
    return found


def _counted_words(other: Mapping[str, int]) -> str:
    told = [f"{count:,} {word[:40]!r}" for word, count in sorted(other.items(), key=lambda x: -x[1])[:_SHOWN]]
    return ", ".join(told) + (" and others" if len(other) > _SHOWN else "")


def ruled(found: Choices | None, rule: str) -> Codes | None:
    """The unscored as the plan's rule says; `unscored_told` reports a rule other than drop."""
    if found is None:
        return None
    return np.where(found.codes == NONE, _UNSCORED[rule], found.codes).astype(np.int64)


def rule_told(count: int, unscored: int) -> str:
    """How many pairs without a verdict were counted as `unscored`, a code; "" where none was."""
    told = {TIE: "ties (--unscored tie)", WRONG: "wrong (--unscored wrong)"}.get(unscored)
    return f"pairs without a verdict, counted as {told}: {count:,}" if told and count else ""


def ratio(worth: Floats, counts: Floats, given: Paired) -> Estimate:
    """Several shares per item, pooled; items (or clusters) are resampled."""

    def value(weights: Floats) -> Floats:
        due = weights @ counts
        return np.asarray(np.divide(weights @ worth, due, out=np.full(len(due), np.nan), where=due > 0))

    if counts.sum() == 0:
        return Estimate(float("nan"), 0, level=given.level)
    point, n = float(worth.sum() / counts.sum()), int((counts > 0).sum())
    if given.cluster is None:
        (worth, counts), sizes = merged(worth, counts)
        draws = bootstrap(value, len(worth), given.how, counts=sizes)
    else:
        draws = bootstrap(value, len(worth), given.how, cluster=clusters_of(given.cluster))
    return Estimate(point, n, *given.how.interval(draws), given.level, "bootstrap over items")


def taken_again(data: Data, again: NDArray[np.int64]) -> Words:
    """What the rows `again` (n,) say (both orders together where there are two), as words; -1 gives no word."""
    labels = data.plan.pair_labels
    names = [*(pairs.NAMES if labels is None else labels.one_each()), "disagree"]
    views = [
        pairs.read_choices(data.words[role], labels, role).codes for role in ("score", "swapped") if role in data.words
    ]
    final = views[0] if len(views) == 1 else pairs.joint(views[0], views[1], data.plan.two_games)
    codes = np.where(final == DISAGREE, names.index("disagree"), final)
    return Words(np.where(again < 0, NONE, codes[again]), names)
