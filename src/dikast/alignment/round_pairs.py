"""The judge's rewards of a round's replies, and the best and the worst of each prompt as a pair."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.errors import TooManyMissing
from dikast.core.item import Item, item_to
from dikast.core.part import is_empty, text_of
from dikast.core.records import write_records
from dikast.core.rubric import Sheet
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import RANKINGS, write_checked
from dikast.core.text import in_shell
from dikast.core.verdict import Status
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.ranking.rank_file import rank_file
from dikast.ranking.rank_options import RankOptions

PAIRS = "pairs.jsonl"
SAMPLES = "samples.jsonl"
EQUAL = 1e-6  # rewards that differ by less are equal: rounding must not decide


class RoundPairs(NamedTuple):
    """The result of judging a round. `dropped` counts prompts without a pair, by reason.

    `calls` and `tokens` are the judge's.
    """

    pairs: int
    prompts: int
    dropped: dict[str, int]
    missing: int
    verdicts: int
    calls: int
    tokens: int


def make_pairs(
    judge: Judge,
    items: Sequence[Item],
    folder: Path,
    schedule: str,
    margin: float,
    allowed: Callable[[int], float],
) -> RoundPairs:
    """Judge `samples.jsonl` of the folder into `judge/`, and write `rankings.jsonl` and `pairs.jsonl`.

    The judge is not asked about empty replies, which stand in no pair. A prompt gives none where fewer than two
    different replies are left, a verdict is missing, or its best and worst are equal or less than `margin` apart.
    TooManyMissing where more than `allowed` says of n verdicts is; they are kept.
    """
    dropped: Counter[str] = Counter()
    different, judged = [], []
    for item in items:
        said = [i for i, response in enumerate(item.responses) if not is_empty(response)]
        if len({text_of(item.responses[i]) for i in said}) > 1:
            different.append((item, said))
            judged.append(item if len(said) == len(item.responses) else _of_these(item, said))
        else:
            alike = len({text_of(response) for response in item.responses}) == 1
            dropped["all replies are the same" if alike else "fewer than two different replies that are not empty"] += 1
    rewards: dict[str, list[float | None]] = {}
    told = {"verdicts": 0, "missing": 0, "calls": 0, "tokens": 0}
    if different:
        source = folder / SAMPLES
        if judged != list(items):
            source = folder / "different.jsonl"
            write_records(source, map(item_to, judged))
        if schedule == "pointwise":
            summary = grade_file(judge, source, folder / "judge")
        else:
            summary = rank_file(judge, source, folder / "judge", RankOptions(schedule=schedule))  # type: ignore[arg-type]
        told = counted(summary)
        check_failures(told, allowed, folder / "judge")
        rewards = _graded(folder / "judge") if schedule == "pointwise" else _ranked(folder / "judge")
    pairs, lines = [], []
    for item, said in different:
        found = rewards.get(item.id, [])
        values = dict(zip(said, found, strict=False))
        by_reply = [values.get(i) for i in range(len(item.responses))]
        lines.append({"item": item.id, "rewards": by_reply, "order": _order(by_reply)})
        if len(found) != len(said) or None in found:
            dropped["a verdict is missing"] += 1
            continue
        known = {i: float(value or 0.0) for i, value in values.items()}
        top, bottom = max(known.values()), min(known.values())
        best = next(i for i, value in known.items() if value >= top - EQUAL)
        worst = next(i for i, value in known.items() if value <= bottom + EQUAL)
        edge = known[best] - known[worst]
        if edge <= 2 * EQUAL or item.responses[best] == item.responses[worst]:
            dropped["equal"] += 1
        elif edge < margin:
            dropped["less than the margin apart"] += 1
        else:
            shown = (item.responses[best], item.responses[worst])
            meta = {"margin": edge, "samples": [best, worst]}
            pair = replace(item, responses=shown, gold={"preference": "a"}, meta=meta, rubric=None)
            pairs.append(item_to(pair))
    write_checked(folder / RANKINGS, b"".join(orjson.dumps(line) + b"\n" for line in lines))
    write_checked(folder / PAIRS, b"".join(orjson.dumps(pair) + b"\n" for pair in pairs))
    kept = {reason: n for reason, n in dropped.items() if n}
    return RoundPairs(len(pairs), len(items), kept, **told)


def _of_these(item: Item, places: Sequence[int]) -> Item:
    """The item with these responses alone, and their gold."""
    gold = item.gold
    if isinstance(gold, dict) and "scores" in gold:
        gold = {"scores": [gold["scores"][i] for i in places]}
    return replace(item, responses=tuple(item.responses[i] for i in places), gold=gold)


def counted(summary: Mapping[str, Any]) -> dict[str, int]:
    """From a run's summary: counts of verdicts, missing verdicts, calls and tokens."""
    verdicts, usage = int(summary["verdicts"]), summary.get("usage") or {}
    return {
        "verdicts": verdicts,
        "missing": verdicts - int(summary["status"].get("ok", 0)),
        "calls": int(usage.get("calls") or verdicts),
        "tokens": int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0),
    }


def check_failures(told: Mapping[str, int], allowed: Callable[[int], float], folder: Path) -> None:
    """TooManyMissing where more verdicts are missing than allowed."""
    if told["missing"] > allowed(told["verdicts"]):
        raise TooManyMissing(
            f"{folder}: {told['missing']:,} of {told['verdicts']:,} verdicts are missing, more than --max-failures"
            f" allows: see why with `dikast audit {in_shell(folder)}`; what was answered is kept, and the same"
            " command goes on"
        )


def grades_of(folder: Path) -> dict[str, list[float | None]]:
    """The goodness of each reply of a graded run, by item; None without a verdict."""
    return _graded(folder)


def _graded(folder: Path) -> dict[str, list[float | None]]:
    run, rubrics = Run(folder), load_rubrics(folder)
    found: dict[str, dict[int, dict[str, float | None]]] = {}
    for verdict in run.combined:
        value = None
        if verdict.status is Status.OK and verdict.hashes is not None:
            number = verdict.score if verdict.expected is None else verdict.expected
            value = None if number is None else rubrics[verdict.hashes.rubric].scale.goodness(number)
        place = verdict.question.responses[0]
        found.setdefault(verdict.question.item, {}).setdefault(place, {})[verdict.question.criterion] = value
    return {item: [_total(by[place]) for place in sorted(by)] for item, by in found.items()}


def _total(values: Mapping[str, float | None]) -> float | None:
    """The mean over criteria; None where one is missing."""
    known = [value for value in values.values() if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def _ranked(folder: Path) -> dict[str, list[float | None]]:
    lines = map(orjson.loads, (folder / RANKINGS).read_bytes().splitlines())
    return {line["item"]: [None if line["missing"] else value for value in line["rewards"]] for line in lines}


def _order(values: Sequence[float | None]) -> list[int]:
    known = [(i, value) for i, value in enumerate(values) if value is not None]
    return [i for i, _ in sorted(known, key=lambda each: -each[1])]


def one_criterion(judge: Judge, items: Sequence[Item]) -> bool:
    """Whether every item is judged by a single criterion, which comparing needs."""
    return not any(isinstance(item.rubric or judge.rubric, Sheet) for item in items)
