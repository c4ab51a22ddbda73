"""The table of configuration keys, and of values of them, that have changed their name.

Files with a former name are read as before, and fingerprints use the former name, so that work begun before the change
can be resumed.
"""

from collections.abc import Container, Mapping
from typing import Any

FORMER_NAMES: Mapping[str, str] = {
    "label_loss_weight": "verdict_weight",
    "max_tokens_per_micro_batch": "micro_tokens",
    "min_lr_ratio": "final_rate",
}
FORMER_VALUES: Mapping[tuple[str, Any], Any] = {("precision", "pure-bf16"): "bf16-master"}  # by key and former value
_PRESENT_NAMES = {former: present for present, former in FORMER_NAMES.items()}


def present_name(key: Any, known: Container[Any]) -> Any:
    """The name under which a key is `known` now; the key itself if it has not changed."""
    present = _PRESENT_NAMES.get(key) if isinstance(key, str) else None
    return present if key not in known and present in known else key


def present_value(key: str, value: Any) -> Any:
    """What the value of a key is called now; the value itself if its name has not changed."""
    return FORMER_VALUES.get((key, value), value) if isinstance(value, str) else value


def under_former_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a configuration with each key under its first name, as fingerprints spell it."""
    return {FORMER_NAMES.get(key, key): value for key, value in values.items()}
