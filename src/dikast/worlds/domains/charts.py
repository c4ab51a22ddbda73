"""The domain of charts: bars, lines and pies, axes and legends, and claims about values, order and extremes.

It is held out of training; the split `domain` tests on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dikast.worlds.domains.chart_drawing import LEGEND_FITS, LOOKS, TOP, Chart, draw_chart
from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State
from dikast.worlds.domains.text_only import percent_off
from dikast.worlds.domains.vocabulary import COLOURS

LETTERS = "ABCDEFGH"
_STEP = 5  # values are multiples of five
_RIVALS = 3  # letters that responses may name as the highest or lowest
_TRIES = 60  # fillings of one chart
_LEAD = (
    10  # least lead of an extreme in a pie whose legend hides values; two that are compared differ by half as much more
)
_TEMPLATES = {
    "value": (
        "The value of {a} is {c}.",
        "For {a} the chart shows {c}.",
        "{a}: {c}.",
        "Look, the value of {a} is {c}.",
        "{c} is the value of {a}.",
        "We note {c} for {a}.",
    ),
    "order": (
        "The value of {a} is above {b}.",
        "For {a} the chart shows more than for {b}.",
        "{a}: above {b}.",
        "Look, the value of {a} is above {b}.",
        "Above {b} is the value of {a}.",
        "We note {a} above {b}.",
    ),
    "extreme": (
        "The {c} value is {a}.",
        "For {a} the chart shows the {c} value.",
        "{a}: {c}.",
        "Look, the {c} value is {a}.",
        "{a} is the {c} value.",
        "We note {a} as the {c}.",
    ),
}


class Charts:
    """Bars, lines and pies."""

    name = "charts"
    kinds: Mapping[str, tuple[str, ...]] = {"value": ("value",), "order": ("order",), "extreme": ("extreme",)}

    def begin(self, draft: Draft) -> None:
        """Six to eight letters, none mentioned yet."""
        letters = list(LETTERS[: 6 + draft.rng.below(3)])
        draft.budget = 99
        free = draft.rng.shuffled(letters)
        draft.notes = {"letters": letters, "free": free, "ends": ["highest", "lowest"], "others": {}}

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot about letters that no other slot mentions; the lowest and the highest value once each."""
        rng, free, ends = draft.rng, draft.notes["free"], draft.notes["ends"]
        rivals = min(draft.responses, _RIVALS)
        if len(free) < (2 if kind == "order" else 1) + rivals or (kind == "extreme" and not ends):
            return None
        if kind == "value":
            universe: list[State] = sorted({30 + _STEP * rng.below(9) + off for off in (0, 5, -5, 20, -20)})
            a = free.pop()
            return Slot("value", "value", (a,), universe, draft.stated(universe), f"the value of {a}", f"What is {a}?")
        if kind == "order":
            a, b = free.pop(), free.pop()
            ask = f"Which is above, {a} or {b}?"
            pairs: list[State] = [(a, b), (b, a)]
            return Slot("order", "order", (a, b), pairs, draft.stated(pairs), f"the order of {a} and {b}", ask)
        end = ends.pop(rng.below(len(ends)))
        if draft.rules.version >= 4:
            if len(free) < rivals + 1:
                ends.append(end)
                return None
            draft.notes["others"][end] = free.pop()
        picked = [free.pop() for _ in range(rivals)]
        stated = draft.stated(picked)
        universe = [*dict.fromkeys(stated), "another"]
        return Slot("extreme", "extreme", (end,), universe, stated, f"the {end} value", f"Which value is the {end}?")

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """All slots can be right and wrong."""
        return slots

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """Per cent for values; 0 or 1 for the others."""
        return percent_off(stated, state) if slot.kind == "value" else int(stated != state)

    def build(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None) -> Chart | None:
        """A chart whose values give the slots these states; None if several random fillings fail."""
        rng, letters = draft.rng, draft.notes["letters"]
        if draft.rules.version >= 4:
            return _filled(draft, slots, states)
        for _ in range(6):
            values = {letter: 15 + _STEP * rng.below(15) for letter in letters}
            values |= {s.subject[0]: state for s, state in zip(slots, states, strict=True) if s.kind == "value"}
            for slot, state in zip(slots, states, strict=True):
                if slot.kind == "extreme" and state != "another":
                    values[state] = TOP if slot.subject[0] == "highest" else _STEP
                if slot.kind == "order":
                    high, low = max(values[a] for a in state), min(values[a] for a in state)
                    values[state[0]], values[state[1]] = high, low
            if all(_holds(slot, state, values) for slot, state in zip(slots, states, strict=True)):
                return _drawn(draft, values)
        return None

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of the slot."""
        if slot.kind == "order":
            return Claim("order", "order", stated)
        return Claim(slot.kind, slot.aspect, (slot.subject[0], stated))

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""
        first, second = claim.args
        fields = {"a": first, "b": second, "c": second}
        if claim.kind == "extreme":
            fields = {"a": second, "c": first}
        text = _TEMPLATES[claim.kind][voice].format_map(fields)
        return text[0].upper() + text[1:]

    def measure(self, claim: Claim, graph: Chart) -> ClaimFinding:
        """The truth about a claim in any chart."""
        first, second = claim.args
        values: Mapping[Any, int] = graph.values
        if claim.kind == "extreme":
            pick = max if first == "highest" else min
            best = [letter for letter, n in values.items() if n == pick(values.values())]
            return ClaimFinding(
                int(best != [second]), f"the {first} is {' and '.join(best)}", gone=second not in values
            )
        if first not in values or (claim.kind == "order" and second not in values):
            return ClaimFinding(99, "it is not on the chart", gone=True)
        if claim.kind == "order":
            return ClaimFinding(
                int(values[first] <= values[second]), f"{first} is {values[first]}, {second} {values[second]}"
            )
        return ClaimFinding(percent_off(int(second), values[first]), f"the value of {first} is {values[first]}")

    def missed(self, claims: Sequence[Claim], graph: Chart) -> int:
        """Nothing is asked to be complete here."""
        return 0

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """Questions, or a plain request."""
        if draft.rng.chance(50):
            return "answer", " ".join(slot.question for slot in slots)
        return "read", draft.rng.pick(("Read the chart.", "What does the chart show?"))

    def prompt(self, graph: Chart) -> str:
        """Nothing: the chart is shown."""
        return ""

    def frames(self, graph: Chart) -> int:
        """One."""
        return 1

    def render(self, graph: Chart, size: int) -> list[Picture]:
        """The chart."""
        return [draw_chart(graph, size)]

    def to_json(self, graph: Chart) -> dict[str, Any]:
        """The chart as JSON."""
        return graph.to_json()


def _filled(draft: Draft, slots: Sequence[Slot], states: Sequence[State]) -> Chart | None:
    """A chart with these states whose set of values does not depend on which letter is the highest or lowest.

    All values but those that claims state are different multiples of five; then the highest and the lowest go to the
    letters that the states name. If an extreme is not as stated, it belongs to a letter reserved for it.
    """
    rng, letters = draft.rng, draft.notes["letters"]
    told = {s.subject[0]: state for s, state in zip(slots, states, strict=True) if s.kind == "value"}
    ends = {
        s.subject[0]: draft.notes["others"][s.subject[0]] if state == "another" else state
        for s, state in zip(slots, states, strict=True)
        if s.kind == "extreme"
    }
    spare = [n for n in range(_STEP, TOP + 1, _STEP) if n not in told.values()]
    for _ in range(_TRIES):
        drawn = sorted(rng.shuffled(spare)[: len(letters) - len(told)])
        beyond = {
            "highest": drawn[-1] > max(told.values(), default=0),
            "lowest": drawn[0] < min(told.values(), default=TOP),
        }
        if not all(beyond[end] for end in ends):
            continue
        values = dict(told)
        for end, letter in ends.items():
            values[letter] = drawn.pop(-1 if end == "highest" else 0)
        open_ = [letter for letter in letters if letter not in values]
        values |= dict(zip(open_, rng.shuffled(drawn), strict=True))
        for slot, state in zip(slots, states, strict=True):
            if slot.kind == "order":
                values[state[0]], values[state[1]] = sorted((values[a] for a in state), reverse=True)
        if all(_holds(slot, state, values) for slot, state in zip(slots, states, strict=True)):
            ordered = {letter: values[letter] for letter in letters}
            hidden = tuple(letter for letter in letters if letter not in told) if _apart(slots, ordered) else ()
            return _drawn(draft, ordered, hidden)
    return None


def _apart(slots: Sequence[Slot], values: Mapping[str, int]) -> bool:
    """Whether what the claims compare differs by enough to be seen in the slices of a pie."""
    order = sorted(values.values())
    led = {"highest": order[-1] - order[-2], "lowest": order[1] - order[0]}
    wide = all(abs(values[s.subject[0]] - values[s.subject[1]]) >= _LEAD * 3 // 2 for s in slots if s.kind == "order")
    return wide and all(led[s.subject[0]] >= _LEAD for s in slots if s.kind == "extreme")


def _drawn(draft: Draft, values: dict[str, int], hidden: tuple[str, ...] = ()) -> Chart:
    """The values as one of the chart types; pies, and half of the bars, get a legend if there is room for one.

    hidden: the letters whose values a pie's legend does not give.
    """
    rng, roomy = draft.rng, draft.rules.size >= LEGEND_FITS
    look = rng.pick(LOOKS if roomy else LOOKS[:2])
    chart = Chart(look, values, rng.pick(COLOURS), rng.below(draft.rules.noise + 1), "", rng.fork())
    if look == "pie" or (look == "bar" and roomy and rng.chance(50)):
        chart.hidden = hidden if look == "pie" else ()
        chart.legend = list(zip(rng.shuffled(list(values)), rng.shuffled(COLOURS), strict=False))
    return chart


def _holds(slot: Slot, state: State, values: Mapping[str, int]) -> bool:
    """Whether the slot has that state under these values; extremes and orders without ties."""
    if slot.kind == "value":
        return bool(values[slot.subject[0]] == state)
    if slot.kind == "order":
        return bool(values[state[0]] > values[state[1]])
    pick = max if slot.subject[0] == "highest" else min
    best = [letter for letter, n in values.items() if n == pick(values.values())]
    return bool(best == [state]) if state != "another" else len(best) == 1 and best[0] not in slot.stated
