"""Quality of feedback: claims against gold claims, spans, and whether the score follows from the feedback.

Blind preferences between two judges' feedback are pairs: `pairwise.preference_table` tells win, tie and lose.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.building_blocks.weights import Weighted
from dikast.audit.statistics.intervals import Resampling, bootstrap_kinds, clusters_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
SUPPORTED = frozenset({"supported", "true", "correct", "yes", "met", "ok", "right"})
_WORD = re.compile(r"\w+")


class ClaimVerdict(NamedTuple):
    """A claim and what was said of it."""

    text: str
    verdict: str


@dataclass(frozen=True, slots=True)
class FeedbackScores:
    """Micro-averaged over all claims of all items; intervals draw items.

    `claim_f1`: claims found, whatever was said of them. `verdict_f1`: claims found with the right verdict.
    `fault_f1`: the same over the claims that gold holds for wrong, which is what feedback is read for.
    """

    claim_f1: Estimate
    verdict_f1: Estimate
    fault_f1: Estimate


def claims_of(value: object) -> list[ClaimVerdict] | None:
    """Claims from a list of `{"text", "verdict"}`; None where there is no list."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    found = []
    for each in value:
        fields: Mapping[str, Any] = each if isinstance(each, Mapping) else {}
        if "text" in fields and "verdict" in fields:
            found.append(ClaimVerdict(_folded(str(fields["text"])), str(fields["verdict"]).strip().casefold()))
    return found


def feedback_scores(
    said: Sequence[Sequence[ClaimVerdict]],
    gold: Sequence[Sequence[ClaimVerdict]],
    how: Resampling | None = None,
    cluster: Codes | None = None,
) -> FeedbackScores:
    """Compare claims item by item; texts are matched but for case, punctuation and spacing."""
    how = how or Resampling()
    if len(said) != len(gold):
        raise ValueError("one list of claims an item is due on both sides")
    claim = [_overlap((each.text for each in a), (each.text for each in b)) for a, b in zip(said, gold, strict=True)]
    verdict = [_overlap(a, b) for a, b in zip(said, gold, strict=True)]
    fault = [
        _overlap(
            (each for each in a if each.verdict not in SUPPORTED), (each for each in b if each.verdict not in SUPPORTED)
        )
        for a, b in zip(said, gold, strict=True)
    ]
    return FeedbackScores(
        *(f1_of(np.array(counts, np.float64).reshape(-1, 3), how, cluster) for counts in (claim, verdict, fault))
    )


def f1_of(counts: Floats, how: Resampling, cluster: Codes | None = None) -> Estimate:
    """Micro F1 from (items, 3) of true positives, claimed and gold; undefined when nothing was claimed or due."""
    hits, claimed, due = counts.sum(0) if len(counts) else (0.0, 0.0, 0.0)
    if claimed + due == 0:
        return undefined(len(counts), "no claims on either side", level=how.level)

    def f1(hits: Floats, claimed: Floats, due: Floats) -> Weighted:
        def statistic(weights: Floats) -> Floats:
            tp, either = weights @ hits, weights @ (claimed + due)
            return np.asarray(np.divide(2 * tp, either, out=np.full(len(tp), np.nan), where=either > 0))

        return statistic

    drawn = bootstrap_kinds(f1, list(counts.T), how, cluster)
    method = "bootstrap over items" if cluster is None else "bootstrap over clusters"
    return Estimate(2 * hits / (claimed + due), len(counts), *how.interval(drawn), how.level, method)


class Span(NamedTuple):
    """Characters `start` to `end`, end excluded."""

    start: int
    end: int


def spans_of(value: object) -> list[Span] | None:
    """Spans from a list of `[start, end]` or `{"start", "end"}`; None where there is no list, or a span is none."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    found = []
    for each in value:
        ends = [each.get("start"), each.get("end")] if isinstance(each, Mapping) else each
        if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(type(end) is int for end in ends):
            return None
        if not 0 <= ends[0] <= ends[1]:
            return None
        found.append(Span(*ends))
    return found


def span_f1(
    said: Sequence[Sequence[Span]],
    gold: Sequence[Sequence[Span]],
    how: Resampling | None = None,
    cluster: Codes | None = None,
) -> Estimate:
    """Micro F1 of marked characters, item by item; a character marked twice counts once."""
    counts = []
    for a, b in zip(said, gold, strict=True):
        one, two = ({i for span in spans for i in range(span.start, span.end)} for spans in (a, b))
        counts.append((len(one & two), len(one), len(two)))
    return f1_of(np.array(counts, np.float64).reshape(-1, 3), how or Resampling(), cluster)


def score_follows(
    score: ArrayLike,
    said: Sequence[Sequence[ClaimVerdict]],
    how: Resampling | None = None,
    cluster: Codes | None = None,
) -> dict[str, Estimate]:
    """Does the score follow from the feedback? Correlations of scores with the share of claims said to be supported.

    Items without claims or without a score are left out.
    """
    how = how or Resampling()
    given = np.asarray(score, np.float64)
    share = np.array([_supported(claims) for claims in said])
    known = ~np.isnan(given) & ~np.isnan(share)
    codes = None if cluster is None else clusters_of(cluster[known])
    return measure(given[known], share[known], ["pearson", "spearman", "kendall_tau_b"], how, codes)


def _supported(claims: Sequence[ClaimVerdict]) -> float:
    return sum(each.verdict in SUPPORTED for each in claims) / len(claims) if claims else math.nan


def _overlap(said: Iterable[Any], gold: Iterable[Any]) -> tuple[int, int, int]:
    one, two = Counter(said), Counter(gold)
    return sum((one & two).values()), sum(one.values()), sum(two.values())


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
