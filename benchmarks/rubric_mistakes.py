"""`python -m benchmarks.rubric_mistakes scout --n 5000 --domain scenes --split fresh`: where wrong grades come from.

Replies in the claims format under rubrics of worlds version 4, read step by step. Of every grade that is not gold's the
first step that went wrong: a claim was not checked; one was misjudged, so that it cost otherwise; one was judged
rightly and cost otherwise; points for the response as a whole; or the total and the label alone. Then how often each
aspect was charged otherwise than gold says, of the claims (responses, for aspects of the whole) that it costs or that
were charged; and what findings say of claims that are right, near and far off. Intervals are over responses, each of
which stands in four items.
"""

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from benchmarks.rubric_following import LOST, Graded, graded, said_of, share_by
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
    causes = [(found, row.sample.shown) for row in ok if (found := cause(row))]
    dropped = f"{len(rows) - len(ok):,} replies without a verdict are left out."
    yield f"{len(causes):,} of {len(ok):,} grades are not gold's; {dropped}"
    yield "\n| first step that went wrong | grades | share |\n|---|---|---|"
    for name in CAUSES:
        yield f"| {name} | {sum(found == name for found, _ in causes):,} | {_told(causes, [name], n=False)} |"
    yield "\n| aspect | charged, or due | otherwise than gold |\n|---|---|---|"
    charged = list(_charged(ok))
    for aspect, n in Counter(aspect for aspect, *_ in charged).most_common():
        here = [(right, response) for each, right, response in charged if each == aspect]
        yield f"| {aspect} | {n:,} | {_told(here, [False], n=False)} |"
    yield "\n| claims about | wrong ones called wrong | right ones called wrong | far called far | near called far |"
    yield "|---|---|---|---|---|"
    said = list(_said(ok))
    for aspect in sorted({aspect for aspect, *_ in said}):
        due = {name: [each[2:] for each in said if each[:2] == (aspect, name)] for name in ("right", "near", "far")}
        wrong, far = ("near", "far"), ("far",)
        cells = [_told(due["near"] + due["far"], wrong), _told(due["right"], wrong)]
        yield f"| {aspect} | " + " | ".join([*cells, _told(due["far"], far), _told(due["near"], far)]) + " |"


def _said(rows: Iterable[Graded]) -> Iterator[tuple[str, str, str, str]]:
    """Of each claim: aspect, whether it is right, near or far off, which of these it was called, and its response.

    Claims about what is not there at all (`unclear`) are left out, in gold and in the reply.
    """
    for row in rows:
        told = said_of(row.verdict)
        parts = zip(row.sample.gold()["claims"], row.sample.graded[0].findings, strict=True)
        for claim, finding in parts:
            word, rest = told.get(" ".join(claim["text"].split()), ("", ""))
            if word in ("right", "wrong") and claim["verdict"] in ("right", "wrong"):
                far = finding.metric >= ASPECTS[claim["aspect"]].far
                due = "right" if claim["verdict"] == "right" else "far" if far else "near"
                said = "right" if word == "right" else "far" if rest.startswith(" far") else "near"
                yield claim["aspect"], due, said, row.sample.shown


def _told(found: Sequence[tuple[Any, str]], what: Collection[Any], *, n: bool = True) -> str:
    """The share of `found` that is one of `what`, with its interval over responses, and how many there are."""
    if not found:
        return "-"
    share = share_by([each in what for each, _ in found], [response for _, response in found])
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]" + (f", n {share.n:,}" if n else "")


def _charged(rows: Iterable[Graded]) -> Iterator[tuple[str, bool, str]]:
    """Of what costs anything: aspect, whether it was charged as gold does, and its response."""
    for row in rows:
        yield from ((aspect, right, row.sample.shown) for aspect, _, _, right, costs in claims_of(row) if costs)
        yield from ((aspect, right, row.sample.shown) for aspect, right, costs in wholes_of(row) if costs)


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
