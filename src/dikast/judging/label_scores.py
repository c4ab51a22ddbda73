"""From log-probabilities of labels to a score: distributions, expected values, symmetric preferences.

Notation: p(label) is the probability a model gives to a label at the verdict marker; `mass` is the sum over the labels
before renormalising.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.distribution import NoDistribution, flaw_of_logprobs, likeliest, likeliest_choice
from dikast.core.runs.samples import Vote, join_votes
from dikast.core.scale import Scale
from dikast.core.text import counted
from dikast.core.verdict import Status, Usage, Verdict

FLOOR = 1e-12  # a smaller probability counts as this, so that logits are finite: no preference exceeds 27.6 nats


@dataclass(frozen=True, slots=True)
class Distribution:
    """Probabilities over labels, summing to 1, and the `mass` in [0, 1] they had before they were renormalised."""

    probabilities: Mapping[str, float]
    mass: float

    @classmethod
    def of(cls, logprobs: Mapping[str, float]) -> "Distribution | None":
        """From natural logarithms of absolute probabilities; None when nothing fell on any label.

        NoDistribution for numbers that cannot be the probabilities of different labels.
        """
        if flaw := flaw_of_logprobs(logprobs.values()):
            raise NoDistribution(flaw)
        raw = {label: math.exp(value) for label, value in logprobs.items()}
        mass = math.fsum(raw.values())
        if not mass > 0:
            return None
        return cls({label: value / mass for label, value in raw.items()}, min(mass, 1.0))

    @property
    def mode(self) -> str:
        """The likeliest label; of equally likely ones (to 12 digits, since sums are rounded) the first on the scale.

        A verdict is the one that the text states, if it is one of them.
        """
        return likeliest(self.probabilities)[0]

    @property
    def choice(self) -> str:
        """Of a pair, the likeliest choice; `tie` where several are equally likely."""
        return likeliest_choice(self.probabilities)

    @property
    def entropy(self) -> float:
        """Shannon entropy in nats, 0 (certain) to ln(number of labels)."""
        return -math.fsum(p * math.log(p) for p in self.probabilities.values() if p > 0) + 0.0

    def expected(self, scale: Scale) -> float:
        """The mean of the labels' values."""
        return math.fsum(p * scale.value(label) for label, p in self.probabilities.items())


def logit(distribution: Mapping[str, float], first: str, second: str) -> float:
    """Ln p(first) - ln p(second), in nats, from -27.6 to 27.6: a probability below `FLOOR` counts as that.

    A tie label takes no part.
    """
    return math.log(max(distribution[first], FLOOR)) - math.log(max(distribution[second], FLOOR))


@dataclass(frozen=True, slots=True)
class SymmetricLogit:
    """The joint preference of two orders of a pair, in nats. Positive `preference` is for a, positive `bias` for slot
    one.

    preference = (l_ab + l_ba) / 2 and bias = (l_ab - l_ba) / 2, where l_xy = ln p(a) - ln p(b) when x is shown first. A
    bias that adds to the first slot's logit cancels in `preference` exactly.
    """

    preference: float
    bias: float


def symmetric_logit(a_first: Mapping[str, float], b_first: Mapping[str, float]) -> SymmetricLogit:
    """Both orders' distributions over a, b and perhaps tie (as responses, not as slots)."""
    ab, ba = logit(a_first, "a", "b"), logit(b_first, "a", "b")
    return SymmetricLogit((ab + ba) / 2, (ab - ba) / 2)


def combine_samples(verdicts: Sequence[Verdict], scale: Scale | None) -> Verdict:
    """Several samples of one question as one verdict: the mean of their distributions (soft self-consistency).

    A sample without a distribution votes with its whole weight for its label; a sample without a verdict has no vote,
    and its share is in `reason`. If all failed, the result is the first failure. `scale` None for pairs. Usage adds up.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    voting = [verdict for verdict in verdicts if verdict.status is Status.OK]
    usage = sum((verdict.usage for verdict in verdicts), Usage())
    attempts = tuple(attempt for verdict in verdicts for attempt in verdict.attempts)
    key = fingerprint([verdict.key for verdict in verdicts])
    if not voting:
        return replace(verdicts[0], key=key, usage=usage, attempts=attempts)
    votes = [Vote(str(v.label), v.distribution, v.marker == "forced", v.conflict) for v in voting]
    joint = join_votes(votes, scale.labels if scale else ("a", "b", "tie"))
    distribution = Distribution(joint.distribution, 1.0)
    label = distribution.mode if scale else distribution.choice
    masses = [verdict.mass for verdict in voting if verdict.mass is not None]
    best = max(voting, key=lambda verdict: (verdict.label == label, verdict.feedback != ""))
    failed = len(verdicts) - len(voting)
    return replace(
        best,
        key=key,
        label=label,
        score=scale.value(label) if scale else None,
        reason=f"{failed} of {len(verdicts)} samples had no verdict" if failed else "",
        distribution=joint.distribution,
        mass=math.fsum(masses) / len(masses) if masses else None,
        expected=distribution.expected(scale) if scale else None,
        marker="forced" if joint.forced else best.marker,
        conflict=joint.conflict,
        attempts=attempts,
        usage=usage,
    )


def bounded_told(preferences: Mapping[str, Any]) -> str:
    """A caveat of a position bias in nats if a response had a probability of 0; "" otherwise."""
    if not (bounded := preferences.get("position_bias_bounded")):
        return ""
    n, most = preferences["position_bias_nats"]["n"], -math.log(FLOOR)
    return f"{bounded:,} of {counted(n, 'pair')} cut off at {most:.1f} nats: a probability of 0 counts as {FLOOR:g}"
