"""Whether numbers are a probability distribution: decided in one place, for every engine and every table."""

import math
from collections.abc import Iterable, Mapping, Sequence

ROUNDING = 0.01
"""How far above 1 a sum of probabilities may lie: log-probabilities worked out in bfloat16 are off by half of that."""


_DIGITS = 12  # digits to which equal probabilities agree, since sums are rounded


class NoDistribution(ValueError):
    """Numbers that cannot be the probabilities of different outcomes; the message says why."""


def flaw_of_shares(shares: Iterable[object], rounding: float = ROUNDING) -> str:
    """Why these cannot be probabilities of different outcomes; "" if they can. They may sum to less than 1."""
    known = []
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < math.inf:
            return f"a probability of {share!r:.40}"
        known.append(min(share, 1e9))
    total = math.fsum(known)
    return f"probabilities that sum to {total:.6g}" if total > 1 + rounding else ""


def flaw_of_logprobs(logprobs: Iterable[object]) -> str:
    """As `flaw_of_shares`, for natural logarithms of probabilities; -infinity is a probability of 0."""
    shares = []
    for logprob in logprobs:
        if isinstance(logprob, bool) or not isinstance(logprob, int | float) or logprob != logprob:
            return f"a log-probability of {logprob!r:.40}"
        if logprob > ROUNDING:
            return f"a log-probability above 0 ({logprob!r:.40})"
        shares.append(math.exp(max(logprob, -1e4)))
    return flaw_of_shares(shares)


def mean_distribution(distributions: Sequence[Mapping[str, float]], labels: Iterable[str]) -> dict[str, float]:
    """The mean of several distributions (at least one) over the same labels; one that is absent has probability 0."""
    return {label: math.fsum(each.get(label, 0.0) for each in distributions) / len(distributions) for label in labels}


def likeliest(probabilities: Mapping[str, float]) -> list[str]:
    """The labels of the greatest probability, in their order: several where they are equally likely."""
    rounded = {label: round(share, _DIGITS) for label, share in probabilities.items()}
    most = max(rounded.values(), default=0.0)
    return [label for label, share in rounded.items() if share == most]


def likeliest_choice(probabilities: Mapping[str, float]) -> str:
    """Of a pair, the choice that is likelier than every other; `tie` where several are equally likely.

    Equal probabilities are a tie; taking the first of them would favour the response that happens to be named first.
    """
    found = likeliest(probabilities)
    return found[0] if len(found) == 1 else "tie"
