"""Rows of a run gathered by what was judged, as the logs of other tools have them: one sample, a score a criterion."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from dikast.core.runs.run_table import RunTable

_WORTH = {"a": 1.0, "b": 0.0, "tie": 0.5, "disagree": 0.5}  # of response a; orders that disagree decide nothing
_TEXTS = ("instruction", "response", "response_a", "response_b", "reference", "context", "gold")
_PLACE = ("id", "response_index", "index_a", "index_b")


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """A judge's score by one criterion: for a pair 1 where it prefers a, 0 where b, else 0.5. None with a `status`."""

    criterion: str
    judge: str
    value: float | None
    answer: str | None
    status: str
    reason: str
    feedback: str
    gold: Any
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged response, or pair: its id, told apart from others of its item, what was shown, and its scores."""

    id: str
    texts: Mapping[str, Any]
    meta: Mapping[str, Any]
    scores: Mapping[str, JudgeScore]

    @property
    def responses(self) -> list[Any]:
        """The response, or those of the pair."""
        return [self.texts[name] for name in ("response", "response_a", "response_b") if name in self.texts]


def samples_of(table: RunTable, meta: Mapping[str, None]) -> Iterator[Sample]:
    """The samples in the order of the items. Scores are by criterion; of a panel by criterion and judge (`c/judge`)."""
    judges = [name.removeprefix("score").removeprefix("choice") for name in table.columns if _is_of_judge(name)]
    several = judges != [""]
    for place, group in itertools.groupby(table, lambda row: [row.get(name) for name in _PLACE]):
        rows = list(group)
        numbers = [str(each) for each in place[1:] if each is not None]
        scores: dict[str, JudgeScore] = {}
        for row in rows:
            for judge in judges:
                score = _score(row, judge)
                name = f"{score.criterion}/{score.judge}" if several else score.criterion
                scores[name if name not in scores else f"{name}{judge}"] = score
        first = rows[0]
        texts = {name: first[name] for name in _TEXTS if first.get(name) is not None}
        told = {name: first[name] for name in meta if first.get(name) is not None}
        yield Sample("#".join([str(first["id"]), *numbers]), texts, told, scores)


def _is_of_judge(name: str) -> bool:
    stem, _, end = name.partition("_")
    return stem in ("score", "choice") and (not end or end.isdigit())


def _score(row: Mapping[str, Any], end: str) -> JudgeScore:
    choice, pair = row.get(f"choice{end}"), f"choice{end}" in row
    names = ("expected", "mass", "distribution", "conflict", "logit_a", "position_bias", "samples", "total")
    orders = (f"{name}_{order}" for name in ("label", "score", "status") for order in ("shown", "swapped", "a", "b"))
    details = {name: row[name + end] for name in (*names, *orders) if row.get(name + end) is not None}
    feedback = row.get(f"feedback{end}") or row.get(f"feedback_shown{end}") or row.get(f"feedback_a{end}")
    return JudgeScore(
        criterion=str(row["criterion"]),
        judge=str(row.get(f"judge{end}") or f"judge{end}"),
        value=_WORTH.get(str(choice)) if pair else row.get(f"score{end}"),
        answer=choice if pair else row.get(f"label{end}"),
        status=str(row.get(f"status{end}") or "unasked"),
        reason=str(row.get(f"reason{end}") or ""),
        feedback=str(feedback or ""),
        gold=row.get("gold"),
        details=details,
    )


def plain(value: Any) -> str:
    """A text as it is, anything else (conversations, pictures) as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
