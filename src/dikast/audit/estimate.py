"""An estimate: a value with its interval, the level of the interval, n and the method."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` from `n` observations, with the interval `low`..`high` at `level` made by `method`.

    NaN stands for undefined (a correlation with a constant column) or unknown (too few observations). `dropped` counts
    the observations that could not be used; `note` says why a value is undefined, or gives a caveat.
    """

    value: float
    n: int
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    method: str = ""
    dropped: int = 0
    note: str = ""
    whole: bool = False  # a rank: value and ends are integers
    groups: int | None = None  # how many clusters the observations form; None where each is drawn by itself

    @property
    def independent(self) -> int:
        """How many observations, or clusters of them, are independent of each other."""
        return self.n if self.groups is None else self.groups

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are null."""
        return {
            "value": _finite(self.value),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "level": self.level,
            "n": self.n,
            "dropped": self.dropped,
            "method": self.method,
            **({"note": self.note} if self.note else {}),
            **({"groups": self.groups} if self.groups is not None else {}),
        }

    def __format__(self, spec: str) -> str:
        """`f"{estimate:.3f}"` gives `0.402 [0.380, 0.424]`, or `undefined`; what rounds to 0 has no sign."""
        if math.isnan(self.value):
            return "undefined"
        spec = spec.replace(".", "z.", 1)
        text = format(self.value, spec)
        if math.isnan(self.low) or math.isnan(self.high):
            return text
        return f"{text} [{format(self.low, spec)}, {format(self.high, spec)}]"


def undefined(n: int, note: str, *, level: float = 0.95, dropped: int = 0) -> Estimate:
    """An undefined estimate, with the reason."""
    return Estimate(math.nan, n, level=level, dropped=dropped, note=note)


def _finite(value: float) -> float | None:
    return float(value) + 0.0 if math.isfinite(value) else None  # -0.0 + 0.0 is 0.0
