"""The points of each pair by the rules of a bench's authors: for its verdicts, its ties and its missing verdicts."""

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from dikast.audit.plan import AuditPlan
from dikast.audit.tables.choices import FIRST, NONE, SECOND, TIE
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired
from dikast.benches.definition import Bench
from dikast.benches.unit_means import Codes, Floats, Masks, Units
from dikast.core.records import write_records
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.prompts.dialects.arena import labels
from dikast.prompts.parsed import Target

_STRONG = {"a": "A>>B", "b": "B>>A"}
_MARKED = re.compile(r">>|<<")
CREDIT = {"wrong": 0.0, "half": 0.5, "quarter": 0.25, "skipped": math.nan, "tie": math.nan}  # of a missing verdict


def games_of(given: Paired) -> list[tuple[Codes, Masks]]:
    """The choice in each order, as responses, and whether there is a verdict."""
    assert given.choice is not None
    games = [(given.choice, given.known)]
    return games if given.swapped is None else [*games, (given.swapped, given.known_swapped)]


def earned_by(bench: Bench, choice: Codes, known: Masks, gold: Codes) -> Floats:
    """The points of a verdict in one order (n,); NaN where the authors' code skips it."""
    official = bench.official
    earned = (choice == gold).astype(float)
    tied = choice == TIE
    if official.ties == "half":
        earned = np.where(tied, 0.5, earned)
    elif official.ties == "wrong":
        earned = np.where(tied, 0.0, earned)
    if official.failures == "tie":
        lost = 0.5 if official.ties == "half" else (gold == TIE).astype(float) * (official.ties != "wrong")
        return np.where(known, earned, lost)
    return np.where(known, earned, CREDIT[official.failures])


def of_verdicts(bench: Bench, pairs: Units, given: Paired) -> Units:
    """The verdicts of both orders as units of their own, those of a pair in one cluster."""
    games = games_of(given)
    earned = np.concatenate([earned_by(bench, choice, known, given.gold) for choice, known in games])
    counts = np.tile(given.gold != NONE, len(games)) & ~np.isnan(earned)
    group = None if pairs.group is None else [*pairs.group] * len(games)
    cluster = np.arange(len(given.gold)) if pairs.cluster is None else pairs.cluster
    return replace(pairs, worth=earned, counts=counts, group=group, cluster=np.tile(cluster, len(games)))


def of_majorities(data: Data, gold: Codes) -> Floats | None:
    """Whether more than half of all samples of a pair are right (1) or wrong (0), both orders together; NaN elsewhere.

    A sample without a verdict counts as one. None where no pair was asked several times, or the rows are of no run.
    """
    if "item" not in data.words or not data.plan.file.is_dir():
        return None
    votes: dict[str, Counter[str]] = {}
    several = False
    for verdict in current_verdicts(data.plan.file):
        several |= verdict.question.sample > 0
        votes.setdefault(verdict.question.item, Counter())[verdict.label or ""] += 1
    if not several:
        return None
    items = data.words["item"]
    said = [votes[items.names[code]] for code in items.codes]
    half = np.array([each.total() / 2 for each in said])
    first, second = (np.array([each[letter] for each in said]) for letter in ("a", "b"))
    right, wrong = np.where(gold == FIRST, (first, second), (second, first))
    return np.where(right > half, 1.0, np.where(wrong > half, 0.0, math.nan))


@contextmanager
def with_strength(bench: Bench, plan: AuditPlan) -> Iterator[AuditPlan]:
    """The plan of a run against a baseline with its strong verdicts (`[[A>>B]]`), which are in the replies alone.

    They are choices in a temporary file. Other runs keep their plan, and so do those whose replies hold none, or that
    ask a pair several times (samples, criteria).
    """
    words = _with_marks(plan.file) if bench.baseline and plan.score == "" and not plan.joint else {}
    if not any(">>" in word for said in words.values() for word in said.values()):
        yield plan
        return
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        file = Path(scratch, "choices.jsonl").resolve()
        write_records(file, ({"item": item, **said} for item, said in words.items()))
        orders = {name for said in words.values() for name in said}
        swapped = f"swapped@{file}" if "swapped" in orders else ""
        yield replace(plan, score=f"shown@{file}", swapped=swapped, strong=bench.official.strong)


def _with_marks(run: Path) -> dict[str, dict[str, str]]:
    """What was said of each item in each order, as responses; strong verdicts as A>>B or B>>A."""
    found: dict[str, dict[str, str]] = {}
    for verdict in current_verdicts(run):
        asked = verdict.question
        order = "swapped" if asked.responses[0] > asked.responses[1] else "shown"
        said = found.setdefault(asked.item, {})
        if order in said or asked.sample:
            return {}
        label = verdict.label or ""
        marks = labels(verdict.raw, Target()) if label in _STRONG else []
        said[order] = _STRONG[label] if marks and _MARKED.search(marks[-1].said) else label
    return found


def constants(given: Paired) -> Iterator[tuple[str, Paired]]:
    """The verdicts of judges that read nothing; of responses that are graded alone there are no slots."""
    n, all_known = len(given.gold), np.ones(len(given.gold), bool)
    if given.choice is None:
        return
    slots = (
        () if given.joint else (("chooses the first slot", FIRST, SECOND), ("chooses the second slot", SECOND, FIRST))
    )
    for name, shown, swapped in (*slots, ("says tie", TIE, TIE)):
        yield (
            name,
            replace(
                given,
                choice=np.full(n, shown, np.int64),
                swapped=None if given.swapped is None else np.full(n, swapped, np.int64),
                known=all_known,
                known_swapped=all_known,
                soft=(),
            ),
        )


def mean_of_orders(bench: Bench, given: Paired) -> Floats:
    """The mean over the orders: the expected value if the order is drawn at random."""
    earned = np.array([earned_by(bench, choice, known, given.gold) for choice, known in games_of(given)])
    count = (~np.isnan(earned)).sum(0)
    return np.where(count > 0, np.nansum(earned, 0) / np.maximum(count, 1), np.nan)


def _rewards(bench: Bench, given: Paired) -> Floats:
    """The mean over the orders of what the second response is given: 1 for a strong win, .5 for a win, 0 for a tie."""
    strength = np.where(given.strong, 1.0, 0.5)
    lost = 0.0 if bench.official.failures == "tie" else math.nan
    earned = np.array([
        np.where(known, np.select([choice == SECOND, choice == FIRST], [strength, -strength], 0.0), lost)
        for choice, known in games_of(given)
    ])  # fmt: skip
    count = (~np.isnan(earned)).sum(0)
    return np.where(count > 0, np.nansum(earned, 0) / np.maximum(count, 1), np.nan)


def _both(bench: Bench, given: Paired) -> Floats:
    if given.one_order:
        return np.full(len(given.gold), math.nan)
    earned = np.array([earned_by(bench, choice, known, given.gold) for choice, known in games_of(given)])
    return np.asarray(earned.min(0))


def _net(bench: Bench, given: Paired) -> Floats:
    """Right minus wrong games: above 0 is right. A tie or a missing verdict counts as neither."""
    if given.one_order:
        return np.full(len(given.gold), math.nan)
    net = np.zeros(len(given.gold))
    for choice, known in games_of(given):
        decided = known & np.isin(choice, (FIRST, SECOND))
        net += np.where(decided, np.where(choice == given.gold, 1, -1), 0)
    return (net > 0).astype(float)


def _one(bench: Bench, given: Paired, order: int) -> Floats:
    games = games_of(given)
    if order >= len(games):
        return np.full(len(given.gold), math.nan)
    return earned_by(bench, *games[order], given.gold)


def _joined(bench: Bench, given: Paired, *, ties: bool) -> Floats:
    """Whether both orders together say what gold says: a win needs both, all else is a tie, also a verdict in one
    order alone.

    Without `ties` the pairs that they or gold tie are left out. A pair without any verdict counts as in `failures`.
    """
    if given.one_order:
        return np.full(len(given.gold), math.nan)
    (one, known), (two, known_swapped) = games_of(given)
    joined = np.where((one == two) & known & known_swapped, one, TIE)
    said = known | known_swapped
    said |= bench.official.failures == "tie"
    earned = np.where(said, (joined == given.gold).astype(float), CREDIT[bench.official.failures])
    if ties:
        return earned
    tied = (said & (joined == TIE)) | (given.gold == TIE)
    return np.where(tied, math.nan, earned)


def _same(bench: Bench, given: Paired) -> Floats:
    """Two missing verdicts count as the same where they do in the authors' code."""
    if given.choice is None or given.swapped is None:
        return np.full(len(given.gold), math.nan)
    one, two = (np.where(known, choice, NONE) for choice, known in games_of(given))
    return np.asarray((one == two) & (bench.official.lost_alike | (one != NONE)), np.float64)


POINTS: dict[str, Callable[[Bench, Paired], Floats]] = {
    "accuracy": mean_of_orders,
    "win rate": mean_of_orders,
    "reward": _rewards,
    "accuracy as shown": lambda bench, given: _one(bench, given, 0),
    "accuracy swapped": lambda bench, given: _one(bench, given, 1),
    "right in both orders": _both,
    "same in both orders": _same,
    "agreement with ties": lambda bench, given: _joined(bench, given, ties=True),
    "agreement without ties": lambda bench, given: _joined(bench, given, ties=False),
    "net of two games": _net,
}
