"""What an audit is asked to do: which columns mean what, and the named rules for ties, failures and several raters."""

import dataclasses
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dikast.audit.intervals import Resampling
from dikast.core.errors import UserError
from dikast.core.scale import Scale

GoldRule = Literal["mean", "median", "majority", "first"]
Unscored = Literal["drop", "tie", "wrong"]
TwoGames = Literal["both", "net"]
FLOOR = math.log(1e-5)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")
NO_CLUSTER = "none"  # as `cluster`: every row by itself, also the rows of one item of a run


_OUTCOMES = ("the first", "the second", "a tie")


def spelling(text: str) -> str:
    """One form for what counts as the same word: case and surrounding space aside, numbers by their value (2 = 2.0)."""
    folded = text.strip().casefold()
    if not _NUMBER.fullmatch(folded):
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


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The columns of `file` and the rules of an audit.

    A column is a name, a path into nested records (`human_scores.0`), or either with `@FILE` when it stands in another
    file, which is matched on `key`. `key` names the columns that identify a row; the word `line` stands for its
    position. Columns in `gold` are raters; `gold_rule` makes one label of several ("" means: mean for scores, majority
    for labels).
    """

    file: Path
    score: str = ""
    gold: tuple[str, ...] = ()
    gold_file: Path | None = None
    key: tuple[str, ...] = ()
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
    width: float = 0.03  # half of the interval that 'labels for' speaks of
    resampling: Resampling = field(default_factory=Resampling)

    def to_dict(self) -> dict[str, Any]:
        """The choices that differ from the defaults, as JSON values."""
        found: dict[str, Any] = {}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if each.name in ("file", "resampling") or value not in ("", (), None, False, each.default):
                found[each.name] = _plain(value)
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Scale):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
