"""Files of a run folder that follow from `verdicts.jsonl`: combined samples, preferences, totals of sheets.

They are written whole at the end of a run and can be thrown away: running again, or `dikast replay --out`, makes them
anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.core.rubric import Rubric, Sheet
from dikast.core.verdict import Preference, Question, Verdict
from dikast.judging.readout import combine_samples
from dikast.judging.summary import Rate, preference_summary

COMBINED = "combined.jsonl"
PREFERENCES = "preferences.jsonl"
TOTALS = "totals.jsonl"


def combined(verdicts: Iterable[Verdict], samples: int, rubrics: Mapping[str, Rubric]) -> Iterator[Verdict]:
    """Each question's samples as one verdict, as soon as the last is there; `rubrics` by hash give the scales."""
    if samples == 1:
        yield from verdicts
        return
    waiting: dict[Question, list[Verdict]] = {}
    for verdict in verdicts:
        asked = verdict.question
        group = waiting.setdefault(Question(asked.item, asked.criterion, asked.responses), [])
        group.append(verdict)
        if len(group) == samples:
            del waiting[Question(asked.item, asked.criterion, asked.responses)]
            assert verdict.hashes is not None
            scale = rubrics[verdict.hashes.rubric].scale if len(asked.responses) == 1 else None
            yield combine_samples(sorted(group, key=lambda each: each.question.sample), scale)


def write_combined(out: Path, verdicts: Iterable[Verdict]) -> None:
    """Write `combined.jsonl`, in the form of `verdicts.jsonl`."""
    for _ in _written(out / COMBINED, verdicts, orjson.dumps):
        pass


def write_preferences(out: Path, preferences: Iterable[Preference]) -> dict[str, Any]:
    """Write `preferences.jsonl` (of the orders only the keys; the verdicts are beside it) and sum it up."""

    def spelt(preference: Preference) -> bytes:
        return orjson.dumps({**asdict(preference), "orders": [order.key for order in preference.orders]})

    return preference_summary(_written(out / PREFERENCES, preferences, spelt))


def write_totals(out: Path, items: Iterable[Item], verdicts: Iterable[Verdict], shared: Rubric | Sheet | None) -> Any:
    """Write `totals.jsonl`, a line for each response graded by a sheet, and sum it up; holds one score a verdict."""
    scores: dict[tuple[str, int], dict[str, float | None]] = {}
    for verdict in verdicts:
        question = verdict.question
        scores.setdefault((question.item, question.responses[0]), {})[question.criterion] = verdict.score

    def totals() -> Iterator[dict[str, Any]]:
        for item in items:
            sheet = item.rubric or shared
            if isinstance(sheet, Sheet):
                for i in range(max(len(item.responses), 1)):
                    given = scores.get((item.id, i), {})
                    yield {"item": item.id, "response": i, "total": sheet.total(given), "scores": given}

    n = 0
    sums = [0, 0.0, 0.0]
    for line in _written(out / TOTALS, totals(), orjson.dumps):
        n += 1
        if line["total"] is not None:
            sums = [sums[0] + 1, sums[1] + line["total"], sums[2] + line["total"] ** 2]
    return {"responses": n, "without_total": n - int(sums[0]), "mean_total": asdict(Rate.mean(int(sums[0]), *sums[1:]))}


def _written(path: Path, values: Iterable[Any], spelt: Any) -> Iterator[Any]:
    """Pass the values on while writing them, a line each; the file is put in its place when all have passed."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            for value in values:
                file.write(spelt(value) + b"\n")
                yield value
        part.replace(path)
    except OSError as error:
        raise RunError(f"{path}: cannot write ({error.strerror}); the verdicts are kept") from error
