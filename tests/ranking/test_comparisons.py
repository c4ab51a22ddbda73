"""Strengths and rewards by hand."""

import math

import numpy as np

from dikast.core.verdict import Question, Status, Verdict
from dikast.ranking.comparisons import (
    Comparison,
    OrderedPair,
    fit_strengths,
    games_of,
    groups_of,
    stacks_of,
)


def published_rewards(scores: np.ndarray) -> np.ndarray:
    """The reward of LLaVA-Critic from a full round robin: r_i = sum_k a_ki - sum_l a_il, shape (k,).

    scores (k, k): a_ij is the score of response j relative to response i, shown as the second and the first. A value
    of a `Comparison` of (i, j) is -a_ij. Source: LLaVA-Critic (Xiong et al. 2024), section 4.2. It is 2k times the
    strength of least squares, and a slot bias cancels in it.
    """
    scores = np.asarray(scores, np.float64)
    inside = scores - np.diag(np.diag(scores))
    return np.asarray(inside.sum(0) - inside.sum(1))


def compared(*values: tuple[int, int, float]) -> list[Comparison]:
    return [Comparison(OrderedPair(i, j), math.copysign(1, v) if v else 0.0, math.tanh(v / 2), v) for i, j, v in values]


def test_the_published_reward_by_hand() -> None:
    # a_ij is the score of j beside i. r_0 = (a_10 + a_20) - (a_01 + a_02) = (3 + 4) - (-1 + -2) = 10
    # r_1 = (a_01 + a_21) - (a_10 + a_12) = (-1 + 2) - (3 + -2) = 0; r_2 = (a_02 + a_12) - (a_20 + a_21) = -4 - 6 = -10
    scores = np.array([[9.0, -1.0, -2.0], [3.0, 9.0, -2.0], [4.0, 2.0, 9.0]])
    assert published_rewards(scores).tolist() == [10.0, 0.0, -10.0]


def test_least_squares_of_a_full_round_robin_is_the_published_reward_whatever_the_slot_bias() -> None:
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        scores = rng.normal(size=(k, k))
        values = [(i, j, -scores[i, j]) for i in range(k) for j in range(k) if i != j]
        for bias in (0.0, 1.7):
            found = fit_strengths(games_of(compared(*values), k, "logit"), bias)
            assert np.allclose(2 * k * found.strengths, published_rewards(scores))


def test_strengths_of_a_chain_by_hand() -> None:
    # 0 beats 1 by 2, 1 beats 2 by 1: strengths a, a - 2, a - 3 that sum to 0, so a = 5/3
    chain = games_of(compared((0, 1, 2.0), (1, 2, 1.0)), 3, "logit")
    found = fit_strengths(chain)
    assert np.allclose(found.strengths, [5 / 3, -1 / 3, -4 / 3])
    assert (int(found.rank), float(found.left), groups_of(chain)) == (2, 0.0, [[0, 1, 2]])
    # less a slot bias of 1 the margins are 1 and 0
    assert np.allclose(fit_strengths(chain, 1.0).strengths, [2 / 3, -1 / 3, -1 / 3])


def test_responses_that_nothing_connects_are_groups_of_their_own() -> None:
    apart = games_of(compared((0, 1, 2.0), (2, 3, 1.0)), 5, "logit")
    assert groups_of(apart) == [[0, 1], [2, 3], [4]]
    found = fit_strengths(apart)
    assert np.allclose(found.strengths, [1, -1, 0.5, -0.5, 0])
    assert found.rank == 2
    assert fit_strengths(games_of([], 2, "logit")).strengths.tolist() == [0, 0]
    (both,) = map(fit_strengths, stacks_of([apart, games_of(compared((4, 0, 3.0)), 5, "logit")]))
    assert np.allclose(both.strengths, [[1, -1, 0.5, -0.5, 0], [-1.5, 0, 0, 0, 1.5]])
    assert both.rank.tolist() == [2, 1]


def verdict(responses: tuple[int, int], label: str | None, read: dict[str, float] | None = None) -> Verdict:
    status = Status.OK if label else Status.UNPARSED
    return Verdict("k", Question("i", "c", responses), status, label, distribution=read)


def test_a_comparison_is_of_the_response_shown_first() -> None:
    read = {"a": 0.6, "b": 0.3, "tie": 0.1}
    one = Comparison.of(verdict((0, 2), "a", read))
    other = Comparison.of(verdict((2, 0), "a", read))  # the choice a is response 0, now shown second
    assert (one.verdict, other.verdict) == (1.0, -1.0)
    assert math.isclose(one.probability, 0.3)
    assert math.isclose(one.logit, math.log(2))
    assert math.isclose(other.logit, -math.log(2))
    assert math.isnan(Comparison.of(verdict((0, 1), "tie")).logit)
    assert math.isnan(Comparison.of(verdict((0, 1), None)).verdict)
    tie = Comparison.of(verdict((1, 0), "tie")).verdict
    assert (tie, math.copysign(1, tie)) == (0, 1)  # no negative zero
