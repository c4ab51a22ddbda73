"""Measures of the policy on the held-out prompts, and the rules for stopping an alignment."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.alignment.round_pairs import EQUAL, SAMPLES, check_failures, counted, grades_of
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import share
from dikast.audit.statistics.ppi import ANY, mean_of_labels
from dikast.core.errors import DataError
from dikast.core.gold import goodness_of
from dikast.core.item import Item, item_to
from dikast.core.part import is_empty, text_of
from dikast.core.records import write_records
from dikast.core.rubric import Rubric
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import AGAIN, check, write_checked
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file

MEASURES = "measures.jsonl"
HELD = "held-out"
_GROWN = 1.5  # ratio of reply lengths (words) to the start's, above which an alignment stops
_LEAST_PAIRS = 0.2  # minimum share of prompts that give a pair
_SHARES = ("empty", "cut", "unreadable")
BOUNDS: Mapping[str, tuple[float, float]] = {  # of the values of a figure; any number where it is not named
    **dict.fromkeys(("reward", "gold", "second", *_SHARES), (0.0, 1.0)), "words": (0.0, math.inf)
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """The held-out prompts in one state of the policy: numbers by prompt, None where unknown."""

    ids: tuple[str, ...]
    columns: Mapping[str, tuple[float | None, ...]]

    def estimate(self, name: str) -> Estimate | None:
        """The mean of a column with its interval, within what it can be; None where no prompt has a value."""
        known = [value for value in self.columns[name] if value is not None]
        found = mean_of_labels(known, within=BOUNDS.get(name, ANY))
        return replace(found, dropped=len(self.ids) - len(known)) if known else None

    def change(self, name: str, before: "Measured") -> Estimate | None:
        """The mean paired difference to an earlier state, over prompts that both have."""
        old = dict(zip(before.ids, before.columns[name], strict=True))
        pairs = [(value, old.get(key)) for key, value in zip(self.ids, self.columns[name], strict=True)]
        known = [value - then for value, then in pairs if value is not None and then is not None]
        low, high = BOUNDS.get(name, ANY)
        found = mean_of_labels(known, within=(low - high, high - low))
        return replace(found, dropped=len(pairs) - len(known)) if known else None


def measure(
    items: Sequence[Item], folder: Path, judge: Judge, second: Judge | None, start: Path | None,
    models: tuple[str, str], *, compare: bool, device: str, allowed: Callable[[int], float], frames: int,
    unanswered: Sequence[str] = (),
) -> tuple[Measured, dict[str, int]]:  # fmt: skip
    """Measure the replies in `samples.jsonl` of the folder; returns the numbers and the counts of questions.

    start: the folder of the first state, None if it is this one. models: this state's and the first one's. compare:
    the judge compares each reply with the start's; otherwise its grades of both say which wins. unanswered: prompts
    without a reply, whose numbers are unknown. The judges are not asked about an empty reply: its grade is the lowest,
    and it loses. Everything is kept in the folder and not asked again.
    """
    asked = dict[str, int]()

    empty = {item.id for item in items if is_empty(item.responses[0])}
    source = folder / (SAMPLES if not empty else "not-empty.jsonl")
    if empty:
        write_records(source, (item_to(item) for item in items if item.id not in empty))

    def judged(by: Judge, name: str) -> dict[str, list[float | None]]:
        lowest: dict[str, list[float | None]] = {key: [0.0] for key in empty}
        if len(empty) == len(items):
            return lowest
        told = counted(grade_file(by, source, folder / name))
        check_failures(told, allowed, folder / name)
        for key in ("calls", "tokens"):
            asked[key] = asked.get(key, 0) + told[key]
        return grades_of(folder / name) | lowest

    texts = [text_of(item.responses[0]) for item in items]
    rewards = judged(judge, "judge")
    seconds = judged(second, "second-judge") if second is not None else {}
    wins: Mapping[str, float | None] = {}
    if start is not None:
        wins = (
            _wins(items, folder, judge, start, asked, allowed)
            if compare
            else won_by_grades(rewards, read_measured(start))
        )
    columns: dict[str, list[float | None]] = {
        "reward": [rewards.get(item.id, [None])[0] for item in items],
        "gold": [_gold(item, judge) for item in items],
        "second": [seconds.get(item.id, [None])[0] for item in items],
        "words": [float(len(text.split())) for text in texts],
        "empty": [float(item.id in empty) for item in items],
        "cut": [float(bool(item.meta["cut"][0])) for item in items],
        "unreadable": [_unreadable(item) for item in items],
        "wins": [wins.get(item.id) for item in items],
        "kl": [0.0 if start is None else None] * len(items),
    }
    if start is not None:
        from dikast.alignment.reply_likelihood import reply_logprobs  # imports torch, which pages do not need

        both = [reply_logprobs(model, items, folder / "prepared", device=device, frames=frames) for model in models]
        columns["kl"] = [now - then for now, then in zip(*both, strict=True)]
    lost = (None,) * len(unanswered)
    ids = (*(item.id for item in items), *unanswered)
    found = Measured(ids, {name: (*each, *lost) for name, each in columns.items()})
    rows = [{"item": key, **{name: each[i] for name, each in found.columns.items()}} for i, key in enumerate(found.ids)]
    write_checked(folder / MEASURES, b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return found, asked


def read_measured(folder: Path) -> Measured:
    """The numbers that `measure` wrote; DataError for a file with others."""
    check(folder, MEASURES)
    try:
        rows = [orjson.loads(line) for line in (folder / MEASURES).read_bytes().splitlines()]
        names = [name for name in rows[0] if name != "item"]
        found = {name: tuple(row[name] for row in rows) for name in names}
        for value in (value for column in found.values() for value in column):
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise TypeError(f"{value!r:.60} is not a number")
        return Measured(tuple(str(row["item"]) for row in rows), found)
    except (ValueError, TypeError, LookupError) as error:
        raise DataError(f"not the figures of an alignment ({error!r}): {AGAIN}", path=str(folder / MEASURES)) from None


def _wins(
    items: Sequence[Item],
    folder: Path,
    judge: Judge,
    start: Path,
    asked: dict[str, int],
    allowed: Callable[[int], float],
) -> dict[str, float | None]:
    """1 where the reply is preferred to the start's; 0.5 for a tie, orders that disagree, or the same reply."""
    from dikast.core.records import read_items

    first = {item.id: item for item in read_items(str(start / SAMPLES))}
    rows, found = [], dict[str, float | None]()
    for item in items:
        if item.id not in first:
            continue
        then = first[item.id].responses[0]
        if text_of(then) == text_of(item.responses[0]):
            found[item.id] = 0.5
        elif is_empty(then) or is_empty(item.responses[0]):
            found[item.id] = float(is_empty(then))
        else:
            rows.append(replace(item, responses=(then, item.responses[0]), gold=_both(first[item.id], item), meta={}))
    if not rows:
        return found
    write_records(folder / "against-start.jsonl", map(item_to, rows))
    told = counted(compare_file(judge, folder / "against-start.jsonl", folder / "against-start"))
    check_failures(told, allowed, folder / "against-start")
    for key in ("calls", "tokens"):
        asked[key] = asked.get(key, 0) + told[key]
    worth = {"a": 0.0, "b": 1.0, "tie": 0.5, None: None}
    return found | {each.item: worth[each.choice] for each in Run(folder / "against-start").preferences}


def won_by_grades(rewards: Mapping[str, Sequence[float | None]], start: Measured) -> dict[str, float | None]:
    """1 where the reply has the better grade than the start's, 0.5 for equal ones."""
    found = dict[str, float | None]()
    for key, then in zip(start.ids, start.columns["reward"], strict=True):
        now = rewards.get(key, [None])[0]
        found[key] = None if now is None or then is None else 0.5 if abs(now - then) < EQUAL else float(now > then)
    return found


def _both(first: Item, now: Item) -> Any:
    if not (isinstance(first.gold, dict) and isinstance(now.gold, dict)):
        return None
    return {"scores": [first.gold.get("score"), now.gold.get("score")]}


def _gold(item: Item, judge: Judge) -> float | None:
    rubric = item.rubric or judge.rubric
    if item.gold is None or not isinstance(rubric, Rubric):
        return None
    value = goodness_of(item, rubric, None)
    return float(value) if isinstance(value, int | float) else None


def _unreadable(item: Item) -> float | None:
    told = item.meta.get("unreadable")
    return None if told is None else float(told[0] > 0)


def estimates(now: Measured, start: Measured | None) -> dict[str, Any]:
    """The figures of a report: each mean with n and interval, and its paired change from the start."""
    found: dict[str, Any] = {}
    for name in now.columns:
        each: Estimate | None
        if name in (*_SHARES, "wins"):
            known = [value for value in now.columns[name] if value is not None]
            each = share(known, 0.95, dropped=len(now.ids) - len(known)) if known else None
        else:
            each = now.estimate(name)
        if each is None:
            continue
        found[name] = each.to_dict()
        changed = now.change(name, start) if start is not None and name not in ("kl", "wins") else None
        if changed is not None:
            found[name]["change"] = changed.to_dict()
    return found


def reason_to_stop(now: Measured, before: Measured, start: Measured, most_kl: float) -> str:
    """Why to stop at the state `now`; "" if there is no reason to."""
    kl, words, first = now.estimate("kl"), now.estimate("words"), start.estimate("words")
    if kl is not None and kl.value > most_kl:
        return f"the policy is {kl.value:.1f} nats a reply from its start, more than {most_kl:g}"
    if words is not None and first is not None and words.value > _GROWN * max(first.value, 1.0):
        return f"replies have grown from {first.value:.1f} words to {words.value:.1f}, by more than half"
    name, told = held_out_measure(now)
    fallen = now.change(name, before)
    if fallen is not None and not math.isnan(fallen.high) and fallen.high < 0:
        return f"{told} on held-out prompts fell by {-fallen.value:.3f} [{-fallen.high:.3f}, {-fallen.low:.3f}]"
    return ""


def held_out_measure(now: Measured) -> tuple[str, str]:
    """The measure that decides whether held-out replies improve: gold, else the second judge, else the judge."""
    for name, told in (("gold", "gold"), ("second", "the second judge's grade")):
        if any(value is not None for value in now.columns[name]):
            return name, told
    return "reward", "the judge's reward"


def too_few_pairs(pairs: int, prompts: int, dropped: Mapping[str, int]) -> str:
    """Why a round with so few pairs is not trained on; "" if there are enough."""
    if pairs >= _LEAST_PAIRS * prompts and pairs:
        return ""
    why = ", ".join(f"{n:,} {reason}" for reason, n in sorted(dropped.items(), key=lambda each: -each[1]))
    return f"{pairs:,} of {prompts:,} prompts give a pair, fewer than a fifth ({why})"
