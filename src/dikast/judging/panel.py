"""Several judges on the same questions: their joint verdict and how far they disagree."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import orjson

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.runs.current_verdicts import current_records
from dikast.core.runs.last_verdict import latest, told_at
from dikast.core.runs.rubrics import written_rubrics
from dikast.core.runs.run_files import PREFERENCES, SUMMARY, write_checked
from dikast.core.runs.schema import PreferenceLine, derived_lines
from dikast.core.scale import Scale
from dikast.core.verdict import DISAGREE, Question, Verdict
from dikast.judging.judge import Items, Judge, items_of
from dikast.judging.summary import Counts, Values


@dataclass(frozen=True, slots=True)
class PanelVerdict:
    """The verdicts of several judges on one question.

    `scores` has one entry a judge, None where it gave none. `mean` and `median` are over those that gave one; `spread`
    is the largest score minus the smallest, in levels' values, None with fewer than two. For pairs `labels` holds the
    choices and `majority` the choice of more than half of *all* judges, None without one.
    """

    question: Question
    scores: tuple[float | None, ...]
    labels: tuple[str | None, ...]
    verdicts: tuple[Verdict, ...] = ()
    scale: Scale | None = None  # of the scores, where it is known

    def __repr__(self) -> str:
        said = ", ".join("no verdict" if label is None else repr(label) for label in self.labels)
        return f"<PanelVerdict of {self.question.in_words}: {said}>"

    @property
    def given(self) -> list[float]:
        """The scores that were given."""
        return [score for score in self.scores if score is not None]

    @property
    def mean(self) -> float | None:
        """The mean of the scores that were given."""
        return _mean(self.given) if self.given else None

    @property
    def median(self) -> float | None:
        """The median of the scores that were given."""
        middle = (statistics.median_low(self.given), statistics.median_high(self.given)) if self.given else ()
        return _mean(middle) if middle else None

    @property
    def spread(self) -> float | None:
        """Largest minus smallest score; None with fewer than two."""
        return max(self.given) - min(self.given) if len(self.given) > 1 else None

    @property
    def majority(self) -> str | None:
        """The label that more than half of all judges gave; a failure, or orders that disagree, is no vote."""
        votes = Counter(label for label in self.labels if label not in (None, DISAGREE))
        label, count = max(votes.items(), key=lambda vote: vote[1], default=(None, 0))
        return label if count * 2 > len(self.labels) else None


class Panel:
    """Several judges that grade the same items."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        if len(judges) < 2:
            raise UserError("a panel needs at least two judges")
        self.judges = tuple(judges)

    def __repr__(self) -> str:
        return f"Panel([{', '.join(map(repr, self.judges))}])"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine of every judge."""
        for judge in self.judges:
            judge.close()

    def grade(self, item: Item | Mapping[str, Any] | None = None, **fields: Any) -> PanelVerdict:
        """Every judge grades the one response of an item."""
        verdicts = tuple(judge.grade(item, **fields) for judge in self.judges)
        return PanelVerdict(
            verdicts[0].question, tuple(v.score for v in verdicts), tuple(v.label for v in verdicts), verdicts
        )

    def grade_many(self, items: Items) -> Iterator[PanelVerdict]:
        """Every judge grades every response of every item; in the order of the first judge's answers.

        The items are read once and held in memory, since one judge asks after the other. A question that another judge
        was not asked (its samples may differ) counts as no score of that judge.
        """
        held = list(items_of(items))
        answers = [{verdict.question: verdict for verdict in judge.grade_many(held)} for judge in self.judges]
        for question in dict.fromkeys(question for found in answers for question in found):
            given = tuple(found.get(question) for found in answers)
            yield PanelVerdict(
                question,
                tuple(verdict.score if verdict is not None else None for verdict in given),
                tuple(verdict.label if verdict is not None else None for verdict in given),
                tuple(verdict for verdict in given if verdict is not None),
            )


def _mean(scores: Sequence[float]) -> float:
    """Without intermediate rounding: .1, .2 and .3 have the mean of .2, .2 and .2."""
    return float(sum((Fraction(repr(float(score))) for score in scores), Fraction()) / len(scores))


def panel_verdicts(runs: Sequence[Path]) -> Iterator[PanelVerdict]:
    """Join run folders of several judges on their questions, in the order of the first; unasked counts as no score."""
    joined: dict[Question, list[tuple[float | None, str | None]]] = {}
    scales: dict[Question, Scale] = {}
    for i, run in enumerate(runs):
        rubrics = written_rubrics(run)
        for record in current_records(run):
            spelt = record["question"]
            question = Question(spelt["item"], spelt["criterion"], tuple(spelt["responses"]), spelt["sample"])
            row = joined.setdefault(question, [(None, None)] * len(runs))
            row[i] = (record["score"], record["label"])
            if (rubric := rubrics.get(str((record["hashes"] or {}).get("rubric")))) is not None:
                scales[question] = rubric.scale
    for question, row in joined.items():
        scores, labels = (tuple(each[k] for each in row) for k in (0, 1))
        yield PanelVerdict(question, scores, labels, scale=scales.get(question))  # type: ignore[arg-type]


def panel_preferences(runs: Sequence[Path]) -> Iterator[PanelVerdict]:
    """As `panel_verdicts`, from the preferences of runs that compared: a question is a pair, its labels are choices.

    Labels are joint outcomes: a judge whose orders disagree has the label `disagree`, which is no vote.
    """
    joined: dict[Question, list[str | None]] = {}
    for i, run in enumerate(runs):
        for record, _ in derived_lines(run, PREFERENCES, PreferenceLine):
            question = Question(record["item"], record["criterion"], tuple(record["pair"]))
            outcome = DISAGREE if record.get("consistent") is False else record["choice"]
            joined.setdefault(question, [None] * len(runs))[i] = outcome
    for question, choices in joined.items():
        yield PanelVerdict(question, (None,) * len(runs), tuple(choices))


def write_panel(out: Path, names: Sequence[str], runs: Sequence[Path]) -> dict[str, Any]:
    """Write `panel.jsonl` and its part of `summary.json` from the runs of all judges; returns the summary.

    Runs that compared are joined by their preferences, others by their verdicts.
    """
    lines: list[bytes] = []
    compared = all((run / PREFERENCES).exists() for run in runs)

    def noted() -> Iterator[PanelVerdict]:
        for verdict in panel_preferences(runs) if compared else panel_verdicts(runs):
            value = {
                **asdict(verdict.question),
                "scores": verdict.scores,
                "labels": verdict.labels,
                "mean": verdict.mean,
                "median": verdict.median,
                "spread": verdict.spread,
                "majority": verdict.majority,
            }
            lines.append(orjson.dumps(value))
            yield verdict

    summary = {"kind": "panel", "judges": list(names), **disagreement(noted()), **told_at(latest(runs))}
    write_checked(out / "panel.jsonl", b"".join(line + b"\n" for line in lines))
    write_checked(out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    return summary


def disagreement(verdicts: Iterable[PanelVerdict]) -> dict[str, Any]:
    """How often all judges gave the same label, how far apart their scores lie, and how many questions lack a vote.

    `unanimous` is of the questions with a label of every judge; judges whose own orders disagree do not agree with any
    other. Where questions are on several scales, the mean spread is of goodness (`mean_spread_goodness`), in scores
    undefined.
    """
    n, votes, spreads, good, scales = 0, Counts(), Values(), Values(), set[Scale | None]()
    for verdict in verdicts:
        n += 1
        if None not in verdict.labels:
            votes.add(verdict.question.item, len(set(verdict.labels)) == 1 and DISAGREE not in verdict.labels)
        if verdict.spread is not None:
            scales.add(verdict.scale)
            width = 1.0 if verdict.scale is None else verdict.scale.high - verdict.scale.low
            spreads.add(verdict.question.item, verdict.spread)
            good.add(verdict.question.item, verdict.spread / width)
    several = len(scales) > 1
    of_goodness = {"mean_spread_goodness": asdict(good.mean((0.0, 1.0)))} if several else {}
    return {
        "questions": n,
        "answered_by_all": len(votes),
        "unanimous": asdict(votes.share(1)),
        "mean_spread": asdict((Values() if several else spreads).mean((0.0, math.inf))),
        **of_goodness,
    }
