"""The words that describe a bench: how far it was checked, its kinds and its official metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dikast.core.text import counted

State = Literal["verified", "rows read", "schema only"]
Kind = Literal["pairs", "graded pairs", "scores", "best of", "order"]
Metric = Literal[
    "accuracy", "accuracy as shown", "accuracy swapped", "right in both orders", "same in both orders",
    "accuracy without gold ties", "accuracy as shown without gold ties", "agreement with ties",
    "agreement without ties", "net of two games", "all of a group", "win rate", "bradley-terry score", "reward",
    "macro precision", "macro recall", "macro f1", "best of", "order distance", "bias deviation and conformity",
    "kendall of models", "relative score",
    "pearson", "spearman", "kendall_tau_b", "exact", "mae", "mean score",
]  # fmt: skip
STATES: Mapping[State, str] = {
    "verified": "recorded judgments give the published figures through the code that scores a judge",
    "rows read": "real rows load; published figures are not recorded or do not exist",
    "schema only": "no row was seen; written from the published fields, or from memory where `bench show` says so",
}
FROM_FIELDS = "written from the published fields; no row was seen"
FROM_MEMORY = "written from memory; neither the published fields nor a row was seen"
NOT_LISTED: Mapping[str, str] = {
    "focus": "FOCUS (arXiv 2604.21523): neither its rows nor a description of their columns could be had",
}
KINDS: Mapping[Kind, str] = {
    "pairs": "which of two responses is better, asked in both orders",
    "graded pairs": "both responses are graded, and the better score wins",
    "scores": "each response is graded",
    "best of": "each of several responses is graded, and the right one should have the best score",
    "order": "each of several responses is graded, and the scores should put them in the right order",
}
METRICS: Mapping[Metric, str] = {
    "accuracy": "share of right verdicts, the mean over the orders that were asked",
    "accuracy as shown": "share of right verdicts in the order of the rows",
    "accuracy swapped": "share of right verdicts in the other order",
    "accuracy without gold ties": "accuracy over the pairs whose gold is no tie",
    "accuracy as shown without gold ties": "accuracy as shown over the pairs whose gold is no tie",
    "agreement with ties": "share of right verdicts, where a win needs both orders and all else is a tie",
    "agreement without ties": "share of right verdicts of the pairs that neither the judge so joined nor gold ties",
    "same in both orders": "share of pairs with the same verdict in both orders",
    "right in both orders": "share of pairs with the right verdict in each order",
    "net of two games": "share of pairs with more right than wrong verdicts: a win and a tie count as a win",
    "win rate": "share of games that the second response wins, which is the one you bring",
    "bradley-terry score": "probability that a model beats the baseline, by the Bradley-Terry model of all its games",
    "reward": "mean of 1 for a strong win against the baseline, .5 for a win, 0 for a tie, -.5 and -1 for losses",
    "macro precision": "mean of the precisions of first, second and tie",
    "macro recall": "mean of their recalls",
    "macro f1": "mean of their F1",
    "best of": "share of items whose right response has the best score; with k responses tied for it, 1/k",
    "order distance": "edit distance of the order by score from the right one, over its length: 0 is right",
    "bias deviation and conformity": "how far the score falls where evidence is gone, and stays where nothing is",
    "relative score": "sum of the responses' scores in percent of the references', of replies that grade both",
    "kendall of models": "Kendall's tau-b between the models' mean scores and their mean gold",
    "all of a group": "share of groups in which every pair is right",
    "pearson": "Pearson correlation with gold",
    "spearman": "Spearman correlation with gold",
    "kendall_tau_b": "Kendall's tau-b with gold",
    "exact": "share of scores equal to gold",
    "mae": "mean absolute error",
    "mean score": "mean score of the responses: measures the model, not the judge",
}
OF_PAIRS = (
    "accuracy", "accuracy as shown", "accuracy swapped", "right in both orders", "same in both orders",
    "net of two games", "all of a group", "win rate", "bradley-terry score", "reward", "macro precision",
    "macro recall", "macro f1", "accuracy without gold ties", "accuracy as shown without gold ties",
    "agreement with ties", "agreement without ties",
)  # fmt: skip
CRITERION = "@criterion"  # of a group: the criterion of a sheet, of which each has a verdict
GROUPS = (CRITERION, "@file", "@folder")  # that are no columns
VIDEO = "video"  # field of a bench: the file of a clip, which the judge is shown before the instruction
CONVERSATION_PAIR = "conversation pair"  # two conversations, of which the turn in the column `turn` was judged
RENDERED_PAIR = "rendered pair"  # two rendered prompts of single responses, the better one first
FAILURES = {  # how the authors' code counts a reply without a verdict
    "wrong": "a missing verdict is wrong", "half": "a missing verdict earns .5",
    "quarter": "a missing verdict earns .25", "skipped": "missing verdicts are skipped",
    "tie": "a missing verdict is a tie", "zero": "a missing verdict scores 0",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BenchSource:
    """The source of the rows: a Hub dataset or a public repository, at a revision, or a folder; SHA-256 of each file.

    `folder` is a path from the bench's own file. A file whose hash is "" was never seen here; a path with `*` (of the
    Hub or a folder) is every file that matches. `at` leads to the rows inside a JSON file; there `*` takes every value.
    """

    hub: str = ""
    github: str = ""
    folder: str = ""
    revision: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    at: str = ""

    def address(self, path: str) -> str:
        """The address of one of the files."""
        if self.hub:
            return f"hf://datasets/{self.hub}" + (f"@{self.revision}" if self.revision else "") + f"/{path}"
        return f"https://raw.githubusercontent.com/{self.github}/{self.revision}/{path}"

    @property
    def name(self) -> str:
        """The source as text, with its revision."""
        if self.folder:
            return f"the folder {self.folder}"
        place = f"hf.co/datasets/{self.hub}" if self.hub else f"github.com/{self.github}"
        return f"{place} @ {self.revision[:12] or 'no revision pinned'}"

    @property
    def pinned(self) -> str:
        """How far the files are fixed, and what a run does about those that are not."""
        unknown = sum(not digest for digest in self.files.values())
        told = [] if self.revision or self.folder else ["no revision is pinned, so that the newest is fetched"]
        if unknown:
            several = counted(len(self.files), "file")
            told.append(f"no SHA-256 is known of {'its file' if len(self.files) == 1 else f'{unknown} of {several}'}")
        if not told:
            return "every file by its SHA-256" + ("" if self.folder else ", at one revision")
        return f"{'; '.join(told)}: a run notes what it read, and goes on with the same files only"

    @property
    def beside(self) -> Path | None:
        """The folder of the files, where that is the source."""
        return Path(self.folder) if self.folder else None


@dataclass(frozen=True, kw_only=True)
class OfficialMetric:
    """The figure that the authors print. `failures` is how their code counts a missing verdict, in a `mean score` as
    "zero" or "skipped".

    `over` says how groups are joined: all rows weighted equally, all verdicts (a pair whose verdict in one order is
    missing and skipped counts half as much), groups weighted equally, or `sections` of groups, sections weighted
    equally. In a section rows count once, or as the `weights` of their group say; `overall`: over all rows, too.
    `printed` are the groups whose figures the authors print in place of one over all, in their order.
    `lost_alike`: in `same in both orders` two missing verdicts are the same, as LLMBar's code has it.
    `majority`: of several samples of a pair more than half of all decide, in both orders together, also of those
    without a verdict; pairs without such a majority are left out (VL-RewardBench).
    `strong`: how many games a strong verdict (`[[A>>B]]`) counts as against the baseline.
    `conformity` are the groups of MM-JudgeBias whose scores should not change; those of the others should fall.
    `ties_apart` is a group of items with several right responses that has a score of its own (RewardBench 2). `trap` is
    reported beside the figure if the rule is wrong or harmful.
    """

    metric: tuple[Metric, ...]
    failures: Literal["wrong", "half", "quarter", "skipped", "tie", "zero"] = "wrong"
    ties: Literal["wrong", "half", "right where gold is a tie"] = "wrong"
    over: Literal["rows", "verdicts", "groups", "sections"] = "rows"
    overall: bool = False
    lost_alike: bool = False
    majority: bool = False
    strong: float = 1.0
    group: str = ""
    printed: tuple[str, ...] = ()
    sections: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    ties_apart: str = ""
    conformity: tuple[str, ...] = ()
    trap: str = ""


def rule_of(official: OfficialMetric, metric: Metric) -> str:
    """How missing verdicts, ties and groups are counted in a figure."""
    counted = FAILURES[official.failures]
    over = {
        "rows": "all rows alike",
        "verdicts": "all verdicts alike",
        "groups": "groups alike",
        "sections": "sections alike",
    }[official.over]
    neither = counted.replace("a missing verdict", "a pair without a verdict in either order")
    joined = f"{neither}; a win needs both orders; all else, also a verdict in one order alone, is a tie"
    known = counted if official.failures in ("tie", "wrong") else "missing verdicts are dropped and counted"
    whole = counted.replace("a missing verdict", "an item without any score")
    best = counted if official.failures == "skipped" else f"a missing score is never the best; {whole}"
    classes = f"{known}; the verdicts of both orders together, each by itself"
    plain = f"{counted}; ties: {official.ties}"
    if official.majority and metric == "accuracy":
        most = "of several samples more than half of all decide, both orders together, and other pairs are left out"
        plain = f"{plain}; {most}"
    told = {
        **dict.fromkeys(("macro precision", "macro recall", "macro f1"), classes),
        "same in both orders": "no verdict in both orders is the same, in one of them it is not"
        if official.lost_alike
        else "a pair without a verdict in one order or both is not the same",
        "net of two games": "more right games than wrong ones; a tie or a missing verdict is neither",
        "agreement with ties": f"{joined}, right where gold is one",
        "agreement without ties": f"{joined}; pairs that the judge or gold ties are left out",
        "exact": "of the first of the samples; missing verdicts are dropped and counted",
        "mean score": counted if official.failures == "zero" else "missing verdicts are dropped and counted",
        "relative score": "a missing verdict counts as -1 in both sums",
        "reward": "a missing verdict is a tie" if official.failures == "tie" else "missing verdicts are skipped",
        "best of": f"{best}; k that share the best score earn 1/k",
        "bias deviation and conformity": "a pair without both scores, or whose unbiased score is the lowest where it "
        "should fall, is left out and counted",
        "order distance": f"{counted}; equal scores: the mean over the orders that they leave open",
    }
    return f"{told.get(metric, plain)}; {over}"
