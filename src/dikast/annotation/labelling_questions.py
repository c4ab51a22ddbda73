"""The questions for raters: grade one response on a rubric, or choose the better of two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.gold import lies_on
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.records import read_items
from dikast.core.rubric import Rubric, Sheet

Kind = Literal["absolute", "pairwise"]
CHOICES = ("a", "b", "tie")
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class ToLabel:
    """One thing to label. `responses` are one index or two; `known` is the label that is known already, "" for none."""

    key: str
    item: Item
    rubric: Rubric
    responses: tuple[int, ...]
    known: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """What may be answered."""
        return CHOICES if len(self.responses) == 2 else self.rubric.scale.labels


def read_questions(path: str, columns: dict[str, str], rubric: Rubric | Sheet, kind: Kind) -> list[ToLabel]:
    """The questions of an items file, in its order. UserError for items that cannot be shown."""
    found: list[ToLabel] = []
    wrong: list[str] = []
    for item in read_items(path, columns=columns):
        given = item.rubric or rubric
        wrong += _unshown(item)
        for criterion in given if isinstance(given, Sheet) else [given]:
            found += [_question(item, criterion, each) for each in _places(item, kind)]
    if wrong:
        more = f"; and {len(wrong) - _MOST_TOLD:,} more" if len(wrong) > _MOST_TOLD else ""
        raise UserError("these cannot be shown to people: " + "; ".join(wrong[:_MOST_TOLD]) + more)
    if not found:
        raise UserError(f"{path}: there is nothing to label")
    return found


def _places(item: Item, kind: Kind) -> Sequence[tuple[int, ...]]:
    n = len(item.responses)
    if kind == "absolute":
        if not n:
            raise UserError(f"{item.origin}: item {item.id!r} has no response to grade; name its column with --map")
        return [(i,) for i in range(n)]
    if n < 2:
        raise UserError(f"{item.origin}: item {item.id!r} has {n} response(s), and a pair needs two; leave out --pairs")
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def _question(item: Item, rubric: Rubric, responses: tuple[int, ...]) -> ToLabel:
    key = fingerprint([item.id, rubric.to_dict(), list(responses)])
    return ToLabel(key, item, rubric, responses, _known(item, rubric, responses))


def _known(item: Item, rubric: Rubric, responses: tuple[int, ...]) -> str:
    gold = item.gold
    if isinstance(gold, dict):
        gold = gold.get(rubric.name)
    if isinstance(gold, list):
        values = [gold[i] if i < len(gold) else None for i in responses]
        if len(responses) == 1:
            gold = values[0]
        else:
            first, second = (each if isinstance(each, int | float) else None for each in values)
            if first is None or second is None:
                return ""
            better = -1 if rubric.scale.lower_is_better else 1
            return "tie" if first == second else "a" if better * (first - second) > 0 else "b"
    if len(responses) == 2:
        return gold if gold in CHOICES else ""
    if isinstance(gold, str):
        return rubric.scale.match(gold) or ""
    usable = isinstance(gold, int | float) and not isinstance(gold, bool) and lies_on(gold, rubric.scale)
    return (rubric.scale.label(gold) or "") if usable else ""


def _unshown(item: Item) -> list[str]:
    told = [f"{item.origin}: clips are not shown yet ({len(item.videos)})"] if item.videos else []
    for image in item.images:
        if image.source.startswith(("http://", "https://")):
            told.append(f"{item.origin}: {image.name} is a web address; download it first")
            continue
        try:
            load_image(image)
        except (DataError, OSError) as error:
            told.append(f"{item.origin}: {error}")
    return told
