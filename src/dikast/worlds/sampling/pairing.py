"""Joint draws of the two scores of a pair: uniform margins, a fixed share of ties, and no preferred slot.

The pairs of levels that a text allows depend on what its two responses share. Over those pairs a symmetric table with
uniform margins and the share of ties on its diagonal is fitted (iterative proportional fitting, Deming and Stephan
1940); a text without such a table is discarded before a score is drawn.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from dikast.worlds.sampling.rng import Stream

BASE = 1 << 16  # encodes two penalties as first x BASE + second; every penalty is smaller
_ROUNDS, _OFF = 200, 0.01  # of the fit: iterations, and the largest relative error of a margin
_PARTS = 1_000_000  # shares become integers, so that draws do not depend on rounding


class Cell(NamedTuple):
    """The level of the first response and of the second; 0 is best."""

    first: int
    second: int


def draw_cell(cells: frozenset[Cell], levels: int, ties: int, rng: Stream) -> Cell | None:
    """One of the cells, with uniform levels of each response and `ties` per cent of ties; None if impossible."""
    table = _table(cells, levels, ties)
    if table is None:
        return None
    at = rng.below(sum(weight for _, weight in table))
    for cell, weight in table:
        at -= weight
        if at < 0:
            return cell
    raise AssertionError("weights do not sum up")


@lru_cache(maxsize=1 << 14)
def _table(cells: frozenset[Cell], levels: int, ties: int) -> tuple[tuple[Cell, int], ...] | None:
    share = ties / 100
    allowed = {cell for cell in cells if (ties < 100 if cell.first != cell.second else ties > 0)}
    order = sorted(c for c in allowed if c.first <= c.second and Cell(c.second, c.first) in cells)  # half: symmetry
    if len({level for cell in order for level in cell}) < levels:
        return None
    mass = dict.fromkeys(order, 1.0)
    for _ in range(_ROUNDS):
        diagonal = math.fsum(m for c, m in mass.items() if c.first == c.second)
        beside = 2 * math.fsum(m for c, m in mass.items() if c.first != c.second)
        if (diagonal == 0 and share > 0) or (beside == 0 and share < 1):
            return None
        for cell in order:
            mass[cell] *= share / diagonal if cell.first == cell.second else (1 - share) / beside
        margins = [0.0] * levels
        for cell, m in mass.items():
            margins[cell.first] += m
            if cell.first != cell.second:
                margins[cell.second] += m
        if all(abs(margin * levels - 1) < _OFF for margin in margins):
            half = [(cell, round(m * _PARTS)) for cell, m in mass.items()]
            return tuple(half + [(Cell(c.second, c.first), n) for c, n in half if c.first != c.second])
        for cell in order:
            mass[cell] /= math.sqrt(margins[cell.first] * margins[cell.second]) * levels
    return None
