"""The gold score: an integer penalty, and thresholds that turn it into a level.

penalty = sum over claims of weight(aspect) x points(metric), plus the same for whole-response counts (omissions,
repetitions, ...). level = number of cuts that the penalty exceeds; level 0 is the best label of the scale.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dikast.core.scale import Scale
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.terms import Term, terms_cost

SCALES = {
    name: Scale.parse(name)
    for name in ("1-5", "0-10", "A-E", "pass/fail", "1-3", "1-4", "1-7", "0-3", "1-10")
}  # fmt: skip
ONE_WAY = ("A-E", "pass/fail")  # scales on which the last label cannot be mistaken for the best
INVERSE = {name: Scale(scale.labels, scale.values, True) for name, scale in SCALES.items()}


class Entry(NamedTuple):
    """One line of a checklist: the kind of claim and what it is about."""

    kind: str
    subject: tuple[str, ...]
    about: str


@dataclass(frozen=True, slots=True)
class Spec:
    """The machine-readable half of a rubric.

    weights: points that an error in an aspect costs. `graded`: errors that are far off cost double. `cuts`: highest
    penalty of each level, best first, without the worst. `entries`: if any, only claims on these count, 1 point each.
    `terms`: if any, they and not `weights` say what claims cost; `weights` then holds what is counted in the response
    as a whole, and `names` what each of these is called.
    """

    weights: tuple[tuple[str, int], ...]
    graded: bool
    cuts: tuple[int, ...]
    scale: str
    lower_is_better: bool
    wording: tuple[int, int, int, int]
    entries: tuple[Entry, ...] = ()
    terms: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()
    domain: str = ""  # which words the terms need

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that are weighed, once each; "" for claims of any kind."""
        return tuple(dict.fromkeys([*(term.kind for term in self.terms), *(name for name, _ in self.weights)]))

    @property
    def the_scale(self) -> Scale:
        """The rubric's scale."""
        return (INVERSE if self.lower_is_better else SCALES)[self.scale]

    def to_json(self) -> dict[str, Any]:
        """The specification as JSON."""
        found = {
            "weights": dict(self.weights),
            "graded": self.graded,
            "cuts": list(self.cuts),
            "scale": self.scale,
            "lower_is_better": self.lower_is_better,
            "wording": list(self.wording),
            "entries": [{"kind": e.kind, "subject": list(e.subject), "about": e.about} for e in self.entries],
        }
        if self.terms:
            found |= {"terms": [term._asdict() for term in self.terms], "names": list(self.names)}
        return found


def subject_of(claim: Claim) -> tuple[str, ...]:
    """The subject of a claim, without what it states about it."""
    if claim.kind in ("more", "larger", "order", "before"):
        return tuple(sorted(map(str, claim.args)))
    if claim.kind == "sure":
        return tuple(map(str, claim.args))
    return tuple(map(str, claim.args[:2] if claim.kind == "binding" else claim.args[:-1]))


def costs(claims: Sequence[Claim], metrics: Sequence[int], spec: Spec) -> tuple[int, ...]:
    """The penalty points of each claim of a response."""
    if spec.terms:
        return tuple(terms_cost(claims, metrics, spec.terms))
    return tuple(cost(claim, metric, spec) for claim, metric in zip(claims, metrics, strict=True))


def cost(claim: Claim, metric: int, spec: Spec) -> int:
    """The penalty points of one claim that is `metric` units off, whatever else the response claims."""
    if spec.terms:
        return sum(term.weight * term.points(claim, metric) for term in spec.terms)
    if spec.entries:
        listed = any(e.kind == claim.kind and e.subject == subject_of(claim) for e in spec.entries)
        return int(listed and metric > 0)
    weight = dict(spec.weights).get(claim.aspect, 0)
    return weight * points(ASPECTS[claim.aspect], metric, spec.graded) if weight else 0


def extra_cost(counts: Mapping[str, int], spec: Spec) -> int:
    """The penalty points of whole-response counts, by aspect."""
    if spec.entries:
        return 0
    return sum(weight * points(ASPECTS[name], counts.get(name, 0), spec.graded) for name, weight in spec.weights)


def level_of(penalty: int, cuts: Iterable[int]) -> int:
    """0 for the best level, one more for each cut that the penalty exceeds."""
    return sum(penalty > cut for cut in cuts)


def label_of(level: int, spec: Spec) -> str:
    """The scale's label of a level."""
    labels = spec.the_scale.labels
    return labels[level] if spec.lower_is_better else labels[-1 - level]
