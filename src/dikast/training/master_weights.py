"""AdamW on bfloat16 weights whose float32 value is kept whole, in two further bytes a weight.

At the rates of fine-tuning an update is smaller than half the distance between neighbouring bfloat16 numbers, and plain
rounding loses it. Here the model computes with the upper half of each float32 weight, rounded to the nearest, and the
optimizer keeps the lower half: together they are the float32 weight, bit for bit. Per weight 2 bytes of weight, 2 of
gradient, 2 of lower half and 8 of moments, where a separate float32 copy would take 16 in all.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.optim.adamw import adamw

_HALF = 0x8000
LOWER = "lower"  # the key of the lower halves in the state


def joined(upper: torch.Tensor, lower: torch.Tensor) -> torch.Tensor:
    """The float32 weights whose rounded upper halves are `upper` and whose lower halves `lower`, both bfloat16."""
    high = upper.view(torch.int16).to(torch.int32) << 16
    return (high + lower.view(torch.int16).to(torch.int32)).view(torch.float32)


def split(whole: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The float32 weights as the nearest bfloat16 numbers and the lower halves, which are 16 bits in a bfloat16 tensor.

    Collective operations and files move bfloat16 anywhere, 16-bit integers not.
    """
    bits = whole.contiguous().view(torch.int32)
    high = (bits + _HALF) >> 16
    lower = (bits - (high << 16)).to(torch.int16)
    return high.to(torch.int16).view(torch.bfloat16), lower.view(torch.bfloat16)


class MasterAdamW(torch.optim.Optimizer):
    """AdamW (Loshchilov & Hutter 2019) with float32 weights and moments for a model in bfloat16.

    The moments are float32 too: with 8 bits a second moment that decays by .999 a step would stand still.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float = 1e-8
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; weights of other types than bfloat16 are stepped as they are."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, group)

    def _step(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state, split_up = self.state[parameter], parameter.dtype is torch.bfloat16
        if not state:
            state["step"] = torch.tensor(0.0)
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(parameter, dtype=torch.float32)
            if split_up:
                state[LOWER] = torch.zeros_like(parameter)
        here = _local(parameter)
        whole = joined(here, _local(state[LOWER])) if split_up else here.detach()
        gradient = _local(parameter.grad).to(whole.dtype)
        first, second = _local(state["exp_avg"]), _local(state["exp_avg_sq"])
        beta1, beta2 = group["betas"]
        adamw(
            [whole], [gradient], [first], [second], [], [state["step"]], foreach=False, amsgrad=False, beta1=beta1,
            beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
        )  # fmt: skip
        if split_up:
            upper, lower = split(whole)
            here.copy_(upper)
            _local(state[LOWER]).view(torch.int16).copy_(lower.view(torch.int16))


def _local(tensor: Any) -> torch.Tensor:
    """The part of a possibly sharded tensor that this process holds."""
    found: torch.Tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return found.detach()
