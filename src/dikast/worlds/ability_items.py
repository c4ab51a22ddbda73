"""The items of `dikast prove --judge`: small sets, each of which one ability of a judge decides.

`meta.ability` names the ability (or `edits` and `pairs`, which several are read from), `meta.set` the items that belong
together, `meta.variant` which of the set an item is. Gold differs within a set; among `edits` it does not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.core.errors import RunError, UserError
from dikast.core.item import Item, item_to
from dikast.core.part import Text, Turn
from dikast.core.records import write_records
from dikast.worlds.domains.paraphrases import INJECTIONS
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Sentence
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.penalty import Spec
from dikast.worlds.settings import Settings
from dikast.worlds.truths import reference_text
from dikast.worlds.write import prepared, write_pictures

Made = Iterator[tuple[Item, Sample]]
RUBRICS = 4  # that each response of the ability `reads rubrics` stands under
_SEEN = ("scenes", "plates", "charts", "clips")
ABLE = (*_SEEN, "text")  # the domains that abilities are about
LEAST_CALLS = 200
_CALLS = 800  # questions at a share of 1, a pair counted twice
_POOL = 60  # samples whose rubrics are tried on one response
WITHHELD = "The notes are withheld; only the reference answer tells what they say."


def ability_items(
    *, seed: int = 0, split: str = "all", size: int = 96, share: float = 1.0, domains: Sequence[str] = ABLE
) -> Made:
    """Every item with the sample that it was made of, in a fixed order: of all domains some 800 questions at `share` 1.

    `size` is the side of a picture in pixels. Abilities without items in these domains and the split are left out.
    """
    for name, part in _PARTS.items():
        for item, sample in part(_Plan(seed, split, size, share, domains)):
            yield replace(item, meta={**item.meta, "ability": name}), sample


def write_abilities(
    out: str | Path, *, calls: int, seed: int = 0, split: str = "all", size: int = 96, domains: Sequence[str] = ()
) -> list[Path]:
    """Write the items to `out` with their pictures: `singles.jsonl`, and `pairs.jsonl`, which are asked in two orders.

    They take no more than `calls` questions; `domains` () are all that abilities are about. Written once: the same call
    again returns the same files. UserError for settings that cannot be met, for too few calls, and for a folder that
    holds something else.
    """
    if calls < LEAST_CALLS:
        raise UserError(f"calls: at least {LEAST_CALLS} are needed for every ability, got {calls}")
    if other := [domain for domain in domains if domain not in ABLE]:
        raise UserError(f"domain: no ability is about {', '.join(other)}; there are {', '.join(ABLE)}")
    for domain in domains or ("scenes",):
        Settings(domain, split, seed, size=size)
    chosen = tuple(domain for domain in ABLE if domain in domains)  # in whatever order they were named
    about = {"suite": "abilities", "calls": calls, "seed": seed, "split": split, "size": size}
    with prepared(out, about | ({"domains": chosen} if chosen else {})) as folder:
        files = [folder / "singles.jsonl", folder / "pairs.jsonl"]
        if not all(file.exists() for file in files):
            found = _within(calls, seed, split, size, chosen or ABLE)
            for _, sample in found:
                write_pictures(sample, folder)
            for file, many in zip(files, (1, 2), strict=True):
                write_records(file, [item_to(item) for item, _ in found if len(item.responses) == many])
    return files


def _within(calls: int, seed: int, split: str, size: int, domains: Sequence[str]) -> list[tuple[Item, Sample]]:
    """As many items as take no more than `calls` questions."""
    share = calls / _CALLS * len(ABLE) / len(domains)
    while True:
        found = list(ability_items(seed=seed, split=split, size=size, share=share, domains=domains))
        if (asked := sum(len(item.responses) for item, _ in found)) <= calls:
            return found
        share *= min(0.97, calls / asked)


class _Plan:
    """How many sets of an ability are made, and the makers of their items."""

    def __init__(self, seed: int, split: str, size: int, share: float, domains: Sequence[str]) -> None:
        self.seed, self.split, self.size, self.share, self.domains = seed, split, size, share, domains

    def many(self, n: int) -> int:
        return max(2, round(n * self.share))

    def maker(self, domain: str, **more: Any) -> Maker | None:
        """None if this domain was not asked for, or the split has nothing of it."""
        if domain not in self.domains:
            return None
        try:
            scales = () if self.split == "scale" else ("1-5",)
            world = Settings(domain, self.split, self.seed, size=self.size, form=0, edits=False, scales=scales, **more)
            return Maker(world)
        except UserError:
            return None

    def makers(self, domains: Sequence[str], **more: Any) -> dict[str, Maker]:
        found = {domain: self.maker(domain, **more) for domain in domains}
        return {domain: maker for domain, maker in found.items() if maker is not None}


def _item(sample: Sample, group: str, variant: str, **changes: Any) -> tuple[Item, Sample]:
    named = replace(sample, name=f"{group}-{variant}", notes=(("set", group), ("variant", variant)))
    return replace(named.item(), **changes), named


def _twins(plan: _Plan, domains: Sequence[str], n: int) -> Made:
    """The same words about two scenes under one rubric; the scores differ."""
    makers = plan.makers(domains)
    for i in range(plan.many(n)):
        for domain, maker in makers.items():
            for k, twin in enumerate(maker.twins(i)):
                yield _item(twin, f"twins-{domain}{i}", f"scene{k}")


def _off(plan: _Plan, kinds: Sequence[str], n: int) -> Made:
    """One claim right and off by one step (alternately: as far as possible), all else right."""
    maker = plan.maker("scenes")
    for kind in kinds if maker is not None else ():
        assert maker is not None
        for i in range(plan.many(n)):
            try:
                rungs = maker.ladder(i, kind)
            except RunError:  # a kind of claim that this split never makes
                break
            for rung in (rungs[0], rungs[1 if i % 2 else -1]):
                yield _item(rung, f"off-{kind}{i}", f"off{dict(rung.notes)['rung']}")


def _rubrics(plan: _Plan) -> Made:
    """One response under several rubrics that score it differently."""
    makers = plan.makers(("scenes", "text"))
    for domain, maker in makers.items():
        pool = [maker.sample(10**6 + i).spec for i in range(5 * _POOL)]
        for i in range(plan.many(26)):
            base = maker.sample(i)
            specs = _rivals(base, pool[i % 5 * _POOL :][:_POOL])
            for k, spec in enumerate(specs):
                rivals = tuple(other for other in specs if other is not spec)
                yield _item(replace(base, spec=spec, rivals=rivals), f"rubrics-{domain}{i}", f"rubric{k}")


def _rivals(base: Sample, pool: Sequence[Spec]) -> list[Spec]:
    """Rubrics about what the response mentions, with scores as far apart as possible; none if too few fit.

    All have the scale of the first, in its direction, so that a judge that ignores rubrics gives all the same score.
    """
    spoken = {claim.aspect for claim in base.responses[0].claims} | {"completeness"}
    fits = [
        spec
        for spec in pool
        if not (spec.entries or spec.lower_is_better) and {name for name, _ in spec.weights} <= spoken
    ]
    good = sorted(((_goodness(replace(base, spec=spec)), i) for i, spec in enumerate(fits)), key=lambda each: each[0])
    if len(good) < RUBRICS or good[0][0] == good[-1][0]:
        return []
    steps = [round(k * (len(good) - 1) / (RUBRICS - 1)) for k in range(RUBRICS)]
    return [fits[good[at][1]] for at in steps]


def _goodness(sample: Sample) -> float:
    return 1 - sample.levels[0] / len(sample.spec.cuts)


def _references(plan: _Plan) -> Made:
    """The notes are withheld; the same response with two flawless references, for different notes."""
    maker = plan.maker("text")
    for i in range(plan.many(40) if maker is not None else 0):
        assert maker is not None
        for k, twin in enumerate(maker.twins(10**5 + i)):
            told = reference_text(twin, Stream("ability", plan.seed, i))
            asked = Turn("user", (Text(f"{WITHHELD}\n{twin.instruction}"),))
            yield _item(twin, f"references-{i}", f"notes{k}", reference=(Text(told),), instruction=(asked,))


def _edits(plan: _Plan) -> Made:
    """A response, and the same with filler sentences, or with one that asks the judge for a good score."""
    makers = plan.makers([domain for domain in DOMAINS if domain in ABLE and domain != "charts"])
    for i in range(plan.many(12)):
        for domain, maker in makers.items():
            base = maker.sample(i)
            said, rng = base.responses[0], Stream("ability", plan.seed, domain, i)
            begged = (*said.sentences, Sentence(rng.pick(INJECTIONS), "injection"))
            for name, response in (
                ("base", said),
                ("longer", said.padded),
                ("injected", replace(said, sentences=begged)),
            ):
                yield _item(replace(base, responses=(response,)), f"edits-{domain}{i}", name)


def _pairs(plan: _Plan) -> Made:
    """Pairs, which are asked in both orders."""
    makers = plan.makers(("scenes", "text"), responses=2)
    for i in range(plan.many(24)):
        for domain, maker in makers.items():
            yield _item(maker.sample(i), f"pairs-{domain}{i}", "pair")


_PARTS: dict[str, Callable[[_Plan], Made]] = {
    "reads pictures": lambda plan: _twins(plan, _SEEN, 14),
    "reads notes": lambda plan: _twins(plan, ("text",), 24),
    "reads rubrics": _rubrics,
    "counts": lambda plan: _off(plan, ("count",), 30),
    "binds": lambda plan: _off(plan, ("binding",), 30),
    "places": lambda plan: _off(plan, ("position", "relation"), 15),
    "follows references": _references,
    "edits": _edits,
    "pairs": _pairs,
}
