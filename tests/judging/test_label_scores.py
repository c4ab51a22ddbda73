"""From probabilities to scores, with the arithmetic written out."""

import math

import pytest

from dikast.core.distribution import NoDistribution
from dikast.core.scale import Scale
from dikast.core.verdict import Question, Status, Usage, Verdict
from dikast.engines.mock import Oracle
from dikast.judging.judge import Judge
from dikast.judging.label_scores import Distribution, combine_samples, logit, symmetric_logit

FIVE = Scale.parse("1-5")


def test_a_distribution_by_hand() -> None:
    # absolute probabilities .1, .3, .1 on the labels: mass .5, renormalised .2, .6, .2
    found = Distribution.of({"1": math.log(0.1), "2": math.log(0.3), "3": math.log(0.1)})
    assert found is not None
    assert found.mass == pytest.approx(0.5)
    assert found.probabilities == pytest.approx({"1": 0.2, "2": 0.6, "3": 0.2})
    assert found.mode == "2"
    assert found.expected(Scale.parse("1-3")) == pytest.approx(0.2 * 1 + 0.6 * 2 + 0.2 * 3)  # 2.0
    # -(2 * .2 ln .2 + .6 ln .6) = .4 * 1.6094 + .6 * .5108 = .9503 nats
    assert found.entropy == pytest.approx(0.950270539)


def test_the_entropy_of_certainty_and_of_ignorance() -> None:
    sure = Distribution.of({"1": 0.0, "2": -math.inf})
    even = Distribution.of(dict.fromkeys("12345", math.log(0.2)))
    assert sure is not None
    assert even is not None
    assert sure.entropy == 0.0
    assert math.copysign(1, sure.entropy) == 1  # not -0.0
    assert even.entropy == pytest.approx(math.log(5))
    assert even.mode == "1"  # the first of equal labels


def test_no_mass_is_no_distribution() -> None:
    assert Distribution.of({}) is None
    assert Distribution.of({"1": -math.inf, "2": -math.inf}) is None


@pytest.mark.parametrize(
    "logprobs",
    [{"1": math.nan}, {"1": 0.5, "2": -9.0}, dict.fromkeys("12345", 0.0), {"1": True, "2": -1.0}, {"1": None}],
    ids=["nan", "positive", "sum", "bool", "none"],
)
def test_what_cannot_be_probabilities_is_refused(logprobs: dict[str, float]) -> None:
    with pytest.raises(NoDistribution):
        Distribution.of(logprobs)


def test_rounding_above_one_is_not_kept() -> None:
    found = Distribution.of({"1": 1e-9, "2": -40.0})
    assert found is not None
    assert found.mass == 1.0
    assert math.fsum(found.probabilities.values()) == pytest.approx(1.0)


def test_expected_on_scales_of_words_and_of_steps() -> None:
    half = Distribution({"fail": 0.25, "pass": 0.75}, 1.0)
    assert half.expected(Scale.parse("pass/fail")) == 0.75
    letters = Distribution({"C": 0.5, "B": 0.25, "A": 0.25}, 1.0)
    assert letters.expected(Scale.parse("A-C")) == 0.5 * 1 + 0.25 * 2 + 0.25 * 3
    tenths = Distribution({"0.1": 0.5, "0.3": 0.5}, 1.0)
    assert tenths.expected(Scale.parse("0-1/0.1")) == pytest.approx(0.2)


def test_a_logit_of_what_underflowed_is_finite() -> None:
    assert logit({"a": 0.8, "b": 0.2}, "a", "b") == pytest.approx(math.log(4))
    assert logit({"a": 1.0, "b": 0.0}, "a", "b") == pytest.approx(12 * math.log(10))


def test_symmetric_logits_by_hand() -> None:
    # a shown first: p(a) = .9, p(b) = .1, l = ln 9 = 2.1972; b shown first: .5 and .5, l = 0
    both = symmetric_logit({"a": 0.9, "b": 0.1}, {"a": 0.5, "b": 0.5})
    assert both.preference == pytest.approx(math.log(9) / 2)
    assert both.bias == pytest.approx(math.log(9) / 2)
    # a tie takes no part: only the odds of a to b count
    tied = symmetric_logit({"a": 0.45, "b": 0.05, "tie": 0.5}, {"a": 0.2, "b": 0.2, "tie": 0.6})
    assert tied.preference == pytest.approx(both.preference)


@pytest.mark.parametrize("nats", [0.0, 0.7, -1.3, 2.5])
@pytest.mark.parametrize("gold", [[4, 2], [2, 4], [3, 3]])
def test_a_position_bias_comes_back_exactly_and_cancels(nats: float, gold: list[int]) -> None:
    item = {"id": "p", "instruction": "Which?", "responses": ["One.", "Another."], "gold": gold}
    biased = Judge(Oracle(nats=nats, r=1.0), "helpfulness").compare(item)
    fair = Judge(Oracle(r=1.0), "helpfulness").compare(item)
    assert biased.position_bias is not None
    assert biased.logit_a is not None
    assert biased.position_bias == pytest.approx(nats, abs=1e-9)
    assert biased.logit_a == pytest.approx(fair.logit_a, abs=1e-9)
    assert fair.position_bias == pytest.approx(0.0, abs=1e-9)


def sample(
    label: str | None, distribution: dict[str, float] | None = None, number: int = 0, status: Status = Status.OK
) -> Verdict:
    score = float(label) if label else None
    question = Question("i", "c", (0,), number)
    usage = Usage(10, 0, 5, 0.5)
    return Verdict(f"{number:032}", question, status, label, score, "why" * (not label), distribution=distribution,
                   mass=0.9 if distribution else None, marker="own" if label else None, usage=usage)  # fmt: skip


def test_samples_by_hand() -> None:
    # .5/.5/0 on 1, 2, 3 and .1/.2/.7: mean .3, .35, .35 -> the first of equals is 2; 1*.3 + 2*.35 + 3*.35 = 2.05
    scale = Scale.parse("1-3")
    one, two = sample("1", {"1": 0.5, "2": 0.5}), sample("3", {"1": 0.1, "2": 0.2, "3": 0.7}, 1)
    both = combine_samples([one, two], scale)
    assert both.distribution == pytest.approx({"1": 0.3, "2": 0.35, "3": 0.35})
    assert (both.label, both.score) == ("2", 2.0)
    assert both.expected == pytest.approx(2.05)
    assert both.mass == pytest.approx(0.9)
    assert (both.usage.tokens_in, both.usage.tokens_out, both.usage.seconds) == (20, 10, 1.0)
    assert both.reason == ""
    assert both.key not in (one.key, two.key)


def test_a_sample_without_a_distribution_votes_with_all_its_weight() -> None:
    # 1 with certainty, and .4/.6 on 1, 2: .7, .3
    both = combine_samples([sample("1"), sample("2", {"1": 0.4, "2": 0.6}, 1)], Scale.parse("1-2"))
    assert both.distribution == pytest.approx({"1": 0.7, "2": 0.3})
    assert both.label == "1"


def test_failed_samples_have_no_vote_and_are_told() -> None:
    failed = sample(None, number=0, status=Status.REFUSED)
    most = combine_samples([failed, sample("4", number=1), sample("5", number=2), sample("5", number=3)], FIVE)
    assert (most.label, most.status, most.reason) == ("5", Status.OK, "1 of 4 samples had no verdict")
    assert most.expected == pytest.approx((4 + 5 + 5) / 3)
    none = combine_samples([failed, sample(None, number=1, status=Status.TRUNCATED)], FIVE)
    assert (none.label, none.score, none.status, none.expected) == (None, None, Status.REFUSED, None)
    assert none.usage.tokens_out == 10
    assert combine_samples([failed], FIVE) is failed


def test_samples_of_a_pair_join_as_choices() -> None:
    # .8/.2 for a and a plain choice of b: .4 a, .6 b
    one, two = sample("1"), sample("2", number=1)
    pair = [
        Verdict(one.key, one.question, Status.OK, "a", distribution={"a": 0.8, "b": 0.2}),
        Verdict(two.key, two.question, Status.OK, "b"),
    ]
    both = combine_samples(pair, None)
    assert both.distribution == pytest.approx({"a": 0.4, "b": 0.6, "tie": 0.0})
    assert (both.label, both.score, both.expected) == ("b", None, None)
