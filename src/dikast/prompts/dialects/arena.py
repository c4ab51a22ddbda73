"""Five-level verdicts of an arena: `[[A>>B]]`, `[[A>B]]`, `[[A=B]]`, `[[B>A]]`, `[[B>>A]]`."""

import re

from dikast.core.scale import Scale
from dikast.prompts.parsed import Reading, Slot, Stated, Target

ARENA = Scale(("B>>A", "B>A", "A=B", "A>B", "A>>B"), (-2.0, -1.0, 0.0, 1.0, 2.0))
LABEL = re.compile(r"\[\[\s{0,4}+(?P<one>[AB])\s{0,4}+(?P<sign>>{1,2}|<{1,2}|=)\s{0,4}+(?P<two>[AB])\s{0,4}+\]\]", re.I)

_SPOKEN_OF = re.compile(
    r"[*_`\"'”’]{0,4}[ \t](?:would|could|might|may|should|if|means|stands\sfor|is\stoo|seems)(?!\w)", re.I
)
_JOINED = re.compile(r"[*_`\"'”’]{0,4}[ \t,]{1,3}(?:or|and|nor)[ \t]{1,3}[*_`\"'“‘]{0,4}", re.I)
_NEAR, _LIST = 80, 3  # characters between the labels of a list; number of different labels that make a list


def read_arena(text: str, target: Target) -> Reading:
    """The last label in double brackets: its slot for a pair, or the label itself on the scale `ARENA`."""
    found = labels(text, target)
    if not found:
        return Reading(None, "no arena label such as [[A>B]] in the reply, or only the list of all")
    return Reading(found[-1], earlier=tuple(found[:-1]))


def labels(text: str, target: Target) -> list[Stated]:
    """Every arena label that is given, in order."""
    return meant(text, without_lists([stated(match, target) for match in LABEL.finditer(text)]))


def meant(text: str, found: list[Stated]) -> list[Stated]:
    """The labels that are verdicts, not only mentioned: "[[A>B]] would be too harsh", "[[A]] or [[B]] would do"."""
    kept: list[Stated] = []
    following: Stated | None = None
    spoken_of = False
    for each in reversed(found):
        joined = following is not None and _JOINED.fullmatch(text, each.end, following.start) is not None
        spoken_of = _SPOKEN_OF.match(text, each.end) is not None or (spoken_of and joined)
        following = each
        if not spoken_of:
            kept.append(each)
    return kept[::-1]


def without_lists(found: list[Stated]) -> list[Stated]:
    """The labels without those of lists: three or more different ones close together repeat the choices."""
    kept: list[Stated] = []
    run: list[Stated] = []
    for each in found:
        if run and each.start - run[-1].end > _NEAR:
            kept += [] if len({one.said.casefold() for one in run}) >= _LIST else run
            run = []
        run.append(each)
    return kept if len({one.said.casefold() for one in run}) >= _LIST else kept + run


def stated(match: re.Match[str], target: Target) -> Stated:
    """The verdict of a match of `LABEL` for `target`. `A<B` is `B>A`; `A>A` is never a verdict."""
    one, sign, two = match["one"].upper(), match["sign"], match["two"].upper()
    if sign.startswith("<"):
        one, sign, two = two, sign.replace("<", ">"), one
    label: str | None
    if one == two:
        label = None
    elif target.scale is not None:
        label = target.scale.match("A=B" if sign == "=" else f"{one}{sign}{two}")
    else:
        slot: Slot = "tie" if sign == "=" else "first" if one == "A" else "second"
        label = slot if slot in target else None
    return Stated(label, match[0], match.start(), match.end())
