"""The items to ask, under a budget of calls, in rounds: later rounds go to the probes that need more."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dikast.core.errors import UserError
from dikast.core.item import Item, item_to
from dikast.core.media import resolved
from dikast.core.part import REMOTE, Image, Video
from dikast.core.rubric import Rubric
from dikast.probes.catalogue import LEAST, Probe, catalogue
from dikast.probes.sets import PARTS, Asked, Part
from dikast.probes.stock import Candidate, Stock

ROUNDS = 3
FIRST = 0.55  # share of the calls spent before the judge's noise is estimated; the rest in equal parts
TURNS = 6  # number of turns in which the parts of a round alternate


@dataclass(slots=True)
class ProbePlan:
    """The questions of every round, within the `calls` allowed.

    `skipped` gives the reason for each probe that is not run.
    """

    probes: list[Probe]
    calls: int
    asked: Asked = field(default_factory=Asked)
    rounds: list[dict[Part, int]] = field(default_factory=list)  # how many items each part has after each round
    skipped: dict[str, str] = field(default_factory=dict)
    last: int = ROUNDS  # how many rounds there are in the end


class Planner:
    """Chooses sets of items for the probes. The same items, seed and answers give the same choice.

    Items of the standard suite have sets whose gold says what must change; for other items the first response is the
    subject, and pairs are the items with several responses. Raises UserError when nothing can be asked.
    """

    def __init__(
        self,
        items: Iterable[Item],
        rubric: Rubric | None,
        folder: Path,
        *,
        seed: int = 0,
        only: Sequence[str] = (),
        without: Mapping[str, str] | None = None,
    ) -> None:
        self.probes = chosen(folder, only)
        self.seed = seed
        self._without = dict(without or {})
        if self.probes and all(probe.derived for probe in self.probes):
            names = " and ".join(probe.name for probe in self.probes)
            raise UserError(f"{names}: reads the answers to other probes: choose some of those too, with --only")
        stock = Stock(items, rubric, str(folder / "images"), seed)
        self._candidates = {
            probe.name: [] if probe.name in self._without else stock.candidates(probe) for probe in self.probes
        }

    def first(self, calls: int) -> ProbePlan:
        """The first round: as many sets for each probe as a judge of moderate noise takes, in proportion."""
        plan = ProbePlan(self.probes, calls)
        for probe in self.probes:
            fit = len(self._candidates[probe.name])
            if probe.name in self._without:
                plan.skipped[probe.name] = self._without[probe.name]
            elif fit < LEAST and not probe.derived:
                plan.skipped[probe.name] = f"{fit} sets of items fit, {LEAST} are needed: it takes {probe.needs}"
        needs = {probe.name: float(probe.need) for probe in self.probes}
        self._extend(plan, needs, max(1, round(FIRST * calls)), least=LEAST)
        if not plan.asked.calls:
            raise UserError("there is nothing to ask: items with a response are needed")
        return plan

    def next(self, plan: ProbePlan, needs: Mapping[str, float]) -> bool:
        """Add a round; the last spends what is left of the calls. `needs` are the sets that each probe still lacks.

        Returns whether there was anything to add. Originals are asked again for new sets only, so that an original and
        its change are always of one round. Where there is nothing to add, the round before was the last.
        """
        left, rounds = plan.calls - plan.asked.calls, plan.last - len(plan.rounds)
        if rounds > 0 and left > 0 and self._extend(plan, needs, math.ceil(left / rounds), least=0):
            return True
        plan.last = len(plan.rounds)
        return False

    def every(self, part: Part) -> dict[str, Item]:
        """All candidate items of a part, by id, regardless of the number of calls."""
        wants = [want for found in self._candidates.values() for each in found for want in each]
        return {want.id: want.make() for want in wants if want.part == part}

    def _extend(self, plan: ProbePlan, needs: Mapping[str, float], calls: int, *, least: int) -> bool:
        free = {name: self._free(each, plan.asked) for name, each in self._candidates.items()}
        low, high = 0.0, 1.0
        while high < 1e4 and _cost(_taken(free, needs, high, least)) <= calls:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if _cost(_taken(free, needs, middle, least)) <= calls else (low, middle)
        wanted = {(want.part, want.id): want for each in _taken(free, needs, low, least) for want in each}
        new: dict[Part, dict[str, Item]] = {part: {} for part in PARTS}
        for (part, id), want in wanted.items():
            if id not in plan.asked.of(part):
                new[part][id] = want.make()
        if not any(new.values()):
            return False
        rng = np.random.default_rng([self.seed, len(plan.rounds)])
        for part in PARTS:
            ids = sorted(new[part])
            for i in rng.permutation(len(ids)):
                plan.asked.of(part)[ids[i]] = new[part][ids[i]]
        plan.rounds.append({part: len(plan.asked.of(part)) for part in PARTS})
        return True

    @staticmethod
    def _free(candidates: Sequence[Candidate], asked: Asked) -> list[Candidate]:
        return [each for each in candidates if not any(want.id in asked.of(want.part) for want in each)]


def chosen(folder: Path, only: Sequence[str]) -> list[Probe]:
    """The probes with these names, all if there are none; UserError for an unknown name."""
    probes = catalogue(str(folder / "images"))
    if unknown := set(only) - {probe.name for probe in probes}:
        told = ", ".join(p.name for p in probes)
        raise UserError(f"there is no probe {', '.join(sorted(unknown))}: there are {told}")
    return [probe for probe in probes if not only or probe.name in only]


def turns(rounds: Sequence[Mapping[Part, int]]) -> Iterator[tuple[Part, int, int]]:
    """The order of asking, as slices of the parts: they take turns, forwards and backwards, within each round.

    So drift over the run affects every part equally.
    """
    begun: Mapping[Part, int] = dict.fromkeys(PARTS, 0)
    for ended in rounds:
        for k in range(TURNS):
            for part in PARTS if k % 2 == 0 else reversed(PARTS):
                many = ended[part] - begun[part]
                start, stop = (begun[part] + round(many * i / TURNS) for i in (k, k + 1))
                if stop > start:
                    yield part, start, stop
        begun = ended


def _taken(
    free: Mapping[str, Sequence[Candidate]], needs: Mapping[str, float], scale: float, least: int
) -> list[Candidate]:
    """The first sets of each probe. In the first round (`least` is set) `scale` times its need, and at least so many.

    Later what it needs, but at most `scale`, so that no probe takes all calls; if all have what they need, more in
    proportion.
    """
    found: list[Candidate] = []
    beyond = max(1.0, scale / max(1.0, *needs.values())) if needs else 1.0
    for name, candidates in free.items():
        need = needs.get(name, 0.0)
        found += candidates[: max(least, round(scale * need if least else beyond * min(scale, need)))]
    return found


def _cost(taken: Iterable[Candidate]) -> int:
    asks = {(want.part, want.id) for each in taken for want in each}
    return sum(2 if part == "pairs" else 1 for part, _ in asks)


def record(item: Item) -> dict[str, Any]:
    """The JSON form of an item, with absolute paths of its images."""

    def whole(part: Any) -> Any:
        if isinstance(part, Image):
            return Image(
                resolved(part) if part.source.startswith(("data:", *REMOTE)) else str(Path(resolved(part)).resolve())
            )
        if isinstance(part, Video):
            return replace(part, frames=tuple(map(whole, part.frames)))
        return part

    def content(parts: Any) -> Any:
        return None if parts is None else tuple(map(whole, parts))

    turned = tuple(replace(turn, content=content(turn.content)) for turn in item.instruction)
    moved = replace(
        item,
        instruction=turned,
        responses=tuple(map(content, item.responses)),
        reference=content(item.reference),
        context=content(item.context),
    )
    return item_to(moved)
