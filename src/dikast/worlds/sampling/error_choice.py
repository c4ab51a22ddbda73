"""The choice of wrong claims for a given penalty: exact uniform sampling over all ways to reach it."""

from collections.abc import Mapping, Sequence

from dikast.worlds.sampling.rng import Stream

Options = Mapping[int, int]  # points that a slot can cost -> number of ways


def ways(options: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """For the slots from i on: penalty -> number of choices that add up to it. `ways(o)[0]` covers all slots."""
    tail: dict[int, int] = {0: 1}
    tables = [tail]
    for costs in reversed(options):
        here: dict[int, int] = {}
        for total, n in tail.items():
            for cost in costs:
                here[total + cost] = here.get(total + cost, 0) + n
        tables.append(here)
        tail = here
    tables.reverse()
    return tables


def choose(options: Sequence[Sequence[int]], tables: Sequence[dict[int, int]], total: int, rng: Stream) -> list[int]:
    """Costs of all slots that add up to `total`, uniformly drawn among all such choices."""
    chosen = []
    for i, costs in enumerate(options):
        rest = tables[i + 1]
        at = rng.below(tables[i][total])
        for cost in costs:
            at -= rest.get(total - cost, 0)
            if at < 0:
                chosen.append(cost)
                total -= cost
                break
    return chosen


def cut_points(reachable: Sequence[int], levels: int, rng: Stream) -> tuple[int, ...]:
    """The highest penalty of each level except the worst, such that every level can be reached.

    reachable: penalties in ascending order, more than `levels - 1` of them. The best level is usually "nothing lost".
    """
    gaps = list(range(len(reachable) - 1))
    first = [0] if rng.chance(75) or levels == len(reachable) else []
    rest = rng.shuffled([gap for gap in gaps if gap not in first])[: levels - 1 - len(first)]
    return tuple(reachable[gap] for gap in sorted(first + rest))
