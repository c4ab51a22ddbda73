"""Dikast: rubric-based judges of language and vision-language models, and how far their verdicts can be trusted."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Audit": "dikast.audit.report",
    "AuditPlan": "dikast.audit.plan",
    "Completion": "dikast.engines.base",
    "DataError": "dikast.core.errors",
    "DikastError": "dikast.core.errors",
    "Engine": "dikast.engines.base",
    "EngineError": "dikast.core.errors",
    "Estimate": "dikast.audit.estimate",
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
    "Resampling": "dikast.audit.intervals",
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
    "alt_test": "dikast.audit.replacement",
    "audit_file": "dikast.audit.audit",
    "bradley_terry": "dikast.audit.bradley_terry",
    "builtin_formats": "dikast.prompts.format",
    "builtin_rubrics": "dikast.core.rubric",
    "cohen_kappa": "dikast.audit.raters",
    "compare_file": "dikast.judging.run",
    "compare_file_by_scores": "dikast.judging.run",
    "drift": "dikast.audit.drift",
    "equate": "dikast.audit.equating",
    "fleiss_kappa": "dikast.audit.raters",
    "grade_file": "dikast.judging.run",
    "icc_2_1": "dikast.audit.raters",
    "kendall_tau_b": "dikast.audit.agreement",
    "krippendorff_alpha": "dikast.audit.raters",
    "label_multiplier": "dikast.audit.few_labels",
    "load_format": "dikast.prompts.format",
    "load_rubric": "dikast.core.rubric",
    "mcnemar": "dikast.audit.significance",
    "open_engine": "dikast.engines.spec",
    "pearson": "dikast.audit.agreement",
    "ppi_difference": "dikast.audit.few_labels",
    "ppi_mean": "dikast.audit.few_labels",
    "read_items": "dikast.core.records",
    "replay": "dikast.judging.replay",
    "rogan_gladen": "dikast.audit.few_labels",
    "spearman": "dikast.audit.agreement",
    "write_items": "dikast.core.records",
}

__all__ = [
    "Audit",
    "AuditPlan",
    "Completion",
    "DataError",
    "DikastError",
    "Engine",
    "EngineError",
    "Estimate",
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
    "Resampling",
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
    "alt_test",
    "audit_file",
    "bradley_terry",
    "builtin_formats",
    "builtin_rubrics",
    "cohen_kappa",
    "compare_file",
    "compare_file_by_scores",
    "drift",
    "equate",
    "fleiss_kappa",
    "grade_file",
    "icc_2_1",
    "kendall_tau_b",
    "krippendorff_alpha",
    "label_multiplier",
    "load_format",
    "load_rubric",
    "mcnemar",
    "open_engine",
    "pearson",
    "ppi_difference",
    "ppi_mean",
    "read_items",
    "replay",
    "rogan_gladen",
    "spearman",
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
    from dikast.audit.agreement import kendall_tau_b, pearson, spearman
    from dikast.audit.audit import audit_file
    from dikast.audit.bradley_terry import bradley_terry
    from dikast.audit.drift import drift
    from dikast.audit.equating import equate
    from dikast.audit.estimate import Estimate
    from dikast.audit.few_labels import label_multiplier, ppi_difference, ppi_mean, rogan_gladen
    from dikast.audit.intervals import Resampling
    from dikast.audit.plan import AuditPlan
    from dikast.audit.raters import cohen_kappa, fleiss_kappa, icc_2_1, krippendorff_alpha
    from dikast.audit.replacement import alt_test
    from dikast.audit.report import Audit
    from dikast.audit.significance import mcnemar
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
