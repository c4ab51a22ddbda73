"""A seeded stratified sample of a bench."""

import random
from collections.abc import Sequence

from dikast.core.item import Item


def stratified(items: Sequence[Item], groups: Sequence[str], limit: int | None, seed: int) -> list[Item]:
    """At most `limit` items in their order, stratified by the combinations of `groups` (names in `meta`).

    Shares are rounded by largest remainder, so that they add up to `limit`; within a group items are drawn from
    `seed`. A smaller sample is not necessarily a subset of a larger one.
    """
    if limit is None or limit >= len(items):
        return list(items)
    strata: dict[tuple[str, ...], list[int]] = {}
    for place, item in enumerate(items):
        strata.setdefault(tuple(str(item.meta.get(name)) for name in groups), []).append(place)
    exact = {name: limit * len(places) / len(items) for name, places in strata.items()}
    taken = {name: int(share) for name, share in exact.items()}
    rest = sorted(strata, key=lambda name: (taken[name] - exact[name], name))
    for name in rest[: limit - sum(taken.values())]:
        taken[name] += 1
    chosen: list[int] = []
    for name in sorted(strata):
        chosen += random.Random(f"{seed} {name}").sample(strata[name], taken[name])
    return [items[place] for place in sorted(chosen)]
