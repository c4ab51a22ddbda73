"""Verification of a learnt format on unseen rows: item and rubric from the row, `Format.ask`, equal byte for byte."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.message import Message, Span
from dikast.core.part import Content, Image, Text, Turn
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.prompts.format import Format
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.rows import PLACEHOLDER, Rendered
from dikast.prompts.learn.skeleton import Misfit, Skeleton, difference

_PICTURE = Image("image")


@dataclass(frozen=True, slots=True)
class Shared:
    """Mean shares of a prompt's characters before a slot, which requests can share in a prefix cache.

    `task` is shared by all requests (before the first slot), `question` by the responses to one question (before the
    first response). A format that shows the responses last has a `question` near 1.
    """

    n: int
    task: float
    question: float


def question_of(values: Mapping[str, str], scale: str, *, pictured: bool = False) -> tuple[Item, Rubric]:
    """The item and the rubric in a row's slots."""
    labels = [slot.removeprefix(LEVEL) for slot in values if slot.startswith(LEVEL)]
    spelt = Scale.parse(scale) if scale else Scale.parse("1-5")
    levels = tuple(sorted(((each, values[LEVEL + each]) for each in labels), key=lambda each: spelt.value(each[0])))
    shown: Content = (Text(values.get("instruction", "")),)
    instruction = (Turn("user", (_PICTURE, *shown) if pictured else shown),)
    responses = [values[each] for each in ("response", "first", "second") if each in values]
    item = Item(
        "row",
        instruction=instruction if "instruction" in values or pictured else (),
        responses=tuple((Text(each),) for each in responses),
        reference=_content(values.get("reference")),
        context=_content(values.get("context")),
    )
    return item, Rubric("row", values.get("criterion", ""), spelt, levels)


def prove(
    form: Format, skeleton: Skeleton, rows: Sequence[Rendered], given: Mapping[tuple[int, str], Mapping[str, str]]
) -> list[Misfit]:
    """The rows that the format does not reproduce byte for byte.

    `given` holds the fields of the rows, by row and column, if known; other rows are parsed.
    """
    misfits = []
    for row in rows:
        values = given.get((row.row, row.column)) or skeleton.split(row.text, row.row)
        if isinstance(values, Misfit):
            misfits.append(values)
            continue
        item, rubric = question_of(values, form.scale, pictured=row.pictured)
        try:
            made = spelt(form.ask(item, rubric, (0, 1) if form.kind == "pairwise" else (0,))[-1])
        except UserError as error:
            misfits.append(Misfit(row.row, -1, "", "", str(error)))
            continue
        wanted = PLACEHOLDER * row.pictured + row.text
        if made != wanted:
            misfits.append(difference(made, wanted, row.row))
    return misfits


def spelt(message: Message) -> str:
    """A message in the form of published rows: `<image>` for each image."""
    return "".join(part.text if isinstance(part, Span) else "<image>" for part in message.parts)


def shared(skeleton: Skeleton, rows: Sequence[Rendered]) -> Shared:
    """The shares of the prompts before the first slot and before the first response."""
    before: list[tuple[float, float]] = []
    for row in rows:
        values = skeleton.split(row.text, row.row)
        if isinstance(values, Misfit):
            continue
        at = len(skeleton.literals[0])
        for slot, literal in zip(skeleton.slots, skeleton.literals[1:], strict=True):
            if slot in ("response", "first", "second"):
                break
            at += len(values[slot]) + len(literal)
        before.append((len(skeleton.literals[0]) / len(row.text), at / len(row.text)))
    if not before:
        return Shared(0, float("nan"), float("nan"))
    return Shared(len(before), fmean(a for a, _ in before), fmean(b for _, b in before))


def _content(text: str | None) -> Content | None:
    return None if text is None else (Text(text),)
