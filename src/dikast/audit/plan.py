"""The plan of an audit: the roles of columns, and the rules for ties, failures and several raters."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dikast.core.checking import option
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.text import near_miss

if TYPE_CHECKING:
    from dikast.audit.statistics.intervals import Resampling

Unscored = Literal["drop", "tie", "wrong"]
TwoGames = Literal["both", "net", "tie"]
FLOOR = math.log(1e-5)
_COLUMN = "COLUMN[@FILE]"
_BESIDE = "Columns for comparison"  # panels of the help
_PROBABILITIES = "Probabilities"
_PAIRS = "Pairs and rankings"
_INTERVALS = "Intervals and output"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")
NO_CLUSTER = "none"  # value of `cluster`: rows are independent, also those of one item of a run


_OUTCOMES = ("the first", "the second", "a tie")


def is_number(text: str) -> bool:
    """Whether a text is a number in the usual notation."""
    return _NUMBER.fullmatch(text.strip().casefold()) is not None


def spelling(text: str) -> str:
    """The canonical form of a word: without case and surrounding space, numbers by their value (2 = 2.0)."""
    folded = text.strip().casefold()
    if not is_number(folded):
        return folded
    return str(float(folded) + 0.0)  # adding 0.0 makes -0.0 a 0.0


@dataclass(frozen=True, slots=True)
class PairLabels:
    """How a column of pairwise verdicts spells "the first is better", "the second is better" and "a tie".

    Each may have several spellings with `|` between them (`0|1.5`). Numbers are compared by value, words without case.
    UserError where two outcomes share a spelling.
    """

    first: str
    second: str
    tie: str = ""

    def __post_init__(self) -> None:
        self.codes()

    @classmethod
    def parse(cls, text: str) -> "PairLabels":
        """Read `FIRST,SECOND` or `FIRST,SECOND,TIE`, such as `1,2,0` or `1,2,0|1.5`."""
        words = [word.strip() for word in text.split(",")]
        if len(words) not in (2, 3) or not all(all(map(str.strip, word.split("|"))) for word in words):
            raise UserError(
                f"--pair-labels {text!r}: write the words for first, second and tie, such as 1,2,0; "
                "several spellings of one have | between them, such as 1,2,0|1.5"
            )
        return cls(*words)

    def codes(self) -> dict[str, int]:
        """The outcome (0 first, 1 second, 2 tie) by each `spelling`."""
        found: dict[str, int] = {}
        for code, words in enumerate((self.first, self.second, self.tie)):
            for word in words.split("|") if words else ():
                other = found.setdefault(spelling(word), code)
                if other != code:
                    raise UserError(
                        f"--pair-labels: {word.strip()!r} stands for both {_OUTCOMES[other]} and {_OUTCOMES[code]}: "
                        "give each outcome spellings of its own"
                    )
        return found

    def one_each(self) -> tuple[str, str, str]:
        """One spelling of each outcome that `codes` reads."""
        first, second, tie = (words.split("|")[0].strip() for words in (self.first, self.second, self.tie))
        return first, second, tie or "tie"


class ReplyReader(Protocol):
    """Makes a reader of recorded replies: of a dialect's name and a scale (None for pairs).

    The reader gives the label that a reply states (for pairs `first`, `second` or `tie`; `A>>B` or `B>>A` for a strong
    preference), or None, and its status.
    `dikast.prompts.recorded.reply_reader` is one.
    """

    def __call__(self, dialect: str, scale: Scale | None, /) -> Callable[[str], tuple[str | None, str]]:
        """The reader of one dialect."""
        ...


OPERATORS: Mapping[str, str] = {
    "mean": "their mean",
    "geometric": "their geometric mean",
    "least": "their minimum",
    "greatest": "their maximum",
    "total": "their sum",
    "difference": "the first minus the second",
    "ratio": "the first divided by the second",
    "winner": "the choice between two scores",
    "checklist": "the share of answers that hold",
    "parse": "the verdict that a recorded reply states",
}
BETWEEN = frozenset({"mean", "geometric", "total", "difference", "ratio", "checklist"})  # need not be a label


@dataclass(frozen=True, slots=True)
class Column:
    """A column derived from others: `operator` (one of OPERATORS) on the columns `inputs`, each also with `@FILE`.

    An input that holds a list or an object (`ratings`, `score.*` in long form) counts entry by entry. A row with a
    missing input is undefined; `missing="skip"` combines those that are there. `weights`, one an input, are of means
    (where the entries of an input share its weight) and totals. `scale`: inputs off it are missing, so that a failure
    recorded as -1 is not averaged. `within` is the difference that `winner` still calls a tie. `parents` of a
    checklist: answer -> the answers it depends on, or the name of a column that holds such an object. `dialect` is how
    `parse` reads replies.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    missing: Literal["undefined", "skip"] = "undefined"
    weights: tuple[float, ...] = ()
    scale: Scale | None = None
    within: float = 0.0
    parents: str | Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""

    def __post_init__(self) -> None:
        if mistakes := column_mistakes(self):
            raise UserError(f"column {self.name!r}: {'; '.join(mistakes)}")

    @property
    def all_inputs(self) -> tuple[str, ...]:
        """The columns it depends on, that of the parents last if there is one."""
        return (*self.inputs, self.parents) if isinstance(self.parents, str) else self.inputs

    def to_dict(self) -> dict[str, Any]:
        """As in a configuration: the operator and the options that differ from the defaults."""
        found: dict[str, Any] = {self.operator: list(self.inputs)}
        for each in dataclasses.fields(self)[3:]:
            if (value := getattr(self, each.name)) not in ("", (), None, {}, each.default):
                found[each.name] = _plain(value)
        return found


def column_mistakes(column: Column) -> list[str]:
    """All mistakes in a derived column."""
    found, operator, count = list[str](), column.operator, len(column.inputs)
    if operator not in OPERATORS:
        near = near_miss(operator, OPERATORS)
        hint = f"did you mean {near!r}?" if near else f"choose {', '.join(OPERATORS)}"
        return [f"there is no operator {operator!r}: {hint}"]
    if not count or not all(column.inputs):
        found.append(f"{operator} needs the columns it is made of")
    if operator in ("difference", "ratio", "winner") and count > 2:
        found.append(f"{operator} takes two columns, not {count}")
    if operator == "parse" and count > 1:
        found.append(f"parse takes one column of replies, not {count}")
    if (operator == "parse") != bool(column.dialect):
        found.append("parse needs a dialect" if operator == "parse" else f"{operator} has no dialect")
    if column.weights and (operator not in ("mean", "geometric", "total") or len(column.weights) != count):
        found.append("weights are of mean, geometric and total, one for each column")
    if any(not math.isfinite(each) or each < 0 for each in column.weights):
        found.append("weights are numbers of 0 or more")
    elif column.weights and not any(column.weights):
        found.append("weights are all 0: at least one is above it")
    if column.name in column.all_inputs:
        found.append("it is derived from itself")
    if column.within and operator != "winner":
        found.append(f"{operator} has no within")
    if not (math.isfinite(column.within) and column.within >= 0):
        found.append("within is a number of 0 or more")
    if column.parents and operator != "checklist":
        found.append(f"{operator} has no parents")
    if column.missing not in ("undefined", "skip"):
        found.append("missing is undefined or skip")
    if column.missing == "skip" and operator in ("difference", "ratio", "winner", "parse"):
        found.append(f"{operator} cannot skip what is missing")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """The columns and rules of an audit that can be named on the command line, whatever the file."""

    score: str = option(
        "",
        metavar=_COLUMN,
        help="Column of the judge's verdicts. In a run folder: score, expected, or 'mean of samples'.",
    )
    gold: tuple[str, ...] = option(
        (), metavar=_COLUMN, help="Column of a human rater's labels; repeat for several raters."
    )
    gold_file: Path | None = option(None, help="File with the --gold columns, matched by --id.")
    key: tuple[str, ...] = option(
        (),
        "--id",
        commas=True,
        metavar="COLUMN[,COLUMN...]",
        help="Columns that identify a row; 'line' is its position.",
    )
    long: str = option(
        "",
        metavar=_COLUMN,
        help="Long form (a row per rater): the column that names the rater. --gold 'RATING.*' takes all raters.",
    )
    by: tuple[str, ...] = option((), metavar=_COLUMN, help="Column to slice results by; several are crossed.")
    cluster: str = option(
        "", metavar=_COLUMN, help="Column whose rows are resampled together (by default the item or id), or 'none'."
    )
    within: str = option(
        "",
        metavar=_COLUMN,
        help="Column of groups to measure agreement within, such as one response under several rubrics.",
    )
    over: tuple[str, ...] = option(
        (),
        metavar=_COLUMN,
        help="With --within: also an interval over other values of this column, such as the phrases of rubrics.",
    )
    system: str = option("", metavar=_COLUMN, panel=_BESIDE, help="Column of the judged system, to rank systems.")
    where: tuple[str, ...] = option((), metavar="COLUMN=VALUE", help="Keep only these rows.")
    status: str = option("", metavar=_COLUMN, help="Column with 'ok' or the reason for a missing verdict.")
    failed: tuple[str, ...] = option((), metavar="TEXT", help="Text that marks a failed verdict.")
    gold_rule: Literal["", "mean", "median", "majority", "first"] = option(
        "", help="How the labels of several raters are combined: mean, median, majority, first."
    )
    rival: str = option(
        "", metavar=_COLUMN, panel=_BESIDE, help="Column of another judge's verdicts on the same items."
    )
    retest: str = option("", metavar=_COLUMN, panel=_BESIDE, help="Column of the same judge asked again (test-retest).")
    earlier: str = option(
        "", metavar=_COLUMN, panel=_BESIDE, help="Column of the same judge's earlier verdicts (drift)."
    )
    length: str = option(
        "", metavar=_COLUMN, panel=_BESIDE, help="Column of response lengths, for the length-only baseline."
    )
    between: bool = option(False, panel=_PROBABILITIES, help="Scores may lie between labels (expected scores).")
    means: tuple[str, ...] = option(
        (), "--mean", metavar=_COLUMN, panel=_BESIDE, help="Also report the mean of this column."
    )
    logprobs: tuple[str, ...] = option(
        (),
        commas=True,
        metavar="COLUMN,...",
        panel=_PROBABILITIES,
        help="Log-probabilities of the scale's labels, in order.",
    )
    logprob_floor: float = option(
        FLOOR, panel=_PROBABILITIES, help="Log-probabilities at or below this mean 'not among the top k'."
    )
    readout: Literal["mode", "expected"] = option(
        "mode", panel=_PROBABILITIES, help="With --logprobs and no --score: use the mode or the expected score."
    )
    pairwise: bool = option(False, panel=_PAIRS, help="Verdicts are choices between two responses.")
    pair_labels: PairLabels | None = option(
        None,
        metavar="FIRST,SECOND[,TIE]",
        panel=_PAIRS,
        help="Spellings of the choices; | separates spellings of the same choice, such as 1,2,0|1.5.",
    )
    soft: bool = option(
        False,
        panel=_PAIRS,
        help="Choices are numbers between the two of --pair-labels: with 1,2, 1.3 prefers the second by 30 %.",
    )
    swapped: str = option(
        "", metavar=_COLUMN, panel=_PAIRS, help="Column of the choice when the pair was shown in the other order."
    )
    swapped_as: Literal["responses", "slots"] = option(
        "responses", panel=_PAIRS, help="Whether --swapped names responses or slots (first shown, second shown)."
    )
    first: str = option(
        "", metavar="COLUMN|=NAME", panel=_PAIRS, help="Player (system) of the first response, to rank players."
    )
    second: str = option("", metavar="COLUMN|=NAME", panel=_PAIRS, help="Player (system) of the second response.")
    two_games: TwoGames = option(
        "both",
        panel=_PAIRS,
        help="How two orders make one verdict: both (must agree), net (a win and a tie win), tie (if they differ).",
    )
    unscored: Unscored = option("drop", panel=_PAIRS, help="How pairs without a verdict count: drop, tie or wrong.")
    allow_unread: bool = option(
        False,
        panel=_PAIRS,
        help="Continue even if over a tenth of the choices cannot be read, or most scores are off the scale.",
    )
    strong: float = option(1.0, panel=_PAIRS, help="Weight of a strong verdict (A>>B) in the ranking.")
    strong_as: Literal["weight", "copies"] = option(
        "weight",
        panel=_PAIRS,
        help="How intervals resample strong verdicts: as one weighted game, or as separate copies.",
    )
    anchor: str = option("", metavar="NAME", panel=_PAIRS, help="Reference player of the ranking.")
    covariates: tuple[str, ...] = option(
        (),
        "--covariate",
        metavar=_COLUMN,
        panel=_PAIRS,
        help="Covariate (second minus first) to control for in the ranking.",
    )
    ranked: bool = option(False, panel=_PAIRS, help="Verdicts and gold are rankings: lists, best first, or B>A=C.")
    epsilon: float = option(
        0.2, panel=_INTERVALS, help="Cost-benefit margin of the alt-test: how far a judge may fall below a rater."
    )
    claims: str = option(
        "", metavar=_COLUMN, panel=_BESIDE, help="Column of the judge's claims: a list of {text, verdict}."
    )
    gold_claims: str = option("", metavar=_COLUMN, panel=_BESIDE, help="Column of the gold claims, in the same form.")
    spans: str = option(
        "", metavar=_COLUMN, panel=_BESIDE, help="Column of the judge's spans: pairs of start and end, in characters."
    )
    equate: Scale | None = option(
        None,
        metavar="SCALE",
        help="The scale of scores if gold's (--scale) differs; for a run, the scale of gold. Equates by equal ranks.",
    )
    width: float = option(
        0.03, above=0, below=1, panel=_INTERVALS, help="Half-width of an interval: report how many labels it needs."
    )
    gold_spans: str = option("", metavar=_COLUMN, panel=_BESIDE, help="Column of the gold spans, in the same form.")
    draws: int = option(2000, least=1, panel=_INTERVALS, help="Bootstrap draws.")
    level: float = option(0.95, above=0, below=1, panel=_INTERVALS, help="Confidence level of intervals.")
    seed: int = option(0, panel=_INTERVALS, help="Seed of the bootstrap.")


@dataclass(frozen=True, slots=True)
class AuditPlan(AuditOptions):
    """The columns of `file` and the rules of an audit.

    A column is a name, a path into nested records (`human_scores.0`), or either with `@FILE` when it stands in another
    file, which is matched on `key`. `key` names the columns that identify a row; the word `line` stands for its
    position. `columns` are derived from others and may play any role but `key`. In long form (one row a rater) `long`
    is the column that names the rater; rows that share `key` become one, in which `rating.NAME` is what one rater said
    and `rating.*` what all said. `replies` reads what `parse` columns hold. Columns in `gold` are raters; `gold_rule`
    makes one label of several ("" means: mean for scores, majority for labels).
    """

    file: Path = option(
        argument=True, help="A run folder, or anyone's verdicts as CSV, TSV, JSONL, JSON (also .gz) or Parquet."
    )
    columns: tuple[Column, ...] = option((), internal=True)
    replies: ReplyReader | None = option(None, internal=True)
    scale: Scale | None = option(None, internal=True)  # `--scale` also says none
    gold_scale: Scale | None = option(
        None, internal=True
    )  # of a run: the scale that gold is on, where scores are not put on it
    players: tuple[str, ...] = option((), internal=True)  # of a table: the columns of the system and of the prompt
    joint: bool = option(False, internal=True)  # of pairs: no verdict depends on one order
    readouts: bool = option(True, internal=True)  # False: nothing of the labels' probabilities, which takes longest
    unscaled: bool = option(False, internal=True)  # nothing is said of scales: only correlations and order

    @property
    def resampling(self) -> "Resampling":
        """How intervals are drawn."""
        from dikast.audit.statistics.intervals import Resampling

        return Resampling(self.draws, self.level, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """The choices that differ from the defaults, as JSON values."""
        found: dict[str, Any] = {}
        for each in sorted(dataclasses.fields(self), key=lambda each: each.name != "file"):
            value = getattr(self, each.name)
            if each.name in ("replies", "draws", "level", "seed"):
                continue
            if each.name == "columns":
                if value:
                    found["columns"] = {column.name: column.to_dict() for column in value}
            elif each.name == "file" or value not in ("", (), None, False, each.default):
                found[each.name] = _plain(value)
        found["resampling"] = {"draws": self.draws, "level": self.level, "seed": self.seed}
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Scale):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
