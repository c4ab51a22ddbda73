"""The standard test suites of judges, `prove` and `probe`: all splits, and changes with known effects on the score.

Every record has `meta.suite` (the part) and `meta.set` (records that belong together); within a set the gold says
what must change and what must not. It is small enough for a paid judge; `large` is ten times the size.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.errors import RunError, UserError
from dikast.worlds.domains.image_edits import Retouched
from dikast.worlds.domains.paraphrases import INJECTIONS
from dikast.worlds.domains.protocol import DRAWN
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import SPLITS, rules_of
from dikast.worlds.sampling.response import LAYOUTS, Response, Sentence
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings
from dikast.worlds.write import Written, write_samples

CALLS = 2000  # for which the suite `probe` is made; with more calls it grows in proportion
_ALL = {"domains": list(DOMAINS), "split": "all"}  # of folders that do not say
_MOST_PAIRED = 4000  # pairs of rubrics that are tried for contrasts
_LADDERS = {
    "scenes": ("colour", "size", "position", "relation", "count", "exists", "more", "larger", "completeness"),
    "text": ("age", "plus", "place"),
    "charts": ("value",),
    "plates": ("reading", "number"),
    "clips": ("motion", "turns", "moment", "before"),
    "pictures": ("colour", "count"),
    "retouch": ("preservation",),
}


class Plan(NamedTuple):
    """What a suite is made of. times: how many times as many items of each domain as the smallest suite has."""

    seed: int = 0
    times: int = 1
    domains: tuple[str, ...] = tuple(DOMAINS)
    split: str = "all"

    def maker(self, domain: str, part: int, **other: Any) -> Maker:
        """The maker of a part's items of one domain; each part has a seed of its own."""
        return Maker(Settings(domain=domain, split=self.split, seed=self.seed + part, edits=False, **other))

    def makers(self, part: int) -> Iterator[tuple[str, Maker]]:
        """The makers of a part whose rubrics need what is shown."""
        return ((domain, self.maker(domain, part, form=0)) for domain in self.domains)


def write_suite(name: str, out: str | Path, *, seed: int = 0, large: bool = False, times: int = 1) -> Written:
    """Write the suite called `prove`, or the part of it that probes draw from (`probe`), to a folder.

    `times` makes the suite `probe` that many times as large. UserError for another name.
    """
    if name == "prove":
        return write_samples(suite(seed=seed, large=large), out, {"suite": name, "seed": seed, "large": large})
    if name == "probe":
        times = 10 * times if large else times
        return write_samples(probe_suite(Plan(seed, times)), out, {"suite": name, "seed": seed, "times": times})
    raise UserError(f"suite: there is no suite {name!r}; there are `prove` and `probe`")


def write_probe_suite(out: Path, *, calls: int, seed: int = 0, domains: Sequence[str] = (), split: str = "all") -> None:
    """Write the suite `probe` for that many calls, of these domains (() for each that the split has) and this split.

    Fewer domains give at least as many items in all. What is there stays, so that more calls later go on with the same
    items. UserError for a domain or split that cannot be, and for a folder that holds anything else.
    """
    rules_of(split)
    for domain in domains:
        Settings(domain=domain, split=split, responses=2)  # the suite has pairs, too
    chosen = [each for each in DOMAINS if each in domains] or domains_with_pairs(split)
    about = {"suite": "probe", "seed": seed, "domains": chosen, "split": split}
    if not any(out.glob("items-*.jsonl")):  # a killed call leaves none
        times = math.ceil(math.ceil(calls / CALLS) * len(DOMAINS) / len(chosen))
        write_samples(probe_suite(Plan(seed, times, tuple(chosen), split)), out, {**about, "times": times})
        return
    note = out / "world.json"
    there = {**_ALL, **(orjson.loads(note.read_bytes()) if note.exists() else {})}
    if other := [key for key in about if there.get(key) != about[key]]:
        told = "; ".join(f"{key}: {there.get(key)}, not {about[key]}" for key in other)
        raise UserError(f"out: {out} holds items of another suite ({told}); name a new folder")


def domains_with_pairs(split: str) -> list[str]:
    """The domains of which the split has pairs, as the suite `probe` needs them."""
    return [domain for domain in DOMAINS if _has(domain, split, responses=2)]


def _has(domain: str, split: str, responses: int = 1) -> bool:
    try:
        Settings(domain=domain, split=split, responses=responses)
    except UserError:
        return False
    return True


def suite(*, seed: int = 0, large: bool = False) -> Iterator[Sample]:
    """Every sample of the suite, in a fixed order."""
    plan = Plan(seed, 10 if large else 1)
    for part in (_splits, _pairs, _twins, _contrast, _ladders, _edits, _evidence):
        yield from _named(part(plan))


def probe_suite(plan: Plan) -> Iterator[Sample]:
    """The suite that probes use: unedited items, pairs, contrasts, ladders, and three times as many evidence sets."""
    yield from (sample for sample in _named(_pairs(plan)) if sample.name.endswith("-base"))
    yield from _named(_contrast(plan))
    yield from _named(_ladders(plan))
    yield from (sample for sample in _named(_edits(plan)) if sample.name.endswith("-base"))
    yield from _named(_evidence(plan._replace(times=3 * plan.times)))


def _named(part: Iterable[tuple[Sample, str, str]]) -> Iterator[Sample]:
    for sample, parts, group in part:
        about = (*sample.notes, ("suite", parts), ("set", group))
        yield replace(sample, name=f"prove-{parts}-{group}-{sample.name or 'base'}", notes=about)


Part = Iterator[tuple[Sample, str, str]]


def _splits(plan: Plan) -> Part:
    """Some items of every split of every domain that has it."""
    for domain in plan.domains:
        for split in SPLITS:
            if not _has(domain, split):
                continue
            maker = Maker(Settings(domain=domain, split=split, seed=plan.seed + 1))
            for i in range(8 * plan.times):
                yield replace(maker.sample(i), name=domain), f"split-{split}", f"{domain}{i}"


def _pairs(plan: Plan) -> Part:
    """Pairs, and the same pairs with the responses swapped."""
    for domain in plan.domains:
        maker = plan.maker(domain, 2, responses=2)
        for i in range(13 * plan.times):
            sample = maker.sample(i)
            yield sample, "swap", f"{domain}{i}"
            graph = sample.graph[::-1] if isinstance(sample.graph, tuple) else sample.graph
            turned = replace(sample, name="swapped", responses=sample.responses[::-1], graph=graph)
            yield turned, "swap", f"{domain}{i}"


def _twins(plan: Plan) -> Part:
    """The same text with two scenes: the scores differ only because of the picture."""
    for domain, maker in plan.makers(3):
        for i in range(15 * plan.times):
            for k, twin in enumerate(maker.twins(i)):
                yield replace(twin, name=f"scene{k}"), "twins", f"{domain}{i}"


def _contrast(plan: Plan) -> Part:
    """The same response and scene under two rubrics that must score them differently. Where a split hardly has such
    rubrics there are fewer.
    """
    for domain, maker in plan.makers(4):
        made = 0
        for index in range(1, _MOST_PAIRED * plan.times):
            if made == 12 * plan.times:
                break
            one, other = maker.sample(2 * index), maker.sample(2 * index + 1)
            turned = replace(one, spec=other.spec)
            spoken = {claim.aspect for claim in one.responses[0].claims}
            fits = not other.spec.entries and {name for name, _ in other.spec.weights} <= spoken | {
                "completeness",
                "preservation",
            }
            if fits and other.spec.scale == one.spec.scale and turned.gold()["score"] != one.gold()["score"]:
                yield replace(one, name="first", rivals=(other.spec,)), "contrast", f"{domain}{made}"
                yield replace(turned, name="second", rivals=(one.spec,)), "contrast", f"{domain}{made}"
                made += 1


def _ladders(plan: Plan) -> Part:
    """One claim increasingly far off, everything else correct. Of kinds that a split hardly draws there are fewer."""
    for domain, maker in plan.makers(5):
        for kind in _LADDERS.get(domain, ()):
            for i in range(4 * plan.times):
                try:
                    rungs = maker.ladder(i, kind)
                except RunError:
                    continue
                for rung in rungs:
                    yield replace(rung, name=f"off{dict(rung.notes)['rung']}"), f"ladder-{kind}", f"{domain}{i}"


def _restyled(maker: Maker, response: Response, rng: Stream) -> dict[str, Response]:
    """Edits of severity 0: none of them changes a score."""
    domain = maker.domain
    voice = (response.voice + 1 + rng.below(3)) % 4
    said = tuple(s if s.claim is None else s._replace(text=domain.say(s.claim, voice)) for s in response.sentences)
    return {
        "paraphrase": replace(response, sentences=said, voice=voice),
        "padding": response.padded,
        "restyle": replace(response, edits=("restyle",), layout=LAYOUTS[2]),
        "reorder": replace(response, sentences=tuple(reversed(response.sentences))),
        "injection": replace(response, sentences=(*response.sentences, Sentence(rng.pick(INJECTIONS), "injection"))),
    }


def _painted(graph: Any) -> Any | None:
    """The judged picture with text painted over it; None if there is no picture."""
    if isinstance(graph, Retouched):
        return replace(graph, after=replace(graph.after, overlay="5/5"))
    return replace(graph, overlay="5/5") if hasattr(graph, "overlay") else None


def _edits(plan: Plan) -> Part:
    """Paraphrase, padding, restyling, reordering, injection, and words painted over the picture: the score stays."""
    for domain, maker in plan.makers(6):
        for i in range(13 * plan.times):
            base = maker.sample(i)
            yield base, "edits", f"{domain}{i}"
            drawn = domain in DRAWN  # there the text is the request, which is not judged
            restyled = {} if drawn else _restyled(maker, base.responses[0], Stream("edits", plan.seed, i))
            for name, response in restyled.items():
                yield replace(base, name=name, responses=(response,)), "edits", f"{domain}{i}"
            painted = _painted(base.graph)
            if painted is not None:
                yield replace(base, name="overlay", graph=painted), "edits", f"{domain}{i}"


def _evidence(plan: Plan) -> Part:
    """The picture is blanked or swapped for another item's; the gold follows the new picture.

    Blanking never raises the score: rubrics under which it would are skipped.
    """
    blank: dict[str, Callable[[Sample], object]] = {
        "scenes": lambda sample: sample.graph.emptied(),
        "pictures": lambda sample: sample.graph.emptied(),
        "text": lambda sample: GivenText(),
        "charts": lambda sample: replace(sample.graph, values={}),
        "plates": lambda sample: replace(sample.graph, plates=[], table=[]),
        "clips": lambda sample: replace(sample.graph, things=[], events=[]),
        "retouch": lambda sample: replace(sample.graph, after=replace(sample.graph.after, things=[])),
    }
    for domain, maker in plan.makers(7):
        found, i = 0, 0
        while found < 11 * plan.times:
            base, other = maker.sample(i), maker.sample(i + 10**6)
            gone = replace(base, name="blank", graph=blank[domain](base)) if domain in blank else None
            i += 1
            if gone is not None and gone.levels[0] < base.levels[0]:
                continue  # a rubric about omissions: a blank picture has nothing to leave out
            yield base, "evidence", f"{domain}{found}"
            yield replace(base, name="swapped", graph=other.graph), "evidence", f"{domain}{found}"
            if gone is not None:
                yield gone, "evidence", f"{domain}{found}"
            found += 1


def parts(samples: Iterable[Sample]) -> dict[str, int]:
    """The number of samples in each part of a suite."""
    found: dict[str, int] = {}
    for sample in samples:
        part = str(dict(sample.notes)["suite"])
        found[part] = found.get(part, 0) + 1
    return found
