"""The proof of the card, in small: `python -m benchmarks.probes` repeats it as often as the figures in the docs."""

from pathlib import Path

import pytest
from benchmarks.probes import FAULTS, NAMED, Bench, alarms, deaf, found, named

from dikast.engines.mock.judges import Constant, Oracle, Random
from dikast.engines.mock.mock_judge import Mock
from dikast.judging.judge import Judge
from dikast.probes.run import asking


@pytest.fixture(scope="module")
def bench(suite: Path) -> Bench:
    return Bench(suite.parent)


@pytest.mark.slow
def test_a_seeded_sample(bench: Bench) -> None:
    deaf_card = bench.card(Oracle(r=0.7, deaf=0.4, seed=0))
    assert deaf_card["deafness"].result == "faulty"
    assert deaf_card["deafness"].deaf_share.low > 0.05
    drifting = bench.card(Oracle(r=0.7, drift=-1.0, seed=1))
    assert [each.probe for each in drifting.results if each.result == "faulty"] == ["run-order"]
    for r in (0.3, 0.7, 1.0):
        assert not bench.card(Oracle(r=r, seed=1)).faulty


@pytest.mark.parametrize(
    "engine", [Constant(), Random(seed=1), Oracle(r=0.0, seed=3)], ids=["constant", "random", "r=0"]
)
def test_a_judge_that_follows_no_gold_is_not_told_sound(bench: Bench, engine: Mock) -> None:
    made = bench.card(engine)
    assert made.gain.low < 0.15
    assert not [each.probe for each in made.results if each.result == "sound"]
    assert "no probe is reported sound" in made.to_markdown()


def test_the_quick_way_gives_what_a_judge_gives(bench: Bench) -> None:
    items = list(bench.planner.every("absolute").values())[:20]
    engine = Oracle(r=0.7, seed=3)
    quick = {each.question.item: each.expected for each in bench.quickly(engine)("absolute", items)}
    slow = {each.question.item: each.expected for each in asking(Judge(engine))("absolute", items)}
    assert quick == pytest.approx(slow)


@pytest.mark.slow
@pytest.mark.parametrize("probe", FAULTS)
def test_a_planted_fault_is_found(bench: Bench, probe: str) -> None:
    assert found(bench, probe, 3)["faulty"] >= 2


@pytest.mark.parametrize("target", NAMED)
def test_each_named_fault_is_found_under_its_own_name(bench: Bench, target: str) -> None:
    assert {name: told["faulty"] for name, told in named(bench, target, 1).items()} == dict.fromkeys(NAMED[target], 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", NAMED)
def test_named_faults_are_found(bench: Bench, target: str) -> None:
    assert {name: told["faulty"] for name, told in named(bench, target, 3).items()} == dict.fromkeys(NAMED[target], 3)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["replays", "guesses", "text"])
def test_deafness_on_some_items_is_found(bench: Bench, way: str) -> None:
    told = deaf(bench, way, 0.4, 3)
    assert told["deafness"]["faulty"] == 3
    assert told["blindness"]["faulty"] >= 2


@pytest.mark.slow
def test_a_judge_blind_to_some_pictures_is_found_by_blindness(bench: Bench) -> None:
    told = deaf(bench, "blind", 0.4, 3)
    assert told["blindness"]["faulty"] >= 2
    assert all(told[probe]["sound"] == 3 for probe in ("rubric-contrast", "rubric-direction", "reference-ignored"))


@pytest.mark.slow
@pytest.mark.parametrize("r", [0.3, 0.7, 1.0])
def test_faultless_judges_are_left_alone(bench: Bench, r: float) -> None:
    accused, _ = alarms(bench, r, 20)
    assert len(accused) <= 3  # at most one in twenty by the nominal level; four or more happen once in 60 cards then
