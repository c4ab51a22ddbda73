"""Dikast: rubric-based judges of language and vision-language models, and how far their verdicts can be trusted."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Completion": "dikast.engines.base",
    "DataError": "dikast.core.errors",
    "DikastError": "dikast.core.errors",
    "Engine": "dikast.engines.base",
    "EngineError": "dikast.core.errors",
    "Format": "dikast.prompts.format",
    "Image": "dikast.core.part",
    "Item": "dikast.core.item",
    "Judge": "dikast.judging.judge",
    "MissingExtra": "dikast.core.errors",
    "Panel": "dikast.judging.panel",
    "PanelVerdict": "dikast.judging.panel",
    "Preference": "dikast.core.verdict",
    "Readout": "dikast.engines.base",
    "Request": "dikast.engines.base",
    "Rubric": "dikast.core.rubric",
    "RunError": "dikast.core.errors",
    "Sampling": "dikast.engines.base",
    "Scale": "dikast.core.scale",
    "Sheet": "dikast.core.rubric",
    "SheetVerdict": "dikast.judging.judge",
    "Source": "dikast.judging.plan",
    "Status": "dikast.core.verdict",
    "Text": "dikast.core.part",
    "Turn": "dikast.core.part",
    "UserError": "dikast.core.errors",
    "Verdict": "dikast.core.verdict",
    "Video": "dikast.core.part",
    "builtin_formats": "dikast.prompts.format",
    "builtin_rubrics": "dikast.core.rubric",
    "compare_file": "dikast.judging.run",
    "compare_file_by_scores": "dikast.judging.run",
    "grade_file": "dikast.judging.run",
    "load_format": "dikast.prompts.format",
    "load_rubric": "dikast.core.rubric",
    "open_engine": "dikast.engines.spec",
    "read_items": "dikast.core.records",
    "replay": "dikast.judging.replay",
    "write_items": "dikast.core.records",
}

__all__ = [
    "Completion",
    "DataError",
    "DikastError",
    "Engine",
    "EngineError",
    "Format",
    "Image",
    "Item",
    "Judge",
    "MissingExtra",
    "Panel",
    "PanelVerdict",
    "Preference",
    "Readout",
    "Request",
    "Rubric",
    "RunError",
    "Sampling",
    "Scale",
    "Sheet",
    "SheetVerdict",
    "Source",
    "Status",
    "Text",
    "Turn",
    "UserError",
    "Verdict",
    "Video",
    "builtin_formats",
    "builtin_rubrics",
    "compare_file",
    "compare_file_by_scores",
    "grade_file",
    "load_format",
    "load_rubric",
    "open_engine",
    "read_items",
    "replay",
    "write_items",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import dikast` stays light."""
    if name not in _HOME:
        raise AttributeError(f"module 'dikast' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names too, so that a notebook completes them before their first use."""
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from dikast.core.errors import DataError, DikastError, EngineError, MissingExtra, RunError, UserError
    from dikast.core.item import Item
    from dikast.core.part import Image, Text, Turn, Video
    from dikast.core.records import read_items, write_items
    from dikast.core.rubric import Rubric, Sheet, builtin_rubrics, load_rubric
    from dikast.core.scale import Scale
    from dikast.core.verdict import Preference, Status, Verdict
    from dikast.engines.base import Completion, Engine, Readout, Request, Sampling
    from dikast.engines.spec import open_engine
    from dikast.judging.judge import Judge, SheetVerdict
    from dikast.judging.panel import Panel, PanelVerdict
    from dikast.judging.plan import Source
    from dikast.judging.replay import replay
    from dikast.judging.run import compare_file, compare_file_by_scores, grade_file
    from dikast.prompts.format import Format, builtin_formats, load_format
