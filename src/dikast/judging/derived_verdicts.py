"""Records derived from the verdicts of a run: combined samples, preferences, totals of sheets.

Their files are written whole at the end of a run and can be deleted: running again, or `dikast replay --out`, recreates
them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import orjson

from dikast.core.errors import RunError
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.run_files import COMBINED, PREFERENCES, TOTALS, written_together
from dikast.core.runs.schema import misfit
from dikast.core.verdict import Preference, Verdict
from dikast.judging.joining import join_orders, join_samples
from dikast.judging.pair_orders import EqualRule, from_scores
from dikast.judging.summary import Tally, Values, preference_summary
from dikast.judging.task import Shape

DERIVED = {"combined": COMBINED, "preferences": PREFERENCES, "totals": TOTALS}  # by their key in the summary


@dataclass(frozen=True, slots=True)
class Way:
    """How a run judges. `rubrics` by hash give the scales, `sheets` by item id those that are not the run's `sheet`."""

    kind: Literal["absolute", "pairwise", "from-absolute"]
    samples: int
    rubrics: Mapping[str, Rubric]
    both_orders: bool = True
    equal: EqualRule = "tie"
    schedule: str = ""  # of a ranking, which asks some pairs in both orders and some in one
    sheet: Sheet | None = None
    sheets: Mapping[str, Sheet] = field(default_factory=dict)


class _WayForm(TypedDict):
    kind: Literal["absolute", "pairwise", "from-absolute"]
    both_orders: NotRequired[bool]
    equal: NotRequired[EqualRule]
    schedule: NotRequired[str]


def way_fields(shape: Shape, equal: EqualRule | None, schedule: str = "") -> dict[str, Any]:
    """How a run judges, as its lock and its summary record it; `way_of` reads it back."""
    if schedule:
        return {"kind": "pairwise", "schedule": schedule}
    if equal is not None:
        return {"kind": "from-absolute", "equal": equal}
    return {"kind": "absolute"} if shape == "each" else {"kind": "pairwise", "both_orders": shape == "both-orders"}


def way_of(
    told: Mapping[str, Any],
    samples: int,
    rubrics: Mapping[str, Rubric],
    sheet: Sheet | None,
    sheets: Mapping[str, Sheet],
) -> Way:
    """Read back what `way_fields` returned, with the rubrics at hand; ValueError for anything else."""
    if misfit(_WayForm)(told):
        raise ValueError(f"'way'{misfit(_WayForm)(told)}")
    samples = 1 if told["kind"] == "from-absolute" else samples
    return Way(samples=samples, rubrics=rubrics, sheet=sheet, sheets=sheets, **told)


def derive(verdicts: Iterable[Verdict], way: Way, out: Path | None) -> dict[str, Any]:
    """Join the verdicts of a run as `way` says, write the results into `out` unless None, and summarise them.

    Under `preferences` for pairs, `combined` for several samples of a response, `totals` for sheets. Reads to the end.
    """
    if way.kind == "pairwise":
        both = None if way.schedule else way.both_orders
        return {"preferences": _preferences(join_orders(verdicts, way.samples, both_orders=both), out)}
    if way.kind == "from-absolute":
        return {"preferences": _preferences(by_scores(verdicts, way), out)}
    summed: dict[str, Any] = {}
    joined = join_samples(verdicts, way.samples, way.rubrics)
    tally, scores = Tally(way.rubrics), _Scores(way)
    with _lines(out and way.samples > 1 and out / COMBINED) as write:
        for verdict in joined:
            scores.add(verdict)
            if way.samples > 1:
                line = orjson.dumps(replace(verdict, attempts=()).record())  # the replies are in the run's verdicts
                write(line)
                tally.add(orjson.loads(line))
    if way.samples > 1:
        summed["combined"] = tally.summary()
    if scores.given:
        summed["totals"] = scores.totals(out)
    return summed


def by_scores(verdicts: Iterable[Verdict], way: Way) -> Iterator[Preference]:
    """Preferences from the graded responses of each item, in the order of the items' first verdicts."""
    graded: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        light = replace(verdict, attempts=(), raw="", feedback="")  # all pairs are in memory at once
        graded.setdefault(verdict.question.item, []).append(light)
    for found in graded.values():
        found.sort(key=lambda v: (v.question.sample, v.question.responses))
        both = len(found) // 2 * 2  # in an unfinished run one of the two may be missing
        if both and found[0].hashes is not None:
            scale = way.rubrics[found[0].hashes.rubric].scale
            yield from_scores(found[:both:2], found[1:both:2], scale, equal=way.equal)


def _preferences(preferences: Iterable[Preference], out: Path | None) -> dict[str, Any]:
    """Write the preferences (of the orders only the keys; the verdicts are in their own file) and summarise them."""
    with _lines(out and out / PREFERENCES) as write:

        def noted() -> Iterator[Preference]:
            for preference in preferences:
                orders = [order.key for order in preference.orders]
                write(orjson.dumps({**asdict(preference), "outcome": preference.outcome, "orders": orders}))
                yield preference

        return preference_summary(noted())


class _Scores:
    """The scores of responses that were graded by several criteria; holds one score a verdict of theirs."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.given: dict[tuple[str, int], dict[str, float | None]] = {}

    def add(self, verdict: Verdict) -> None:
        question = verdict.question
        sheet = self._way.sheets.get(question.item, self._way.sheet)
        if sheet is not None and any(question.criterion == rubric.name for rubric in sheet):
            self.given.setdefault((question.item, question.responses[0]), {})[question.criterion] = verdict.score

    def totals(self, out: Path | None) -> dict[str, Any]:
        """Write a line for each response, and sum them up."""
        n, totals = 0, Values()
        with _lines(out and out / TOTALS) as write:
            for (item, response), given in self.given.items():
                sheet = self._way.sheets.get(item, self._way.sheet)
                total = sheet.total(given) if sheet is not None else None
                write(orjson.dumps({"item": item, "response": response, "total": total, "scores": given}))
                n += 1
                if total is not None:
                    totals.add(item, total)
        mean = totals.mean((0.0, 1.0))
        return {"responses": n, "without_total": n - mean.n, "mean_total": asdict(mean)}


@contextmanager
def _lines(path: Path | Literal[False] | None) -> Iterator[Callable[[bytes], None]]:
    """Write lines to a file that takes the place of `path` when all are written; to nowhere without a path."""
    if not path:
        yield lambda line: None
        return
    try:
        with written_together(path) as (part,), part.open("wb") as file:
            yield lambda line: file.writelines((line, b"\n"))
    except OSError as error:
        raise RunError(f"{path}: cannot write ({error.strerror}); the verdicts are kept") from error
