"""The worked gold feedback of lessons: finding by finding, each after the evidence for it, with costs and totals.

A small judge learns one short step at a time: the evidence stands before what it decides, and where something must be
counted the count grows along with what is listed.
"""

from collections.abc import Iterable, Iterator

from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing, corner_cell, unnamed
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.domains.vocabulary import SHAPES
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import ASK_LAYOUT, Response, ask_length, count_words
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import Spec, subject_of
from dikast.worlds.scoring.terms import Term

NOT_WEIGHED = "not weighed"
_GIVEN = {"prose": "text", "lines": "lines", "bullets": "dashes", "numbers": "numbers"}  # layouts, in short


def worked(sample: Sample, which: int = 0, *, quote: bool = False) -> str:
    """The worked feedback on response `which`: findings with their costs, running totals, and the total.

    quote: first stands what each name in a rubric of terms means, in the words of aspects. After each finding stand
    what the claim is about, and whether each rule of the rubric counts it and what it costs by it; for other rubrics
    the names that they have for it. `not weighed` where nothing counts it.
    """
    gold = sample.gold()
    one = gold if len(sample.responses) == 1 else gold["responses"][which]
    lines, total = _rules(sample.spec) if quote else [], 0
    paid: set[Term] = set()  # those under `once` that have cost something
    made = zip(one["claims"], sample.responses[which].claims, sample.graded[which].findings, strict=True)
    for claim, meant, finding in made:
        verdict = {"unsupported": "unclear"}.get(claim["verdict"], claim["verdict"])
        evidence = seen(meant, sample.graph) if isinstance(sample.graph, Scene) else finding.truth
        if isinstance(sample.graph, GivenText) and not finding.gone:
            evidence = worked_sum(meant, sample.graph) or evidence
        lines += [f"Claim: {claim['text']}", f"Evidence: {evidence}", f"Finding: {verdict}"]
        if quote:
            far = " far" if finding.metric >= ASPECTS[meant.aspect].far else ""
            named = names_for(meant, sample.spec)
            checked = [_checked(term, meant, finding.metric, term in paid) for term in sample.spec.terms]
            paid |= {term for term in sample.spec.terms if term.rule == "once" and term.points(meant, finding.metric)}
            about = " ".join((meant.aspect, *map(str, meant.args)))
            lines[-1] += f"{far}, {', '.join([about, *(checked or named), *([] if named else [NOT_WEIGHED])])}"
        if claim["cost"]:
            total += claim["cost"]
            lines[-1] += f", {claim['cost']} lost, {total} in all"
    for name, lost, said in _whole(sample, which, quote):
        total += lost
        lines.append(f"{name}: {said}" + (f", {lost} lost, {total} in all" if lost else ""))
    return "\n".join([*lines, f"Lost: {total}"])


def _rules(spec: Spec) -> list[str]:
    """What each name in a rubric of terms means, and what a mistake costs by it."""
    if not spec.terms:
        return []
    whole = zip(spec.names, spec.weights, strict=True)
    return [
        *(f"Rule: {term.name}: {_meant(term)}" for term in spec.terms),
        *(f"Rule: {called}: {name} {weight}" for called, (name, weight) in whole),
    ]


def _meant(term: Term) -> str:
    return f"{term.kind or 'all'} {term.word or 'all'} {term.rule} {term.weight}"


def _checked(term: Term, claim: Claim, metric: int, paid: bool) -> str:
    """Whether a term counts a claim, and what it costs by it: nothing if the term costs once and that is `paid`."""
    if not term.covers(claim):
        return f"{_meant(term)} no"
    return f"{_meant(term)} counts {0 if paid else term.weight * term.points(claim, metric)}"


def names_for(claim: Claim, spec: Spec) -> list[str]:
    """The rubric's names for the aspect or terms under which it weighs a claim; [] if it does not weigh it."""
    if spec.terms:
        return [term.name for term in spec.terms if term.covers(claim)]
    if spec.entries:
        return [e.about for e in spec.entries if e.kind == claim.kind and e.subject == subject_of(claim)]
    return [ASPECTS[name].names[spec.wording[3]] for name, _ in spec.weights if name == claim.aspect]


def _whole(sample: Sample, which: int, quote: bool) -> Iterator[tuple[str, int, str]]:
    """The weighed aspects of response `which` as a whole: name, points lost, and finding."""
    counts = sample.graded[which].counts
    called = dict(zip((each for each, _ in sample.spec.weights), sample.spec.names, strict=False))
    for name, weight in () if sample.spec.entries else sample.spec.weights:
        if name in counts:
            yield (
                called.get(name, ASPECTS[name].names[0]).capitalize(),
                weight * points(ASPECTS[name], counts[name], sample.spec.graded),
                _shown(name, counts[name], sample, sample.responses[which], quote),
            )


def _shown(name: str, count: int, sample: Sample, response: Response, quote: bool) -> str:
    """What is found about an aspect of the whole response; quote: how, step by step."""
    if name == "completeness" and isinstance(sample.graph, Scene):
        return _named(sample.graph, response, quote)
    said = ("broken" if count else "kept") if ASPECTS[name].cap == 1 else str(count)
    steps = _STEPS.get(name) if quote else None
    return f"{steps(response)}; {said}" if steps else said


def _named(scene: Scene, response: Response, quote: bool) -> str:
    """The things that are shown, and which of them no claim names."""
    missing = unnamed(response.claims, scene)
    if not quote:
        left = " and ".join(f"{t.colour} {t.shape}" for t in missing) or "nothing"
        return f"{listed(scene.things)}; left out: {left}"
    told, left_out = [], 0
    for thing in _in_order(scene.things):
        left_out += thing in missing
        told.append(f"{thing_in_words(thing)} {f'left out {left_out}' if thing in missing else 'named'}")
    return f"{', '.join(told) or 'nothing'}; {left_out}"


def _layout_steps(response: Response) -> str:
    """The layout that is asked for, and the one that is given."""
    return f"{ASK_LAYOUT[response.asked]} Given: {_GIVEN[response.layout]}"


def _length_steps(response: Response) -> str:
    """The limit, each sentence with the number of its words and of all so far, and all beside the limit."""
    told, words = list[str](), 0
    for text in response.texts:
        here = count_words(text)
        words += here
        told.append(f"{text} {here}, {words}")
    return f"{ask_length(response.limit)} {'; '.join(told)}; {words} of {response.limit}"


def _repeat_steps(response: Response) -> str:
    """Each sentence, and which time it is that something is repeated."""
    told, seen_before, again = [], set[Claim](), 0
    for sentence, text in zip(response.sentences, response.texts, strict=True):
        repeats = sentence.claim is not None and sentence.claim in seen_before
        again += repeats
        told.append(f"{text} {f'again {again}' if repeats else 'new'}")
        seen_before |= {sentence.claim} if sentence.claim else set()
    return "; ".join(told)


def _off_topic_steps(response: Response) -> str:
    """The sentences that do not belong there."""
    found = [t for s, t in zip(response.sentences, response.texts, strict=True) if s.role == "off_topic"]
    return " ".join(found) or "nothing"


_STEPS = {
    "format": _layout_steps,
    "length": _length_steps,
    "concision": _repeat_steps,
    "relevance": _off_topic_steps,
}


def seen(claim: Claim, scene: Scene) -> str:
    """The evidence in a scene for a claim: the things it names, each after its name, or the corner it mentions.

    The name comes first, so that the model looks for a thing by the word it has just read.
    """
    if claim.kind == "sure":
        cell = corner_cell(str(claim.args[0]), scene.grid)
        here = [thing for thing in scene.things if (thing.col, thing.row) == cell]
        told = f"{cell_in_words(*cell)} {'covered' if cell in scene.covers else 'empty'}"
        return listed(here) if here else told
    if claim.kind == "shape":
        return f"{claim.args[0]} {listed(thing for thing in scene.things if thing.colour == claim.args[0])}"
    shapes = dict.fromkeys(arg for arg in claim.args if arg in SHAPES)
    return " against ".join(
        f"{shape} {listed(thing for thing in scene.things if thing.shape == shape)}" for shape in shapes
    )


def worked_sum(claim: Claim, notes: GivenText) -> str:
    """The sum that a claim states, with the numbers that the notes give; "" for a claim of another kind."""
    if claim.kind not in ("plus", "minus"):
        return ""
    one, other = (notes.numbers[str(arg)] for arg in claim.args[:2])
    return f"{one} plus {other} is {one + other}" if claim.kind == "plus" else f"{one} minus {other} is {one - other}"


def listed(things: Iterable[Thing]) -> str:
    """Things in reading order, `nothing` without any."""
    return ", ".join(map(thing_in_words, _in_order(things))) or "nothing"


def _in_order(things: Iterable[Thing]) -> list[Thing]:
    return sorted(things, key=lambda t: (t.row, t.col))


def thing_in_words(thing: Thing) -> str:
    """Cell, size, colour, texture and shape of a thing."""
    return f"{cell_in_words(thing.col, thing.row)} {thing.size} {thing.colour} {thing.texture} {thing.shape}"


def cell_in_words(col: int, row: int) -> str:
    """Row by letter, column by number."""
    return f"{'abcdefgh'[row]} {col + 1}"
