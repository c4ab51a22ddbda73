"""The examples of each step, and how they are cut into forward passes (micro-batches).

The order is a function of seed, epoch and the examples' lengths, so a resumed run continues the same order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BUCKET = 32  # batches whose examples are sorted by length together


class Unit(NamedTuple):
    """Examples of one group that are computed together: one alone, or siblings; `tokens` that they take, packed."""

    numbers: tuple[int, ...]
    tokens: int
    group: int


class BatchPlan:
    """The examples of every step.

    siblings: a number for each example, equal for those that stay in one step; a step then draws as many sets of
    siblings as hold `batch_size` examples on average. A set of more than `batch_size` is divided.
    """

    def __init__(
        self,
        lengths: NDArray[np.int32],
        *,
        batch_size: int,
        seed: int,
        grouped: bool,
        siblings: NDArray[np.int64] | None = None,
    ) -> None:
        if siblings is None:
            siblings = np.arange(len(lengths))
        self._members = np.argsort(siblings, kind="stable")
        sizes = np.bincount(siblings)
        parts = [range(end - size, end, batch_size) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
        self._starts = np.array([*(start for part in parts for start in part), len(lengths)])
        self._lengths = np.add.reduceat(lengths[self._members], self._starts[:-1])
        count = len(self._lengths)
        self._size = min(max(1, round(batch_size * count / len(lengths))), count)
        self._seed, self._grouped = seed, grouped
        self.per_epoch = -(-count // self._size)
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def step(self, number: int) -> list[tuple[int, ...]]:
        """The examples of step `number` (from 0), siblings together, longest first."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._arranged(np.random.default_rng([self._seed, epoch]))
        found = self._order[place * self._size : (place + 1) * self._size]
        longest = found[np.argsort(-self._lengths[found], kind="stable")]
        return [tuple(self._members[self._starts[i] : self._starts[i + 1]].tolist()) for i in longest]

    def _arranged(self, rng: np.random.Generator) -> NDArray[np.int64]:
        order = rng.permutation(len(self._lengths))
        if not self._grouped:
            return order
        bucket = self._size * _BUCKET
        for start in range(0, len(order), bucket):
            part = order[start : start + bucket]
            order[start : start + bucket] = part[np.argsort(-self._lengths[part], kind="stable")]
        whole = len(order) // self._size
        full, rest = order[: whole * self._size].reshape(whole, self._size), order[whole * self._size :]
        return np.concatenate([full[rng.permutation(whole)].ravel(), rest])


def micro_batches(units: Sequence[Unit], most: int, parts: int = 1, *, packed: bool = False) -> list[list[Unit]]:
    """Cut a step, longest first, into micro-batches of at most `most` tokens for each of `parts` processes.

    The tokens are those computed: padding counts, and packed rows have none. A micro-batch holds units of one group;
    process p takes its units p, p + parts, ...
    """
    open_runs: dict[int, list[Unit]] = {}
    runs: list[list[Unit]] = []
    for unit in units:
        run = open_runs.get(unit.group)
        if run is not None and len(run) % parts == 0:  # the first process has the longest unit of each deal
            mine = [each.tokens for each in run[::parts]]
            run = run if (sum(mine) + unit.tokens if packed else (len(mine) + 1) * mine[0]) <= most else None
        if run is None:
            run = open_runs[unit.group] = []
            runs.append(run)
        run.append(unit)
    return runs
