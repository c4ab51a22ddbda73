"""True claims about a scene: flawless references about what graded responses mention, whatever they state of it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dikast.core.errors import RunError
from dikast.worlds.domains.chart_drawing import Chart
from dikast.worlds.domains.clip_graph import KINDS, Clip, phrase
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import OPPOSITE, Scene, Thing, corner_cell, lead
from dikast.worlds.domains.text_images import COLUMNS, ROWS, Document
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.domains.vocabulary import region_of
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream

Args = tuple[Any, ...]
_SEVERAL = ("shape", "colour", "size", "texture", "position", "exists")  # kinds of claims about scenes


def corrected(claim: Claim, graph: Any) -> Claim | None:
    """The true claim about the same subject; None if there is none of that kind (the thing is absent, a tie).

    It depends on the subject alone, and on what is stated only where several answers are true.
    """
    args = _TRUE[type(graph)](claim.kind, claim.args, graph)
    if isinstance(args, Claim):
        return args
    return None if args is None else Claim(claim.kind, claim.aspect, args)


def reference_text(sample: Sample, rng: Stream, *, voice: int | None = None) -> str:
    """A flawless answer about everything that any response of `sample` mentions, in its own voice and order.

    What it says of a subject does not depend on what is stated of it, also where several answers are true. Every
    sentence is measured against the scene before it is used; subjects without a true claim of their kind, such as a
    thing that is not there, are left out. "" if that leaves nothing.
    """
    mentioned = (claim for response in sample.responses for claim in response.claims)
    claims = dict.fromkeys(corrected(_asked_of(claim), sample.graph) for claim in mentioned)
    said = rng.pick(range(4)) if voice is None else voice
    return " ".join(sample.domain.say(claim, said) for claim in rng.shuffled(list(checked(claims, sample))))


def _asked_of(claim: Claim) -> Claim:
    """The claim without what it states where several answers may be true of a scene: of two things how they lie, of one
    of several of a kind what it is like.
    """
    if claim.kind == "relation":
        return claim._replace(args=(*claim.args[:2], "left of"))
    return claim._replace(args=(claim.args[0], "")) if claim.kind in _SEVERAL else claim


def in_other_words(sample: Sample) -> str:
    """What is true about everything that the (first) response mentions, in its order and in another voice than its own.

    Where nothing is true of the kind that is stated, as of a thing that is not there, it says what the gold says.
    """
    response, graded = sample.responses[0], sample.graded[0]
    voice = Stream("other words", sample.id).pick([each for each in range(4) if each != response.voice])
    said = []
    for claim, finding in zip(response.claims, graded.findings, strict=True):
        true = claim if not finding.metric else corrected(claim, sample.graph)
        if true is None:
            said.append(f"{finding.truth[0].upper()}{finding.truth[1:]}.")
        else:
            said += [sample.domain.say(each, voice) for each in checked([true], sample)]
    return " ".join(said)


def checked(claims: Iterable[Claim | None], sample: Sample) -> Iterable[Claim]:
    """The claims that there are. RunError if one of them is not true of the scene, which would be a bug."""
    for claim in claims:
        if claim is not None:
            if sample.domain.measure(claim, sample.graph).metric:
                raise RunError(f"item {sample.id}: the reference states {claim}, which does not hold; report this bug")
            yield claim


def _of(things: Iterable[Thing], shape: Any) -> list[Thing]:
    return [thing for thing in things if thing.shape == shape]


def _scene(kind: str, args: Args, scene: Scene) -> Args | Claim | None:
    if kind == "sure":
        here = [t for t in scene.things if (t.col, t.row) == corner_cell(args[0], scene.grid)]
        return (args[0], here[0].shape) if here else None
    if kind == "shape":
        found = [t.shape for t in scene.things if t.colour == args[0]]
        return (args[0], args[1] if args[1] in found else found[0]) if found else None
    if kind in ("relation", "binding", "more", "larger"):
        return _two(kind, args, scene)
    there = _of(scene.things, args[0])
    if not there:
        return None
    if kind == "count":  # no voice states a number of one
        return (args[0], len(there)) if len(there) > 1 else Claim("exists", "existence", (args[0], there[0].colour))
    if kind == "position":
        values = [region_of(thing.col, thing.row, scene.grid) for thing in there]
    else:
        values = [getattr(thing, kind if kind in ("size", "texture") else "colour") for thing in there]
    return args[0], args[1] if args[1] in values else values[0]


def _two(kind: str, args: Args, scene: Scene) -> Args | None:
    one, other = (_of(scene.things, shape) for shape in args[:2])
    if not one or not other:
        return None
    if kind == "relation":
        ways = dict.fromkeys((args[2], OPPOSITE[args[2]], "left of", "right of", "above", "below"))
        return next(((*args[:2], way) for way in ways if lead(way, one[0], other[0]) >= 1), None)
    if kind == "binding":
        return (*args[:2], one[0].colour, other[0].colour)
    sizes = ("small", "medium", "large")
    a, b = (len(each) if kind == "more" else sizes.index(each[0].size) for each in (one, other))
    return None if a == b else args if a > b else args[::-1]


def _clip(kind: str, args: Args, clip: Clip) -> Args | None:
    if kind == "before":
        one, other = (clip.event(words.partition(" ")[0], KINDS[words.partition(" ")[2]]) for words in args)
        if one is None or other is None or one.frame == other.frame:
            return None
        return args if one.frame < other.frame else args[::-1]
    shape, _, verb = str(args[0]).partition(" ")
    event = clip.event(shape, KINDS[verb] if verb else {"motion": "move", "turns": "recolour"}.get(kind, "appear"))
    if event is None:
        return None
    if kind == "moment":
        return phrase(shape, event.kind), event.frame
    return shape, _of(clip.things, shape)[0].colour if kind == "appears" else event.to


def _notes(kind: str, args: Args, notes: GivenText) -> Args | None:
    if kind in ("fact", "age"):
        true = notes.people.get(args[0], {}).get(args[1])
    elif kind == "place":
        true = notes.edited.index(args[0]) + 1 if args[0] in notes.edited else None
    elif kind == "day":
        true = notes.days.get(str(args[0]))
    else:
        known = args[0] in notes.numbers and args[1] in notes.numbers
        sign = 1 if kind == "plus" else -1
        true = notes.numbers[args[0]] + sign * notes.numbers[args[1]] if known else None
    return None if true is None else (*args[:-1], true)


def _document(kind: str, args: Args, document: Document) -> Args | None:
    if kind == "cell":
        cells = document.table
        return (*args[:2], cells[ROWS.index(args[0])][COLUMNS.index(args[1])]) if cells else None
    text = dict(document.plates).get(args[0])
    if text is None or text.isdigit() == (kind == "reading"):
        return None
    return args[0], text if kind == "reading" else int(text)


def _chart(kind: str, args: Args, chart: Chart) -> Args | None:
    values = chart.values
    if kind == "extreme":
        best = (max if args[0] == "highest" else min)(values.values(), default=0)
        letters = [letter for letter, n in values.items() if n == best]
        return (args[0], letters[0]) if len(letters) == 1 else None
    if args[0] not in values or (kind == "order" and args[1] not in values):
        return None
    if kind == "value":
        return args[0], values[args[0]]
    a, b = (values[letter] for letter in args)
    return None if a == b else args if a > b else args[::-1]


_TRUE: Mapping[type, Callable[[str, Args, Any], Args | Claim | None]] = {
    Scene: _scene, Clip: _clip, GivenText: _notes, Document: _document, Chart: _chart,
}  # fmt: skip
