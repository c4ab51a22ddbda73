"""`python -m benchmarks.scout MODEL --n 1000 --seed 900`: what stands in the card of `scout`.

Fresh items of every split, graded through the ordinary local engine; the figures are those of the audit's functions. A
score is told as its share of the way from the worst label to the best, so that one figure covers all scales.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept_runs import answers
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.claim_agreement import ClaimVerdict, claims_of, feedback_scores
from dikast.audit.statistics.intervals import Resampling, clusters_of, mean_estimate, rate, share
from dikast.core.records.items import read_items
from dikast.core.verdict import Status, Verdict
from dikast.judging.judge import Judge
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import rules_of
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.rubric_grammar import draw_wording
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

SPLITS = (
    "fresh",
    "wordings",
    "combinations",
    "attributes",
    "aspects",
    "operators",
    "voices",
    "longer2",
    "objects",
    "scale",
)
HOW = Resampling(1000, 0.95, 0)
_EVIDENCE = re.compile(r"^Evidence: (.*)$", re.M)


class Bench:
    """Grades samples with one judge; `keep` is a folder for its runs, "" for none."""

    def __init__(self, judge: Judge, seed: int, n: int, keep: str = "") -> None:
        self.judge, self.seed, self.n, self.keep = judge, seed, n, keep
        self.rows: list[dict[str, Any]] = []

    def note(self, domain: str, what: str, value: Estimate) -> None:
        """Keep a figure, and print it."""
        row = {"domain": domain, "what": what, "value": value.value, "low": value.low, "high": value.high, "n": value.n}
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    def graded(self, samples: Iterable[Sample]) -> Iterator[tuple[Sample, Verdict]]:
        """Every sample with the verdict on its one response."""
        kept = [replace(sample, name=f"{i}") for i, sample in enumerate(samples)]
        found = answers(self.judge, kept, self.keep)
        return ((sample, found[sample.id]) for sample in kept)

    def maker(self, domain: str, split: str, **other: Any) -> Maker:
        """A maker of fresh items."""
        return Maker(Settings(domain=domain, split=split, seed=self.seed, **other))


def goodness(sample: Sample, score: float | None) -> float:
    """From 0 (worst) to 1 (best); NaN without a score."""
    return float("nan") if score is None else sample.spec.the_scale.goodness(score)


def gold(sample: Sample) -> float:
    """The gold score likewise."""
    return goodness(sample, sample.gold()["score"])


def split(bench: Bench, domain: str, name: str, n: int) -> None:
    """Agreement of scores, claims, failures and forced markers on a split."""
    maker = bench.maker(domain, name)
    pairs = list(bench.graded(maker.sample(i) for i in range(n)))
    ok = [(s, v) for s, v in pairs if v.status is Status.OK]
    told = np.array([goodness(s, v.score) for s, v in ok])
    right = np.array([gold(s) for s, _ in ok])
    bench.note(domain, f"{name}: Pearson", measure(told, right, ["pearson"], HOW)["pearson"])
    bench.note(domain, f"{name}: exact", rate(int((told == right).sum()), len(ok)))
    expected = np.array([goodness(s, v.expected if v.expected is not None else v.score) for s, v in ok])
    bench.note(domain, f"{name}: Pearson of expected scores", measure(expected, right, ["pearson"], HOW)["pearson"])
    said = [
        [ClaimVerdict(*c) for c in claims_of([{"text": c.text, "verdict": c.verdict} for c in v.claims]) or []]
        for _, v in pairs
    ]
    due = [
        [
            ClaimVerdict(c.text, {"unsupported": "unclear"}.get(c.verdict, c.verdict))
            for c in claims_of(s.gold()["claims"]) or []
        ]
        for s, _ in pairs
    ]
    found = feedback_scores(said, due, HOW)
    bench.note(domain, f"{name}: claim verdict F1", found.verdict_f1)
    bench.note(domain, f"{name}: F1 of wrong claims", found.fault_f1)
    bench.note(domain, f"{name}: without a verdict", rate(len(pairs) - len(ok), len(pairs)))
    bench.note(domain, f"{name}: forced markers", rate(sum(v.marker == "forced" for _, v in ok), len(ok)))
    middle = float(np.median([v.mass or 0 for _, v in ok])) if ok else float("nan")
    bench.note(domain, f"{name}: median mass", Estimate(middle, len(ok)))


def evidence(bench: Bench, domain: str, n: int) -> None:
    """What is shown blanked or swapped, the gold that of what was shown before."""
    maker, bases, blanks, swaps = bench.maker(domain, "fresh", form=0, edits=False), [], [], []
    for i in range(n):
        bases.append(base := maker.sample(i))
        graph = base.graph.emptied() if domain == "scenes" else GivenText()
        blanks.append(replace(base, graph=graph))
        swaps.append(replace(base, graph=maker.sample(i + 10**6).graph))
    plain = list(bench.graded(bases))
    for name, made in (("blanked", blanks), ("swapped", swaps)):
        both = [
            (b, v, w)
            for (b, v), (_, w) in zip(plain, bench.graded(made), strict=True)
            if v.score is not None and w.score is not None
        ]
        after = np.array([goodness(b, w.score) for b, _, w in both])
        before = np.array([goodness(b, v.score) for b, v, _ in both])
        right = np.array([gold(b) for b, _, _ in both])
        bench.note(
            domain, f"{name}: Pearson with the gold of before", measure(after, right, ["pearson"], HOW)["pearson"]
        )
        if domain == "scenes" and name == "blanked":
            bench.note(domain, f"{name}: findings that name nothing", names_nothing([w for _, _, w in both]))
        best = right == 1
        bench.note(
            domain, f"{name}: change of score where it was the best", mean_estimate((after - before)[best], 0.95)
        )


def names_nothing(said: Sequence[Verdict]) -> Estimate:
    """Of the findings on claims about a scene, the share whose evidence is no thing: `star nothing`, `a 1 empty`."""
    told = [(line, i) for i, verdict in enumerate(said) for line in _EVIDENCE.findall(verdict.raw)]
    bare = [all(part.endswith((" nothing", " empty")) for part in line.split(" against ")) for line, _ in told]
    return share(np.array(bare, dtype=float), 0.95, clusters_of(np.array([i for _, i in told], dtype=np.int64)))


def padding(bench: Bench, domain: str, n: int) -> None:
    """The same response with empty sentences: change in levels per doubling of its length in words."""
    maker, bases, padded = bench.maker(domain, "fresh", form=0, edits=False), [], []
    for i in range(n):
        base = maker.sample(i)
        bases.append(base)
        padded.append(replace(base, responses=(base.responses[0].padded,)))
    slopes = []
    for (s, v), (p, w) in zip(bench.graded(bases), bench.graded(padded), strict=True):
        if v.score is not None and w.score is not None:
            doublings = np.log2(len(p.responses[0].text.split()) / len(s.responses[0].text.split()))
            slopes.append(
                (goodness(p, w.score) - goodness(s, v.score)) * (len(s.spec.the_scale.labels) - 1) / doublings
            )
    bench.note(domain, "padding: levels per doubling", mean_estimate(np.array(slopes), 0.95))


def contrast(bench: Bench, domain: str, n: int) -> None:
    """One response under two rubrics that must score it differently: how often the difference has the right sign."""
    maker, i = bench.maker(domain, "fresh", form=0, edits=False), 0
    ones: list[Sample] = []
    others: list[Sample] = []
    while len(ones) < n:
        one, other = maker.sample(2 * i), maker.sample(2 * i + 1)
        i += 1
        turned = replace(one, spec=other.spec)
        spoken = {claim.aspect for claim in one.responses[0].claims} | {"completeness"}
        fits = not other.spec.entries and {name for name, _ in other.spec.weights} <= spoken
        if fits and other.spec.scale == one.spec.scale and gold(turned) != gold(one):
            ones.append(one)
            others.append(turned)
    right = []
    for (s, v), (t, w) in zip(bench.graded(ones), bench.graded(others), strict=True):
        told = goodness(t, w.score) - goodness(s, v.score)
        right.append(np.sign(told) == np.sign(gold(t) - gold(s)))
    bench.note(domain, "contrast: right sign", rate(sum(right), len(right)))


def pairs(bench: Bench, domain: str, n: int) -> None:
    """Clear pairs in both orders, decided by the preference in nats, symmetrised."""
    maker, i = bench.maker(domain, "fresh", responses=2), 0
    kept: list[Sample] = []
    while len(kept) < n:
        sample = maker.sample(i)
        i += 1
        if sample.gold()["preference"] != "tie":
            kept.append(replace(sample, name=str(len(kept))))
    with tempfile.TemporaryDirectory() as folder:
        file = write_samples(kept, folder, {"bench": 1}).files[0]
        found = {p.item: p for p in bench.judge.compare_many(read_items(str(file)))}
    right, consistent, biases = [], [], []
    for sample in kept:
        p, better = found[sample.id], sample.gold()["preference"]
        right.append(p.logit_a is not None and ("a" if p.logit_a > 0 else "b") == better)
        consistent.append(bool(p.consistent))
        biases.append(np.nan if p.position_bias is None else p.position_bias)
    bench.note(domain, "clear pairs: right", rate(sum(right), len(right)))
    bench.note(domain, "clear pairs: both orders agree", rate(sum(consistent), len(consistent)))
    bench.note(domain, "clear pairs: position bias, nats", mean_estimate(np.array(biases)[~np.isnan(biases)], 0.95))


def wording(bench: Bench, domain: str, n: int) -> None:
    """The same items with one part of their rubrics' wording held out, and with all four: what is not understood."""
    maker = bench.maker(domain, "fresh")
    samples = [maker.sample(i) for i in range(n)]
    parts = ("opening", "costs", "levels", "names of aspects")
    for name, which in (("none", ()), *((part, (i,)) for i, part in enumerate(parts)), ("all", range(4))):
        turned = []
        for sample in samples:
            own, held = sample.spec.wording, draw_wording(Stream("held", sample.index), rules_of("wordings"))
            opening, costs, levels, names = (held[i] if i in which else own[i] for i in range(4))
            turned.append(replace(sample, spec=replace(sample.spec, wording=(opening, costs, levels, names))))
        ok = [(s, v.score) for s, v in bench.graded(turned) if v.status is Status.OK]
        told, right = np.array([goodness(s, score) for s, score in ok]), np.array([gold(s) for s, _ in ok])
        bench.note(domain, f"held-out wording of {name}: Pearson", measure(told, right, ["pearson"], HOW)["pearson"])


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as they stand in the card."""
    lines = ["| domain | figure | n | scout |", "|---|---|---|---|"]
    for row in rows:
        value, low, high = (row[key] for key in ("value", "low", "high"))
        told = "undefined" if np.isnan(value) else f"{value:.3f}"
        if np.isfinite(low):
            told += f" [{low:.3f}, {high:.3f}]"
        lines.append(f"| {row['domain']} | {row['what']} | {row['n']:,} | {told} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print, a line of JSON each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scout", description=__doc__)
    parser.add_argument("model", nargs="?", default="scout", help="a judge spec")
    parser.add_argument("--n", type=int, default=300, help="items of each figure")
    parser.add_argument("--seed", type=int, default=900)
    parser.add_argument("--domains", default="scenes,text")
    parser.add_argument("--only", default="", help="splits, evidence, padding, contrast, pairs, wording, with commas")
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--formats", default="scout,scout-pairs", help="how single answers and pairs are asked about")
    parser.add_argument("--keep", default="", help="a folder for the runs on single answers: a stopped one goes on")
    parser.add_argument("--out", default="", help="write the figures there as JSON, and as a table beside it")
    given = parser.parse_args()
    form, pair_form = given.formats.split(",")
    bench = Bench(Judge(given.model, format=form, compare_format=pair_form), given.seed, given.n, given.keep)
    only = set(filter(None, given.only.split(",")))
    for domain in given.domains.split(","):
        for name in given.splits.split(","):
            kinds = {
                "attributes": ("scenes",),
                "operators": ("scenes",),
                "objects": ("scenes",),
                "combinations": ("scenes",),
            }
            if (not only or "splits" in only) and domain in kinds.get(name, (domain,)):
                split(bench, domain, name, given.n)
        for run in (evidence, padding, contrast, pairs, wording):
            if not only or run.__name__ in only:
                run(bench, domain, given.n)
    if given.out:
        Path(given.out).write_text(json.dumps(bench.rows, indent=1), "utf-8")
        Path(given.out).with_suffix(".md").write_text(table(bench.rows), "utf-8")
    sys.exit(0)


if __name__ == "__main__":
    main()
