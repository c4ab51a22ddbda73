"""Drills: lessons whose responses state one kind of claim and nothing else.

Among claims of all kinds a small judge may never learn to check some of them, and learn it soon from these alone. In
scenes they are about the colour, size or texture of each thing; in notes about ages, sums or places in the list, and
what the notes lack for that is added to them.
"""

from collections.abc import Sequence
from dataclasses import replace

from dikast.core.errors import UserError
from dikast.worlds.domains import text_only
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.domains.vocabulary import COLOURS, SIZES, TEXTURES
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Sentence
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings

_STATED = {"colour": COLOURS, "size": SIZES, "texture": TEXTURES}  # what a thing of a scene has one of
_KINDS = {"scenes": tuple(_STATED), "text": ("number", "sum", "list")}
_WRONG = 55  # percent of the claims
_CLAIMS = 4  # about notes, at most
_GIVEN = 6  # people with an age, letters with a number: at least so many


def check_drill(settings: Settings, kind: str, *, talk: bool) -> None:
    """UserError where no lesson of such a world can be drilled in such a claim."""
    told = [name for names in _KINDS.values() for name in names]
    if kind not in told:
        raise UserError(f"only: there is no {kind!r}: {', '.join(told)}")
    if kind not in _KINDS.get(settings.domain, ()) or settings.responses > 1:
        where = "scenes" if kind in _KINDS["scenes"] else "text"
        raise UserError(f"only: single lessons of the domain {where!r} can state claims of {kind!r} alone")
    if kind == "sum" and settings.version < 4:
        raise UserError("version: checklists of version 3 list sums in one order of numbers: 'sum' needs 4")
    if settings.claims:
        raise UserError("claims: what is shown sets how many there are of one kind alone: leave it out")
    if talk:
        raise UserError("only: talk has no responses, which could state one kind of claim alone")
    if settings.form:
        raise UserError(
            f"form: where responses state one kind of claim alone rubrics cannot weigh form: use 0, not {settings.form}"
        )


def drilled(sample: Sample, kind: str, rng: Stream) -> Sample:
    """`sample` whose response states claims of one kind and nothing else, 55 % of them wrong."""
    (response,) = sample.responses
    if isinstance(sample.graph, Scene):
        claims = _of_things(sample.graph, kind, rng)
    else:
        notes, claims = _of_notes(sample.graph, kind, rng)
        sample = replace(sample, graph=notes, task="report", instruction=text_only.TELL)
    said = tuple(Sentence(sample.domain.say(claim, response.voice), "claim", claim) for claim in claims)
    only = replace(response, sentences=said, layout="prose", asked="", limit=0, edits=())
    return replace(sample, responses=(only,), notes=())  # a response of its own under each rubric


def _stated(true: str | int, values: Sequence[str | int], rng: Stream) -> str | int:
    return rng.pick([value for value in values if value != true]) if rng.chance(_WRONG) else true


def _of_things(scene: Scene, kind: str, rng: Stream) -> list[Claim]:
    things = {thing.shape: thing for thing in scene.things}
    return [
        Claim(kind, kind, (thing.shape, _stated(getattr(thing, kind), _STATED[kind], rng)))
        for thing in rng.shuffled(list(things.values()))
    ]


def _of_notes(notes: GivenText, kind: str, rng: Stream) -> tuple[GivenText, list[Claim]]:
    """The notes with what the claims need, and the claims: of ages and sums wrong ones are near or far, or have a digit
    in common with the true number.
    """
    if kind == "list":
        if not notes.edited:
            words, edit = rng.shuffled(text_only.WORDS)[: text_only.LIST], rng.pick(text_only.EDITS)
            spare = [word for word in text_only.WORDS if word not in words]
            notes = replace(notes, given=text_only.before_edit(words, edit, spare), edit=edit, edited=words)
        places = range(1, text_only.LIST + 1)
        taken = rng.shuffled(list(enumerate(notes.edited, 1)))[:_CLAIMS]
        return notes, [Claim("place", "list", (word, _stated(place, places, rng))) for place, word in taken]
    if kind == "number":
        people = {name: dict(told) for name, told in notes.people.items()}
        for name in rng.shuffled(text_only.NAMES)[:_GIVEN]:
            people.setdefault(name, {}).setdefault("age", 20 + rng.below(60))
        ages = [(name, told["age"]) for name, told in people.items() if "age" in told]
        drawn = rng.shuffled(ages)[:_CLAIMS]
        claims = [Claim("age", "number", (name, "age", _stated(age, _near(age), rng))) for name, age in drawn]
        return replace(notes, people=people), claims
    numbers = dict(notes.numbers)
    for letter in rng.shuffled(text_only.LETTERS):
        if len(numbers) < _GIVEN:
            numbers.setdefault(letter, 1 + rng.below(99))
    pairs, claims = rng.shuffled(list(numbers)), []
    for one, other in zip(pairs[::2], pairs[1::2], strict=False):
        minus = rng.chance(50) and numbers[one] != numbers[other]
        a, b = sorted((one, other), key=numbers.__getitem__, reverse=True) if minus else (one, other)
        true = numbers[a] - numbers[b] if minus else numbers[a] + numbers[b]
        claims.append(Claim("minus" if minus else "plus", "sum", (a, b, _stated(true, _near(true), rng))))
    return replace(notes, numbers=numbers), claims[:_CLAIMS]


def _near(number: int) -> list[int]:
    """Numbers that may be stated in its place."""
    return sorted({n for n in (*text_only.numbers_about(number), number - 10, number + 10) if n > 0})
