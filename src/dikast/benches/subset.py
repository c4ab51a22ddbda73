"""A seeded sample of a bench, by group, of whole groups where its figure is of these, and what is told of the rows."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dikast.benches.definition import Bench
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.text import counted

_UNASKED = "engine_error: budget: "  # what a run counts questions under that its budget did not cover


def whole_of(bench: Bench, item: Item) -> str:
    """What an item belongs to that the official figure takes as one: its group, its pair; "" where it stands alone."""
    official = bench.official
    if "all of a group" in official.metric:
        return str(item.meta.get(official.group))
    if official.ties_apart and item.meta.get(official.group) == official.ties_apart:
        return item.id.partition(":")[2]  # of `ref:N` and `tied:N`
    return item.id.rpartition("/")[0] if bench.variants else ""


def drawn_whole(bench: Bench) -> bool:
    """Whether a sample of the bench is of whole groups."""
    return "all of a group" in bench.official.metric or bool(bench.official.ties_apart or bench.variants)


def sample(bench: Bench, items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """At most `limit` items of a bench in their order, stratified by its groups, none of them a part of a whole.

    UserError where no whole has so few items.
    """
    parts = ("all of a group" in bench.official.metric) * (bench.official.group,)
    strata = tuple(name for name in bench.groups if name not in parts)
    found = stratified(items, strata, limit, seed, whole=lambda item: whole_of(bench, item))
    if not found:
        raise UserError(f"{bench.name}: --limit {limit}: its figure is of whole groups, and none is as small: raise it")
    return found


def stratified(
    items: Sequence[Item],
    groups: Sequence[str],
    limit: int | None,
    seed: int,
    *,
    whole: Callable[[Item], str] = lambda item: "",
) -> list[Item]:
    """At most `limit` items in their order, stratified by the combinations of `groups` (names in `meta`).

    Shares are rounded by largest remainder, so that they add up to `limit`; within a group items are drawn from
    `seed`. Items with the same name by `whole` (other than "") are drawn together or not at all, as far as the share of
    their stratum, which is that of the first of them, goes. A smaller sample is not necessarily a subset of a larger
    one.
    """
    if limit is None or limit >= len(items):
        return list(items)
    units: dict[tuple[str, str | int], list[int]] = {}
    for place, item in enumerate(items):
        part_of = whole(item)
        units.setdefault(("whole", part_of) if part_of else ("item", place), []).append(place)
    strata: dict[tuple[str, ...], list[list[int]]] = {}
    for places in units.values():
        strata.setdefault(tuple(str(items[places[0]].meta.get(name)) for name in groups), []).append(places)
    exact = {name: limit * sum(map(len, mine)) / len(items) for name, mine in strata.items()}
    taken = {name: int(share) for name, share in exact.items()}
    rest = sorted(strata, key=lambda name: (taken[name] - exact[name], name))
    for name in rest[: limit - sum(taken.values())]:
        taken[name] += 1
    chosen: list[int] = []
    for name in sorted(strata):
        chosen += _drawn(strata[name], taken[name], random.Random(f"{seed} {name}"))
    return [items[place] for place in sorted(chosen)]


def _drawn(units: Sequence[list[int]], count: int, by: random.Random) -> list[int]:
    """Places of whole units in random order, each that still fits into `count`."""
    if all(len(each) == 1 for each in units):
        return [each[0] for each in by.sample(units, count)]
    found: list[int] = []
    for each in by.sample(units, len(units)):
        if len(found) + len(each) <= count:
            found += each
    return found


def asked_of(summary: Mapping[str, Any]) -> tuple[int, int]:
    """How many of the questions of a run were asked, and how many there are: its budget may not cover all."""
    left = sum(n for why, n in (summary.get("failures") or {}).items() if why.startswith(_UNASKED))
    return summary["verdicts"] - left, summary["verdicts"]


def told_of_rows(about: Mapping[str, Any], *, cut: bool = False) -> list[str]:
    """Which rows a run is of, from its `bench.json`; `cut` says that not all of their questions were asked."""
    taken, rows = about["taken"], about["rows"]
    drawn = f"a sample of {taken:,} of {counted(rows, 'row')}, stratified by group, seed {about['seed']}"
    if about.get("whole"):
        drawn = drawn.replace("stratified", "whole groups, stratified")
    told = [
        drawn if taken < rows else f"all {counted(rows, 'row')}" if not cut else counted(rows, "row"),
        f"prompt: {about['prompt']}",
        *about["notes"],
    ]
    return told + [f"{counted(n, 'row')} left out: {why}" for why, n in about["left_out"].items()]
