"""The options of ranking: one definition for flags, `--config` and Python keywords."""

from dataclasses import dataclass
from typing import Literal

from dikast.core.checking import option


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """The schedule of comparisons, and the values that are fitted."""

    schedule: Literal["auto", "full", "half", "knockout", "swiss", "top", "ends", "duel", "graded"] = option(
        "auto", help="Which pairs are compared; auto measures the judge on a pilot and simulates which is best."
    )
    goal: Literal["best", "best-and-worst", "order"] = option("best", help="The goal of --schedule auto.")
    comparisons: int | None = option(
        None,
        least=1,
        help="Maximum comparisons and grades of an item for --schedule auto, after its pilot, as a mean where a"
        " schedule shares them out over all items; default: what the pilot leaves of half of all calls.",
    )
    values: Literal["auto", "logit", "probability", "verdict"] = option(
        "auto", help="The value of a comparison: the difference of log-probabilities or probabilities, or its verdict."
    )
