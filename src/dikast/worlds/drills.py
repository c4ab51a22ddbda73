"""Drills: lessons whose responses state one kind of claim and nothing else.

Among claims of all kinds a small judge may never learn to check some of them, and learn it soon from these alone. They
are of two domains: the colour, size or texture of each thing in a scene; ages, sums or places in a list of notes, to
which what a drill needs is added.
"""

from collections.abc import Sequence
from dataclasses import replace

from dikast.core.errors import UserError
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene
from dikast.worlds.domains.text_only import EDITS, LETTERS, LIST, NAMES, WORDS, GivenText, before_edit, numbers_about
from dikast.worlds.domains.vocabulary import COLOURS, SIZES, TEXTURES
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Sentence
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings

STATED = {"colour": COLOURS, "size": SIZES, "texture": TEXTURES}  # what a thing of a scene has one of
KINDS = {"scenes": tuple(STATED), "text": ("number", "sum", "list")}
_WRONG = 55  # percent of the claims
_MOST = 4  # claims about notes
_FULL = 6  # people with an age, letters with a number
_TELL = "Say what the notes tell."


def check_drill(settings: Settings, kind: str, only_talk: bool) -> None:
    """UserError where no lesson of such a world can be drilled in such a claim."""
    told = [name for names in KINDS.values() for name in names]
    if kind not in told:
        raise UserError(f"only: there is no {kind!r}: {', '.join(told)}")
    if kind not in KINDS.get(settings.domain, ()) or settings.responses > 1:
        where = "scenes" if kind in KINDS["scenes"] else "text"
        raise UserError(f"only: single lessons of the domain {where!r} can state claims of {kind!r} alone")
    if only_talk:
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
        sample = replace(sample, graph=notes, task="report", instruction=_TELL)
    said = tuple(Sentence(sample.domain.say(claim, response.voice), "claim", claim) for claim in claims)
    only = replace(response, sentences=said, layout="prose", asked="", limit=0, edits=())
    return replace(sample, responses=(only,), notes=())  # a response of its own under each rubric


def _told(true: str | int, values: Sequence[str | int], rng: Stream) -> str | int:
    return rng.pick([value for value in values if value != true]) if rng.chance(_WRONG) else true


def _of_things(scene: Scene, kind: str, rng: Stream) -> list[Claim]:
    things = {thing.shape: thing for thing in scene.things}
    return [
        Claim(kind, kind, (thing.shape, _told(getattr(thing, kind), STATED[kind], rng)))
        for thing in rng.shuffled(list(things.values()))
    ]


def _of_notes(notes: GivenText, kind: str, rng: Stream) -> tuple[GivenText, list[Claim]]:
    """The notes with what the claims need, and the claims: of ages and sums wrong ones are near or far, or have a digit
    in common with the true number.
    """
    if kind == "list":
        words = notes.edited or rng.shuffled(WORDS)[:LIST]
        edit = notes.edit or rng.pick(EDITS)
        spare = [word for word in rng.shuffled(WORDS) if word not in words]
        full = replace(notes, given=notes.given or before_edit(words, edit, spare), edit=edit, edited=words)
        places = range(1, LIST + 1)
        taken = rng.shuffled(list(enumerate(words, 1)))[:_MOST]
        return full, [Claim("place", "list", (word, _told(place, places, rng))) for place, word in taken]
    if kind == "number":
        people = {name: dict(told) for name, told in notes.people.items()}
        for name in rng.shuffled(NAMES)[:_FULL]:
            people.setdefault(name, {}).setdefault("age", 20 + rng.below(60))
        ages = [(name, told["age"]) for name, told in people.items() if "age" in told]
        drawn = rng.shuffled(ages)[:_MOST]
        claims = [Claim("age", "number", (name, "age", _told(age, _near(age), rng))) for name, age in drawn]
        return replace(notes, people=people), claims
    numbers = dict(notes.numbers)
    for letter in rng.shuffled(LETTERS):
        if len(numbers) < _FULL:
            numbers.setdefault(letter, 1 + rng.below(99))
    pairs, claims = rng.shuffled(list(numbers)), []
    for one, other in zip(pairs[::2], pairs[1::2], strict=False):
        a, b = (one, other) if numbers[one] > numbers[other] else (other, one)
        minus = rng.chance(50) and numbers[a] > numbers[b]
        true = numbers[a] - numbers[b] if minus else numbers[a] + numbers[b]
        claims.append(Claim("minus" if minus else "plus", "sum", (a, b, _told(true, _near(true), rng))))
    return replace(notes, numbers=numbers), claims[:_MOST]


def _near(number: int) -> list[int]:
    """Numbers that may be stated in its place."""
    return [*(n for n in numbers_about(number) if n > 0), number + 10, *([number - 10] if number > 10 else [])]
