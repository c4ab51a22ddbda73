"""Lets a torchvision that was built for CUDA be imported beside a torch without it; `vllm_environment` installs this.

Such a build cannot load its compiled operators, and its own Python code fails at import because two of them are not
registered. Declaring them is enough: transforms of images do without. Nothing else is changed, and nothing here is part
of Dikast: it belongs to the environment in which the tests start vLLM.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import Any

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept: list[Any] = []  # the declarations hold as long as their library object


class _BeforeTorchvision:
    """A finder that finds nothing; it declares the operators the moment torchvision is looked for."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Always None: the usual finders go on."""
        if name == "torchvision":
            sys.meta_path.remove(self)
            from torch import library

            declared = library.Library("torchvision", "DEF")
            for operator in ("nms", "qnms"):
                declared.define(operator + _SIGNATURE)
            _kept.append(declared)
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
