"""How far a verdict is from gold, and how unsure the judge was."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dikast.core.gold import lies_on
from dikast.core.scale import Scale
from dikast.core.verdict import DISAGREE

_WORTH = {"a": 1.0, "tie": 0.5, "b": 0.0}
_SPLIT = 0.5  # the gap of a pair whose orders disagree, whatever its gold


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of a run's rubrics by hash, and the scale of gold where that is another."""

    known: Mapping[str, Scale]
    gold: Scale | None

    @property
    def several(self) -> bool:
        """Whether the run holds several scales."""
        return len(set(self.known.values())) > 1

    @property
    def goodness(self) -> bool:
        """Whether score and gold are comparable as goodness only."""
        return self.several or self.gold is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Between what scores lie, or their goodness; without bounds where the scale is not known."""
        if self.goodness:
            return 0.0, 1.0
        one = next(iter(self.known.values()), None)
        return (-math.inf, math.inf) if one is None else (one.low, one.high)

    def both(self, row: Mapping[str, Any], gold: Any) -> tuple[float, float] | None:
        """The goodness of a row's score and of its gold; plain numbers where the scale is not known."""
        score = row.get("score")
        if isinstance(gold, bool) or not isinstance(gold, int | float) or not isinstance(score, int | float):
            return None
        scale = self.known.get(str(row.get("rubric")))
        if scale is None:
            return float(score), float(gold)
        own = scale if self.gold is None else replace(self.gold, lower_is_better=scale.lower_is_better)
        return (scale.goodness(score), own.goodness(gold)) if lies_on(gold, own) else None

    def of(self, row: Mapping[str, Any]) -> str:
        """The scale of a row's verdict in words; "" of a pair, and where it is not known."""
        scale = self.known.get(str(row.get("rubric"))) if "response" in row else None
        if scale is None:
            return ""
        return f"{scale}, lower is better" if scale.lower_is_better else str(scale)

    def name(self, value: Any, row: Mapping[str, Any], *, gold: bool = False) -> str | None:
        """A label as it is counted: gold as the label of its value, with the scale where there are several."""
        scale = self.known.get(str(row.get("rubric"))) if "response" in row else None
        if scale is None or value is None:
            return label_of(value)
        if gold and (self.gold is not None or not lies_on(value, scale)):
            return None  # of another scale than the judge's labels
        if isinstance(value, int | float):
            value = scale.label(value) or value
        label = label_of(value)
        return f"{label} of {self.of(row)}" if self.several and label is not None else label


def gap_of(row: Mapping[str, Any], gold: Any, apart: tuple[float, float] | None) -> float:
    """The distance of a row from its gold as a share of the scale, NaN where one of them is not known; `apart` is the
    goodness of both.
    """
    if "first" in row:
        said = row.get("choice")
        if gold not in _WORTH or said is None:
            return math.nan
        return _SPLIT if said == DISAGREE else abs(_WORTH[said] - _WORTH[gold])
    return math.nan if apart is None else abs(apart[0] - apart[1])


def worth_of(choice: Any) -> float:
    """What the first response of a pair earns, 0 to 1 (a tie, and orders that disagree, half); NaN without a choice."""
    return 0.5 if choice == DISAGREE else _WORTH.get(choice, math.nan) if isinstance(choice, str) else math.nan


def slot_shift(row: Mapping[str, Any]) -> float | None:
    """How far the verdict on a pair goes with the slot, -1 (all for the second) to 1 (all for the first); 0 where both
    orders say the same. From probabilities where both orders have them, else from choices; None without both orders.
    """
    leads = []
    for order, sign in (("shown", 1.0), ("swapped", -1.0)):
        read, said = row.get(f"distribution_{order}"), row.get(order)
        if said not in _WORTH:
            return None
        lead = read.get("a", 0.0) - read.get("b", 0.0) if read else 2 * _WORTH[said] - 1
        leads.append(sign * lead)
    return sum(leads) / 2


def doubt_of(row: Mapping[str, Any]) -> float:
    """How unsure the judge was, 0 to 1: one less its likeliest label."""
    read = row.get("distribution")
    return 1.0 - max(read.values()) if read else 0.0


def label_of(value: Any) -> str | None:
    """A label as it is counted; None for what is none."""
    if value is None or isinstance(value, dict | list):
        return None
    return f"{value:g}" if isinstance(value, int | float) else str(value)
