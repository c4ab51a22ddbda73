"""The schedule of the learning rate: warm-up, then the fall to a share of the peak."""

import logging
import math
from typing import Literal

_log = logging.getLogger(__name__)


def tell_long_warmup(steps: int, warmup: float, peak: float) -> None:
    """Say, before a run begins, that its learning rate rises to the end."""
    if warmup >= steps and warmup >= 1:
        _log.warning(
            "'warmup' of %s steps, and the run has %s: the learning rate rises to the end and never reaches %s",
            f"{warmup:,g}", f"{steps:,}", f"{peak:g}",
        )  # fmt: skip


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
