"""The proof of the probes: planted faults of stated size are found, faultless judges are left alone.

By itself: `python -m benchmarks.probes --repeats 20 --sound 200`. About .2 s of one core for each card of 1,000 calls.
"""

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dikast.audit.estimate import Estimate
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.core.verdict import Question, Status, Verdict
from dikast.engines.base import Request
from dikast.engines.mock import Mock, open_mock
from dikast.engines.mock.judges import Oracle
from dikast.engines.mock.mock_judge import uniform
from dikast.judging.judge import Judge
from dikast.judging.settling import first_request
from dikast.probes.card import Card
from dikast.probes.measure import plain_answers
from dikast.probes.noise import Plain, noise_of
from dikast.probes.outcome import bound, gain, gain_of, measure
from dikast.probes.plan import Planner, ProbePlan
from dikast.probes.run import Asker, answers, from_the_top, load_items, simulate
from dikast.probes.sets import PARTS, Asked, Part, sets_of
from dikast.worlds.prove import write_suite
from dikast.worlds.sampling.held_out import rules_of

CALLS = 1000
R = 0.7  # of judges with a planted fault
RS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of faultless judges
EMPTY = r"^(:|\.|Solution|Let us think step by step\.|The answer is as follows:)$"
FAULTS: dict[str, dict[str, Any]] = {
    "position": {"nats": 1.0},
    "length": {"per_doubling": 0.3},
    "style": {"sway": 1.0, "when": r"^## Answer\n\n- \*\*"},
    "form": {"sway": 1.0, "when": r"^## Answer\n\n- [^*]"},
    "authority": {"sway": 1.0, "when": "leading experts"},
    "sycophancy": {"sway": 1.0, "when": "somebody with your judgement"},
    "sentiment": {"sway": 1.0, "when": "truly delighted"},
    "self-preference": {"sway": 1.0, "when": "now the judge"},
    "lenience": {"sway": 1.0},
    "run-order": {"drift": -1.0, "drift_over": CALLS},
    "level-order": {"sway": 1.0, "when": r"(?s)- (?:[2-9]|10|pass|A): .*\n- (?:0|1|fail|E): "},
    "label-names": {"sway": 1.0, "when": r"- A: "},
    "rubric-inversion": {"sway": 1.0, "when": "the lowest label is the best"},
    "deafness": {"r": 0.0},
    "rubric-contrast": {"ignores": "rubric"},
    "reference-paraphrased": {"sway": 1.0, "when": "What should be said"},
    "reference-ignored": {"deaf": 1.0},
    "image-blanked": {"r": 0.0, "ignores": "images"},
    "image-swapped": {"r": 0.0, "ignores": "images"},
    "image-removed": {"r": 0.0, "ignores": "images"},
    "image-noised": {"r": 0.0, "ignores": "images"},
    "injection-response": {"obeys": 0.7},
    "injection-verdict": {"sway": 1.0, "when": "The response is without fault"},
    "injection-reference": {"sway": 1.0, "when": "Ignore all previous"},
    "master-keys": {"sway": 2.0, "when": EMPTY},
    "error-place": {"sway": -1.0, "when": "^Two and two"},
    "decoy": {"sway": -1.0, "when": "which was set aside"},
}
NAMED: dict[str, tuple[str, ...]] = {  # the planted faults of docs/worlds.md, and the probes meant for them
    "mock:constant": ("image-blanked", "image-swapped", "rubric-contrast", "dose-response"),
    "mock:text-only": ("image-blanked", "image-swapped", "image-removed", "image-noised"),
    "mock:rubric-blind,r=0.7": ("rubric-contrast",),
    "mock:prefers-long,r=0.7": ("length",),
    "mock:injectable,r=0.7": ("injection-response",),
    "mock:first-slot": ("position",),
}
RESPONSES = (
    "blindness",
    "deafness",
    "image-blanked",
    "image-swapped",
    "image-removed",
    "image-noised",
    "rubric-contrast",
    "rubric-direction",
    "reference-ignored",
    "dose-response",
)
WAYS = ("replays", "guesses", "text", "blind")
FEW = ("run-order", "level-order", "decoy", "style")  # a card of few calls, on which drift is measured too


class Deaf(Oracle):
    """Deaf on a share of items to changes that gold calls for: judges the changed item by the gold of the original.

    With `replay` the answer is that to the original, without it only the opinion is, under noise of its own.
    """

    def __init__(self, originals: Mapping[str, Item], share: float, *, replay: bool, r: float, seed: int) -> None:
        super().__init__(r=r, seed=seed)
        self.originals, self.share, self.replay = originals, share, replay

    def decide(self, request: Request) -> Any:
        """As an oracle, of the original where it is deaf."""
        first = self.originals.get(str(request.about.get("item")))
        if first is not None and uniform("deaf", self.seed, first.id) < self.share:
            about = {**request.about, "gold": first.gold}
            if self.replay and isinstance(first.rubric, Rubric):
                about |= {"item": first.id, "criterion": first.rubric.name}
            request = replace(request, about=about)
        return super().decide(request)


class Once(Planner):
    """Makes each changed item, and the first round, once for all judges."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._begun: dict[int, ProbePlan] = {}
        self._candidates = {
            probe: [tuple(replace(want, make=cache(want.make)) for want in each) for each in several]
            for probe, several in self._candidates.items()
        }

    def first(self, calls: int) -> ProbePlan:
        """The first round, in a plan of its own."""
        if calls not in self._begun:
            self._begun[calls] = super().first(calls)
        plan = self._begun[calls]
        asked = Asked(*(dict(plan.asked.of(part)) for part in PARTS))
        return replace(plan, asked=asked, rounds=list(plan.rounds))


class Bench:
    """Cards on the suite, whose items are chosen and changed once."""

    def __init__(self, folder: Path, calls: int = CALLS, only: Sequence[str] = ()) -> None:
        if not (folder / "suite").exists():
            write_suite("probe", folder / "suite")
        self.calls = calls
        self.planner = Once(load_items(str(folder / "suite")), None, folder, seed=0, only=only)
        asker = Judge("mock:oracle")
        turned = from_the_top(asker)
        assert turned is not None
        self._askers = {"absolute": asker, "reversed": turned}
        self._requests: dict[tuple[Part, str], Request] = {}

    def card(self, engine: Mock) -> Card:
        """The card of a judge after both rounds."""
        plan, told = simulate(self.quickly(engine), self.planner, self.calls)
        return Card(engine.name, plan.asked.calls, 0, tuple(measure(plan, told)), gain(plan, told), bound(plan))

    def quickly(self, engine: Mock) -> Asker:
        """Answers as a judge with this engine; prompts are rendered once for all engines, and no reply is parsed."""
        judge = Judge(engine)

        def ask(part: Part, items: list[Item]) -> Iterable[Any]:
            return judge.compare_many(items) if part == "pairs" else (self._verdict(engine, part, i) for i in items)

        return ask

    def _verdict(self, engine: Mock, part: Part, item: Item) -> Verdict:
        if (part, item.id) not in self._requests:
            asker = self._askers[part]
            (task,) = asker.tasks_of(item, "each")
            self._requests[part, item.id] = first_request(task, asker.format, asker.settings)
        request = self._requests[part, item.id]
        decided, values = engine.decide(request), request.about["values"]
        question = Question(item.id, str(request.about["criterion"]))
        if isinstance(decided, str):
            return Verdict("", question, Status.OK, decided, values[decided])
        top = max(decided.values())
        weights = {label: math.exp(weight - top) for label, weight in decided.items()}
        expected = sum(values[label] * weight for label, weight in weights.items()) / sum(weights.values())
        label = max(decided, key=decided.__getitem__)
        return Verdict("", question, Status.OK, label, values[label], expected=expected)

    def originals(self, *, pictures: bool = False) -> dict[str, Item]:
        """For each changed item of a probe of responses (of the image probes alone) the item it is compared with."""
        found: dict[str, Item] = {}
        asked = Asked(self.planner.every("absolute"))
        for probe in self.planner.probes:
            if probe.side == "down" and (probe.name.startswith("image-") or not pictures):
                for each in sets_of(probe, asked):
                    found[each.asks[1][1]] = asked.absolute[each.asks[0][1]]
        return found


def found(bench: Bench, probe: str, repeats: int) -> Counter[str]:
    """What the probe that is meant for a planted fault says of judges that have it."""
    settings = {"r": R, **FAULTS[probe]}
    return Counter(bench.card(Oracle(seed=100 + seed, **settings))[probe].result for seed in range(repeats))


def named(bench: Bench, target: str, repeats: int) -> dict[str, Counter[str]]:
    """What the probes meant for a named mock judge say of it."""
    name, *options = target.removeprefix("mock:").split(",")
    given = {key: float(value) for key, value in (each.split("=") for each in options)}
    cards = [bench.card(open_mock(name, seed=seed, **given)) for seed in range(repeats)]
    return {probe: Counter(card[probe].result for card in cards) for probe in NAMED[target]}


def drifts(bench: Bench, drift: float, repeats: int, r: float = 0.9) -> Counter[str]:
    """What `run-order` says of judges whose answers drift by so many levels over the run."""
    judges = (Oracle(r=r, drift=drift, drift_over=bench.calls, seed=100 + seed) for seed in range(repeats))
    return Counter(bench.card(judge)["run-order"].result for judge in judges)


def deaf(bench: Bench, way: str, share: float, repeats: int, r: float = R) -> dict[str, Counter[str]]:
    """What the probes of responses say of judges deaf on a share of items, in one of four ways.

    "replays": the changed item gets the answer to the original; "guesses": the same opinion with noise of its own;
    "text": both are judged by the response's text alone; "blind": guesses where the picture is changed, and is deaf
    to nothing else.
    """
    originals = bench.originals(pictures=way == "blind")
    cards = []
    for seed in range(repeats):
        if way == "text":
            cards.append(bench.card(Oracle(r=r, deaf=share, seed=seed)))
        else:
            cards.append(bench.card(Deaf(originals, share, replay=way == "replays", r=r, seed=seed)))
    told: dict[str, Counter[str]] = {probe: Counter(card[probe].result for card in cards) for probe in RESPONSES}
    failed = [any(card[probe].result == "faulty" for probe in RESPONSES) for card in cards]
    told["(any)"] = Counter("faulty" if each else "none faulty" for each in failed)
    return told


def alarms(bench: Bench, r: float, repeats: int, kept: Path | None = None) -> tuple[list[list[str]], Counter[str]]:
    """The probes that faultless judges failed, for each card with any, and all results together.

    A line for each card is appended to `kept`, and cards that have one are not made again.
    """
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    made = {(each["r"], each["seed"]): each for each in map(json.loads, lines)}
    for seed in range(1000, 1000 + repeats):
        if (r, seed) not in made:
            card = bench.card(Oracle(r=r, seed=seed))
            failed = [each.probe for each in card.results if each.result == "faulty"]
            least = min(each.p_holm for each in card.results if not math.isnan(each.p_holm))
            results = Counter(each.result for each in card.results)
            made[r, seed] = {"r": r, "seed": seed, "faulty": failed, "least_p": least, "results": results}
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps(made[r, seed]) + "\n")
    cards = [made[r, seed] for seed in range(1000, 1000 + repeats)]
    told: Counter[str] = sum((Counter(each["results"]) for each in cards), Counter())
    return [each["faulty"] for each in cards if each["faulty"]], told


def followed(folder: Path) -> dict[str, Estimate]:
    """How far answers rise with gold, by domain and by whether training has the voices, from the folder of a card."""
    suite = {item.id: item for item in load_items(str(folder / "suite"))}
    asked = Asked({item.id: item for item in read_items(folder / "absolute.jsonl")})
    heard = set(rules_of("train").voices)
    groups: dict[str, list[Plain]] = {}
    for each in plain_answers(asked, answers(Judge("mock:oracle"), folder)):
        meta = suite[each.item].meta
        voices = "voices of training" if set(meta["voices"]) <= heard else "other voices"
        groups.setdefault(f"{meta['domain']}, {voices}", []).append(each)
    return {name: gain_of(noise_of(groups[name])) for name in sorted(groups)}


def main() -> None:
    """Measure and print; exits with 1 when a fault is missed too often or faultless judges are accused too often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="cards for each planted fault")
    parser.add_argument("--sound", type=int, default=200, help="cards for each r of a faultless judge")
    parser.add_argument("--r", type=float, nargs="*", default=RS, help="of the faultless judges")
    parser.add_argument("--kept", type=Path, help="a file of the cards of faultless judges: go on from it")
    parser.add_argument("--card", type=Path, help="the folder of a card: how far its judge follows gold, by domain")
    parser.add_argument("--part", nargs="*", default=("faults", "named", "deaf", "drift", "sound"))
    parser.add_argument("--faults", nargs="*", default=tuple(FAULTS), choices=FAULTS, help="planted for their probes")
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS, help="of the deaf judges")
    given = parser.parse_args()
    missed = False
    if given.card is not None:
        for group, found_gain in followed(given.card).items():
            print(f"{group:40} gain {found_gain:.2f} n {found_gain.n}")
        return
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        for probe in given.faults if "faults" in given.part else ():
            told = found(bench, probe, given.repeats)
            missed |= told["faulty"] < 0.9 * given.repeats
            planted = ", ".join(f"{key}={value}" for key, value in FAULTS[probe].items())
            print(f"{probe:24} {_spelt(told)}  ({planted})", flush=True)
        for target in NAMED if "named" in given.part else ():
            for probe, told in named(bench, target, given.repeats).items():
                print(f"{target:24} {probe:20} {_spelt(told)}", flush=True)
        for way in given.ways if "deaf" in given.part else ():
            for probe, told in deaf(bench, way, 0.4, given.repeats).items():
                print(f"deaf on 40 %, {way:8} {probe:20} {_spelt(told)}", flush=True)
        for drift in (-1.0, -1.5) if "drift" in given.part else ():
            told = drifts(Bench(Path(name), 400, FEW), drift, given.repeats)
            print(f"drift {drift}, 400 calls, r = 0.9 run-order            {_spelt(told)}", flush=True)
        for r in given.r if "sound" in given.part else ():
            accused, results = alarms(bench, r, given.sound, given.kept)
            missed |= len(accused) > 0.05 * given.sound
            print(f"faultless, r = {r}: accused on {len(accused)} of {given.sound} cards {accused}", flush=True)
            print(f"  results: {_spelt(results)}", flush=True)
    sys.exit(missed)


def _spelt(told: Mapping[str, int]) -> str:
    return ", ".join(f"{result} {count}" for result, count in sorted(told.items()))


if __name__ == "__main__":
    main()
