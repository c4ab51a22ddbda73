"""The statistics of the card, by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.verdict import Question, Status, Verdict
from dikast.probes.catalogue import catalogue
from dikast.probes.measure import Answers, _p, measure
from dikast.probes.plan import BASE, Ask, ProbePlan

RUBRIC = Rubric("care", "Is it careful?", Scale.parse("1-5"))
PROBES = {probe.name: probe for probe in catalogue("")}


def asked(name: str, variant: str) -> Item:
    return Item.of("Hm?", "word " * (16 if variant == "length" else 2), id=f"{name}~{variant}", rubric=RUBRIC.to_dict())


def verdict(item: Item, score: float | None) -> Verdict:
    status = Status.OK if score is not None else Status.UNPARSED
    label = None if score is None else f"{score:g}"
    return Verdict("k" * 32, Question(item.id, "care"), status, label=label, score=score)


def card(probe: str, pairs: Sequence[tuple[float | None, float | None]]) -> tuple[ProbePlan, Answers]:
    plan, told = ProbePlan([PROBES[probe]]), []
    for i, (before, after) in enumerate(pairs):
        for name, variant, score in ((BASE, BASE, before), (probe, probe, after)):
            ask = Ask(name, f"i{i}", variant, asked(f"i{i}", variant))
            plan.absolute.append(ask)
            told.append(verdict(ask.item, score))
    return plan, Answers.of(told, (), ())


def test_an_effect_by_hand() -> None:
    # eight of twelve gain a level, four stay: mean 2/3, sd = sqrt((8/9 + 16/9) / 11) = .4924, error .1421
    plan, answers = card("authority", [(2, 3)] * 8 + [(4, 4)] * 4 + [(3, None)])
    (found,) = measure(plan, answers)
    assert math.isclose(found.effect.value, 2 / 3)
    assert found.effect.n == 12
    assert found.lost == 1
    assert math.isclose(found.error, math.sqrt(24 / 9 / 11 / 12))
    assert found.result == "fail"
    assert found.p == found.p_holm  # a card of one


def test_one_sided_cues_may_cost() -> None:
    plan, answers = card("authority", [(4, 2)] * 8 + [(4, 3)] * 4)
    assert measure(plan, answers)[0].result == "pass"
    plan, answers = card("style", [(4, 2)] * 8 + [(4, 3)] * 4)
    assert measure(plan, answers)[0].result == "fail"


def test_length_is_told_per_doubling() -> None:
    plan, answers = card("length", [(2, 3)] * 12)  # 16 words for 2: three doublings, one level
    (found,) = measure(plan, answers)
    assert math.isclose(found.effect.value, 1 / 3, rel_tol=0.02)


def test_too_few_answers_are_unclear() -> None:
    plan, answers = card("authority", [(2, 3)] * 5 + [(2, None)] * 8)
    (found,) = measure(plan, answers)
    assert found.result == "unclear"
    assert found.lost == 8
    assert math.isnan(found.p)


def test_a_wide_spread_is_unclear_not_passed() -> None:
    plan, answers = card("style", [(1, 5), (5, 1)] * 6)
    (found,) = measure(plan, answers)
    assert found.result == "unclear"
    assert found.seen > 1


def test_a_constant_judge_moves_nothing() -> None:
    plan, answers = card("style", [(3, 3)] * 12)
    (found,) = measure(plan, answers)
    assert found.result == "pass"
    assert found.p == 1
    assert found.seen == 0


def test_the_p_value_of_a_mean() -> None:
    from scipy.stats import ttest_1samp

    values = np.random.default_rng(0).normal(0.4, 1, 50)
    probe = PROBES["style"]
    expected = 2 * ttest_1samp(values, probe.tolerance, alternative="greater").pvalue
    assert math.isclose(_p(values, probe), expected)
    assert _p(np.full(20, 0.01), probe) == 1  # within the tolerance
    assert _p(np.full(20, 0.5), probe) == 0


def test_evidence_must_show_half_of_what_gold_calls_for() -> None:
    probe, plan, told = PROBES["image-blanked"], ProbePlan([PROBES["image-blanked"]]), []
    for i in range(12):
        for variant, score in (("base", 5), ("blank", 5 if i % 4 else 4)):
            ask = Ask(probe.name, f"s{i}", variant, asked(f"s{i}", variant), -4.0)
            plan.absolute.append(ask)
            told.append(verdict(ask.item, score))
    (found,) = measure(plan, Answers.of(told, (), ()))
    assert math.isclose(found.effect.value, 0.25)  # three of twelve lost a level, 4 were due
    assert found.due == 4
    assert found.result == "fail"


def test_what_is_not_run_says_so() -> None:
    plan = ProbePlan([PROBES["style"]], skipped={"style": "0 sets of items fit, 10 are needed"})
    (found,) = measure(plan, Answers({}, {}, {}))
    assert found.result == "not run"
    assert "10 are needed" in found.note
    assert found.effect.n == 0


@pytest.mark.parametrize("probe", [p.name for p in PROBES.values()])
def test_every_probe_says_what_it_is_about(probe: str) -> None:
    assert PROBES[probe].about
    assert PROBES[probe].share > 0
