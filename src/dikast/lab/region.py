"""Where an interval has to lie for a claim to hold, or to fail."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The region in which an interval has to lie as a whole: `above` a number, `below` one, or `within` two."""

    above: float | None = None
    below: float | None = None
    within: tuple[float, float] | None = None

    def holds(self, low: float, high: float) -> bool:
        """Whether the interval lies in the region; never for NaN."""
        if self.within is not None:
            return self.within[0] <= low and high <= self.within[1]
        return low > self.above if self.above is not None else high < (self.below if self.below is not None else -1e99)

    def in_words(self) -> str:
        """The region in words, such as `above 0.03`."""
        if self.within is not None:
            return f"within {self.within[0]:g} and {self.within[1]:g}"
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"


def overlap(one: Region, other: Region) -> bool:
    """Whether some interval could lie in both."""

    def ends(region: Region) -> tuple[float, float]:
        if region.within is not None:
            return region.within
        return (
            -math.inf if region.above is None else region.above,
            math.inf if region.below is None else region.below,
        )

    (low, high), (other_low, other_high) = ends(one), ends(other)
    return max(low, other_low) < min(high, other_high)
