"""Sound, faulty, cannot tell: judges whose answers are written down."""

import numpy as np
import pytest

from dikast.probes.card import Card
from dikast.probes.outcome import bound, gain, measure, needs
from dikast.probes.plan import ProbePlan
from dikast.probes.result import Result
from probing import PROBES, asked


def responding(answer: dict[int, float], deaf: float = 0.0, n: int = 40, noise: float = 0.5, **levels: float) -> Result:
    """`image-removed` of a judge that answers `answer[gold]` with noise, and on a share of items as before."""
    rng = np.random.default_rng(1)
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(60):
        gold = 1 + i % 5
        rows.append((f"i{i}~base", gold, answer[gold] + noise * rng.normal()))
    for i in range(n):
        before = answer[5] + noise * rng.normal()
        after = before if i < deaf * n else answer[1] + noise * rng.normal()
        rows += [(f"s{i}-base~set", 5, before), (f"s{i}-base~image-removed", 1, after)]
    found, told = asked([(id, gold, min(max(score or 0, 1), 5)) for id, gold, score in rows])
    (result,) = measure(ProbePlan([PROBES["image-removed"]], 0, found), told)
    return result


NOISY = {1: 2.0, 2: 2.5, 3: 3.0, 4: 3.5, 5: 4.0}  # half of what is due shows


def test_noise_is_not_deafness() -> None:
    found = responding(NOISY)
    assert found.result == "sound"
    assert found.effect.value < 2.5  # of 4 levels due: the old rule asked for half
    assert found.faultless.low < 2 < found.faultless.high
    assert found.deaf == 0
    assert found.deaf_share.low == 0
    assert found.due == 4


@pytest.mark.parametrize("deaf", [0.4, 0.8, 1.0])
def test_deafness_is_found_and_its_share_told(deaf: float) -> None:
    found = responding(NOISY, deaf)
    assert found.result == "faulty"
    assert found.deaf_share.low <= deaf <= found.deaf_share.high
    assert found.deaf_share.low > 0.15


def guessing(deaf: float, seed: int, probe: str = "image-removed") -> Result:
    """Of a judge with noise of its own in each answer, that on a share of items judges the changed one as the first."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, float | None, float | None]] = [
        (f"i{i}~base", 1 + i % 5, NOISY[1 + i % 5] + 0.7 * rng.normal()) for i in range(150)
    ]
    for i in range(40):
        seen = NOISY[5 if i < deaf * 40 else 1]
        rows.append((f"s{i}-base~set", 5, NOISY[5] + 0.7 * rng.normal()))
        rows += [(f"s{i}-base~image-{how}", 1, seen + 0.7 * rng.normal()) for how in ("removed", "noised", "blanked")]
    found, told = asked([(id, gold, min(max(score or 0, 1), 5)) for id, gold, score in rows])
    plan = ProbePlan(
        [PROBES[name] for name in ("image-removed", "image-noised", "image-blanked", "blindness")], 0, found
    )
    return next(each for each in measure(plan, told) if each.probe == probe)


def test_deafness_under_noise_of_its_own_is_found() -> None:
    # the spread is that of a faultless judge: deafness on a part of the items spreads changes too, and hid behind it
    assert sum(guessing(0.4, seed).result == "faulty" for seed in range(10)) >= 8
    assert not any(guessing(0.0, seed).result == "faulty" for seed in range(10))
    assert guessing(0.4, 0).spread < 4 * 0.25


def test_pictures_are_pooled() -> None:
    found = guessing(0.4, 0, "blindness")
    assert found.effect.n == 40  # one mean for each original
    assert found.result == "faulty"
    assert found.deaf_share.low < 0.4 < found.deaf_share.high
    assert guessing(0.0, 0, "blindness").result == "sound"


def test_a_judge_that_says_one_thing_is_deaf_on_a_share_with_an_interval() -> None:
    found = responding(dict.fromkeys(range(1, 6), 3.0), noise=0.0, n=20)
    assert found.deaf_share.value == 1
    assert found.deaf_share.low == pytest.approx(0.839, abs=0.001)  # Wilson: 20 / (20 + 1.96^2) = .8389


def test_a_judge_that_fails_is_not_told_sound() -> None:
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(40):
        rows += [(f"i{i}~base", None, 3.0), (f"i{i}~style", None, 3.0 if i % 2 else None)]
    found, told = asked(rows)
    (result,) = measure(ProbePlan([PROBES["style"]], 0, found), told)
    assert result.result == "cannot tell"
    assert result.note == "20 of 40 have an answer missing"


def test_what_a_deaf_judge_misses_is_no_drift() -> None:
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(60):  # it always says 3; later on, gold of changed items is nearer to 3
        rows += [(f"s{i}-base~set", 3, 3.0), (f"s{i}-base~image-removed", 1 + i / 30, 3.0)]
    rows += [(f"i{i}~base", 1 + i % 5, 3.0) for i in range(30)]
    found, told = asked(rows)
    (drift,) = measure(ProbePlan([PROBES["run-order"]], 0, found), told)
    assert drift.effect.value == pytest.approx(0, abs=0.05)


def test_few_sets_cannot_tell() -> None:
    found = responding(NOISY, 0.2, n=10)
    assert found.result == "cannot tell"
    assert found.deaf_share.high > 0.4


def test_a_judge_that_says_one_thing_has_no_noise_to_hide_behind() -> None:
    found = responding(dict.fromkeys(range(1, 6), 3.0), noise=0.0)
    assert found.result == "faulty"
    assert found.effect.value == 0
    # too flat to expect anything of: .15 of the 4 levels due must show, less 5 %
    assert found.faultless.low == pytest.approx(0.6)


def test_answers_to_nothing_may_be_lifted_by_noise_alone() -> None:
    rows: list[tuple[str, float | None, float | None]] = [
        (f"i{i}~base", 1 + i % 5, NOISY[1 + i % 5]) for i in range(60)
    ]
    keys: list[tuple[str, float | None, float | None]] = [(f"i{i}~key{i % 5}", 1, 2.0) for i in range(30)]
    found, told = asked(rows + keys)
    (result,) = measure(ProbePlan([PROBES["master-keys"]], 0, found), told)
    assert result.result == "sound"  # one level above the worst, as gold itself is where it is the worst
    assert result.deaf == pytest.approx(2.0)
    found, told = asked(rows + [(id, gold, 4.0) for id, gold, _ in keys])
    (result,) = measure(ProbePlan([PROBES["master-keys"]], 0, found), told)
    assert result.result == "faulty"


@pytest.mark.parametrize(("added", "result"), [(0.0, "sound"), (0.6, "faulty"), (-0.6, "faulty")])
def test_lenience_is_told_apart_from_noise(added: float, result: str) -> None:
    golds = [1 + (i % 5) ** 2 / 4 for i in range(100)]  # more bad than good
    found, told = asked([(f"i{i}~base", gold, 3 + 0.5 * (gold - 3) + added) for i, gold in enumerate(golds)])
    (lenience,) = measure(ProbePlan([PROBES["lenience"]], 0, found), told)
    assert lenience.result == result
    assert lenience.effect.value == pytest.approx(added, abs=1e-3)


def test_lenience_takes_gold() -> None:
    found, told = asked([(f"i{i}~base", None, 3.0) for i in range(40)])
    (lenience,) = measure(ProbePlan([PROBES["lenience"]], 0, found), told)
    assert lenience.result == "not probed"


@pytest.mark.parametrize(("gain", "result"), [(0.0, "cannot tell"), (0.1, "cannot tell"), (0.3, "sound")])
def test_a_judge_that_follows_nothing_is_not_told_sound(gain: float, result: str) -> None:
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(60):
        rows += [(f"i{i}~{variant}", 1 + i % 5, 3 + gain * (i % 5 - 2)) for variant in ("base", "style")]
    found, told = asked(rows)
    (style,) = measure(ProbePlan([PROBES["style"]], 0, found), told)
    assert style.effect.value == pytest.approx(0)
    assert style.result == result
    assert ("follow gold by less than 0.15" in style.note) == (result == "cannot tell")


def test_the_bound_is_strict_until_the_last_look() -> None:
    plan = ProbePlan([PROBES["style"]], 0, asked([(f"i{i}~base", None, 3.0) for i in range(12)])[0])
    assert bound(plan) == 0.0451  # a folder of a version without rounds has one look
    bounds = []
    for _ in range(3):
        plan.rounds.append({"absolute": 12, "reversed": 0, "pairs": 0})
        bounds.append(bound(plan))
    assert bounds == [0.0005, 0.0141, 0.0451]  # O'Brien and Fleming (1979), three looks, two-sided 5 %
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(12):  # mean .75, sd .584: t = .70 / (.584 / sqrt(12)) = 4.15 above the tolerance, p = .0016
        rows += [(f"i{i}~base", None, 3.0), (f"i{i}~style", None, 3.0 + (0, 0.5, 1, 1.5)[i % 4])]
    found, told = asked(rows)
    results = []
    for rounds in (1, 3):
        plan = ProbePlan([PROBES["style"]], 0, found, [{"absolute": 24, "reversed": 0, "pairs": 0}] * rounds)
        results.append(measure(plan, told)[0])
    assert 0.0005 < results[0].p_holm == results[1].p_holm < 0.0141
    assert [each.result for each in results] == ["cannot tell", "faulty"]


def test_calls_go_where_nothing_is_told_yet() -> None:
    rows: list[tuple[str, float | None, float | None]] = []
    for i in range(13):
        rows += [
            (f"i{i}~base", None, 3.0),
            (f"i{i}~style", None, 3.0),
            (f"i{i}~sentiment", None, 5.0 if i % 2 else 2.0),
        ]
    found, told = asked(rows)
    plan = ProbePlan([PROBES["style"], PROBES["sentiment"]], 0, found)
    results = measure(plan, told)
    assert [each.result for each in results] == ["sound", "cannot tell"]
    lacking = needs(plan, results)
    assert lacking["sentiment"] > 10 * lacking["style"]


def test_the_card_lists_what_was_not_probed() -> None:
    found, told = asked([(f"i{i}~{v}", None, 3.0) for i in range(13) for v in ("base", "style")])
    plan = ProbePlan([PROBES["style"], PROBES["decoy"]], 0, found, skipped={"decoy": "the format shows no context"})
    made = Card("judge", 24, 0, tuple(measure(plan, told)))
    assert made.not_probed == {"decoy": "the format shows no context"}
    assert made.sound
    assert not made.faulty
    assert "Not probed: decoy (the format shows no context)" in made.to_markdown()
    told_card = made.to_dict()
    assert told_card["not_probed"] == made.not_probed
    assert told_card["not_covered"]
    assert told_card["probes"][0]["faultless"][0] is not None
    assert "nan" not in made.to_markdown()
    assert "| style | sound | 0.00 [-0.92, 0.92] |" in made.to_markdown()  # 3 in 13 items, 4 levels each


def test_the_card_says_how_far_answers_follow_gold() -> None:
    rows: list[tuple[str, float | None, float | None]] = [
        (f"i{i}~base", 1 + i % 5, NOISY[1 + i % 5]) for i in range(60)
    ]
    found, told = asked(rows)
    plan = ProbePlan([PROBES["lenience"]], 0, found)
    made = Card("judge", 60, 0, tuple(measure(plan, told)), gain(plan, told))
    assert made.gain.value == pytest.approx(0.5, abs=0.01)
    assert "items rise by 0.50" in made.to_markdown()
    found, told = asked([(id, gold, 3.0) for id, gold, _ in rows])
    made = Card("judge", 60, 0, (), gain(plan := ProbePlan([PROBES["lenience"]], 0, found), told))
    assert "less than 0.15, so no probe is reported sound" in made.to_markdown()
    assert plan.probes
    assert not made.sound  # nothing was judged
    assert "unknown: too few" in Card("judge", 60, 0, ()).to_markdown()
