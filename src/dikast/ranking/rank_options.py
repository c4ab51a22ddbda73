"""What can be said about ranking: one definition for flags, for `--config` and for keywords from Python."""

from dataclasses import dataclass
from typing import Literal

from dikast.core.checking import option


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """Which pairs are compared, and what the order is made of."""

    schedule: Literal["auto", "full", "half", "knockout", "swiss", "top", "ends", "duel"] = option(
        "auto", help="Which pairs are compared; auto measures the judge on a pilot and simulates which is best."
    )
    goal: Literal["best", "best-and-worst", "order"] = option("best", help="What --schedule auto is to find.")
    comparisons: int | None = option(
        None,
        least=1,
        help="Most comparisons of an item for --schedule auto, after its pilot; default: half of all ordered pairs.",
    )
    values: Literal["auto", "logit", "probability", "verdict"] = option(
        "auto", help="What a comparison counts: the difference of log-probabilities or probabilities, or its verdict."
    )
