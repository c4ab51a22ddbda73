"""The domain of text only: facts, numbers and days in notes, sums of named numbers, and edits of a list.

The notes are part of the instruction and take the role of the picture: they are made after the sentences about them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State

NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana")
FIELDS = {
    "city": ("lives in", ("Oslo", "Rome", "Lima", "Cairo", "Paris")),
    "pet": ("keeps a", ("cat", "dog", "parrot", "snake", "horse")),
    "drink": ("drinks", ("tea", "coffee", "milk", "juice", "water")),
}
EVENTS = ("market", "concert", "meeting", "exam", "match", "picnic", "parade", "lecture")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LETTERS = "KLMNPQRSTW"
WORDS = ("fig", "kiwi", "lemon", "mango", "olive", "pear", "plum", "rice")
EDITS = ("Reverse the list.", "Move the first word to the end.", "Drop the last word.")
LIST = 6  # words
TELL = "Say what the notes tell."
_GONE = 9

_TEMPLATES = {
    "fact": (
        "{a} {v} {c}.",
        "The {f} of {a} is {c}.",
        "{a}: {c}.",
        "Look, {a} {v} {c}.",
        "{c} is the {f} of {a}.",
        "We note {c} for {a}.",
    ),
    "age": (
        "{a} is {c} years old.",
        "The age of {a} is {c}.",
        "{a}: {c} years.",
        "Look, {a} is {c} years old.",
        "{c} is the age of {a}.",
        "We note {c} years for {a}.",
    ),
    "plus": (
        "{a} plus {b} is {c}.",
        "The sum of {a} and {b} is {c}.",
        "{a} + {b}: {c}.",
        "Look, {a} plus {b} is {c}.",
        "{c} is the sum of {a} and {b}.",
        "We note {c} for {a} plus {b}.",
    ),
    "minus": (
        "{a} minus {b} is {c}.",
        "The difference of {a} and {b} is {c}.",
        "{a} - {b}: {c}.",
        "Look, {a} minus {b} is {c}.",
        "{c} is the difference of {a} and {b}.",
        "We note {c} for {a} minus {b}.",
    ),
    "place": (
        "The word {a} is at place {c}.",
        "The place of the word {a} is {c}.",
        "{a}: place {c}.",
        "Look, the word {a} is at place {c}.",
        "At place {c} is the word {a}.",
        "We note place {c} for the word {a}.",
    ),
    "day": (
        "The {a} is on {c}.",
        "The day of the {a} is {c}.",
        "{a}: {c}.",
        "Look, the {a} is on {c}.",
        "{c} is the day of the {a}.",
        "We note {c} for the {a}.",
    ),
}


@dataclass(slots=True)
class GivenText:
    """The given text as data: facts about people, the named numbers, the list before and after its edit, and (from
    version 4 on) the days of events.
    """

    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    edit: str = ""
    edited: list[str] = field(default_factory=list)
    days: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The notes as JSON; without days where there are none, as in earlier versions."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "days" or self.days}


@dataclass(slots=True)
class _Taken:
    facts: list[tuple[str, str]]  # name and field, in the order they are handed out
    letters: list[str]
    words: list[str]
    places: set[int] = field(default_factory=set)
    events: list[str] = field(default_factory=list)


def percent_off(stated: int, true: int) -> int:
    """The error in per cent of the true number (of 1 if it is 0), rounded, at least 1 unless it is correct."""
    size = max(1, abs(true))
    return 0 if stated == true else max(1, (200 * abs(stated - true) + size) // (2 * size))


def days_off(stated: str, true: str) -> int:
    """The error in days of one week, which runs from Monday to Sunday."""
    return abs(DAYS.index(stated) - DAYS.index(true))


class Texts:
    """Notes, sums and a list, in words."""

    name = "text"
    kinds: Mapping[str, tuple[str, ...]] = {
        "fact": ("fact",),
        "number": ("age",),
        "sum": ("plus", "minus"),
        "list": ("place",),
        "day": ("day",),
    }

    def begin(self, draft: Draft) -> None:
        """Nothing is mentioned yet."""
        rng = draft.rng
        facts = [(name, key) for name in NAMES for key in (*FIELDS, "age")]
        draft.budget = 99
        draft.notes = _Taken(rng.shuffled(facts), rng.shuffled(LETTERS), rng.shuffled(WORDS))
        if draft.rules.version >= 4:
            draft.notes.events = rng.shuffled(EVENTS)

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot about a fact, a sum, a place in the list or a day that no other slot mentions."""
        rng, taken = draft.rng, draft.notes
        if kind in ("plus", "minus"):
            if len(taken.letters) < 2:
                return None
            a, b = taken.letters.pop(), taken.letters.pop()
            universe = numbers_about(12 + rng.below(60))
            what = f"{a} {kind} {b}"
            return Slot(kind, "sum", (a, b), universe, draft.stated(universe), what, f"What is {what}?")
        if kind == "place":
            return self._place(draft, taken)
        if kind == "day":
            if not taken.events:
                return None
            event, week = taken.events.pop(), list(DAYS)
            about = f"the day of the {event}"
            return Slot(kind, "day", (event,), week, draft.stated(week), about, f"On which day is the {event}?")
        fits = [i for i, (_, key) in enumerate(taken.facts) if (key == "age") == (kind == "age")]
        if not fits:
            return None
        name, key = taken.facts.pop(fits[0])
        about = f"the {key} of {name}"
        universe = numbers_about(20 + rng.below(50)) if kind == "age" else list(FIELDS[key][1])
        aspect = "number" if kind == "age" else "fact"
        return Slot(kind, aspect, (name, key), universe, draft.stated(universe), about, f"What is {about}?")

    def _place(self, draft: Draft, taken: _Taken) -> Slot | None:
        open_ = [place for place in range(1, LIST + 1) if place not in taken.places]
        if len(open_) < 3 or len(taken.words) < 4:
            return None
        word, stated = taken.words.pop(), draft.stated(open_)
        taken.places.update(stated)
        universe: list[State] = list(range(1, LIST + 1))
        return Slot("place", "list", (word,), universe, stated, f"the place of {word}", f"At which place is {word}?")

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """All slots can be right and wrong."""
        return slots

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """Per cent for numbers, positions in the list, days of one week, 0 or 1 for facts."""
        if slot.kind == "day":
            return days_off(stated, state)
        if slot.kind == "fact":
            return int(stated != state)
        return abs(stated - state) if slot.kind == "place" else percent_off(stated, state)

    def build(
        self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None
    ) -> GivenText | None:
        """Notes with these states and some that no claim mentions; None if two words would share a place."""
        rng, taken = draft.rng, draft.notes
        notes = GivenText()
        told: list[tuple[str, str, Any]] = []
        edited: dict[int, str] = {}
        for slot, state in zip(slots, states, strict=True):
            if slot.kind in ("fact", "age"):
                told.append((*slot.subject, state))
            elif slot.kind == "place":
                if state in edited:
                    return None
                edited[state] = slot.subject[0]
            elif slot.kind == "day":
                notes.days[slot.subject[0]] = state
            else:
                b = 1 + rng.below(state - 1) if slot.kind == "plus" else 1 + rng.below(30)
                a = state - b if slot.kind == "plus" else state + b
                notes.numbers |= dict(rng.shuffled([(slot.subject[0], a), (slot.subject[1], b)]))
        for name, key in taken.facts[: 2 + rng.below(3)]:
            told.append((name, key, 20 + rng.below(60) if key == "age" else rng.pick(FIELDS[key][1])))
        for name, key, value in rng.shuffled(told):
            notes.people.setdefault(name, {})[key] = value
        if draft.rules.version >= 4:
            notes.days |= {event: rng.pick(DAYS) for event in taken.events[: rng.below(3)]}
            notes.days = {event: notes.days[event] for event in rng.shuffled(sorted(notes.days))}
        if edited or rng.chance(30):
            spare = rng.shuffled(taken.words)
            notes.edited = [edited.get(place) or spare.pop() for place in range(1, LIST + 1)]
            notes.edit = rng.pick(EDITS)
            notes.given = before_edit(notes.edited, notes.edit, spare)
        return notes

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of the slot."""
        return Claim(slot.kind, slot.aspect, (*slot.subject, stated))

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""
        first, *rest = claim.args
        fields = {"a": first, "b": rest[0], "c": rest[-1]}
        if claim.kind == "fact":
            fields |= {"f": rest[0], "v": FIELDS[str(rest[0])][0]}
        text = _TEMPLATES[claim.kind][voice].format_map(fields)
        return text[0].upper() + text[1:]

    def measure(self, claim: Claim, graph: GivenText) -> ClaimFinding:
        """The truth about a claim in any notes."""
        args: tuple[Any, ...] = claim.args
        if claim.kind in ("fact", "age"):
            true = graph.people.get(args[0], {}).get(args[1])
            words = f"the {args[1]} of {args[0]} is {true}"
        elif claim.kind == "place":
            true = graph.edited.index(args[0]) + 1 if args[0] in graph.edited else None
            words = f"{args[0]} is at place {true}"
        elif claim.kind == "day":
            true = graph.days.get(args[0])
            words = f"the day of the {args[0]} is {true}"
        else:
            known = args[0] in graph.numbers and args[1] in graph.numbers
            sign = 1 if claim.kind == "plus" else -1
            true = graph.numbers[args[0]] + sign * graph.numbers[args[1]] if known else None
            words = f"{args[0]} {claim.kind} {args[1]} is {true}"
        if true is None:
            return ClaimFinding(_GONE if claim.kind in ("fact", "day") else 99, "the notes do not say", gone=True)
        if claim.kind == "fact":
            return ClaimFinding(int(true != args[2]), words)
        if claim.kind == "day":
            return ClaimFinding(days_off(args[-1], true), words)
        return ClaimFinding(abs(args[-1] - true) if claim.kind == "place" else percent_off(args[-1], true), words)

    def missed(self, claims: Sequence[Claim], graph: GivenText) -> int:
        """Nothing is asked to be complete here."""
        return 0

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """Questions, or a plain request."""
        if draft.rng.chance(60):
            return "answer", " ".join(slot.question for slot in slots)
        return "report", draft.rng.pick((TELL, "What can be said from the notes?"))

    def prompt(self, graph: GivenText) -> str:
        """The notes."""
        parts = []
        for name, told in graph.people.items():
            for key, value in told.items():
                parts.append(f"{name} is {value} years old." if key == "age" else f"{name} {FIELDS[key][0]} {value}.")
        parts += [f"The {event} is on {day}." for event, day in graph.days.items()]
        parts += [f"{letter} = {n}." for letter, n in graph.numbers.items()]
        if graph.edit:
            parts.append(f"List: {', '.join(graph.given)}. New list: {graph.edit}")
        return f"Notes: {' '.join(parts)}"

    def render(self, graph: GivenText, size: int) -> list[Picture]:
        """No picture."""
        return []

    def frames(self, graph: GivenText) -> int:
        """None."""
        return 0

    def to_json(self, graph: GivenText) -> dict[str, Any]:
        """The notes as JSON."""
        return graph.to_json()


def numbers_about(centre: int) -> list[State]:
    """A number, some close to it and some far from it."""
    return sorted({centre, centre + 1, centre - 2, centre + 3, centre + centre // 2, centre - centre // 3, 2 * centre})


def before_edit(edited: list[str], edit: str, spare: list[str]) -> list[str]:
    """The list that the edit turns into `edited`."""
    if edit == EDITS[0]:
        return edited[::-1]
    return [edited[-1], *edited[:-1]] if edit == EDITS[1] else [*edited, spare[-1]]
