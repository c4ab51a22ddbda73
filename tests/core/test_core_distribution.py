"""What is a distribution: worked out by hand, at the edges and beyond them."""

import math

import pytest

from dikast.core.distribution import flaw_of_logprobs, flaw_of_shares


@pytest.mark.parametrize(
    ("logprobs", "told"),
    [
        ([0.0] * 5, "sum to 5"),
        ([3.0, 2.0], "above 0 (3.0)"),
        ([-0.1] * 19, "sum to 17.19"),  # 19 exp(-.1) = 17.19
        ([math.nan, -1.0], "log-probability of nan"),
        ([True], "log-probability of True"),
        (["-1"], "log-probability of '-1'"),
        ([None], "log-probability of None"),
        ([10**400], "above 0"),
        ([math.inf], "above 0"),
        ([math.log(0.6), math.log(0.42)], "sum to 1.02"),  # .02 above 1
    ],
)
def test_what_is_no_distribution_says_why(logprobs: list[object], told: str) -> None:
    assert told in flaw_of_logprobs(logprobs)


@pytest.mark.parametrize(
    "logprobs",
    [
        [],
        [-math.inf, -math.inf],
        [math.log(0.2)] * 5,
        [math.log(0.6), math.log(0.409)],  # sums to 1.009: rounding
        [1e-7, -17.0],
        [-0.5],  # labels need not hold all of it
        [-(10**400), 0],
    ],
)
def test_what_may_be_one_is_taken(logprobs: list[object]) -> None:
    assert flaw_of_logprobs(logprobs) == ""


def test_shares() -> None:
    assert flaw_of_shares([0.5, 0.5]) == ""
    for wrong in ([-0.1, 1.0], [1.02], [math.nan], [True, 0.0], ["1"], [10**400], [0.7, 0.4], [math.inf]):
        assert flaw_of_shares(wrong), wrong
