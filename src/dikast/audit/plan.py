"""What an audit is asked to do: which columns mean what, and the named rules for ties, failures and several raters."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from dikast.audit.intervals import Resampling
from dikast.core.errors import UserError
from dikast.core.scale import Scale

GoldRule = Literal["mean", "median", "majority", "first"]
Unscored = Literal["drop", "tie", "wrong"]
TwoGames = Literal["both", "net", "tie"]
FLOOR = math.log(1e-5)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")
NO_CLUSTER = "none"  # as `cluster`: every row by itself, also the rows of one item of a run


_OUTCOMES = ("the first", "the second", "a tie")


def is_number(text: str) -> bool:
    """Whether a text is a number as it is usually written."""
    return _NUMBER.fullmatch(text.strip().casefold()) is not None


def spelling(text: str) -> str:
    """One form for what counts as the same word: case and surrounding space aside, numbers by their value (2 = 2.0)."""
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

    The reader gives the label that a reply states (for pairs `first`, `second` or `tie`), or None, and its status.
    `dikast.prompts.recorded.reply_reader` is one.
    """

    def __call__(self, dialect: str, scale: Scale | None, /) -> Callable[[str], tuple[str | None, str]]:
        """The reader of one dialect."""
        ...


OPERATORS: Mapping[str, str] = {
    "mean": "their mean",
    "geometric": "their geometric mean",
    "least": "the least of them",
    "greatest": "the greatest of them",
    "total": "their sum",
    "difference": "the first less the second",
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
    and totals. `scale`: inputs off it are missing, so that a failure recorded as -1 is not averaged. `within` is the
    difference that `winner` still calls a tie. `parents` of a checklist: answer -> the answers it depends on, or the
    name of a column that holds such an object. `dialect` is how `parse` reads replies.
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
        """The columns it is made of, that of the parents last where there is one."""
        return (*self.inputs, self.parents) if isinstance(self.parents, str) else self.inputs

    def to_dict(self) -> dict[str, Any]:
        """As in a configuration: the operator and the options that differ from the defaults."""
        found: dict[str, Any] = {self.operator: list(self.inputs)}
        for each in dataclasses.fields(self)[3:]:
            if (value := getattr(self, each.name)) not in ("", (), None, {}, each.default):
                found[each.name] = _plain(value)
        return found


def column_mistakes(column: Column) -> list[str]:
    """What is wrong with a column, all at once."""
    found, operator, count = list[str](), column.operator, len(column.inputs)
    if operator not in OPERATORS:
        return [f"there is no operator {operator!r}: choose {', '.join(OPERATORS)}"]
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


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The columns of `file` and the rules of an audit.

    A column is a name, a path into nested records (`human_scores.0`), or either with `@FILE` when it stands in another
    file, which is matched on `key`. `key` names the columns that identify a row; the word `line` stands for its
    position. `columns` are derived from others and may play any role but `key`. In long form (one row a rater) `long`
    is the column that names the rater; rows that share `key` become one, in which `rating.NAME` is what one rater said
    and `rating.*` what all said. `replies` reads what `parse` columns hold. Columns in `gold` are raters; `gold_rule`
    makes one label of several ("" means: mean for scores, majority for labels).
    """

    file: Path
    score: str = ""
    gold: tuple[str, ...] = ()
    gold_file: Path | None = None
    key: tuple[str, ...] = ()
    long: str = ""
    columns: tuple[Column, ...] = ()
    replies: ReplyReader | None = None
    scale: Scale | None = None
    by: tuple[str, ...] = ()
    cluster: str = ""
    system: str = ""
    where: tuple[str, ...] = ()
    status: str = ""
    failed: tuple[str, ...] = ()
    gold_rule: GoldRule | Literal[""] = ""
    # a second column of scores, and what it is: another judge, the same judge again, the same judge at an earlier time
    rival: str = ""
    retest: str = ""
    earlier: str = ""
    length: str = ""
    between: bool = False  # scores may lie between the labels of the scale, as expected scores do
    means: tuple[str, ...] = ()
    # probabilities of the labels
    logprobs: tuple[str, ...] = ()
    logprob_floor: float = FLOOR
    readout: Literal["mode", "expected"] = "mode"
    # pairs
    pairwise: bool = False
    pair_labels: PairLabels | None = None
    soft: bool = False  # choices are numbers between the two labels, such as 1.3
    swapped: str = ""
    swapped_as: Literal["responses", "slots"] = "responses"
    first: str = ""
    second: str = ""
    two_games: TwoGames = "both"  # how the two orders of a pair make one verdict
    unscored: Unscored = "drop"
    allow_unread: bool = False  # go on although over a tenth of a column of choices cannot be read
    strong: float = 1.0
    strong_as: Literal["weight", "copies"] = "weight"
    anchor: str = ""
    covariates: tuple[str, ...] = ()
    epsilon: float = 0.2
    claims: str = ""
    gold_claims: str = ""
    spans: str = ""
    gold_spans: str = ""
    ranked: bool = False
    equate: Scale | None = None  # the scale the scores are on, where gold is on another
    gold_scale: Scale | None = None  # of a run: the scale that gold is on, where scores are not put on it
    unscaled: bool = False  # nothing is said of scales: only correlations and order
    width: float = 0.03  # half of the interval that 'labels for' speaks of
    resampling: Resampling = field(default_factory=Resampling)

    def to_dict(self) -> dict[str, Any]:
        """The choices that differ from the defaults, as JSON values."""
        found: dict[str, Any] = {}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if each.name == "replies":
                continue
            if each.name == "columns":
                if value:
                    found["columns"] = {column.name: column.to_dict() for column in value}
            elif each.name in ("file", "resampling") or value not in ("", (), None, False, each.default):
                found[each.name] = _plain(value)
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Scale):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
