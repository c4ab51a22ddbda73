"""What differs between two runs: the verdicts item by item, and the judge, the prompt and the rubrics behind them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dikast.core.rubric import Rubric
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.rubrics import readable_rubrics
from dikast.core.text import changed_lines
from dikast.surface.viewer.run_index import Listed, RunIndex

SHOWS = {
    "changed": "changed, or without one in one run",
    "same": "the same",
    "all": "all",
    "failed": "without a verdict in one",
    "scales": "on different scales",
}
_TOLD = "a.said != '' and b.said != ''"
_APART = "(a.scale != b.scale and a.scale != '' and b.scale != '')"  # their labels are not compared
_SHOWN = {
    "changed": f"a.said != b.said and not ({_TOLD} and {_APART})", "same": f"a.said = b.said and not {_APART}",
    "all": "1", "failed": "(a.said = '') != (b.said = '')", "scales": _APART,
}  # fmt: skip
_BOTH = "row a join row b indexed by row_at on b.run=? and b.anchor=a.anchor where a.run=?"


class Change(NamedTuple):
    """One thing that differs between two runs, such as the prompt, as pieces of text: ("-", line), ("+", line)."""

    name: str
    pieces: tuple[tuple[str, str], ...]


class Compared(NamedTuple):
    """One question in both runs; `why` names what differs between the two askings."""

    anchor: str
    item: str
    criterion: str
    one: str
    other: str
    gold: str
    nearer: str  # "first" or "second" where one is nearer to gold
    why: tuple[str, ...]


class Totals(NamedTuple):
    """Questions that both runs have: `told` have a verdict in both on one scale, of which `changed` have another one;
    `apart` have a verdict in both on different scales; `alone` have one in one run only; `compared` have gold and a
    verdict in both, and are nearer to gold, as a share of the scale, in the first or the second.
    """

    both: int
    told: int
    changed: int
    apart: int
    alone: int
    compared: int
    first: int
    second: int
    only_first: int
    only_second: int


def totals(index: RunIndex, one: Listed, other: Listed) -> Totals:
    """Count what two runs have in common and what differs."""
    sums = (
        f"{_TOLD} and not {_APART}", f"{_TOLD} and not {_APART} and a.said != b.said", f"{_TOLD} and {_APART}",
        "(a.said = '') != (b.said = '')", "a.gap is not null and b.gap is not null", "a.gap < b.gap", "a.gap > b.gap",
    )  # fmt: skip
    counts = ", ".join(f"coalesce(sum({each}), 0)" for each in sums)
    both, told, changed, apart, alone, measured, first, second = index.select(
        f"select count(*), {counts} from {_BOTH}", (other.id, one.id)
    )[0]
    return Totals(both, told, changed, apart, alone, measured, first, second, one.rows - both, other.rows - both)


def scales_apart(index: RunIndex, one: Listed, other: Listed) -> list[tuple[str, str]]:
    """The different scales that questions of both runs were judged on, those of most questions first; at most 5."""
    query = f"select a.scale, b.scale from {_BOTH} and {_TOLD} and {_APART} group by 1, 2 order by count(*) desc, 1, 2"
    return [(a, b) for a, b in index.select(f"{query} limit 5", (other.id, one.id))]


def crossed(index: RunIndex, one: Listed, other: Listed) -> list[tuple[str, str, int]]:
    """How often each verdict of the first run became which in the second on the same scale, most often first; at most
    400.
    """
    return [
        (a, b, n)
        for a, b, n in index.select(
            f"select a.said, b.said, count(*) from {_BOTH} and not {_APART} group by 1, 2"
            " order by 3 desc, 1, 2 limit 400",
            (other.id, one.id),
        )
    ]


def compared(index: RunIndex, one: Listed, other: Listed, show: str, words: str, at: int, most: int) -> list[Compared]:
    """Questions of both runs side by side, in the first run's order."""
    differs = tuple(
        name
        for name, differ in (
            ("model", one.judge_hash != other.judge_hash),
            ("prompt", one.format_hash != other.format_hash),
        )
        if differ
    )
    found = index.select(
        "select a.anchor, a.item, a.criterion, a.said, b.said, coalesce(nullif(a.gold, ''), b.gold), a.gap, b.gap,"
        " a.rubric != b.rubric, a.asked != b.asked, a.status, b.status,"
        f" {_APART}, a.scale, b.scale"
        f" from {_BOTH} and {_SHOWN[show]}"
        " and instr(lower(a.item || ' ' || a.criterion), ?) order by a.place limit ? offset ?",
        (other.id, one.id, words.casefold(), most, at),
    )
    rows = []
    for anchor, item, criterion, a, b, gold, near, far, rubric, asked, state, other_state, apart, *scales in found:
        nearer = "" if near is None or far is None or near == far else "first" if near < far else "second"
        a, b = (f"{said} of {on}" if apart and said else said for said, on in zip((a, b), scales, strict=True))
        why = (*differs, *(["rubric"] if rubric else []), *(["scale"] if apart else []), *(["item"] if asked else []))
        rows.append(Compared(anchor, item, criterion, a or state, b or other_state, gold, nearer, why))
    return rows


def count_compared(index: RunIndex, one: Listed, other: Listed, show: str, words: str) -> int:
    """How many rows `compared` has in all."""
    query = f"select count(*) from {_BOTH} and {_SHOWN[show]} and instr(lower(a.item || ' ' || a.criterion), ?)"
    return int(index.select(query, (other.id, one.id, words.casefold()))[0][0])


def changes(root: Path, one: Listed, other: Listed) -> list[Change]:
    """The differences between the locks of two runs: judge, prompt, rubrics, items, samples, versions."""
    first, second = (read_lock(root / each.path) or {} for each in (one, other))
    found = [Change("judge as asked for", _pieces(one.judge, other.judge))]
    found.append(
        Change("model and settings", _pieces(_as_text(first.get("identity")), _as_text(second.get("identity"))))
    )
    found.append(Change("prompt", _pieces(_prompt(first), _prompt(second))))
    rubrics, others = (_rubrics(root / each.path) for each in (one, other))
    for name in dict.fromkeys((*rubrics, *others)):
        found.append(Change(f"rubric {name}", _pieces(rubrics.get(name, ""), others.get(name, ""))))
    for name, told in (("items", "items"), ("samples of a question", "samples"), ("columns", "columns"),
                       ("way of asking", "way"), ("versions", "versions")):  # fmt: skip
        found.append(Change(name, _pieces(_as_text(first.get(told)), _as_text(second.get(told)))))
    return [each for each in found if each.pieces]


def _pieces(one: str, other: str) -> tuple[tuple[str, str], ...]:
    return tuple(changed_lines(one, other))


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(_leaves(value, ""))


def _leaves(value: Any, name: str) -> Iterator[str]:
    """Members of nested values as lines, such as `sampling.temperature: 0.0`."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _leaves(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _prompt(lock: Mapping[str, Any]) -> str:
    told = lock.get("format")
    if not isinstance(told, Mapping):
        return ""
    texts = "\n".join(str(told.get(name) or "") for name in ("system", "user"))
    return texts + "\n" + _as_text({key: each for key, each in told.items() if key not in ("system", "user", "hash")})


def _rubrics(folder: Path) -> dict[str, str]:
    return {rubric.name: _rubric(rubric) for rubric in readable_rubrics(folder).values()}


def _rubric(rubric: Rubric) -> str:
    lower = ["lower is better"] if rubric.scale.lower_is_better else []
    levels = [f"{label}: {text}" for label, text in rubric.levels]
    return "\n".join([rubric.criterion, *levels, f"scale {rubric.scale}", *lower])
