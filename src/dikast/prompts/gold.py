"""The verdict of a perfect judge on an item, from its gold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.rubric import Rubric
from dikast.core.verdict import Claim
from dikast.prompts.pair_names import exchanged

_FINDINGS = {"unsupported": "unclear"}  # used by worlds for claims that cannot be checked
_SLOTS = {"a": ("first", "second"), "b": ("second", "first")}


@dataclass(frozen=True, slots=True)
class Gold:
    """The correct verdict. `label` is a label of the scale, or for a pair the slot that wins: `first`, `second`, `tie`.

    `claims` of a pair are those of the response shown first, then of the other; `split` of them are the first's.
    """

    label: str
    feedback: str = ""
    claims: tuple[Claim, ...] = ()
    split: int = 0


def gold_of(item: Item, rubric: Rubric, responses: tuple[int, ...]) -> Gold:
    """The gold of one response, or of two as shown in the order of `responses`; DataError when the item has none.

    `gold` of an item may be a score or label; for several responses a list of them; for a pair `a`, `b` or `tie`
    (a is the response with the smaller index); or an object with `score` / `label`, `scores` / `labels`, `preference`,
    `feedback`, `claims` (objects with `text`, `verdict`, `correction`) and `responses` (a list of the above). The
    feedback of a pair names the responses as the item has them; in the other order the names are exchanged. `spans`
    (characters of a response that are wrong, as pairs of start and end) are its claims where it has no others.
    """
    gold = item.gold
    if gold is None:
        raise _error(item, "has no gold: a judge learns from items that say what is right; add 'gold'")
    if len(responses) == 1:
        return _of_one(item, rubric, responses[0])
    ones = [_part(item, index) for index in responses]
    claims = [_claims(one, item, index) for one, index in zip(ones, responses, strict=True)]
    whole = gold if isinstance(gold, Mapping) else {}
    feedback = _text(whole.get("feedback", ""), item)
    if responses[0] > responses[1]:
        feedback = exchanged(feedback)
    label = _winner(item, rubric, responses)
    return Gold(label, feedback, (*claims[0], *claims[1]), len(claims[0]))


def _of_one(item: Item, rubric: Rubric, index: int) -> Gold:
    part = _part(item, index)
    label = _label(part, rubric, item)
    return Gold(label, _text(part.get("feedback", ""), item), _claims(part, item, index))


def _part(item: Item, index: int) -> Mapping[str, Any]:
    """The gold of one response as an object."""
    gold, several = item.gold, len(item.responses) > 1
    if isinstance(gold, Mapping):
        if not several:
            return gold
        parts = gold.get("responses")
        if isinstance(parts, list) and index < len(parts) and isinstance(parts[index], Mapping):
            found: Mapping[str, Any] = parts[index]
            return found
        known = {}
        for one, many in (("label", "labels"), ("score", "scores")):
            values = gold.get(many)
            if isinstance(values, list) and index < len(values):
                known[one] = values[index]
        return known
    if several:
        return {"score": gold[index]} if isinstance(gold, list) and index < len(gold) else {}
    return {"score": gold}


def scored_apart(item: Item) -> bool:
    """Whether the gold of an item with several responses scores each of them."""
    return all({"label", "score"} & _part(item, index).keys() for index in range(len(item.responses)))


def _label(part: Mapping[str, Any], rubric: Rubric, item: Item) -> str:
    label, score = part.get("label"), part.get("score")
    if label is not None:
        found = rubric.scale.match(str(label))
    elif isinstance(score, int | float) and not isinstance(score, bool):
        found = rubric.scale.label(float(score))
    else:
        found = rubric.scale.match(str(score)) if score is not None else None
    if found is None:
        said = label if label is not None else score
        told = (
            "no score in its gold" if said is None else f"the gold {said!r}, which is not on the scale {rubric.scale}"
        )
        raise _error(item, f"has {told}: give a label of the rubric's scale")
    return found


def _winner(item: Item, rubric: Rubric, responses: tuple[int, ...]) -> str:
    gold = item.gold
    said = gold.get("preference") if isinstance(gold, Mapping) else gold if isinstance(gold, str) else None
    if said is not None and len(item.responses) == 2:
        if said == "tie":
            return "tie"
        if said not in _SLOTS:
            raise _error(item, f"has the preference {said!r}: write a, b or tie")
        return _SLOTS[said][responses[0] > responses[1]]
    scale = rubric.scale
    goods = [scale.goodness(scale.value(_label(_part(item, index), rubric, item))) for index in responses]
    return "tie" if goods[0] == goods[1] else "first" if goods[0] > goods[1] else "second"


def _claims(part: Mapping[str, Any], item: Item, index: int) -> tuple[Claim, ...]:
    claims = part.get("claims") or ()
    if not claims and "spans" in part:
        claims = _marked(part["spans"], item, index)
    if not isinstance(claims, list | tuple) or not all(
        isinstance(c, Mapping) and isinstance(c.get("text"), str) and isinstance(c.get("verdict"), str) for c in claims
    ):
        raise _error(item, "has claims in its gold that are not objects with 'text' and 'verdict'")
    return tuple(
        Claim(_line(c["text"]), _FINDINGS.get(c["verdict"], c["verdict"]), _line(str(c.get("correction") or "")))
        for c in claims
    )


def _marked(spans: Any, item: Item, index: int) -> list[dict[str, str]]:
    """The marked words of a response, each as a wrong claim; where nothing is marked all of it is right."""
    text = text_of(item.responses[index])
    if not isinstance(spans, list | tuple) or not all(
        isinstance(each, list | tuple) and len(each) == 2 and all(isinstance(at, int) for at in each)
        and 0 <= each[0] < each[1] <= len(text) for each in spans
    ):  # fmt: skip
        raise _error(item, f"has spans in its gold that are not pairs of characters of its response ({len(text)})")
    wrong = [{"text": text[start:end], "verdict": "wrong"} for start, end in spans]
    return wrong or [{"text": text, "verdict": "right"}]


def _line(text: str) -> str:
    return " ".join(text.split())


def _text(value: object, item: Item) -> str:
    if not isinstance(value, str):
        raise _error(item, "has a 'feedback' in its gold that is not text")
    return value.strip()


def _error(item: Item, message: str) -> DataError:
    return DataError(f"item {item.id!r} {message}", path=item.origin, field="gold")
