"""Verdicts and preferences of a judge, with the reason if one is missing."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal

Choice = Literal["a", "b", "tie"]
DISAGREE = "disagree"  # the joint outcome of a pair whose two orders have different verdicts
Marker = Literal["own", "forced"]


class Status(StrEnum):
    """Whether there is a verdict, and if not, why. Only `OK` carries a score or a choice."""

    OK = "ok"
    UNPARSED = "unparsed"  # a reply, but no verdict in it
    OFF_SCALE = "off_scale"  # a verdict that is not on the scale, or probability mass that is not
    TRUNCATED = "truncated"  # the token limit came before the verdict
    REFUSED = "refused"  # the server's refusal field, or no verdict and a refusal in words
    ENGINE_ERROR = "engine_error"  # no reply
    BAD_ITEM = "bad_item"  # no question could be made of the item; no model was called


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of an answer. Tokens are the model's own count; `cost` is in the currency of the user's price table."""

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_cached + other.tokens_cached,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a response and the judge's verdict on it."""

    text: str
    verdict: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One exchange with the model: how it was asked, everything that it answered, and the resulting status.

    `label_logprobs` are natural logarithms of absolute probabilities, by the string read after the marker; None when
    nothing was read, and `unread` says why where what came back was no distribution. From attempts alone every verdict
    can be derived again.
    """

    how: Literal["ask", "continue", "constrain"]
    raw: str
    status: Status
    reason: str = ""
    finish: str = ""
    refusal: str = ""
    label_logprobs: Mapping[str, float] | None = field(default=None, hash=False)
    marker: Marker | None = None
    usage: Usage = field(default_factory=Usage)
    unread: str = ""


@dataclass(frozen=True, slots=True)
class ShownClip:
    """Which frames of a video file were shown: their numbers in it from 0, and the seconds they are shown at."""

    indices: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The identity of a question: item, response or pair of responses in their order, criterion, sample."""

    item: str
    criterion: str
    responses: tuple[int, ...] = (0,)  # one index, or (shown first, shown second)
    sample: int = 0

    @property
    def in_words(self) -> str:
        """Such as `'q1' (helpfulness)`, with responses and sample where they are not the first."""
        shown = f", responses {self.responses[0]} and {self.responses[1]}" if len(self.responses) > 1 else ""
        if self.responses not in ((0,),) and not shown:
            shown = f", response {self.responses[0]}"
        sample = f", sample {self.sample}" if self.sample else ""
        return f"{self.item!r} ({self.criterion}{shown}{sample})"


@dataclass(frozen=True, slots=True)
class Hashes:
    """Fingerprints of what could change the answer."""

    judge: str
    format: str
    rubric: str
    item: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement: of a response (`label` on the rubric's scale), or of a pair in one order (`label` a choice).

    `score` is the label's value, for a pair None; `raw` is the last reply, unchanged; every reply is in `attempts`.
    `distribution` gives probabilities over the scale's labels (or over a, b, tie *as responses*, not as slots),
    renormalised to 1; `mass` is what fell on the labels before that, in [0, 1]; `marker` says whether the model wrote
    its verdict marker itself. `expected` is the mean of the distribution's values. `clips` are the frames that were
    sampled from each video file, in the order of the prompt. `conflict` marks a verdict that other verdicts in the same
    reply contradict. `server` is the address that gave the last reply, where the judge is behind several.
    """

    key: str
    question: Question
    status: Status
    label: str | None = None
    score: float | None = None
    reason: str = ""
    feedback: str = ""
    raw: str = ""
    distribution: Mapping[str, float] | None = field(default=None, hash=False)
    mass: float | None = None
    marker: Marker | None = None
    expected: float | None = None
    claims: tuple[Claim, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    usage: Usage = field(default_factory=Usage)
    hashes: Hashes | None = None
    clips: tuple[ShownClip, ...] = ()
    conflict: bool = False
    server: str = ""

    def __post_init__(self) -> None:
        if (self.label is None) == (self.status is Status.OK):
            raise ValueError("a Verdict has either a label or a status that says why not")
        if self.score is not None and self.status is not Status.OK:
            raise ValueError("a failure has no score")
        if self.conflict and self.status is not Status.OK:
            raise ValueError("a failure has no conflict")
        if self.score is not None and not math.isfinite(self.score):
            raise ValueError(f"a score is a finite number, got {self.score}")

    def __repr__(self) -> str:
        said = f"{self.label!r}" if self.status is Status.OK else f"{self.status.value}, {self.reason}"
        expected = f", expected {self.expected:.2f}" if self.expected is not None else ""
        return f"<Verdict of {self.question.in_words}: {said}{expected}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: the verdict, its distribution as bars, the feedback."""
        from dikast.core.html.notebook import verdict_html

        return verdict_html(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form on disk; `key` comes first. `conflict` and `server` are present only if there is one."""
        value = asdict(self)
        for name in _IF_ANY:
            if not value[name]:
                del value[name]
        return value

    def record(self) -> dict[str, Any]:
        """As `to_dict`, but nested values stay as they are, for orjson, which writes it faster."""
        value = dict(zip(_FIELDS, _values_of(self), strict=True))
        for name in _IF_ANY:
            if not value[name]:
                del value[name]
        return value


_IF_ANY = ("conflict", "server")  # written only if there is one
_FIELDS = tuple(each.name for each in fields(Verdict))
_values_of = attrgetter(*_FIELDS)


def joint_outcome(one: str | None, other: str | None) -> str | None:
    """The joint verdict of the two orders of a pair, from the choice (of responses, not slots) in each order.

    The common choice where both orders agree, `DISAGREE` where they differ (a tie in one order only included), None
    where either order has no verdict. Everything that reports on pairs joins orders by this rule.
    """
    if one is None or other is None:
        return None
    return one if one == other else DISAGREE


@dataclass(frozen=True, slots=True)
class Preference:
    """The joint verdict of the orders on responses `pair[0]` (a) and `pair[1]` (b) of an item.

    `choice` is None only if `status` is not OK: orders that disagree give `tie` and `consistent=False`, so that there
    is always a `choice` to act on; `outcome` distinguishes a disagreement from a tie. `logit_a` is the preference for a
    in nats, symmetrised over the orders, ties left out; `position_bias` the nats by which the first slot is favoured;
    both None without distributions in both orders.
    """

    item: str
    criterion: str
    pair: tuple[int, int]
    choice: Choice | None
    status: Status
    orders: tuple[Verdict, ...] = ()
    reason: str = ""
    logit_a: float | None = None
    position_bias: float | None = None
    consistent: bool | None = None

    def __post_init__(self) -> None:
        if (self.choice is None) == (self.status is Status.OK):
            raise ValueError("a Preference has either a choice or a status that says why not")

    def __repr__(self) -> str:
        said = f"{self.outcome!r}" if self.status is Status.OK else f"{self.status.value}, {self.reason}"
        orders = {1: " in one order", 2: " in both orders"}.get(len(self.orders), "")
        return f"<Preference on {self.item!r} ({self.criterion}): {said}{orders}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: the joint verdict and that of each order."""
        from dikast.core.html.notebook import preference_html

        return preference_html(self)

    @property
    def outcome(self) -> str | None:
        """The joint verdict: `a`, `b`, `tie`, or `disagree` where the two orders differ; None without a verdict."""
        return DISAGREE if self.consistent is False else self.choice


def logprobs_from(value: Mapping[str, Any]) -> dict[str, float]:
    """Log-probabilities from JSON, which has no -infinity: null stands for it."""
    return {str(label): -math.inf if logprob is None else logprob for label, logprob in value.items()}


def _attempt_from(value: Mapping[str, Any]) -> Attempt:
    read = value.get("label_logprobs")
    read = logprobs_from(read) if isinstance(read, Mapping) else None
    told = {"status": Status(value["status"]), "usage": Usage(**value["usage"]), "label_logprobs": read}
    return Attempt(**{**value, **told})


def verdict_from(value: Mapping[str, Any]) -> Verdict:
    """Read back what `Verdict.to_dict` wrote. KeyError, TypeError or ValueError for anything else."""
    told = dict(value)
    told["question"] = Question(**{**told["question"], "responses": tuple(told["question"]["responses"])})
    told["status"] = Status(told["status"])
    told["claims"] = tuple(Claim(**claim) for claim in told.get("claims", ()))
    told["attempts"] = tuple(_attempt_from(attempt) for attempt in told.get("attempts", ()))
    told["clips"] = tuple(ShownClip(tuple(clip["indices"]), tuple(clip["seconds"])) for clip in told.get("clips", ()))
    told["usage"] = Usage(**told.get("usage", {}))
    if told.get("hashes") is not None:
        told["hashes"] = Hashes(**told["hashes"])
    return Verdict(**told)
