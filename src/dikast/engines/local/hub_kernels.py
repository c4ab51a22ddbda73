"""Kernels of the Hub are code: where the package `kernels` is installed, transformers fetches compiled ones and runs
them for what a model's settings name, without being asked. A model that Dikast opens gets none.
"""

import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
_closed: ContextVar[bool] = ContextVar("closed", default=False)
_WITHOUT = {  # settings of quantized weights with which no kernel is fetched: as transformers does without `kernels`
    "fp8": {"dequantize": True},
    "mxfp4": {"dequantize": True},
    "metal": {"dequantize": True},
    "compressed-tensors": {"use_optimized_inference": False},
}


@contextmanager
def no_hub_kernels() -> Iterator[None]:
    """Inside, and in this thread, no kernel of the Hub is fetched: ImportError, as if `kernels` were not installed.

    Outside, a program that uses Dikast may load other models with kernels of the Hub, which it asked for itself.
    """
    _guard()
    before = _closed.set(True)
    try:
        yield
    finally:
        _closed.reset(before)


@cache
def _guard() -> None:
    """Put the check into the two functions that every way to a kernel passes while a model is opened."""
    from transformers.utils.import_utils import is_kernels_available

    if is_kernels_available():
        kernels: Any = importlib.import_module("kernels")
        by_transformers: Any = importlib.import_module("transformers.integrations.hub_kernels")
        kernels.get_kernel = by_transformers.get_kernel_hub = _refusing(kernels.get_kernel)


def _refusing(fetch: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fetch)
    def get_kernel(name: str, *given: Any, **options: Any) -> Any:
        if _closed.get():
            raise ImportError(f"the kernel {name!r:.100} of the Hub is code, and Dikast never runs code of a model")
        return fetch(name, *given, **options)

    return get_kernel


def set_aside_kernels(config: Any, path: Path) -> None:
    """Change a configuration, read from `path`, so that the model needs no kernel of the Hub when it is asked.

    Flash attention that is not installed becomes torch's own; quantized weights that would be read by such kernels are
    unpacked as they are loaded.
    """
    from transformers.modeling_flash_attention_utils import FLASH_ATTENTION_COMPATIBILITY_MATRIX
    from transformers.utils.import_utils import is_kernels_available

    missing = {
        f"flash_attention_{version}"
        for version, each in FLASH_ATTENTION_COMPATIBILITY_MATRIX.items()
        if not each["general_availability_check"]()
    }
    parts = [config, *(part for name in config.sub_configs if (part := getattr(config, name, None)) is not None)]
    for part in parts:
        wanted = str(getattr(part, "_attn_implementation", None)).rpartition("|")[2]
        if wanted in missing:
            _log.warning(
                "%s: field 'attn_implementation': %s is not installed here: torch's own attention is used",
                path, wanted,
            )  # fmt: skip
            part._attn_implementation = None
        packed: Any = getattr(part, "quantization_config", None)
        settings = _WITHOUT.get(str(packed.get("quant_method")), {}) if isinstance(packed, dict) else {}
        if settings and is_kernels_available():
            packed.update(settings)
            _log.warning(
                "%s: field 'quantization_config': %s weights are unpacked as they are loaded, and need more memory:"
                " kernels of the Hub, which would read them as they are, are code, and are not run",
                path, packed["quant_method"],
            )  # fmt: skip
