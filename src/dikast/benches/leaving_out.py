"""What pictures, references or rubrics change: a run with them against one without, on the same rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.audit import audit_file, rows_of
from dikast.audit.estimate import Estimate
from dikast.audit.plan import AuditPlan
from dikast.audit.statistics.intervals import mean_estimate, share
from dikast.benches.scorecard import Scorecard
from dikast.core.runs.judge_lock import read_lock

_OF_PAIRS = {"accuracy (all)": "accuracy"}
_OF_SCORES = ("pearson", "spearman", "kendall_tau_b", "exact", "mae")


def with_differences(cards: Sequence[Scorecard]) -> list[Scorecard]:
    """The scorecards; one of a whole run also has its differences from the judge's runs that left something out.

    A run counts as such if it is of the same bench and judge, asked in the same way (format, rubric, samples and other
    settings), and `--without` left more out of it. Differences are of the rows that both have, paired, with the
    intervals of the audit's comparison of two judges.
    """
    return [
        replace(card, beside=(*card.beside, *(row for other in cards for row in _against(card, other))))
        for card in cards
    ]


def _against(card: Scorecard, other: Scorecard) -> Iterator[tuple[str, Estimate, str]]:
    same = card.bench.hash == other.bench.hash and card.judge == other.judge
    left = [each for each in other.without if each not in card.without]
    if not same or not left or card.plan is None or other.plan is None:
        return
    if card.bench.kind not in ("pairs", "scores") or card.alone or other.alone:
        return
    asked = _asked(card.plan.file, left)
    if asked is None or asked != _asked(other.plan.file, left):
        return
    name = f"with less without {' and '.join(left)}"
    rule = f"rows with a verdict in both runs ({other.plan.file}), paired"
    yield from ((f"{name}: {what}", each, told) for what, each, told in _differences(card, card.plan, other.plan, rule))


def _asked(run: Path, left: Sequence[str]) -> dict[str, Any] | None:
    """How a run asked, apart from what was `left` out; None where its folder does not say."""
    lock = read_lock(run)
    if lock is None:
        return None
    rubric = lock.get("rubric")
    if rubric and "rubric" in left:  # the scales alone are asked with
        rubric = [(each["name"], each["scale"]) for each in rubric.get("criteria", [rubric])]
    settings = lock.get("identity", {}).get("settings")
    told = {name: lock.get(name) for name in ("samples", "way", "equate")}
    return {**told, "settings": settings, "rubric": rubric, "format": lock.get("format", {}).get("hash")}


def _differences(card: Scorecard, plan: AuditPlan, other: AuditPlan, rule: str) -> Iterator[tuple[str, Estimate, str]]:
    if "agreement" in card.audit or "accuracy" in card.audit:
        column = "choice" if card.bench.pairs else "score"
        table = audit_file(replace(plan, rival=f"{column}@{other.file}", by=(), length="", system=""))["rival"]
        for row in table.rows:
            what = str(row[0])
            if (_OF_PAIRS.get(what) if card.bench.pairs else what in _OF_SCORES) and isinstance(row[-1], Estimate):
                yield _OF_PAIRS.get(what, what), row[-1], rule
    if not card.bench.pairs:
        data = rows_of(replace(plan, means=(f"score@{other.file}",), by=(), length="", system=""))
        score, again = data.numbers["score"], data.numbers["mean 0"]
        both = ~np.isnan(score) & ~np.isnan(again)
        less, lost = (score - again)[both], int((~both).sum())
        cluster = data.words["cluster"].codes[both] if "cluster" in data.words else None
        yield "mean score", mean_estimate(less, plan.level, cluster, dropped=lost), rule
        yield (
            "same score",
            share(less == 0, plan.level, cluster, dropped=lost),
            "share of these rows whose score does not change",
        )
