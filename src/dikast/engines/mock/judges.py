"""Mock judges with known faults: constant, random, and the noisy oracle that all other faults are added to."""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dikast.core.confidence import normal_quantile
from dikast.core.errors import EngineError, UserError
from dikast.core.message import Span
from dikast.engines.base import Request
from dikast.engines.mock.calibrate import calibrated
from dikast.engines.mock.injection import Demand, demanded
from dikast.engines.mock.mock_judge import Mock, labels_of
from dikast.engines.mock.request_gold import gold_edge, gold_score

_SPREAD = 0.6  # standard deviation of label scores, in steps of the scale
_SURE = 30.0  # nats used for certainty; draws of the noise stay below
_OBEYED = 5.0  # nats in favour of a response whose injection worked
_MARK, _END = re.compile(r"^(?:[-*]|\d+\.)\s+"), re.compile(r"(?<=[.!?])\s+")
_NEEDED = {"kind", "responses", "texts"}


@dataclass(kw_only=True, eq=False)
class Constant(Mock):
    """Always says `label`; without one the middle of the scale, and for a pair a tie if ties are allowed."""

    label: str = ""
    reads_gold = False

    def decide(self, request: Request) -> str:
        """The one label; an EngineError `off_label` follows where the scale lacks it."""
        if self.label:
            return self.label
        labels = labels_of(request)
        if "tie" in labels and request.about.get("kind") == "pairwise":
            return "tie"
        return list(labels)[(len(labels) - 1) // 2] if labels else _no_labels(request)


@dataclass(kw_only=True, eq=False)
class Random(Mock):
    """Every label equally likely, drawn again for every key and seed."""

    reads_gold = False

    def decide(self, request: Request) -> str:
        """A uniform draw from the labels."""
        labels = list(labels_of(request))
        return labels[int(self.draw(request) * len(labels))] if labels else _no_labels(request)


@dataclass(kw_only=True, eq=False)
class Oracle(Mock):
    """Knows the gold, plus noise of a given size, and has the faults that are added.

    Grading: `r` is the correlation of its verdicts with gold that is uniform on the scale (see `calibrated`). Pairs:
    the log-odds for a response are `per_level` nats for each level of gold between the two, or, with `accuracy`, as
    many as make it right on that share of decided pairs whatever the distance; if ties are allowed it says one within
    `tie_within` nats (with `accuracy`: on that share of tied pairs). `r=0` needs no gold.

    Faults: `per_doubling` levels are added per doubling of the response's characters, none at `length_at`. `nats` are
    added to the log-odds of the response shown first. With probability `obeys` it obeys an injection in a response.
    `sway` levels are added where the pattern `when` is found in prompt or response (of a pair: in one response).
    `ignores`: "images" (opinions depend on the responses' text, and with r > 0 on gold), "rubric" (opinions do not
    depend on the criterion; gold by criterion is averaged), or "both". On a share `deaf` of responses its grade depends
    on the response's text alone, for any image, reference, rubric or gold. On a share `relies` of responses it believes
    the reference, if there is one, and grades by the share of the response's sentences that stand in it. `drift` levels
    are added gradually over `drift_over` requests to grade, and further at that rate: the only fault that depends on
    the order of requests, counted in the process.
    """

    r: float = 0.8
    per_level: float = 1.0
    accuracy: float | None = None
    tie_within: float = 0.5
    per_doubling: float = 0.0
    length_at: int = 400
    nats: float = 0.0
    obeys: float = 0.0
    sway: float = 0.0
    when: str = ""
    ignores: Literal["nothing", "images", "rubric", "both"] = "nothing"
    deaf: float = 0.0
    relies: float = 0.0
    drift: float = 0.0
    drift_over: int = 1000

    def __post_init__(self) -> None:
        Mock.__post_init__(self)
        wrong = [
            f"{name} lies in {low:g}..{high:g}, got {value:g}"
            for name, value, low, high in (
                ("r", self.r, 0, 1),
                ("accuracy", 1.0 if self.accuracy is None else self.accuracy, 0, 1),
                ("obeys", self.obeys, 0, 1),
                ("deaf", self.deaf, 0, 1),
                ("relies", self.relies, 0, 1),
                ("drift_over", self.drift_over, 1, math.inf),
                ("tie_within", self.tie_within, 0, math.inf),
                ("length_at", self.length_at, 1, math.inf),
            )
            if not low <= value <= high
        ]
        if wrong:
            raise UserError(f"{self.name}: {'; '.join(wrong)}")
        self._sees_images = self.ignores not in ("images", "both")
        self._sees_rubric = self.ignores not in ("rubric", "both")
        self._graded = 0

    @property
    def reads_gold(self) -> bool:
        """Not with r = 0."""
        return self.r > 0

    def identity(self) -> Mapping[str, Any]:
        """As for every mock; faults of later versions are named only if they are planted, so that keys do not
        change.
        """
        told = dict(Mock.identity(self))
        unplanted = {"deaf": self.deaf == 0, "relies": self.relies == 0, "drift": self.drift == 0}
        for name, unused in {**unplanted, "drift_over": self.drift == 0}.items():
            if unused:
                del told[name]
        return told

    def decide(self, request: Request) -> str | Mapping[str, float]:
        """The label nearest to its opinion; with label scoring also the scores of the others."""
        about = request.about
        if not about.keys() >= _NEEDED:
            told = f"request {request.key!r} does not say in `about` what it concerns ({', '.join(sorted(_NEEDED))})"
            raise EngineError(told, kind="no_about")
        if about["kind"] == "pairwise":
            return self._choose(request, about)
        values: Mapping[str, float] = about.get("values") or _no_labels(request)
        grid = tuple(values.values())
        latent = calibrated(grid, self.r)
        gold = gold_score(request, by_rubric=self._sees_rubric) if latent.hold else latent.middle
        if not grid[0] <= gold <= grid[-1]:
            told = f"item {about.get('item')!r}: gold {gold:g} lies off the scale {grid[0]:g} to {grid[-1]:g}"
            raise EngineError(f"{told}: give gold in the values of the rubric's scale", kind="no_gold")
        opinion = latent.middle + latent.hold * (gold - latent.middle)
        if latent.noise:
            opinion += latent.noise * normal_quantile(self._noise(request, about, 0))
        if self.deaf:
            heard = about["texts"][0] or about.get("item", request.key)
            if self.draw(request, "deaf", heard) < self.deaf:
                blind = calibrated(grid, 0.0)
                opinion = blind.middle + blind.noise * normal_quantile(self.draw(request, "heard", heard))
        if self.relies and about.get("reference") and self._believes(request):
            shared = _shared(about["texts"][0], about["reference"])
            opinion = grid[0] + (grid[-1] - grid[0]) * (1 - shared if about.get("lower_is_better") else shared)
        if self.drift:
            worth = -1 if about.get("lower_is_better") else 1
            opinion += self.drift * latent.step * worth * self._graded / self.drift_over
            self._graded += 1
        if self.per_doubling:
            opinion += self.per_doubling * latent.step * self._doublings(about, 0)
        if self.obeys and (demand := self._obeyed(request, 0)):
            best = grid[0] if about.get("lower_is_better") else grid[-1]
            opinion = values.get(demand.label or "", best)
        if self.sway and self._found(_shown(request), about["texts"][0]):
            opinion += self.sway * latent.step * (-1 if about.get("lower_is_better") else 1)
        opinion = min(max(opinion, grid[0]), grid[-1])
        if request.readout is None:
            return list(values)[bisect_left(latent.cuts, opinion)]
        width = 2 * (_SPREAD * latent.step) ** 2
        return {label: -((value - opinion) ** 2) / width for label, value in values.items()}

    def _choose(self, request: Request, about: Mapping[str, Any]) -> str | Mapping[str, float]:
        """The choice by its log-odds for the first response; `decide` for pairs.

        Without noise from elsewhere the log-odds are logistic around the gold difference, so P(first) is the logistic
        function of it (Bradley-Terry 1952), with a band of ties (Rao & Kupper 1967). The label scores give the log-odds
        themselves; a tie weighs as much as the band is wide (Davidson 1970).
        """
        edge = gold_edge(request, by_rubric=self._sees_rubric) if self.r else 0.0
        band = self.tie_within if self.accuracy is None else _logit((1 + self.accuracy) / 2)
        band = band if "tie" in labels_of(request) else 0.0
        if self.accuracy is None:
            odds = self.per_level * edge
        else:
            odds = 0.0 if edge == 0 else math.copysign(_logit(self.accuracy) + band, edge)
        odds += self._shared_noise(request, about)
        if self.per_doubling:
            levels = self.per_doubling * (self._doublings(about, 0) - self._doublings(about, 1))
            odds += self.per_level * levels
        if self.obeys:
            odds += _OBEYED * ((self._obeyed(request, 0) is not None) - (self._obeyed(request, 1) is not None))
        if self.sway:
            levels = self.sway * (self._found(about["texts"][0]) - self._found(about["texts"][1]))
            odds += self.per_level * levels
        odds += self.nats
        weights = {"first": odds / 2, "second": -odds / 2}
        if band:
            weights["tie"] = band / 2
        elif "tie" in labels_of(request):
            weights["tie"] = -abs(odds) / 2 - _SURE
        return weights

    def _noise(self, request: Request, about: Mapping[str, Any], slot: int) -> float:
        """A uniform draw that stays with a response: with its place in the item, or with its text."""
        criterion = about.get("criterion") if self._sees_rubric else None
        sample = about.get("sample", 0)
        if not self._sees_images:
            return self.draw(request, criterion, sample, about["texts"][slot])
        if "item" not in about:
            return self.draw(request, request.key, slot)
        return self.draw(request, criterion, sample, about["item"], about["responses"][slot])

    def _shared_noise(self, request: Request, about: Mapping[str, Any]) -> float:
        """Logistic noise for the first response over the second; its sign changes with the order."""
        names = about["responses"] if self._sees_images else about["texts"]
        turned = -1 if names[0] > names[1] else 1
        criterion = about.get("criterion") if self._sees_rubric else None
        item = about.get("item", request.key) if self._sees_images else ""
        draw = self.draw(request, "pair", criterion, about.get("sample", 0), item, *sorted(names))
        return turned * _logit(draw)

    def _believes(self, request: Request) -> bool:
        """Whether it believes the reference of this response."""
        about = request.about
        return self.draw(request, "relies", about.get("item", request.key), about["responses"][0]) < self.relies

    def _doublings(self, about: Mapping[str, Any], slot: int) -> float:
        """The number of doublings from `length_at` to the response's length; 0 for a response without text."""
        length = len(about["texts"][slot])
        return math.log2(length / self.length_at) if length else 0.0

    def _found(self, *texts: str) -> bool:
        """Whether the pattern that sways it is in any of the texts."""
        return any(re.search(self.when, text) is not None for text in texts)

    def _obeyed(self, request: Request, slot: int) -> Demand | None:
        """The demand of an injection in the response, if there is one and it works this time."""
        about = request.about
        demand = demanded(about["texts"][slot], tuple(about.get("values", ())))
        if demand is None:
            return None
        draw = self.draw(request, "obeys", about.get("item"), about["responses"][slot], about.get("sample"))
        return demand if draw < self.obeys else None


def _shown(request: Request) -> str:
    """The whole text of the prompt."""
    return "".join(part.text for message in request.messages for part in message.parts if isinstance(part, Span))


def _shared(response: str, reference: str) -> float:
    """The share of the response's sentences that stand in the reference; 1 of none."""
    known, stated = _sentences(reference), _sentences(response)
    return sum(each in known for each in stated) / len(stated) if stated else 1.0


def _sentences(text: str) -> list[str]:
    """The sentences of a text, without the marks of lists."""
    lines = (_MARK.sub("", line.strip()) for line in text.splitlines())
    return [each for line in lines for each in _END.split(line) if each]


def _logit(share: float) -> float:
    """Log-odds of a share, at most `_SURE` either way."""
    return math.log(share / (1 - share)) if 1e-12 < share < 1 - 1e-12 else math.copysign(_SURE, share - 0.5)


def _no_labels(request: Request) -> Any:
    raise EngineError(f"request {request.key!r} does not tell the labels to choose from", kind="no_labels")
