"""Several samples of one question make one verdict: the rule that runs and audits share."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dikast.core.distribution import mean_distribution


class Vote(NamedTuple):
    """The vote of a sample with a verdict: its label, and its distribution over the labels if one was read."""

    label: str
    distribution: Mapping[str, float] | None
    forced: bool  # its marker was added by Dikast
    conflict: bool  # another verdict of its own reply contradicts it


class Joint(NamedTuple):
    """All votes together: the mean of their distributions; `read` if each had one of its own."""

    distribution: dict[str, float]
    read: bool
    forced: bool
    conflict: bool


def join_votes(votes: Sequence[Vote], labels: Sequence[str]) -> Joint:
    """The votes of one question together (at least one): a vote without a distribution gives its label all its weight.

    Samples without a verdict have no vote. One forced or contradicted vote makes the whole forced or contradicted.
    """
    return Joint(
        mean_distribution([vote.distribution or {vote.label: 1.0} for vote in votes], labels),
        all(vote.distribution for vote in votes),
        any(vote.forced for vote in votes),
        any(vote.conflict for vote in votes),
    )
