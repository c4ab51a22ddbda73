"""trl without vLLM: pytest puts `tests/engines` on the path, and trl takes its folder `vllm` for the package."""

import importlib
from typing import Any

importlib.import_module("trl.import_utils").is_vllm_available = lambda min_version=None: False  # type: ignore[attr-defined]


def of_trl(module: str, name: str) -> Any:
    """What a module of trl calls by this name."""
    return getattr(importlib.import_module(f"trl.{module}"), name)


DPOConfig = of_trl("trainer.dpo_config", "DPOConfig")
DPOTrainer = of_trl("trainer.dpo_trainer", "DPOTrainer")
GRPOConfig = of_trl("trainer.grpo_config", "GRPOConfig")
GRPOTrainer = of_trl("trainer.grpo_trainer", "GRPOTrainer")
KTOConfig = of_trl("trainer.kto_config", "KTOConfig")
KTOTrainer = of_trl("trainer.kto_trainer", "KTOTrainer")
RLOOConfig = of_trl("trainer.rloo_config", "RLOOConfig")
RLOOTrainer = of_trl("trainer.rloo_trainer", "RLOOTrainer")
