"""The learning-rate schedule."""

import math
from typing import Literal


def rate_at(
    step: int,
    *,
    steps: int,
    peak: float,
    warmup: float,
    shape: Literal["cosine", "linear", "constant"],
    final: float = 0.0,
) -> float:
    """The learning rate of step `step` (from 0) of `steps`.

    It rises linearly over `warmup` steps (below 1: that share of all steps), then falls from `peak` to `final` x `peak`
    along half a cosine (Loshchilov & Hutter 2017) or a line, or stays.
    """
    rising = warmup * steps if warmup < 1 else warmup
    if step < rising:
        return peak * (step + 1) / (math.floor(rising) + 1)
    if shape == "constant":
        return peak
    share = min(1.0, (step - rising) / max(1.0, steps - rising))
    left = (1 + math.cos(math.pi * share)) / 2 if shape == "cosine" else 1 - share
    return peak * (final + (1 - final) * left)
