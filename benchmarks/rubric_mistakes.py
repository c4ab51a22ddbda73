"""`python -m benchmarks.rubric_mistakes scout --n 5000 --domain scenes --split fresh`: where wrong grades come from.

Replies in the claims format under rubrics of worlds version 4, read step by step. Of every grade that is not gold's the
first step that went wrong: a claim was not checked; one was misjudged, so that it cost otherwise; one was judged
rightly and cost otherwise; points for the response as a whole; or the total and the label alone. Then how often each
aspect was charged otherwise than gold says, of the claims (responses, for aspects of the whole) that it costs or that
were charged; and what findings say of claims that are right, near and far off. Intervals take claims as independent;
four items share a response and its picture, so they are somewhat too narrow.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.rubric_following import LOST, Graded, graded, said_of
from dikast.audit.statistics.intervals import rate
from dikast.core.verdict import Status
from dikast.judging.judge import Judge
from dikast.worlds.scoring.aspects import ASPECTS, points

CAUSES = (
    "a claim was not checked",
    "a claim was misjudged",
    "a claim was judged rightly and cost otherwise",
    "points for the response as a whole",
    "the total or the label alone",
)


def claims_of(row: Graded) -> Iterator[tuple[str, bool, bool, bool, bool]]:
    """Of each claim: aspect, whether it was checked, judged as gold does, and charged as gold does; whether it costs
    anything, by gold or by the judge.
    """
    told = said_of(row.verdict)
    for claim in row.sample.gold()["claims"]:
        found = told.get(" ".join(claim["text"].split()))
        due = {"unsupported": "unclear"}.get(claim["verdict"], claim["verdict"])
        paid = _paid(found[1]) if found else 0
        judged = found is not None and found[0] == due
        yield claim["aspect"], found is not None, judged, paid == claim["cost"], bool(paid or claim["cost"])


def wholes_of(row: Graded) -> Iterator[tuple[str, bool, bool]]:
    """Of each weighed aspect of the whole response: its name, whether it was charged as gold does, whether it costs.

    The lines on them follow the last finding in the order of the rubric, by whatever names the reply calls them.
    """
    spec, counts = row.sample.spec, row.sample.graded[0].counts
    last = row.verdict.raw.rpartition("\nFinding: ")[2].split("\n")[1:]
    told = [line for line in last if ": " in line and not line.startswith("Lost: ")]
    for i, (aspect, weight) in enumerate(spec.weights):
        paid = _paid(told[i]) if i < len(told) else 0
        due = weight * points(ASPECTS[aspect], counts.get(aspect, 0), spec.graded)
        yield aspect, paid == due, bool(paid or due)


def _paid(told: str) -> int:
    lost = LOST.search(told)
    return int(lost[1]) if lost else 0


def cause(row: Graded) -> str:
    """The first step that went wrong; "" for a grade that is gold's."""
    if row.verdict.label == row.sample.gold()["label"]:
        return ""
    claims = list(claims_of(row))
    if not all(checked for _, checked, *_ in claims):
        return CAUSES[0]
    otherwise = [judged for _, _, judged, charged, _ in claims if not charged]
    if otherwise:
        return CAUSES[2] if all(otherwise) else CAUSES[1]
    return CAUSES[4] if all(charged for _, charged, _ in wholes_of(row)) else CAUSES[3]


def table(rows: Sequence[Graded]) -> Iterator[str]:
    """The three tables; replies without a verdict are left out and counted."""
    ok = [row for row in rows if row.verdict.status is Status.OK]
    causes = Counter(map(cause, ok))
    wrong = len(ok) - causes[""]
    dropped = f"{len(rows) - len(ok):,} replies without a verdict are left out."
    yield f"{wrong:,} of {len(ok):,} grades are not gold's; {dropped}"
    yield "\n| first step that went wrong | grades | share |\n|---|---|---|"
    for name in CAUSES:
        share = rate(causes[name], wrong)
        yield f"| {name} | {causes[name]:,} | {share.value:.2f} [{share.low:.2f}, {share.high:.2f}] |"
    yield "\n| aspect | charged, or due | otherwise than gold |\n|---|---|---|"
    charged = _charged(ok)
    for aspect, n in Counter(aspect for aspect, _ in charged.elements()).most_common():
        share = rate(charged[aspect, False], n)
        yield f"| {aspect} | {n:,} | {share.value:.2f} [{share.low:.2f}, {share.high:.2f}] |"
    yield "\n| claims about | wrong ones called wrong | right ones called wrong | far called far | near called far |"
    yield "|---|---|---|---|---|"
    said = _said(ok)
    for aspect in sorted({aspect for aspect, *_ in said}):
        off, right = [(aspect, "near"), (aspect, "far")], [(aspect, "right")]
        cells = [(off, ("near", "far")), (right, ("near", "far")), (off[1:], ("far",)), (off[:1], ("far",))]
        yield f"| {aspect} | " + " | ".join(_share(said, where, what) for where, what in cells) + " |"


def _said(rows: Iterable[Graded]) -> Counter[tuple[str, str, str]]:
    """How often claims about an aspect that are right, near or far off were called right, near or far off.

    Claims about what is not there at all (`unclear`) are left out, in gold and in the reply.
    """
    found: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        told = said_of(row.verdict)
        parts = zip(row.sample.gold()["claims"], row.sample.graded[0].findings, strict=True)
        for claim, finding in parts:
            word, rest = told.get(" ".join(claim["text"].split()), ("", ""))
            if word in ("right", "wrong") and claim["verdict"] in ("right", "wrong"):
                far = finding.metric >= ASPECTS[claim["aspect"]].far
                due = "right" if claim["verdict"] == "right" else "far" if far else "near"
                said = "right" if word == "right" else "far" if rest.startswith(" far") else "near"
                found[claim["aspect"], due, said] += 1
    return found


def _share(said: Counter[tuple[str, str, str]], where: Sequence[tuple[str, str]], what: Sequence[str]) -> str:
    """The share called `what` of the claims that are `where`, with its interval and their number."""
    n = sum(said[aspect, due, each] for aspect, due in where for each in ("right", "near", "far"))
    hits = sum(said[aspect, due, each] for aspect, due in where for each in what)
    if not n:
        return "-"
    share = rate(hits, n)
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}], n {n:,}"


def _charged(rows: Iterable[Graded]) -> Counter[tuple[str, bool]]:
    """How often an aspect was charged as gold does (True) and otherwise, where it costs anything."""
    found: Counter[tuple[str, bool]] = Counter()
    for row in rows:
        found.update((aspect, right) for aspect, _, _, right, costs in claims_of(row) if costs)
        found.update((aspect, right) for aspect, right, costs in wholes_of(row) if costs)
    return found


def main() -> None:
    """Grade, and print where wrong grades come from."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubric_mistakes", description=__doc__)
    parser.add_argument("model", nargs="?", default="scout", help="a judge spec whose replies check claim by claim")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=951)
    parser.add_argument("--domain", default="scenes")
    parser.add_argument("--split", default="fresh")
    parser.add_argument("--format", default="scout")
    parser.add_argument("--keep", default="", help="a folder for the runs, as `benchmarks.rubric_following` keeps them")
    given = parser.parse_args()
    judge = Judge(given.model, format=given.format)
    print("\n".join(table(graded(judge, given.domain, given.split, given.seed, given.n, given.keep))))


if __name__ == "__main__":
    main()
