"""Several rubrics for one response: the facts are drawn so that each rubric's score is uniform over its scale.

Draws in which every claim is right or wrong with equal chances, whatever rubrics weigh, are weighted until under every
rubric the levels are equally frequent and do not correlate with the share of wrong claims among those that it does not
weigh; then one is taken. Of all such weights those are used that differ least from equal ones (minimum relative
entropy; Csiszar 1975, "I-divergence geometry of probability distributions and minimization problems"). A text without
such weights is discarded before a draw is taken, so that neither its words nor a rubric predict a score.

The second condition is needed because rubrics of a response share claims: scores that are even under two rubrics spread
their shared claims, and with them the other claims of either. By a third one the level hardly correlates with the
number of things left out, which what is shown tells (more things, more of them left out), and not at all under rubrics
that do not weigh it; where it is weighed, more left out then goes with fewer wrong claims.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dikast.worlds.domains.protocol import Domain, Slot, State
from dikast.worlds.sampling.drafting import Drafted
from dikast.worlds.sampling.error_choice import cut_points
from dikast.worlds.sampling.rng import Stream, noise_of
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import ONE_WAY, SCALES, Spec

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DRAWS = 512
_FITS, _CUTTINGS = 4, 12  # attempts at scales and thresholds
_LEAST = 0.2  # draws in a level before weighting, of an even share: fewer would also distort what is not weighed
_STEPS, _OFF = 16, 1e-9  # of the fit: Newton's steps, and the largest error of a share
_INHERENT = 0.2  # correlation of the level with the number of things left out where the rubric weighs it
_LONGEST, _RIDGE = 2.0, 1e-9  # of a step: its longest coordinate, and what is added to the curvature
_EFFECTIVE = 20  # effective number of draws under the weights
Scaled = Callable[[Stream, Spec, Sequence[int]], Spec | None]


@dataclass(frozen=True)
class Family:
    """Rubrics with their scales, and a draw that may be taken: the slots' states and the counts of the response."""

    specs: tuple[Spec, ...]
    states: list[list[State]]  # draws with the same levels, in the order in which they may be taken
    counts: list[dict[str, int]]
    levels: tuple[int, ...]


def draw_family(text: Drafted, domain: Domain, scaled: Scaled) -> Family | None:
    """The facts under all of the text's rubrics; None if some rubric's levels cannot be equally frequent."""
    rng, slots = text.draft.rng, text.slots
    at = _states(rng, slots, domain)
    caps = _caps(text, domain)
    counts = {name: np.array([rng.below(cap + 1) for _ in range(DRAWS)]) for name, cap in caps.items()}
    penalties = [_penalties(spec, slots, at, counts, domain) for spec in text.rubrics]
    others = [[(_unweighed(spec, slots, at, domain), 0.0), *_to_see(spec, counts, domain)] for spec in text.rubrics]
    for _ in range(_FITS):
        cut = [_cut(rng, spec, found, scaled) for spec, found in zip(text.rubrics, penalties, strict=True)]
        specs = [spec for spec in cut if spec is not None]
        if len(specs) < len(cut):
            return None
        specs = [replace(spec, lower_is_better=_lower(spec, specs)) for spec in specs]
        levels = [np.searchsorted(s.cuts, found, side="left") for s, found in zip(specs, penalties, strict=True)]
        weights = _even(levels, others, [len(spec.cuts) + 1 for spec in specs])
        if weights is not None:
            break
    else:
        return None
    table = np.stack(levels, axis=1)
    taken = table[_pick(rng, weights)]
    alike = _drawn_in_turn(rng, np.where((table == taken).all(axis=1), weights, 0.0))
    return Family(
        tuple(specs),
        [[slot.universe[at[i, j]] for j, slot in enumerate(slots)] for i in alike],
        [{name: int(found[i]) for name, found in counts.items()} for i in alike],
        tuple(int(level) for level in taken),
    )


def _states(rng: Stream, slots: Sequence[Slot], domain: Domain) -> Ints:
    """The number of each slot's state in each draw: its claim holds or does not, with equal chances if both can be."""
    bytes_ = noise_of(rng.fork(), (2, len(slots), DRAWS)).astype(np.int64)
    found = np.zeros((DRAWS, len(slots)), dtype=np.int64)
    for j, slot in enumerate(slots):
        off = np.array([domain.distance(slot, slot.stated[0], state) for state in slot.universe])
        sides = [side for side in (np.flatnonzero(off == 0), np.flatnonzero(off)) if len(side)]
        which = bytes_[0, j] * len(sides) >> 8
        for k, side in enumerate(sides):
            found[which == k, j] = side[bytes_[1, j] * len(side) >> 8][which == k]
    return found


def _caps(text: Drafted, domain: Domain) -> Mapping[str, int]:
    """The most that each aspect of the whole response can count, of those that a rubric weighs."""
    found = {name: ASPECTS[name].cap for name in text.form}
    for spec in text.rubrics:
        for name, _ in spec.weights:
            if name not in found:
                found[name] = min(ASPECTS[name].cap, text.draft.budget + 2)
    return found


def _penalties(spec: Spec, slots: Sequence[Slot], at: Ints, counts: Mapping[str, Ints], domain: Domain) -> Ints:
    total = np.zeros(len(at), dtype=np.int64)
    claims = [domain.claim(slot, slot.stated[0]) for slot in slots]
    for term in spec.terms:
        sums = np.zeros(len(at), dtype=np.int64)
        for j, (slot, claim) in enumerate(zip(slots, claims, strict=True)):
            if term.covers(claim):
                each = [term.points(claim, domain.distance(slot, slot.stated[0], state)) for state in slot.universe]
                sums += np.array(each, dtype=np.int64)[at[:, j]]
        total += term.weight * (np.minimum(sums, 1) if term.rule == "once" else sums)
    for name, weight in spec.weights:
        each = [points(ASPECTS[name], n, False) for n in range(ASPECTS[name].cap + 1)]
        total += weight * np.array(each, dtype=np.int64)[counts[name]]
    return total


def _cut(rng: Stream, spec: Spec, penalty: Ints, scaled: Scaled) -> Spec | None:
    """The rubric on a scale, with thresholds that leave each level some of the draws."""
    reachable = [int(each) for each in np.unique(penalty)]
    for _ in range(_CUTTINGS):
        found = scaled(rng, spec, reachable)
        if found is None:
            return None
        cuts = cut_points(reachable, len(SCALES[found.scale].labels), rng)
        sizes = np.bincount(np.searchsorted(cuts, penalty, side="left"), minlength=len(cuts) + 1)
        if sizes.min() * len(sizes) >= _LEAST * DRAWS:
            return replace(found, cuts=cuts)
    return None


def _lower(spec: Spec, specs: Sequence[Spec]) -> bool:
    """Whether low is good: as in the first rubric, if the scale allows it."""
    return specs[0].lower_is_better and spec.scale not in ONE_WAY


def _unweighed(spec: Spec, slots: Sequence[Slot], at: Ints, domain: Domain) -> Floats:
    """In each draw the share of wrong claims among those that the rubric does not weigh."""
    wrong = []
    for j, slot in enumerate(slots):
        claim = domain.claim(slot, slot.stated[0])
        if not any(term.covers(claim) for term in spec.terms):
            off = np.array([domain.distance(slot, slot.stated[0], state) > 0 for state in slot.universe], dtype=float)
            wrong.append(off[at[:, j]])
    return np.asarray(np.mean(wrong, axis=0)) if wrong else np.zeros(len(at))


def _to_see(spec: Spec, counts: Mapping[str, Ints], domain: Domain) -> list[tuple[Floats, float]]:
    """What is left out in each draw, which what is shown tells, and how it may correlate with the level."""
    weighed = dict(spec.weights)
    return [(n.astype(float), _INHERENT * (name in weighed)) for name, n in counts.items() if name in domain.kinds]


def _even(
    levels: Sequence[Ints], others: Sequence[Sequence[tuple[Floats, float]]], sizes: Sequence[int]
) -> Floats | None:
    """Weights of the draws under which every rubric's levels are equally frequent and correlate with `others` as asked.

    None if there are none, or if too few draws carry them. By Newton's method on the dual problem.
    """
    columns, wanted = [], []
    for level, other, size in zip(levels, others, sizes, strict=True):
        columns += [(level == k).astype(float) for k in range(size - 1)]
        wanted += [1 / size] * (size - 1)
        spread = math.sqrt((size**2 - 1) / 12)  # of levels that are equally frequent
        for each, r in other:
            columns.append((each - each.mean()) * (level - (size - 1) / 2))
            wanted.append(r * spread * float(each.std()))
    features, target = np.stack(columns, axis=1), np.array(wanted)
    dual = np.zeros(len(target))
    for _ in range(_STEPS):
        weights = _tilted(features @ dual)
        off = target - weights @ features
        if np.abs(off).max() < _OFF:
            return weights if 1 / float((weights**2).sum()) >= _EFFECTIVE else None
        centred = features - weights @ features
        curvature = (centred * weights[:, None]).T @ centred
        curvature[np.diag_indices_from(curvature)] += _RIDGE
        step = np.linalg.solve(curvature, off)
        dual += step / max(1.0, np.abs(step).max() / _LONGEST)
    return None


def _tilted(logits: Floats) -> Floats:
    """Weights in proportion to exp(logits), with sum 1."""
    found = np.exp(logits - logits.max())
    return np.asarray(found / found.sum())


def _pick(rng: Stream, weights: Floats) -> int:
    parts = np.maximum(np.round(weights / weights.sum() * 10**6), 0).astype(np.int64)
    at = rng.below(int(parts.sum()))
    return int(np.searchsorted(np.cumsum(parts), at, side="right"))


def _drawn_in_turn(rng: Stream, weights: Floats) -> list[int]:
    """The draws with a weight above 0, drawn without replacement."""
    left, found = weights.copy(), []
    while left.sum() > 0:
        found.append(_pick(rng, left))
        left[found[-1]] = 0.0
    return found
