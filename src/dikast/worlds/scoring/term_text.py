"""The text of rubrics that weigh terms: natural wordings that state every cost, unit and rule."""

from collections.abc import Sequence

from dikast.worlds.domains.vocabulary import COLOURS
from dikast.worlds.scoring.terms import Term, overlap

OPENINGS = (
    "Judge the {list}.",
    "Grade the {list}.",
    "Score the answer on the {list}.",
    "Look only at the {list}.",
    "What counts: the {list}.",
    "Check the {list} against what is given.",
    "How well does the answer do on the {list}?",
    "Weigh the {list} and nothing else.",
    "Assess the {list}.",
    "The answer is graded on the {list}.",
    "This grade is about the {list}.",
    "Consider nothing but the {list}.",
    "Go through the {list}.",
    "Points are lost on the {list}.",
    "Only the {list} count.",
    "Mark the answer for the {list}.",
    "Rate nothing but the {list}.",
    "The score depends on the {list}.",
    "Evaluate the {list}.",
    "All that matters here: the {list}.",
)
SEEN_OPENINGS = 14
_EVEN = (
    "Each mistake costs {w}.",
    "Take off {w} for each mistake.",
    "{w} per mistake.",
    "Subtract {w} for every mistake.",
    "A mistake costs {w}.",
    "{w} off for each mistake.",
    "The price of a mistake is {w}.",
    "Every mistake loses {w}.",
    "Deduct {w} for any mistake.",
    "A mistake takes away {w}.",
)
_UNEVEN = (
    "A mistake costs: {each}.",
    "Take off for each mistake: {each}.",
    "Cost per mistake: {each}.",
    "Subtract for every mistake: {each}.",
    "What a mistake costs: {each}.",
    "Points off for each mistake: {each}.",
    "The price of a mistake: {each}.",
    "Every mistake loses: {each}.",
    "Deduct for any mistake: {each}.",
    "A mistake takes away: {each}.",
)
COSTS, SEEN_COSTS = len(_EVEN), 7
_WHEEL = f"The colour wheel is {', '.join(COLOURS)}, and {COLOURS[0]} again."
_NEVER = "or it does not happen"
_FAR = {  # aspect -> when a mistake is far off
    "colour": "the colour is 2 or more steps off on the colour wheel",
    "size": "the size is 2 steps off",
    "position": "the place is 2 or more steps off",
    "count": "the number is off by 2 or more",
    "existence": "no thing of that shape is there",
    "sum": "the number is off by 20 percent or more",
    "number": "the number is off by 20 percent or more",
    "list": "the place is off by 2 or more",
    "day": "the day is off by 2 or more",
    "reading": "2 or more letters are wrong",
    "cell": "the number is off by 20 percent or more",
    "value": "the number is off by 20 percent or more",
    "motion": f"the move goes the opposite way {_NEVER}",
    "change": f"the new colour is 2 or more steps off on the colour wheel {_NEVER}",
    "time": f"the other event is first {_NEVER}",
    "moment": f"the frame is off by 2 or more {_NEVER}",
}
_UNITS = {
    "colour": _WHEEL,
    "change": _WHEEL,
    "size": "The sizes are small, medium and large, one step apart.",
    "position": "The nine regions are three by three; a step goes sideways, up or down.",
    "sum": "Percent are of the right number.",
    "number": "Percent are of the right number.",
    "cell": "Percent are of the right number.",
    "value": "Percent are of the right number.",
    "day": "The week runs from Monday to Sunday.",
    "reading": "Letters are wrong that must be replaced, added or dropped.",
}
_RULES = {  # as many wordings of each rule as of costs: a rubric has the one with the same number
    "double": (
        "A mistake in the {name} costs double if {far}.",
        "For the {name}, a mistake counts twice if {far}.",
        "Mistakes in the {name} cost twice as much if {far}.",
        "If {far}, a mistake in the {name} costs double.",
        "For the {name}, a mistake costs twice as much if {far}.",
        "A mistake in the {name} counts twice if {far}.",
        "In the {name}, mistakes cost double if {far}.",
        "Double the cost of the {name} if {far}.",
        "For the {name}, take off twice as much if {far}.",
        "Count mistakes in the {name} double if {far}.",
    ),
    "far": (
        "A mistake in the {name} costs only if {far}.",
        "For the {name}, a mistake counts only if {far}.",
        "Mistakes in the {name} cost nothing unless {far}.",
        "Only if {far} does a mistake in the {name} cost.",
        "For the {name}, a mistake costs nothing unless {far}.",
        "A mistake in the {name} counts only if {far}.",
        "In the {name}, mistakes cost only if {far}.",
        "Leave out mistakes in the {name} unless {far}.",
        "For the {name}, take nothing off unless {far}.",
        "Count mistakes in the {name} only if {far}.",
    ),
    "once": (
        "All mistakes in the {name} together cost as much as one.",
        "For the {name}, only the first mistake costs.",
        "Mistakes in the {name} are charged once in all.",
        "However many mistakes there are in the {name}, they cost as much as one.",
        "For the {name}, all mistakes together cost as much as one.",
        "Only the first mistake in the {name} costs.",
        "In the {name}, mistakes are charged once in all.",
        "Charge the {name} once, however many mistakes there are.",
        "For the {name}, take off for one mistake, however many there are.",
        "Count all mistakes in the {name} as one.",
    ),
}
_MEANT = {  # aspect -> what counts as a mistake if it is weighed
    "existence": "A thing must be there in the colour that is named.",
    "certainty": "A claim on a covered corner is a mistake.",
    "completeness": "Each thing that is not named is a mistake, up to three.",
    "preservation": "Each thing changed without being asked for is a mistake, up to three.",
    "relevance": "At most two of them cost.",
    "concision": "At most two of them cost.",
    "consistency": "At most two of them cost.",
}
_KINDS_OF_ANY = {"scenes": {"existence", "certainty"}, "pictures": {"existence"}}  # that need a word where claims of
# any kind are weighed
_BOTH = "A mistake that falls under two of these costs both."


def criterion(
    terms: Sequence[Term], form: Sequence[tuple[str, int, str]], wording: tuple[int, int], domain: str
) -> str:
    """The criterion for terms, and for aspects of the whole response (`form`: aspect, weight, name)."""
    opening, costs = wording
    phrases = [(term.name, term.weight) for term in terms] + [(name, weight) for _, weight, name in form]
    listed = [name for name, _ in phrases]
    said = " and the ".join(filter(None, (", the ".join(listed[:-1]), listed[-1])))
    text = [OPENINGS[opening].format(list=said)]
    weights = {weight for _, weight in phrases}
    if len(weights) == 1:
        even = _EVEN[costs].format(w=_points(weights.pop()))
        text.append(even[0].upper() + even[1:])
    else:
        text.append(_UNEVEN[costs].format(each="; ".join(f"{weight} for {name}" for name, weight in phrases)))
    if any(overlap(a, b) for i, a in enumerate(terms) for b in terms[i + 1 :]):
        text.append(_BOTH)
    return " ".join([*text, *_rules(terms, costs), *_meanings(terms, form, domain)])


def _rules(terms: Sequence[Term], costs: int) -> list[str]:
    ruled = [term for term in terms if term.rule != "each"]
    units = dict.fromkeys(_UNITS[term.kind] for term in ruled if term.rule != "once" and term.kind in _UNITS)
    return [_RULES[t.rule][costs].format(name=t.name, far=_FAR.get(t.kind, "")) for t in ruled] + list(units)


def _meanings(terms: Sequence[Term], form: Sequence[tuple[str, int, str]], domain: str) -> list[str]:
    kinds = {term.kind for term in terms}
    if "" in kinds:
        kinds |= _KINDS_OF_ANY.get(domain, set())
    told = [_MEANT[kind] for kind in ("existence", "certainty") if kind in kinds]
    return told + [_MEANT[aspect].replace("of them", f"of the {name}") for aspect, _, name in form if aspect in _MEANT]


def _points(n: int) -> str:
    return "1 point" if n == 1 else f"{n} points"
