"""Dikast: LLM-as-a-judge with rubrics, for language and vision-language models, and how far verdicts can be trusted."""

import importlib
from types import ModuleType

TYPE_CHECKING = (
    False  # type checkers take it for true by its name; importing `typing` is most of what this module costs
)
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Audit": "dikast.audit.rendering",
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
    "Ranking": "dikast.ranking.item_ranking",
    "Readout": "dikast.engines.base",
    "Request": "dikast.engines.base",
    "Resampling": "dikast.audit.statistics.intervals",
    "Reward": "dikast.rewards.reward",
    "Rubric": "dikast.core.rubric",
    "Run": "dikast.core.runs.run",
    "RunError": "dikast.core.errors",
    "Sampling": "dikast.engines.base",
    "Scale": "dikast.core.scale",
    "Sheet": "dikast.core.rubric",
    "SheetVerdict": "dikast.judging.judge",
    "Source": "dikast.judging.run_plan",
    "Status": "dikast.core.verdict",
    "Text": "dikast.core.part",
    "Turn": "dikast.core.part",
    "UserError": "dikast.core.errors",
    "Verdict": "dikast.core.verdict",
    "Video": "dikast.core.part",
    "alt_test": "dikast.audit.statistics.alt_test",
    "audit_file": "dikast.audit.audit",
    "best_of_n": "dikast.rewards.best_of_n",
    "bradley_terry": "dikast.audit.statistics.paired_comparison.bradley_terry",
    "builtin_formats": "dikast.prompts.format",
    "builtin_rubrics": "dikast.core.rubric",
    "cohen_kappa": "dikast.audit.statistics.agreement",
    "compare": "dikast.surface.functions",
    "compare_file": "dikast.judging.judge_file",
    "compare_file_by_scores": "dikast.judging.judge_file",
    "drift": "dikast.audit.statistics.drift",
    "equate": "dikast.audit.statistics.equating",
    "export": "dikast.surface.export.export_run",
    "fleiss_kappa": "dikast.audit.statistics.rater_agreement",
    "grade": "dikast.surface.functions",
    "grade_file": "dikast.judging.judge_file",
    "icc_2_1": "dikast.audit.statistics.rater_agreement",
    "kendall_tau_b": "dikast.audit.statistics.concordance",
    "krippendorff_alpha": "dikast.audit.statistics.rater_agreement",
    "label_multiplier": "dikast.audit.statistics.ppi",
    "load_format": "dikast.prompts.format",
    "load_rubric": "dikast.core.rubric",
    "mcnemar": "dikast.audit.statistics.significance",
    "merge_runs": "dikast.judging.recorded.merging",
    "open_engine": "dikast.engines.spec",
    "pearson": "dikast.audit.statistics.correlation",
    "ppi_difference": "dikast.audit.statistics.ppi",
    "ppi_mean": "dikast.audit.statistics.ppi",
    "prove": "dikast.surface.measuring",
    "rank": "dikast.surface.functions",
    "rank_file": "dikast.ranking.rank_file",
    "read_items": "dikast.core.records",
    "replay": "dikast.ranking.replayed",
    "report": "dikast.surface.measuring",
    "rogan_gladen": "dikast.audit.statistics.ppi",
    "spearman": "dikast.audit.statistics.correlation",
    "train": "dikast.surface.functions",
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
    "Ranking",
    "Readout",
    "Request",
    "Resampling",
    "Reward",
    "Rubric",
    "Run",
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
    "audit",
    "audit_file",
    "best_of_n",
    "bradley_terry",
    "builtin_formats",
    "builtin_rubrics",
    "cohen_kappa",
    "compare",
    "compare_file",
    "compare_file_by_scores",
    "drift",
    "equate",
    "export",
    "fleiss_kappa",
    "grade",
    "grade_file",
    "icc_2_1",
    "kendall_tau_b",
    "krippendorff_alpha",
    "label_multiplier",
    "load_format",
    "load_rubric",
    "mcnemar",
    "merge_runs",
    "open_engine",
    "pearson",
    "ppi_difference",
    "ppi_mean",
    "prove",
    "rank",
    "rank_file",
    "read_items",
    "replay",
    "report",
    "rogan_gladen",
    "spearman",
    "train",
    "write_items",
]


class _Audit(ModuleType):
    """The room `dikast.audit`, which is also the function `audit`."""

    def __call__(self, *args: "Any", **keywords: "Any") -> "Any":
        function = importlib.import_module("dikast.surface.measuring").audit
        return function(*args, **keywords)

    @property
    def __doc__(self) -> "Any":  # type: ignore[override]  # help() and notebooks ask the object
        return importlib.import_module("dikast.surface.measuring").audit.__doc__


importlib.import_module("dikast.audit").__class__ = _Audit  # the package alone, which loads nothing


def __getattr__(name: str) -> "Any":
    """Import a public name on first use, so that `import dikast` stays light."""
    if name not in _HOME:
        raise AttributeError(f"module 'dikast' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names too, so that a notebook completes them before their first use."""
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from dikast.audit.audit import audit_file
    from dikast.audit.estimate import Estimate
    from dikast.audit.plan import AuditPlan
    from dikast.audit.rendering import Audit
    from dikast.audit.statistics.agreement import cohen_kappa
    from dikast.audit.statistics.alt_test import alt_test
    from dikast.audit.statistics.concordance import kendall_tau_b
    from dikast.audit.statistics.correlation import pearson, spearman
    from dikast.audit.statistics.drift import drift
    from dikast.audit.statistics.equating import equate
    from dikast.audit.statistics.intervals import Resampling
    from dikast.audit.statistics.paired_comparison.bradley_terry import bradley_terry
    from dikast.audit.statistics.ppi import label_multiplier, ppi_difference, ppi_mean, rogan_gladen
    from dikast.audit.statistics.rater_agreement import fleiss_kappa, icc_2_1, krippendorff_alpha
    from dikast.audit.statistics.significance import mcnemar
    from dikast.core.errors import DataError, DikastError, EngineError, MissingExtra, RunError, UserError
    from dikast.core.item import Item
    from dikast.core.part import Image, Text, Turn, Video
    from dikast.core.records import read_items, write_items
    from dikast.core.rubric import Rubric, Sheet, builtin_rubrics, load_rubric
    from dikast.core.runs.run import Run
    from dikast.core.scale import Scale
    from dikast.core.verdict import Preference, Status, Verdict
    from dikast.engines.base import Completion, Engine, Readout, Request, Sampling
    from dikast.engines.spec import open_engine
    from dikast.judging.judge import Judge, SheetVerdict
    from dikast.judging.judge_file import compare_file, compare_file_by_scores, grade_file
    from dikast.judging.panel import Panel, PanelVerdict
    from dikast.judging.recorded.merging import merge_runs
    from dikast.judging.run_plan import Source
    from dikast.prompts.format import Format, builtin_formats, load_format
    from dikast.ranking.item_ranking import Ranking
    from dikast.ranking.rank_file import rank_file
    from dikast.ranking.replayed import replay
    from dikast.rewards.best_of_n import best_of_n
    from dikast.rewards.reward import Reward
    from dikast.surface.export.export_run import export
    from dikast.surface.functions import compare, grade, rank, train
    from dikast.surface.measuring import audit, prove, report
