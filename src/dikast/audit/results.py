"""The results of an audit as typed values with stable names; tables, terminal, JSON and pages are rendered from them.

Tables carry one of these as their `result`; no code parses titles or cells to find a number. Mappings are in the order
of the table.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.alt_test import AgainstAnnotator
from dikast.audit.statistics.drift import Drift

SCHEMA = 2  # of the JSON of an audit; 1 had tables only
Role = Literal["judge", "floor", "ceiling", "other"]  # "floor", in JSON since schema 2: a baseline


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures: shares of missing verdicts by reason.

    `statuses` counts the failures by status; `forced` is the share of verdicts whose marker Dikast added, `conflicts`
    the share that another verdict of the same reply contradicts; None if that is not known.
    """

    failed: Estimate
    statuses: Mapping[str, int]
    forced: Estimate | None = None
    conflicts: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A statistic of scores against gold; `worst` and `best` bound it over all scores of the unscored rows."""

    value: Estimate
    worst: float | None = None
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Scores against gold, by the name of the statistic.

    `ends` are the least and the greatest value of the scale on which both were given (0 and 1 where rows lie on several
    scales, and statistics are of goodness); None where they have no scale in common, or were put on one. `only_score`
    and `only_gold` are the value that all rows have, None where there are several. `split` counts the scores without
    gold since the raters of their row have no majority. `telling` is the number of items by which gold differs from its
    mean, as if by each equally much.
    """

    statistics: Mapping[str, Headline]
    ends: tuple[float, float] | None = None
    only_score: float | None = None
    only_gold: float | None = None
    split: int = 0
    telling: float = math.nan


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Choices against gold, by tie rule; of the joint verdict where pairs were asked in both orders.

    `bounds` are the worst and the best value by rule, over all choices for the missing verdicts; empty if none is.
    `only_choice` and `only_gold` are what all pairs have (first, second, tie, disagree), None where there are several;
    `split` counts the verdicts on pairs without gold since their raters have no majority.
    """

    rules: Mapping[str, Estimate]
    one_order: bool
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    only_choice: str | None = None
    only_gold: str | None = None
    split: int = 0


@dataclass(frozen=True, slots=True)
class Baseline:
    """One row of the judge between baselines and ceiling: `key` is stable, `label` is for people."""

    key: str
    role: Role
    label: str
    statistics: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Baselines:
    """The judge compared with baselines (judges that ignore the input) and people (ceiling)."""

    rows: tuple[Baseline, ...]

    @property
    def judge(self) -> Mapping[str, Estimate]:
        """The statistics of the judge itself."""
        return next((row.statistics for row in self.rows if row.role == "judge"), {})

    def best(self, statistic: str) -> Baseline | None:
        """The best baseline; None where the statistic is undefined for all of them."""
        known = [row for row in self.rows if row.role == "floor" and _is_known(row.statistics.get(statistic))]
        return max(known, key=lambda row: row.statistics[statistic].value, default=None)

    def people(self, statistic: str) -> tuple[Estimate, Estimate] | None:
        """The judge against one rater, and one rater against another: the two that can be compared.

        None where either is unknown. The judge's own row is against all raters together, whose errors cancel out.
        """
        judge = next((row.statistics.get(statistic) for row in self.rows if row.key == "judge_rater"), None)
        among = self.among_people(statistic)
        if judge is None or among is None or math.isnan(judge.value) or math.isnan(among.value):
            return None
        return judge, among

    def among_people(self, statistic: str) -> Estimate | None:
        """One rater against another, which may be undefined; None where there is one rater."""
        return next((row.statistics.get(statistic) for row in self.rows if row.key == "raters"), None)


@dataclass(frozen=True, slots=True)
class Orders:
    """How strongly verdicts on pairs depend on the order of the responses.

    `disagreements` are shares by kind: the first slot both times, the second slot both times, a tie in one order.
    `turned`: the orders agree less often than by chance, as where a column that names slots was read as responses.
    """

    same: Estimate
    disagree: Estimate
    disagreements: Mapping[str, Estimate]
    turned: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """The expected calibration error of the probabilities, as read and after recalibration on other rows.

    `told` says what is predicted.
    """

    errors: Mapping[str, Estimate]
    told: str


@dataclass(frozen=True, slots=True)
class ScoreIntervals:
    """Conformal intervals around scores: the mean share of the scale they cover, and the coverage aimed at."""

    share_of_scale: Estimate | None
    aim: float


@dataclass(frozen=True, slots=True)
class Slices:
    """Statistics by slice: name of the statistic, then of the slice."""

    by: str
    statistics: Mapping[str, Mapping[str, Estimate]]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A share on the horizontal axis, and what was measured there."""

    x: float
    y: Estimate


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a diagram: confidence and accuracy, or coverage and agreement."""

    across: str
    up: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class RankedPlayer:
    """The strength of a player: log-odds against the anchor, the chance to beat it, the rank from 1 in its group.

    `controlled` is that chance with covariates equal, None without covariates. `prior` says whether a prior made the
    strength finite: "only by prior", "only by the anchor's", "in 3 % of draws", or "". `group` counts from 1: players
    of one group met, directly or through others, and only they are compared; None for a player without a game.
    """

    beats_anchor: Estimate
    strength: Estimate
    rank: Estimate
    controlled: Estimate | None
    prior: str
    group: int | None = 1


@dataclass(frozen=True, slots=True)
class PlayerRanking:
    """Players from the strongest; `anchor` is the reference of the strengths, None for the average player.

    `covariates` names what `controlled` holds equal. `equal_lead`: the chance of the first to beat the second if their
    responses were equally long (and other covariates equal); None where lengths are not known, or not held equal.
    """

    anchor: str | None
    players: Mapping[str, RankedPlayer]
    covariates: tuple[str, ...] = ()
    equal_lead: Estimate | None = None

    @property
    def held(self) -> str:
        """What `controlled` holds equal, in words ("length and position"); "" without covariates."""
        return " and ".join({"being shown first": "position"}.get(each, each) for each in self.covariates)


@dataclass(frozen=True, slots=True)
class PlayerRecord:
    """The games of a player: how many, by outcome, and the win rate under each rule ("soft" where there is one).

    `grade` is the mean of +1 for a strong win, +.5 for a win, 0 for a tie, -.5 and -1 for losses.
    """

    games: int
    outcomes: Mapping[str, int]
    win_rates: Mapping[str, Estimate]
    grade: Estimate


@dataclass(frozen=True, slots=True)
class Players:
    """The record of each player."""

    players: Mapping[str, PlayerRecord]


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement among raters, by the name of the coefficient."""

    raters: int
    statistics: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters over the `n` items that both rated."""

    first: str
    second: str
    n: int
    statistics: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class RaterPairs:
    """Every rater against every other."""

    pairs: tuple[RaterPair, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """The alternative annotator test, by the annotator that is left out (None for one without items)."""

    winning_rate: float
    passed: bool
    epsilon: float
    advantage: Estimate
    annotators: Mapping[str, AgainstAnnotator | None]


@dataclass(frozen=True, slots=True)
class SystemScore:
    """A judge's results on one system: its mean score, the share of other systems it beats on the same prompts (a tie
    is half a win; None where no prompt is known to have been answered by another), and how many got no verdict.

    `rank`: its place by the mean, from the first to the last that the differences on the same prompts leave open.
    `controlled`: the mean if the responses of all systems were equally long; None where lengths are not known.
    """

    mean: Estimate
    win_rate: Estimate | None
    failed: int
    rank: Estimate | None = None
    controlled: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two systems on what both answered: the share that the first wins (a tie, and orders that disagree, are half).

    `orders`: the same where the first was shown first, and where it was shown second; () where orders are not known or
    only one was asked. `disagree`: the share of pairs whose orders disagree. `gold`: the share that the first wins by
    gold, of the pairs that have it, with a verdict or without; None where there is none. `lost`: `rate` if the first
    had lost, and if it had won, every pair without a verdict; () where all have one.
    """

    first: str
    second: str
    rate: Estimate
    orders: tuple[Estimate, ...] = ()
    disagree: Estimate | None = None
    gold: Estimate | None = None
    lost: tuple[Estimate, ...] = ()

    def turned(self) -> "Meeting":
        """The same from the second system's view."""
        orders, gold = tuple(map(_rest, self.orders[::-1])), None if self.gold is None else _rest(self.gold)
        lost = tuple(map(_rest, self.lost[::-1]))
        return Meeting(self.second, self.first, _rest(self.rate), orders, self.disagree, gold, lost)

    @property
    def decided(self) -> bool:
        """Whether one of the two won: the interval excludes an even result, and both orders are on the same side."""
        sides = {each.value > 0.5 if each.value != 0.5 else None for each in (self.rate, *self.orders)}
        return len(sides) == 1 and not self.rate.low <= 0.5 <= self.rate.high


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """Every two systems that met, those with most in common first."""

    meetings: tuple[Meeting, ...]

    def of(self, first: str, second: str) -> Meeting | None:
        """The meeting of two from the first one's view; None if they never met."""
        found = next((each for each in self.meetings if {each.first, each.second} == {first, second}), None)
        return found if found is None or found.first == first else found.turned()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Systems by their mean score, the best first; `lead`: the first minus the second on the same prompts, if known.

    `gold_lead`: the same difference by gold, on the prompts that have it for both, with a verdict or without; None
    where there is none. `least_lead`: `lead` if each response of the two without a verdict had the worst score for the
    first: its own the worst of the scale (of all scores without one), the second's the best; None where all have one.
    `equal_lead`: the same difference if the responses of both were equally long; None where lengths are not known.
    `weights`: what each criterion counts in the score of a response, in words; "" where criteria count alike.
    """

    systems: Mapping[str, SystemScore]
    lead: Estimate | None
    weights: str = ""
    gold_lead: Estimate | None = None
    equal_lead: Estimate | None = None
    least_lead: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """Agreement within groups: `pearson` over all rows, with the maximum for a judge that gives each group one score
    (where scores are labels of several scales, what one has that rounds the mean of the group's gold to each);
    `centred`: the same after subtracting each group's means, `over` with intervals over other values of a column, such
    as the phrases of rubrics; `contrasts`, the share of right orders among `pairs` of a group whose gold differs.
    """

    pearson: Estimate
    most_without: float
    centred: Estimate
    contrasts: Estimate
    pairs: int
    groups: int
    over: Mapping[str, Estimate] = field(default_factory=dict)


Result = (
    Failures | Agreement | Accuracy | Baselines | Orders | Calibration | ScoreIntervals | Slices | Curve | Drift
    | PlayerRanking | Players | RaterAgreement | RaterPairs | Replacement | Leaderboard | HeadToHead
    | Within
)  # fmt: skip
"""The types of a table's result."""


def plain(value: Any) -> Any:
    """JSON values of a result: estimates as everywhere, undefined numbers null."""
    if isinstance(value, Estimate):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None  # -0.0 + 0.0 is 0.0
    return value


def _rest(found: Estimate) -> Estimate:
    """One minus a share."""
    return replace(found, value=1 - found.value, low=1 - found.high, high=1 - found.low)


def _is_known(found: Estimate | None) -> bool:
    return found is not None and not math.isnan(found.value)
