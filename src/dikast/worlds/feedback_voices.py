"""Gold feedback in ten voices: prose, quotes, advice, lists, a table. All say the same, and nothing but the gold."""

from collections.abc import Sequence
from typing import NamedTuple

from dikast.core.text import counted


class Point(NamedTuple):
    """What feedback says of one claim, or of the response as a whole (`verdict` "").

    `said` is the sentence, or the rubric's name of the aspect; `truth` the correction, or the finding; `cost` the
    points that it loses.
    """

    said: str
    verdict: str
    truth: str
    cost: int


class _Voice(NamedTuple):
    """Templates for a right claim, a wrong one that costs, a wrong one that costs nothing, a finding about the response
    as a whole, and the end.

    `between` stands between them, `first`: the end stands first, `sorted`: what costs stands first.
    """

    name: str
    right: str
    wrong: str
    free: str
    whole: str
    end: str
    between: str = "\n"
    first: bool = False
    sorted: bool = False


_VOICES = (
    _Voice(
        "prose",
        '"{said}" is right.',
        '"{said}" is {verdict}: {truth}. That costs {cost}.',
        '"{said}" is {verdict}, since {truth}, but the rubric charges nothing for it.',
        "As to the {said}: {truth}, which costs {cost}.",
        "In all the answer loses {lost}, so the grade is {label}.",
        " ",
    ),
    _Voice(
        "quotes",
        "> {said}\nThis is right.",
        "> {said}\nThis is {verdict}: {truth}. It costs {cost}.",
        "> {said}\nThis is {verdict}: {truth}. It costs nothing here.",
        "Of the whole answer, {said}: {truth}. It costs {cost}.",
        "Lost in all: {lost}. Grade: {label}.",
        "\n\n",
    ),
    _Voice(
        "advice",
        'Keep "{said}".',
        'Correct "{said}": {truth}. This mistake costs {cost}.',
        'Correct "{said}", too: {truth}. This mistake costs nothing here.',
        "Look at the {said}: {truth}. This costs {cost}.",
        "As it stands, the answer loses {lost} and gets {label}.",
        " ",
    ),
    _Voice(
        "list",
        "- right: {said}",
        "- {verdict}: {said} ({truth}; costs {cost})",
        "- {verdict}: {said} ({truth}; costs nothing)",
        "- {said}: {truth} (costs {cost})",
        "- lost in all: {lost}\n- grade: {label}",
    ),
    _Voice(
        "letter",
        'You write "{said}", and so it is.',
        'You write "{said}", but {truth}; I take off {cost} for this.',
        'You write "{said}", but {truth}; I take off nothing for this.',
        "I also looked at the {said}: {truth}; I take off {cost} for this.",
        "That makes {lost}, and my grade is {label}.",
        " ",
    ),
    _Voice(
        "table",
        "| {said} | right | | {cost} |",
        "| {said} | {verdict} | {truth} | {cost} |",
        "| {said} | {verdict} | {truth} | {cost} |",
        "| {said} | whole answer | {truth} | {cost} |",
        "| in all | grade {label} | | {lost} |",
    ),
    _Voice(
        "verdict first",
        'The statement "{said}" holds.',
        'The statement "{said}" does not hold: {truth}. This costs {cost}.',
        'The statement "{said}" does not hold: {truth}. This costs nothing.',
        "The {said}: {truth}. This costs {cost}.",
        "The answer gets {label}: it loses {lost}.",
        " ",
        first=True,
    ),
    _Voice(
        "notes",
        "{said} [ok]",
        "{said} [no: {truth}; minus {cost}]",
        "{said} [no: {truth}; not charged]",
        "{said} [{truth}; minus {cost}]",
        "[sum: minus {lost}] [grade: {label}]",
    ),
    _Voice(
        "mistakes first",
        "Right: {said}",
        "Charged with {cost}: {said} In fact {truth}.",
        "Wrong, but not charged: {said} In fact {truth}.",
        "Charged with {cost} for the {said}: {truth}.",
        "Charged in all: {lost}. This is {label}.",
        sorted=True,
    ),
    _Voice(
        "questions",
        "Is it true that: {said} Yes.",
        "Is it true that: {said} No, {truth}. What does that cost? {cost}.",
        "Is it true that: {said} No, {truth}. What does that cost? Nothing.",
        "What about the {said}? Found: {truth}. What does that cost? {cost}.",
        "What is lost in all? {lost}. And the grade? {label}.",
    ),
)
VOICES = tuple(voice.name for voice in _VOICES)
_VERDICTS = {"wrong": "wrong", "unsupported": "not supported"}


def feedback_in(voice: str, points: Sequence[Point], label: str) -> str:
    """The feedback on one response: every point, what is lost in all, and the label."""
    told = _VOICES[VOICES.index(voice)]
    ordered = sorted(points, key=lambda each: (not each.cost, each.verdict == "right")) if told.sorted else points
    end = told.end.format(lost=_points(sum(each.cost for each in points)), label=label)
    lines = [_template(told, each).format(**_filled(each)) for each in ordered]
    return told.between.join([end, *lines] if told.first else [*lines, end])


def _template(voice: _Voice, point: Point) -> str:
    if not point.verdict:
        return voice.whole
    return voice.right if point.verdict == "right" else voice.wrong if point.cost else voice.free


def _filled(point: Point) -> dict[str, str]:
    plain = point._asdict()
    return plain | {
        "verdict": _VERDICTS.get(point.verdict, point.verdict),
        "cost": _points(point.cost) if point.cost else "nothing",
    }


def _points(n: int) -> str:
    return counted(n, "point")
