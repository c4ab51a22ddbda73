"""The optimizers: AdamW (also with 8-bit moments), Adafactor, or Muon for hidden matrices and AdamW for the rest."""

from typing import Any

import torch

from dikast.training.adamw8bit import adamw8bit
from dikast.training.checkpoint import trained
from dikast.training.config import Config
from dikast.training.master_weights import MasterAdamW

_MOMENTUM = 0.95


def optimizer_of(model: torch.nn.Module, config: Config) -> torch.optim.Optimizer:
    """AdamW (Loshchilov & Hutter 2019); matrices decay, vectors (norms, biases) do not. For `bf16-master` see
    `MasterAdamW`.

    With `optimizer: muon` the weights of all linear layers except the output layer use Muon (Jordan et al. 2024), with
    its step scaled to the size of AdamW's (Liu et al. 2025), so that one learning rate serves both. Of Adafactor
    (Shazeer & Stern 2018) the rate is relative: a step is at most so large a share of a tensor's root mean square.
    """
    parameters = trained(model)
    names = _hidden(model) if config.optimizer == "muon" else set()
    hidden = [p for name, p in parameters.items() if name in names]
    others = [p for name, p in parameters.items() if name not in names]
    groups = [
        {"params": [p for p in others if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in others if p.ndim < 2], "weight_decay": 0.0},
    ]
    cuda = any(p.is_cuda for p in others)
    betas = (config.betas[0], config.betas[1])
    kept = [group for group in groups if group["params"]]
    if config.precision == "bf16-master":
        return MasterAdamW(kept, lr=config.learning_rate, betas=betas)
    if config.optimizer == "adamw8bit":
        return adamw8bit(kept, lr=config.learning_rate, betas=betas)
    if config.optimizer == "adafactor":
        return torch.optim.Adafactor(kept, lr=config.learning_rate, foreach=False)  # all at once needs their updates
    adamw = torch.optim.AdamW(kept, lr=config.learning_rate, betas=betas, fused=cuda) if kept else None
    if not hidden:
        assert adamw is not None, "no parameter is trained"
        return adamw
    muon = torch.optim.Muon(
        hidden, lr=config.learning_rate, weight_decay=config.weight_decay, momentum=_MOMENTUM,
        adjust_lr_fn="match_rms_adamw",
    )  # fmt: skip
    return CombinedOptimizer([muon, adamw] if adamw else [muon])


def _hidden(model: Any) -> set[str]:
    head = model.get_output_embeddings()
    return {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not head
    }


class CombinedOptimizer(torch.optim.Optimizer):
    """A combined optimizer: several as one, with their parameter groups concatenated and a shared state."""

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        self._parts = parts
        self._counts = [len(part.param_groups) for part in parts]
        super().__init__([{"params": list(g["params"])} for part in parts for g in part.param_groups], {})
        self.param_groups = [group for part in parts for group in part.param_groups]
        self._deal()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._deal()

    def _deal(self) -> None:
        """Assign each part its parameter groups and the shared state."""
        groups = iter(self.param_groups)
        for part, count in zip(self._parts, self._counts, strict=True):
            part.param_groups = [next(groups) for _ in range(count)]
            part.state = self.state

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step of each."""
        for part in self._parts:
            part.step()
