"""`python -m benchmarks.rubric_following MODEL --n 2000`: does a judge follow rubrics that it never saw?

Items of worlds version 4, each response under four rubrics. Scores and gold are shares of the way from the worst label
to the best. Every figure stands with what a judge has that ignores the rubric: without centring the correlation of gold
with the share of right claims; centred and of contrast pairs what a judge has that knows the mean of gold over a
response's rubrics and gives the nearest label of each scale. On one scale that is 0 and half. Intervals of the
centred figure are over responses, and over what the split holds out: phrases, compositions or aspects. Scores are
labels; *expected* ones are means over the probabilities of all labels, which hardly ever tie, so that beside the sign
of their differences stands the floor with ties as half.

`--domains scenes --splits wordings` measures a part; with `--keep FOLDER` a run that was stopped goes on.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hiding import HIDE
from benchmarks.kept_runs import answers
from benchmarks.rubric_floor import goodness
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.intervals import Resampling, clusters_of, rate, share
from dikast.audit.statistics.within_groups import agreement_within, less_group_means, most_without, right_orders
from dikast.core.verdict import Status, Verdict
from dikast.judging.judge import Judge
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings

SPLITS = ("fresh", "wordings", "combinations", "aspects")
HOW = Resampling(1000, 0.95, 0)
_FINDING = re.compile(r"^Claim: (.*)\n(?:Evidence: .*\n)?Finding: (\w+)(.*)$", re.M)
LOST = re.compile(r"\b(\d+) lost\b")


class Graded(NamedTuple):
    """A sample, its verdict, and what its rubric has that the split holds out."""

    sample: Sample
    verdict: Verdict
    held: str

    @property
    def score(self) -> float:
        """From 0 (worst) to 1 (best); NaN without a score."""
        found = self.verdict.score
        return float("nan") if found is None else self.sample.spec.the_scale.goodness(found)


def graded(judge: Judge, domain: str, split: str, seed: int, n: int, keep: str = "", hide: str = "") -> list[Graded]:
    """Every item of a split with its verdict. hide: as in `answers`."""
    samples = list(make(Settings(domain, split, seed, version=4), n))
    by = "phrase" if split == "wordings" else "composition"  # for intervals over rubrics
    found = answers(judge, samples, keep, hide)
    return [Graded(each, found[each.id], each.meta()[by]) for each in samples]


def said_of(verdict: Verdict) -> dict[str, tuple[str, str]]:
    """What a reply in the claims format says of each claim: the finding's word, and what follows it."""
    return {" ".join(text.split()): (word, rest) for text, word, rest in _FINDING.findall(verdict.raw)}


def charges(rows: Sequence[Graded]) -> Iterator[tuple[str, bool, bool, int]]:
    """Of every wrong claim that the judge found: aspect, whether it costs, whether it was charged, its row."""
    for number, (sample, verdict, _) in enumerate(rows):
        told = said_of(verdict)
        gold = sample.gold()["claims"]
        for claim, meant in zip(gold, sample.responses[0].claims, strict=True):
            weighed = any(term.covers(meant) for term in sample.spec.terms)
            finding = told.get(" ".join(claim["text"].split()))
            if claim["verdict"] == "right" or finding is None or weighed != bool(claim["cost"]):
                continue  # a term under which only what is far off costs says nothing here
            yield claim["aspect"], weighed, bool(LOST.search(finding[1])), number


def figures(rows: Sequence[Graded]) -> Iterator[tuple[str, Estimate, str]]:
    """Each figure: its name, its value, what a judge has that ignores the rubric."""
    ok = [row for row in rows if row.verdict.status is Status.OK]
    score, gold = np.array([row.score for row in ok]), np.array([goodness(row.sample) for row in ok])
    group = clusters_of(_codes([row.sample.shown for row in ok]))
    held = clusters_of(_codes([row.held for row in ok]))
    right = [float(np.mean([finding.metric == 0 for finding in r.sample.graded[0].findings])) for r in ok]
    floor = f"{np.corrcoef(right, gold)[0, 1]:.2f}"
    yield "Pearson", measure(score, gold, ["pearson"], HOW, group)["pearson"], floor
    best = f"{most_without(gold, group):.2f}"
    expected = _expected(ok)
    yield "Pearson, expected", measure(expected, gold, ["pearson"], HOW, group)["pearson"], f"at most {best}"
    same = _one_opinion(ok, gold, group)
    apart = f"{agreement_within(same, gold, group, HOW).value:.2f}"
    yield "centred by response", agreement_within(score, gold, group, HOW), apart
    over = f"centred, interval over {held.max() + 1:,} of what is held out"
    yield over, agreement_within(score, gold, group, HOW, held), apart
    yield "centred, expected, interval as above", agreement_within(expected, gold, group, HOW, held), apart
    half = f"{right_orders(same, gold, group)[0].value:.2f}"
    yield "contrast pairs: right order, ties half", right_orders(score, gold, group)[0], half
    yield "contrast pairs: right sign", _signs(score, gold, group), f"{_signs(same, gold, group).value:.2f}"
    yield (
        "contrast pairs: tied",
        _signs(score, gold, group, tied=True),
        f"{_signs(same, gold, group, tied=True).value:.2f}",
    )
    yield "contrast pairs: right sign, expected", _signs(expected, gold, group), half
    found = list(charges(rows))
    for name, weighed in (("weighed", True), ("not weighed", False)):
        chosen = [(charged, row) for _, cost, charged, row in found if cost is weighed]
        if chosen:
            hit, where = [c for c, _ in chosen], [rows[row].held for _, row in chosen]
            yield f"wrong claims charged, {name}", share_by(hit, where), "alike for both"
    yield "without a verdict", rate(len(rows) - len(ok), len(rows)), ""
    yield "forced markers", rate(sum(row.verdict.marker == "forced" for row in ok), len(ok)), ""


def _one_opinion(ok: Sequence[Graded], gold: Any, group: Any) -> Any:
    """The mean of gold over the rubrics of each response, as the nearest label of each scale (of two, the worse)."""
    means, steps = gold - less_group_means(gold, group), np.array([len(row.sample.spec.cuts) for row in ok])
    return np.ceil(means * steps - 0.5 - 1e-9) / steps


def _expected(ok: Sequence[Graded]) -> Any:
    """The expected score of each row, its label where the judge told no probabilities."""
    told = [r.verdict.score if r.verdict.expected is None else r.verdict.expected for r in ok]
    return np.array([r._replace(verdict=replace(r.verdict, score=s)).score for r, s in zip(ok, told, strict=True)])


def _signs(score: Any, gold: Any, group: Any, *, tied: bool = False) -> Estimate:
    """Contrast pairs whose scores differ with the right sign, so that a tie is wrong; intervals over responses.

    tied: those whose scores are equal.
    """
    hits, where = [], []
    for each in range(int(group.max()) + 1):
        for a, b in combinations(np.flatnonzero(group == each), 2):
            if gold[a] != gold[b]:
                hits.append(bool(score[a] == score[b] if tied else (score[a] - score[b]) * (gold[a] - gold[b]) > 0))
                where.append(each)
    return share_by(hits, where)


def share_by(hits: Sequence[bool], where: Sequence[Any]) -> Estimate:
    """The share of hits, with an interval over what `where` names."""
    return share(np.array(hits, np.float64), 0.95, clusters_of(_codes(where)))


def _codes(names: Sequence[Any]) -> Any:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def main() -> None:
    """Measure and print, a row of a table each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubric_following", description=__doc__)
    parser.add_argument("model", nargs="?", default="scout", help="a judge spec")
    parser.add_argument("--n", type=int, default=2000, help="items of each split")
    parser.add_argument("--seed", type=int, default=951)
    parser.add_argument("--domains", default="scenes,text")
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--format", default="scout")
    parser.add_argument("--out", default="", help="write the figures there as JSON")
    parser.add_argument(
        "--hide", default="", choices=["", *HIDE], help="do not show this input, as to a twin taught without it"
    )
    parser.add_argument("--keep", default="", help="a folder for the runs; what has a verdict there is not asked again")
    given = parser.parse_args()
    judge = Judge(given.model, format=given.format)
    kept: list[dict[str, Any]] = []
    print(f"hidden: {given.hide or 'nothing'}\n")
    print("| domain | split | figure | n | value | ignoring the rubric |\n|---|---|---|---|---|---|")
    for domain in given.domains.split(","):
        for split in given.splits.split(","):
            for what, value, floor in figures(
                graded(judge, domain, split, given.seed, given.n, given.keep, given.hide)
            ):
                kept.append({"domain": domain, "split": split, "what": what, "value": value.value,
                             "low": value.low, "high": value.high, "n": value.n, "floor": floor,
                             "hidden": given.hide})  # fmt: skip
                told = f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
                print(f"| {domain} | {split} | {what} | {value.n:,} | {told} | {floor} |", flush=True)
    if given.out:
        Path(given.out).write_text(json.dumps(kept, indent=1), "utf-8")


if __name__ == "__main__":
    main()
