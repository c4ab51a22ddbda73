"""What each set of items shows, by hand."""

import math
from collections.abc import Sequence

import pytest

from dikast.probes.measure import Answers, contrasts, plain_answers, trend
from dikast.probes.outcome import measure
from dikast.probes.plan import ProbePlan
from dikast.probes.result import Result
from dikast.probes.sets import Asked
from probing import PROBES, asked


def card(probe: str, pairs: Sequence[tuple[float | None, float | None]]) -> Result:
    """The result of one probe of originals and changed items without gold."""
    rows = [
        (f"i{i}~{variant}", None, score)
        for i, pair in enumerate(pairs)
        for variant, score in zip(("base", probe), pair, strict=True)
    ]
    found, told = asked(rows)
    (result,) = measure(ProbePlan([PROBES[probe]], 0, found), told)
    return result


def test_an_effect_by_hand() -> None:
    # eight of twelve gain a level, four stay: mean 2/3, sd = sqrt((8/9 + 16/9) / 11) = .4924, error .1421
    found = card("authority", [(2, 3)] * 8 + [(4, 4)] * 4 + [(3, None)])
    assert math.isclose(found.effect.value, 2 / 3)
    assert (found.effect.n, found.lost) == (12, 1)
    assert math.isclose(found.spread, math.sqrt(24 / 9 / 11))
    # a faultless judge of this noise stays below .05 + t(.975, 11) x .1421 = .05 + 2.201 x .1421 = .3628
    assert math.isclose(found.faultless.high, 0.3628, abs_tol=5e-4)
    assert found.deaf == 0
    assert found.result == "faulty"
    assert found.p == found.p_holm  # a card of one


def test_one_sided_cues_may_cost() -> None:
    assert card("authority", [(4, 2)] * 8 + [(4, 3)] * 4).result == "sound"
    assert card("style", [(4, 2)] * 8 + [(4, 3)] * 4).result == "faulty"


def test_length_is_told_per_doubling() -> None:
    found = card("length", [(2, 3)] * 12)  # 16 words for 2: three doublings, one level
    assert math.isclose(found.effect.value, 1 / 3, rel_tol=0.02)


def test_too_few_answers_tell_nothing() -> None:
    found = card("authority", [(2, 3)] * 5 + [(2, None)] * 8)
    assert found.result == "cannot tell"
    assert found.lost == 8
    assert math.isnan(found.p)


def test_a_wide_spread_is_not_sound() -> None:
    found = card("style", [(1, 5), (5, 1)] * 6)
    assert found.result == "cannot tell"
    assert found.effect.high > 1
    # sd = 4 sqrt(12/11) = 4.178; (z(1 - .0451 / 2) + z(.95)) x 4.178 / (.75 - .05) = (2.004 + 1.645) x 5.968 = 21.78
    assert math.isclose(found.need, 21.78**2, rel_tol=0.002)


def test_a_constant_judge_is_moved_by_nothing() -> None:
    found = card("style", [(3, 3)] * 13)
    assert found.result == "sound"
    assert found.p == 1
    # none of 13 moved; had 3 of them moved by the whole scale, 4 levels, the mean would be 12 / 13
    assert (found.effect.low, found.effect.high) == pytest.approx((-12 / 13, 12 / 13))
    few = card("style", [(3, 3)] * 12)
    assert few.result == "cannot tell"  # 12 / 12: an effect of a level is not excluded
    assert few.need == 13


def test_too_few_sets_are_not_probed() -> None:
    found = card("style", [(3, 3)] * 9)
    assert found.result == "not probed"
    assert "9 sets of items were asked, 10 are needed" in found.note
    plan = ProbePlan([PROBES["style"]], 0, skipped={"style": "no reason"})
    (found,) = measure(plan, Answers({}, {}, {}))
    assert (found.result, found.note, found.effect.n) == ("not probed", "no reason", 0)


def test_a_picture_without_gold_must_cost_a_quarter_of_a_level() -> None:
    rows = [
        (f"i{i}~{variant}", None, score) for i in range(12) for variant, score in (("base", 4), ("image-blanked", 4))
    ]
    found, told = asked(rows)
    (result,) = measure(ProbePlan([PROBES["image-blanked"]], 0, found), told)
    assert result.result == "faulty"
    assert result.faultless.low == pytest.approx(0.25)
    assert math.isnan(result.deaf_share.value)


def test_what_gold_calls_for_is_read_along_its_direction() -> None:
    rows = [("a-base~set", 5.0, 5.0), ("a-base~image-removed", 1.0, 2.0)]
    found, told = asked(rows)
    (contrast,) = contrasts(PROBES["image-removed"], found, told)
    assert contrast is not None
    assert (contrast.effect, contrast.due, contrast.before) == (3, 4, 1)


def test_only_what_no_change_can_have_spoilt_measures_noise() -> None:
    rows = [
        ("a~base", 5.0, 5.0),
        ("a~authority", 5.0, 4.0),
        ("a~injection-response", 5.0, 5.0),
        ("a~key0", 1.0, 5.0),
        ("s-first~set", 1.0, 2.0),
        ("s-second~set", 5.0, 2.0),
        ("l-off0~set", 5.0, 4.0),
        ("l-off3~set", 1.0, 4.0),
        ("b~base", None, 4.0),
        ("c~base", 3.0, None),
    ]
    plain = plain_answers(*asked(rows))
    assert [(each.item, each.change) for each in plain] == [
        ("a", ""),
        ("a", "authority"),
        ("s-first", ""),
        ("l-off0", ""),
    ]
    assert [(each.gold, each.answer) for each in plain] == [(0.5, 0.5), (0.5, 0.25), (-0.5, -0.25), (0.5, 0.25)]


def test_a_trend_by_hand() -> None:
    # places 0, 1/3, 2/3, 1 of four items as gold has them, answers rising by .1 of the scale (.4 levels) each: the
    # slope over the run is 1.2 levels, and nothing is left over
    rows = [(f"i{i}~base", 3.0, 3 + 0.4 * i) for i in range(4)]
    found = trend(*asked(rows), {f"i{i}~base": 0.5 for i in range(4)})
    assert found.value == pytest.approx(1.2)
    assert found.error == pytest.approx(0)
    assert found.n == 4


def test_a_trend_needs_items() -> None:
    assert math.isnan(trend(Asked(), Answers({}, {}, {}), {}).value)
    rows = [("i~base", 3.0, 3.0)]
    assert math.isnan(trend(*asked(rows), {"i~base": 0.5}).value)


@pytest.mark.parametrize("probe", [p.name for p in PROBES.values()])
def test_every_probe_says_what_it_is_about(probe: str) -> None:
    assert PROBES[probe].about
    assert PROBES[probe].needs
    assert PROBES[probe].need >= 10
