"""The noise of a judge, measured on unchanged items: what a faultless judge of the same noise would show.

A judge that is right but noisy shrinks scores towards the middle: for gold g it answers about `gain x g`. The slope of
its answers over gold on unchanged items is the share of a due change that a faultless judge of this noise would show.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SPREAD = 0.15  # prior standard deviation of one scale's gain around the common one
SHIFT = 0.2  # prior standard deviation of the shift by a kind of change, as a share of the scale
FEWEST = 20  # minimum of unchanged items with gold to estimate the noise
STILL = 0.05  # levels: two answers closer than this are equal


class Plain(NamedTuple):
    """An answer unaffected by changes that a judge may miss: its item, its change ("" if none), scale, gold.

    `gold` and `answer` are goodness minus one half, -.5 worst to .5 best; `place` in the run is 0 first to 1 last. `id`
    is that of the asked item; originals of one `kind` do not differ in anything known beforehand.
    """

    item: str
    change: str
    labels: int
    gold: float
    answer: float
    place: float = 0.0
    id: str = ""
    kind: str = ""


class Expected(NamedTuple):
    """A figure that a faultless judge of this noise would show, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Noise:
    """A line through the answers: `answer = middle + gain * gold + drift * place`, its gain pooled between scales."""

    labels: tuple[int, ...]
    theta: Floats  # middle, gain, drift, the difference of each scale's gain, and what each kind of change adds
    covariance: Floats
    n: int
    free: float  # degrees of freedom
    spread: float  # standard deviation of answers around the line, as a share of the scale
    shares: tuple[float, ...]  # of the answers, by scale

    def shift(self, labels: Sequence[int], due: Floats) -> Expected:
        """The mean change expected from a faultless judge of this noise, for items with these numbers of labels."""
        row = np.zeros(len(self.theta))
        for count, change in zip(labels, due, strict=True):
            row[1] += change
            if count in self.labels:
                row[3 + self.labels.index(count)] += change
        return self._along(row / len(due))

    def worst(self, labels: Sequence[int]) -> Expected:
        """The mean goodness (0 to 1) of answers to items with the worst gold."""
        found = self.shift(labels, np.full(len(labels), -0.5))
        row = np.zeros(len(self.theta))
        row[0], row[2] = 1, 0.5  # in the middle of the run
        return Expected(min(max(0.5 + found.value + self._along(row).value, 0.0), 1.0), found.error)

    @property
    def gain(self) -> Expected:
        """The rise of answers per unit of gold, averaged over scales by how often each was asked."""
        row = np.zeros(len(self.theta))
        row[1], row[3 : 3 + len(self.labels)] = 1, self.shares
        return self._along(row)

    @property
    def middle(self) -> Expected:
        """How far answers lie above the middle of the scale if gold is in the middle, at the start of the run."""
        row = np.zeros(len(self.theta))
        row[0] = 1
        return self._along(row)

    def answer(self, labels: int, gold: float) -> float:
        """The expected answer."""
        own = self.theta[3 + self.labels.index(labels)] if labels in self.labels else 0.0
        return float(self.theta[0] + (self.theta[1] + own) * gold)

    def line(self, labels: int, gold: float, place: float) -> float:
        """The expected answer at a position in the run."""
        return self.answer(labels, gold) + float(self.theta[2]) * place

    def _along(self, row: Floats) -> Expected:
        return Expected(float(row @ self.theta), math.sqrt(max(0.0, float(row @ self.covariance @ row))))


def noise_of(plain: Collection[Plain]) -> Noise | None:
    """The noise estimated from the answers; None if too few have gold.

    Ridge regression: one slope for all scales, for each scale a difference that is normal about 0 with standard
    deviation `SPREAD`, for each kind of change a shift with `SHIFT`, and a drift over the run. Errors are clustered by
    item.
    """
    kept = list(plain)
    gold = np.array([each.gold for each in kept])
    if len(kept) < FEWEST or gold.std() < 0.1:
        return None
    labels = tuple(sorted({each.labels for each in kept}))
    kinds = sorted({each.change for each in kept} - {""})
    answers = np.array([each.answer for each in kept])
    own = np.array([each.labels for each in kept])[:, None] == np.array(labels)
    shifted = np.array([each.change for each in kept])[:, None] == np.array(kinds or ["-"])
    place = np.array([each.place for each in kept])
    design = np.column_stack([np.ones(len(kept)), gold, place, own * gold[:, None], shifted])
    plainly, *_ = np.linalg.lstsq(design[:, :2], answers, rcond=None)
    variance = max(float(np.square(answers - design[:, :2] @ plainly).mean()), 1e-12)
    priors = [1.0] + [SPREAD] * len(labels) + [SHIFT] * shifted.shape[1]
    penalty = np.diag([0.0, 0.0, *(variance / prior**2 for prior in priors)])
    inverse = np.linalg.inv(design.T @ design + penalty)
    theta = inverse @ design.T @ answers
    left = answers - design @ theta
    items = np.unique([each.item for each in kept], return_inverse=True)[1]
    scores = np.zeros((int(items.max()) + 1, len(theta)))
    np.add.at(scores, items, design * left[:, None])
    covariance = inverse @ (scores.T @ scores + variance * penalty) @ inverse
    free = max(1.0, len(scores) - 2.0)
    shares = tuple(float(each) for each in own.mean(0))
    return Noise(labels, theta, covariance, len(kept), free, float(left.std()), shares)


class Stillness(NamedTuple):
    """The share of equal answers among unrelated pairs whose gold is far apart, and the number of items."""

    share: float
    n: int


def stillness(plain: Collection[Plain], *, apart: float = 0.5, still: float = STILL) -> Stillness:
    """How often two answers are equal by chance although gold differs by at least `apart` of the scale."""
    kept = [each for each in plain if not each.change]
    alike = pairs = 0
    for count in {each.labels for each in kept}:
        gold = np.array([each.gold for each in kept if each.labels == count])
        answer = np.array([each.answer for each in kept if each.labels == count])
        far = np.triu(np.abs(gold[:, None] - gold[None, :]) >= apart - 1e-9, 1)
        near = np.abs(answer[:, None] - answer[None, :]) * 4 < still
        alike += int((far & near).sum())
        pairs += int(far.sum())
    return Stillness(alike / pairs if pairs else math.nan, len(kept))
