"""Dikast: rubric-based judges of language and vision-language models, and how far their verdicts can be trusted."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "DataError": "dikast.core.errors",
    "DikastError": "dikast.core.errors",
    "EngineError": "dikast.core.errors",
    "Image": "dikast.core.part",
    "Item": "dikast.core.item",
    "MissingExtra": "dikast.core.errors",
    "Preference": "dikast.core.verdict",
    "Rubric": "dikast.core.rubric",
    "RunError": "dikast.core.errors",
    "Scale": "dikast.core.scale",
    "Sheet": "dikast.core.rubric",
    "Status": "dikast.core.verdict",
    "Text": "dikast.core.part",
    "Turn": "dikast.core.part",
    "UserError": "dikast.core.errors",
    "Verdict": "dikast.core.verdict",
    "Video": "dikast.core.part",
    "builtin_rubrics": "dikast.core.rubric",
    "load_rubric": "dikast.core.rubric",
}

__all__ = [
    "DataError",
    "DikastError",
    "EngineError",
    "Image",
    "Item",
    "MissingExtra",
    "Preference",
    "Rubric",
    "RunError",
    "Scale",
    "Sheet",
    "Status",
    "Text",
    "Turn",
    "UserError",
    "Verdict",
    "Video",
    "builtin_rubrics",
    "load_rubric",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import dikast` stays light."""
    if name not in _HOME:
        raise AttributeError(f"module 'dikast' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


if TYPE_CHECKING:
    from dikast.core.errors import DataError, DikastError, EngineError, MissingExtra, RunError, UserError
    from dikast.core.item import Item
    from dikast.core.part import Image, Text, Turn, Video
    from dikast.core.rubric import Rubric, Sheet, builtin_rubrics, load_rubric
    from dikast.core.scale import Scale
    from dikast.core.verdict import Preference, Status, Verdict
