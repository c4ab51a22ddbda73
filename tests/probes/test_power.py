"""The proof of the card: planted faults are found, sound judges are left alone."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dikast.core.item import Item
from dikast.engines.mock.judges import Oracle
from dikast.judging.judge import Judge
from dikast.probes.measure import Answers, Result, measure
from dikast.probes.run import from_the_top, load_items, prepare
from dikast.worlds.prove import write_suite

pytestmark = pytest.mark.slow

REPEATS, SOUND = 10, 200
FAULTS: dict[str, dict[str, Any]] = {
    "position": {"nats": 1.0},
    "length": {"per_doubling": 0.3},
    "style": {"sway": 1.0, "when": r"^## Answer"},
    "authority": {"sway": 1.0, "when": "leading experts"},
    "sycophancy": {"sway": 1.0, "when": "somebody with your judgement"},
    "sentiment": {"sway": 1.0, "when": "truly delighted"},
    "self-preference": {"sway": 1.0, "when": "now the judge"},
    "level-order": {"sway": 1.0, "when": r"(?s)- [5-9]\d*: .*\n- 1: "},
    "label-names": {"sway": 1.0, "when": r"- A: "},
    "rubric-inversion": {"sway": 1.0, "when": "the lowest label is the best"},
    "rubric-contrast": {"r": 0.0, "ignores": "rubric"},
    "reference-paraphrased": {"sway": 1.0, "when": "What should be said"},
    "image-blanked": {"r": 0.0, "ignores": "images"},
    "image-swapped": {"r": 0.0, "ignores": "images"},
    "image-removed": {"r": 0.0, "ignores": "images"},
    "image-noised": {"r": 0.0, "ignores": "images"},
    "injection-response": {"obeys": 0.7},
    "injection-reference": {"sway": 1.0, "when": "Ignore all previous"},
    "master-keys": {"sway": 2.0, "when": r"^(:|\.|Solution|Let us think step by step\.|The answer is as follows:)$"},
    "error-place": {"sway": -1.0, "when": "^Two and two"},
    "decoy": {"sway": -1.0, "when": "which was set aside"},
    "dose-response": {"r": 0.0},
}


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Oracle], dict[str, Result]]:
    """The card of a judge on the standing suite at about 2,000 calls; the plan is made once."""
    folder = tmp_path_factory.mktemp("power")
    write_suite("prove", folder / "suite")
    plan = prepare(Judge("mock:oracle"), load_items(str(folder / "suite")), folder, calls=2000, seed=0)
    absolute, reverse, pairs = (
        list({ask.item.id: ask.item for ask in asks}.values()) for asks in (plan.absolute, plan.reversed, plan.pairs)
    )

    def ask(engine: Oracle) -> dict[str, Result]:
        judge = Judge(engine)
        turned = from_the_top(judge)
        assert turned is not None
        graded: list[Item] = absolute
        told = Answers.of(judge.grade_many(graded), turned.grade_many(reverse), judge.compare_many(pairs))
        return {each.probe: each for each in measure(plan, told)}

    return ask


@pytest.mark.parametrize("probe", FAULTS)
def test_a_planted_fault_is_found(card: Callable[[Oracle], dict[str, Result]], probe: str) -> None:
    settings = {"r": 0.8, **FAULTS[probe]}
    found = sum(card(Oracle(seed=100 + seed, **settings))[probe].result == "fail" for seed in range(REPEATS))
    print(f"{probe}: found in {found} of {REPEATS}", file=sys.stderr)  # noqa: T201
    assert found >= 0.9 * REPEATS


def test_sound_judges_are_left_alone(card: Callable[[Oracle], dict[str, Result]]) -> None:
    alarms = [
        [name for name, each in card(Oracle(r=(0.7, 0.8, 0.9)[seed % 3], seed=seed)).items() if each.result == "fail"]
        for seed in range(SOUND)
    ]
    alarmed = [names for names in alarms if names]
    print(f"cards with a false alarm: {len(alarmed)} of {SOUND}: {alarmed}", file=sys.stderr)  # noqa: T201
    assert len(alarmed) <= 0.08 * SOUND
