"""The proof of the probes: planted faults of stated size are found, sound judges are left alone.

By itself: `python -m benchmarks.probes --repeats 20 --sound 200`. About .7 s of one core for each card of 2,000 calls.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dikast.engines.mock.judges import Oracle
from dikast.judging.judge import Judge
from dikast.probes.measure import Answers, Result, measure
from dikast.probes.run import from_the_top, load_items, prepare
from dikast.worlds.prove import write_suite

CALLS = 2000
Cards = Callable[[Oracle], dict[str, Result]]
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
    "injection-verdict": {"sway": 1.0, "when": "The response is without fault"},
    "injection-reference": {"sway": 1.0, "when": "Ignore all previous"},
    "master-keys": {"sway": 2.0, "when": r"^(:|\.|Solution|Let us think step by step\.|The answer is as follows:)$"},
    "error-place": {"sway": -1.0, "when": "^Two and two"},
    "decoy": {"sway": -1.0, "when": "which was set aside"},
    "dose-response": {"r": 0.0},
}


def cards(folder: Path) -> Cards:
    """A function from a judge to its card on the standing suite; the items are chosen and changed once."""
    write_suite("prove", folder / "suite")
    plan = prepare(Judge("mock:oracle"), load_items(str(folder / "suite")), folder, calls=CALLS, seed=0)
    absolute, reverse, pairs = (
        list({ask.item.id: ask.item for ask in asks}.values()) for asks in (plan.absolute, plan.reversed, plan.pairs)
    )

    def ask(engine: Oracle) -> dict[str, Result]:
        judge = Judge(engine)
        turned = from_the_top(judge)
        assert turned is not None
        told = Answers.of(judge.grade_many(absolute), turned.grade_many(reverse), judge.compare_many(pairs))
        return {each.probe: each for each in measure(plan, told)}

    return ask


def found(card: Cards, probe: str, repeats: int) -> int:
    """In how many of the repetitions a judge (r = .8) with the planted fault fails the probe that is meant for it."""
    settings = {"r": 0.8, **FAULTS[probe]}
    return sum(card(Oracle(seed=100 + seed, **settings))[probe].result == "fail" for seed in range(repeats))


def alarms(card: Cards, repeats: int) -> list[list[str]]:
    """The probes that sound judges (r = .7, .8, .9 in turn) failed, for each card with any."""
    every = [card(Oracle(r=(0.7, 0.8, 0.9)[seed % 3], seed=seed)) for seed in range(repeats)]
    failed = [[name for name, each in one.items() if each.result == "fail"] for one in every]
    return [names for names in failed if names]


def main() -> None:
    """Measure and print; exits with 1 when a fault is missed too often or sound judges are accused too often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sound", type=int, default=200)
    given = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as name:
        card = cards(Path(name))
        for probe, fault in FAULTS.items():
            count = found(card, probe, given.repeats)
            missed |= count < 0.9 * given.repeats
            told = ", ".join(f"{key}={value}" for key, value in fault.items())
            print(f"{probe:24} found in {count} of {given.repeats}  ({told})", flush=True)
        accused = alarms(card, given.sound)
        missed |= len(accused) > 0.08 * given.sound
        print(f"cards of sound judges with a false alarm: {len(accused)} of {given.sound} {accused}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
