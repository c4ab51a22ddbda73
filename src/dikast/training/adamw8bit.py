"""AdamW with moments in 8 bits (Dettmers et al. 2022), by torchao."""

from collections.abc import Iterable
from typing import Any

import torch

from dikast.core.errors import require

_PART = "."  # between the name of a moment and that of its part, in a checkpoint


def adamw8bit(groups: Iterable[dict[str, Any]], *, lr: float, betas: tuple[float, float]) -> torch.optim.Optimizer:
    """The optimizer; MissingExtra without torchao.

    Moments of tensors with 4,096 elements or more are kept in 8 bits, in blocks of 256, if these divide the tensor.
    """
    base: Any = require("torchao.optim", "lowbit").AdamW8bit

    class AdamW8bit(base):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:  # torchao compiles its step, and wants the rate as a tensor
                group["lr"] = torch.as_tensor(group["lr"], dtype=torch.float32)
            return super().step(closure)

        def begin(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
            """The state of a parameter before its first step."""
            moments = {"exp_avg": self._new_buffer(parameter, True), "exp_avg_sq": self._new_buffer(parameter, False)}
            return {"step": torch.tensor(0.0), **moments}

    found: torch.optim.Optimizer = AdamW8bit(groups, lr=lr, betas=betas)
    return found


def parts_of(kind: str, value: torch.Tensor) -> dict[str, torch.Tensor]:
    """A tensor of an optimizer's state as plain tensors for a checkpoint: `exp_avg.codes`, `exp_avg.scale`."""
    inner = getattr(value, "tensor_attrs", None)
    return {f"{kind}{_PART}{name}": getattr(value, name) for name in inner} if inner else {kind: value}
