"""The noise of a judge, by hand and on answers whose noise is known."""

import numpy as np
import pytest

from dikast.probes.noise import Plain, noise_of, stillness


def line(middle: float, gain: float, noise: float, n: int = 200, labels: int = 5) -> list[Plain]:
    rng = np.random.default_rng(0)
    gold = np.linspace(-0.5, 0.5, n)
    return [Plain(f"i{i}", "", labels, g, middle + gain * g + noise * rng.normal()) for i, g in enumerate(gold)]


def test_a_line_without_noise_is_found_as_it_is() -> None:
    found = noise_of(line(0.1, 0.6, 0.0))
    assert found is not None
    assert found.middle.value == pytest.approx(0.1, abs=1e-4)
    # from the best to the worst, 4 levels are due: .6 x 4 = 2.4 are left
    assert found.shift([5, 5], np.array([4.0, 4.0])).value == pytest.approx(2.4, abs=1e-3)
    assert found.worst([5]).value == pytest.approx(0.5 + 0.1 - 0.3, abs=1e-3)
    assert found.answer(5, 0.5) == pytest.approx(0.4, abs=1e-3)


def test_errors_are_those_of_repeated_samples() -> None:
    # the standard error of a slope is sd / (sqrt(n) sd(gold)): .2 / (sqrt(200) x .2901) = .0487, of the middle .0141
    found = noise_of(line(0.0, 0.6, 0.2))
    assert found is not None
    assert found.middle.error == pytest.approx(0.0141, rel=0.2)
    assert found.shift([5], np.ones(1)).error == pytest.approx(0.0487, rel=0.3)


def test_a_scale_may_have_a_gain_of_its_own() -> None:
    both = line(0, 0.7, 0.02) + line(0, 0.4, 0.02, labels=2)
    found = noise_of(both)
    assert found is not None
    assert found.shift([5], np.ones(1)).value == pytest.approx(0.7, abs=0.02)
    assert found.shift([2], np.ones(1)).value == pytest.approx(0.4, abs=0.02)
    assert 0.4 < found.shift([7], np.ones(1)).value < 0.7  # one that was never seen


def test_what_a_change_adds_is_not_taken_for_lenience() -> None:
    swayed = [Plain(f"i{i}", "style", 5, each.gold, each.answer + 0.2) for i, each in enumerate(line(0, 0.6, 0.02))]
    found = noise_of([*line(0, 0.6, 0.02), *swayed])
    assert found is not None
    assert found.middle.value == pytest.approx(0, abs=0.01)


def test_drift_is_not_taken_for_lenience() -> None:
    # answers fall by a quarter of the scale (one level) over the run: a tenth above the middle as it begins
    drifting = [
        each._replace(answer=each.answer - 0.25 * place, place=place)
        for each, place in zip(line(0.1, 0.6, 0.0), np.random.default_rng(1).uniform(0, 1, 200), strict=True)
    ]
    found = noise_of(drifting)
    assert found is not None
    assert found.middle.value == pytest.approx(0.1, abs=0.01)
    # what gold calls the worst, half way: .5 + .1 - .3 - .125
    assert found.worst([5]).value == pytest.approx(0.175, abs=0.01)


def test_too_little_gold_tells_no_noise() -> None:
    assert noise_of(line(0, 0.6, 0.0, n=19)) is None
    assert noise_of([Plain(f"i{i}", "", 5, 0.5, 0.5) for i in range(50)]) is None


def test_answers_alike_by_chance() -> None:
    # gold apart: a with c and d, b with c and d; alike of these only b and c: 1 of 4; e has another scale
    golds = {"a": (-0.5, 0.0), "b": (-0.25, 0.25), "c": (0.25, 0.26), "d": (0.5, 0.5)}
    plain = [Plain(name, "", 5, *each) for name, each in golds.items()]
    found = stillness([*plain, Plain("e", "", 2, 0.5, 0.0)])
    assert found.share == 0.25
    assert found.n == 5
    assert np.isnan(stillness([]).share)
