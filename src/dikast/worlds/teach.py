"""Lessons: training data of worlds for small judges.

There are several kinds. A lesson is an item with worked gold feedback: every claim, the evidence for or against it, the
finding, its cost and the running total, then the points lost by the response as a whole, then the total. A small model
needs supervision this close to each claim, and with the evidence first a finding only requires comparing words. Talk
is about the picture alone: what is in each of its cells (look-and-say), or where each shape is (look-and-find). The
evidence in lessons about scenes uses the same words as talk. The glossary is about the names in rubrics alone, and
matching about comparing findings with rules. Lessons of `answer_lessons` are not decided by what is shown.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError
from dikast.core.item import Item, item_to
from dikast.core.machine.worker_pool import worker_pool
from dikast.core.part import Text
from dikast.core.records import write_records
from dikast.worlds.altered import blanked, opened, padded
from dikast.worlds.answer_lessons import agreement, silent
from dikast.worlds.domains.protocol import DRAWN, Claim
from dikast.worlds.domains.scene_graph import Scene, Thing, corner_cell, unnamed
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.domains.vocabulary import SHAPES
from dikast.worlds.drills import check_drill, drilled
from dikast.worlds.glossary import glossary
from dikast.worlds.make import Maker
from dikast.worlds.matching import NOT_WEIGHED, check_rows, checks, matching, named_in, stated_rules
from dikast.worlds.sample import Graded, Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import Spec, subject_of
from dikast.worlds.settings import QUOTED, Settings
from dikast.worlds.truths import reference_text
from dikast.worlds.write import Written, prepared, write_pictures

ASK_TALK = "Say what is in each cell."
ASK_FIND = "Find"

_OTHERS = 10**6  # so much later comes the sample whose statements another is compared with
_MOST_LOOKED = 50  # samples that are drawn for each different rubric


def worked(sample: Sample, which: int = 0, *, quote: bool = False) -> str:
    """The worked feedback on response `which`: findings with their costs, running totals, and the total.

    quote: evidence is in smaller steps (`worked_out`). First stands what each name in a rubric of terms means, in the
    words of aspects. After each finding stand what the claim is about, and whether each rule of the rubric counts it
    and what it costs by it; for other rubrics the names that they have for it. `not weighed` where nothing counts it.
    """
    gold = sample.gold()
    one = gold if len(sample.responses) == 1 else gold["responses"][which]
    lines, total = stated_rules(sample.spec) if quote else [], 0
    claims, found = sample.responses[which].claims, sample.graded[which].findings
    checked = checks(claims, [finding.metric for finding in found], sample.spec.terms) if quote else [""] * len(claims)
    for claim, stated, finding, said in zip(one["claims"], claims, found, checked, strict=True):
        verdict = {"unsupported": "unclear"}.get(claim["verdict"], claim["verdict"])
        evidence = seen(stated, sample.graph, steps=quote) if isinstance(sample.graph, Scene) else finding.truth
        if isinstance(sample.graph, GivenText) and not finding.gone:
            evidence = (worked_out if quote else worked_sum)(stated, sample.graph) or evidence
        lines += [f"Claim: {claim['text']}", f"Evidence: {evidence}", f"Finding: {verdict}"]
        if quote:
            far = " far" if finding.metric >= ASPECTS[stated.aspect].far else ""
            named = said or ", ".join(names_for(stated, sample.spec)) or NOT_WEIGHED
            lines[-1] += f"{far}, {named_in(stated)}, {named}"
        if claim["cost"]:
            total += claim["cost"]
            lines[-1] += f", {claim['cost']} lost, {total} in all"
    for name, lost, said in _whole(sample, sample.graded[which]):
        total += lost
        lines.append(f"{name}: {said}" + (f", {lost} lost, {total} in all" if lost else ""))
    return "\n".join([*lines, f"Lost: {total}"])


def names_for(claim: Claim, spec: Spec) -> list[str]:
    """The rubric's names for the aspect or terms under which it weighs a claim; [] if it does not weigh it."""
    if spec.terms:
        return [term.name for term in spec.terms if term.covers(claim)]
    if spec.entries:
        return [e.about for e in spec.entries if e.kind == claim.kind and e.subject == subject_of(claim)]
    return [ASPECTS[name].names[spec.wording[3]] for name, _ in spec.weights if name == claim.aspect]


def _whole(sample: Sample, graded: Graded) -> Iterator[tuple[str, int, str]]:
    """The weighed aspects of the response as a whole: name, points lost, and finding."""
    for name, weight in () if sample.spec.entries else sample.spec.weights:
        if name not in graded.counts:
            continue
        count = graded.counts[name]
        said = str(count)
        if name == "completeness" and isinstance(sample.graph, Scene):
            claims = sample.responses[0].claims
            left = " and ".join(f"{t.colour} {t.shape}" for t in unnamed(claims, sample.graph)) or "nothing"
            said = f"{_listed(sample.graph.things)}; left out: {left}"
        elif ASPECTS[name].cap == 1:
            said = "broken" if count else "kept"
        called = dict(zip((each for each, _ in sample.spec.weights), sample.spec.names, strict=False))
        yield (
            called.get(name, ASPECTS[name].names[0]).capitalize(),
            weight * points(ASPECTS[name], count, sample.spec.graded),
            said,
        )


def lesson(sample: Sample, *, reference: bool = False, quote: bool = False) -> Item:
    """The record of `sample` with worked feedback; for pairs, that of both responses with the label each would get.

    `reference`: with a reference answer that is correct about everything the (first) response mentions; from version 4
    on with a flawless one that does not depend on what responses state, each statement checked against what is shown.
    """
    item = sample.item()
    gold: dict[str, Any] = dict(item.gold)
    if len(sample.responses) == 1:
        gold["feedback"] = worked(sample, quote=quote)
    else:
        titles = ("First", "Second", *(f"Number {i}" for i in range(3, len(sample.responses) + 1)))
        gold["feedback"] = "\n".join(
            f"{titles[i]}\n{worked(sample, i, quote=quote)}\nGrade: {gold['labels'][i]}"
            for i in range(len(sample.responses))
        )
    if not reference:
        return replace(item, gold=gold)
    if sample.spec.terms and sample.domain.name not in DRAWN:
        text = reference_text(sample, Stream("reference text", sample.id))
        return replace(item, gold=gold, reference=(Text(text),) if text else None)
    claims = (gold if len(sample.responses) == 1 else gold["responses"][0])["claims"]
    told = [c["text"] if c["verdict"] == "right" else _sentence(c["correction"]) for c in claims]
    return replace(item, gold=gold, reference=(Text(" ".join(told)),))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def talk(sample: Sample) -> dict[str, Any]:
    """A row of talk about a scene.

    Even samples: cells in reading order, row by letter and column by number, and what is in them. Odd ones: each shape,
    in an order drawn for the sample, and where it is. `meta.patches`: the words for every cell, in reading order, from
    which a tower of one patch a cell learns what it sees.
    """
    scene, image = sample.graph, sample.paths()[0]
    inside = {(thing.row, thing.col): _thing_in_words(thing) for thing in scene.things}
    inside |= {(row, col): f"{_cell(col, row)} covered" for col, row in scene.covers}
    cells = [(row, col) for row in range(scene.grid) for col in range(scene.grid)]
    if sample.index % 2:
        wanted = Stream("find", sample.settings.seed, sample.index).shuffled(list(SHAPES))
        told = [f"{shape} {_listed(thing for thing in scene.things if thing.shape == shape)}" for shape in wanted]
        name, asked, target = "find", f"{ASK_FIND} {', '.join(wanted)}.", "; ".join(told)
    else:
        name, asked, target = "talk", ASK_TALK, ", ".join(inside[cell] for cell in cells if cell in inside)
    meta = {"patches": [inside.get((row, col), f"{_cell(col, row)} empty") for row, col in cells]}
    return {"id": f"{sample.id}-{name}", "image": image, "instruction": asked, "target": target, "meta": meta}


def seen(claim: Claim, scene: Scene, *, steps: bool = False) -> str:
    """The evidence in a scene for a claim: the things it names, each after its name, or the corner it mentions; with
    steps for one of kind `count` also how many there are, if any.

    The name comes first, so that the model looks for a thing by the word it has just read.
    """
    if claim.kind == "sure":
        cell = corner_cell(str(claim.args[0]), scene.grid)
        here = [thing for thing in scene.things if (thing.col, thing.row) == cell]
        told = f"{_cell(*cell)} {'covered' if cell in scene.covers else 'empty'}"
        return _listed(here) if here else told
    if claim.kind == "shape":
        return f"{claim.args[0]} {_listed(thing for thing in scene.things if thing.colour == claim.args[0])}"
    shapes = dict.fromkeys(arg for arg in claim.args if arg in SHAPES)
    told = " against ".join(
        f"{shape} {_listed(thing for thing in scene.things if thing.shape == shape)}" for shape in shapes
    )
    counted = sum(thing.shape in shapes for thing in scene.things)
    return f"{told}, {counted} in all" if steps and claim.kind == "count" and counted else told


def worked_sum(claim: Claim, notes: GivenText) -> str:
    """The sum that a claim states, with the numbers that the notes give; "" for a claim of another kind."""
    if claim.kind not in ("plus", "minus"):
        return ""
    one, other = (notes.numbers[str(arg)] for arg in claim.args[:2])
    return f"{one} plus {other} is {one + other}" if claim.kind == "plus" else f"{one} minus {other} is {one - other}"


def worked_out(claim: Claim, notes: GivenText) -> str:
    """The evidence in notes for an age, a sum or a place in the list, in small steps; "" for a claim of another kind,
    which the notes state as it is.

    Of a sum first the numbers as they are given, then units and tens, then the result; of sums and ages then the number
    that is stated, so that the two to be compared stand together. Of a place the given list as far as the word, its
    place there, and its place in the new list.
    """
    if claim.kind == "age":
        return f"the age of {claim.args[0]} is {notes.people[str(claim.args[0])]['age']}, stated {claim.args[-1]}"
    if claim.kind == "place":
        word = str(claim.args[0])
        before = notes.given[: notes.given.index(word) + 1]
        return f"{', '.join(before)} is at place {len(before)}, then at place {notes.edited.index(word) + 1}"
    if claim.kind not in ("plus", "minus"):
        return ""
    one, other = (notes.numbers[str(arg)] for arg in claim.args[:2])
    (tens, units), (more, added) = divmod(one, 10), divmod(other, 10)
    if claim.kind == "plus":
        more += (units + added) // 10
        steps = (f"{units} plus {added} is {units + added}", f"{tens} plus {more} is {tens + more}", str(one + other))
    else:
        units, tens = (units + 10, tens - 1) if units < added else (units, tens)
        steps = (f"{units} minus {added} is {units - added}", f"{tens} minus {more} is {tens - more}", str(one - other))
    given = (f"{claim.args[0]} = {one}", f"{claim.args[1]} = {other}")
    return ", ".join((*given, *steps, f"stated {claim.args[-1]}"))


def _listed(things: Iterable[Thing]) -> str:
    return ", ".join(_thing_in_words(thing) for thing in sorted(things, key=lambda t: (t.row, t.col))) or "nothing"


def _thing_in_words(thing: Thing) -> str:
    return f"{_cell(thing.col, thing.row)} {thing.size} {thing.colour} {thing.texture} {thing.shape}"


def _cell(col: int, row: int) -> str:
    return f"{'abcdefgh'[row]} {col + 1}"


_Rows = Callable[[Sample], dict[str, Any]]
_ROWS: dict[str, _Rows] = {"talk": talk, "glossary": glossary, "matching": matching}
_WITHOUT = ("glossary", "matching")  # of these without pictures


def write_lessons(
    settings: Settings,
    n: int,
    out: str | Path,
    *,
    reference: int = 0,
    padding: int = 0,
    blank: int = 0,
    silent: int = 0,
    agreement: int = 0,
    instead: str = "",
    quote: bool = False,
    rubrics: int = 0,
    only: str = "",
    workers: int = 1,
    shard: int = 1_500,
) -> Written:
    """Write lessons 0 to n - 1 to `out`: `items-00000.jsonl` ... (`talk-00000.jsonl` ...), pictures, `world.json`.

    reference, padding, blank, silent, agreement: percent of the lessons that have one, are `padded`, are `blanked`, say
    nothing (`silent`), and compare a response with a reference (`agreement`). rubrics: how many different ones the
    lessons have between them, each lesson one of these by chance, from version 4 on one that weighs a claim of the
    response; 0 is as many as the world draws. only: all lessons are `drilled` in this kind of claim. instead: rows of
    `talk`, of the `glossary` or of `matching` in place of lessons. The number of workers changes nothing. UserError for
    what cannot be met, and for a folder that holds something else.
    """
    if n < 1 or workers < 1 or shard < 1:
        raise UserError(f"n, workers and shard: must be 1 or more, got {n}, {workers} and {shard}")
    odd = {
        name: percent for name, percent in (("blank", blank), ("silent", silent), ("agreement", agreement)) if percent
    }
    for name, percent in {"reference": reference, "padding": padding, **odd}.items():
        if not 0 <= percent <= 100:
            raise UserError(f"{name}: expected a percentage from 0 to 100, got {percent}")
    if silent + agreement > 100:
        raise UserError(f"silent and agreement: {silent} and {agreement} percent are more than all lessons: lower one")
    if (silent or agreement) and (settings.responses > 1 or settings.domain in DRAWN or instead or only or rubrics):
        raise UserError(
            f"{list(odd)[-1]}: it needs lessons about one response in words, with rubrics as drawn: leave out pairs,"
            f" talk, only, rubrics, and the domains {' and '.join(DRAWN)}"
        )
    if instead not in ("", *_ROWS):
        raise UserError(f"instead: there are rows of {', '.join(_ROWS)}, not of {instead!r}")
    if instead == "talk" and settings.domain != "scenes":
        raise UserError(f"talk: only the domain 'scenes' has rows of talk, not {settings.domain!r}")
    if blank and settings.domain != "scenes":
        raise UserError(f"blank: only the domain 'scenes' has empty pictures, not {settings.domain!r}")
    if only:
        check_drill(settings, only, talk=instead == "talk")
    if instead in _WITHOUT:
        check_rows(settings, instead, bool(reference or padding or odd or quote or rubrics or only))
    about: dict[str, Any] = {"only": only} if only else {}
    about |= {"lessons": 1, "reference": reference, "padding": padding, "talk": instead == "talk"}
    about |= {"n": n, "shard": shard}
    about |= {"quote": QUOTED} if quote else {}
    about |= odd
    about |= {instead: 2} if instead in _WITHOUT else {}
    about |= {"different rubrics": rubrics} if rubrics else {}
    shared = _first_rubrics(settings, rubrics) if rubrics else ()
    with prepared(out, {**settings.to_json(), **about, "version": settings.generator}) as folder:
        shares = _Shares(reference, padding, blank, silent, agreement, quote, shared, only)
        task = partial(_shard, settings, folder, n, shard, shares, _ROWS.get(instead))
        starts = range(0, n, shard)
        if workers == 1 or len(starts) == 1:
            return Written(tuple(map(task, starts)), n)
        with worker_pool(min(workers, len(starts))) as pool:
            return Written(tuple(pool.map(task, starts)), n)


class _Shares(NamedTuple):
    """Percent of the lessons of each sort; whether they quote the rubric; the rubrics that they have, () for those that
    are drawn with them; the kind that all of their claims are of, if any.
    """

    reference: int
    padding: int
    blank: int
    silent: int
    agreement: int
    quote: bool = False
    rubrics: tuple[Spec, ...] = ()
    only: str = ""


def _first_rubrics(settings: Settings, n: int) -> tuple[Spec, ...]:
    """The first `n` different rubrics that a world draws; UserError where it has fewer."""
    if settings.responses > 1:
        raise UserError("rubrics: lessons about one response each can share rubrics")
    maker, found = Maker(settings), dict[str, Spec]()
    for index in range(_MOST_LOOKED * n):
        sample = maker.sample(index)
        found.setdefault(fingerprint(sample.rubric.to_dict()), sample.spec)  # as it is shown
        if len(found) == n:
            return tuple(found.values())
    raise UserError(f"rubrics: this world draws only {len(found):,} different ones, not {n:,}")


def _about(sample: Sample, rubrics: Sequence[Spec]) -> Sequence[Spec]:
    """Of rubrics of terms those that weigh a claim of the response, if any does: most are about something else."""
    claims = sample.responses[0].claims
    found = [each for each in rubrics if any(term.covers(claim) for term in each.terms for claim in claims)]
    return found or rubrics


def _shard(
    settings: Settings, folder: Path, n: int, shard: int, shares: _Shares, rows: _Rows | None, start: int
) -> Path:
    maker = Maker(settings)
    path = folder / f"{'talk' if rows else 'items'}-{start // shard:05d}.jsonl"
    samples = (maker.sample(index) for index in range(start, min(n, start + shard)))
    write_records(path, _records(samples, Maker(settings), folder, shares, rows))
    return path


def _records(
    samples: Iterable[Sample], others: Maker, folder: Path, shares: _Shares, rows: _Rows | None
) -> Iterator[dict[str, Any]]:
    before = ""
    for sample in samples:
        if rows in (None, talk) and (not sample.shown or sample.shown != before):
            write_pictures(sample, folder)
        before = sample.shown
        if rows:
            yield rows(sample)
        else:
            key = (sample.settings.seed, sample.settings.domain, sample.index)
            drawn, pad = Stream("reference", *key).chance(shares.reference), Stream("padding", *key)
            made = drilled(sample, shares.only, Stream("only", *key)) if shares.only else sample
            made = padded(made, pad) if pad.chance(shares.padding) else made
            if Stream("blank", *key).chance(shares.blank):
                made = blanked(made)
                write_pictures(made, folder)
            if shares.rubrics:
                made = replace(made, spec=Stream("rubrics", *key).pick(_about(made, shares.rubrics)), rivals=())
            odd = Stream("odd", *key).below(100)
            if shares.silent and odd >= shares.agreement + shares.silent and Stream("opened", *key).chance(50):
                made = opened(made, Stream("opening", *key))
            item = lesson(made, reference=drawn, quote=shares.quote)
            if odd < shares.agreement:
                other = others.sample(sample.index + _OTHERS)
                item = agreement(made, other, Stream("agreement", *key)) or item
            elif odd < shares.agreement + shares.silent:
                item = silent(item, made, Stream("silent", *key), quote=shares.quote)
            yield item_to(item)
