"""From a client's JSON to items, and from verdicts to JSON; checks of what clients may send."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from dikast.core.canonical import read_json
from dikast.core.errors import DataError, UserError
from dikast.core.item import ITEM_KEYS, Item, item_from, meant, misnamed
from dikast.core.part import Image
from dikast.core.rubric import Rubric, Sheet, builtin_rubrics, load_rubric
from dikast.core.text import counted, near_miss
from dikast.core.verdict import Preference, Status, Verdict
from dikast.rewards.rollouts import named

_MOST_ITEMS = 1024  # in one request
_MOST_FIELDS = 1000  # of a request; unknown ones are compared with what is known, while other clients wait
_MOST_COLUMNS = 32 * _MOST_ITEMS  # of all items of a request
_LONGEST = 2000  # characters of an error, which may quote what a client sent


class Refused(Exception):
    """An HTTP error: its status, message and field."""

    def __init__(self, status: int, message: str, field: str = "", *, wait: float | None = None) -> None:
        super().__init__(f"{message[:_LONGEST]}…" if len(message) > _LONGEST else message)
        self.status, self.field, self.wait = status, field[:_LONGEST], wait

    @property
    def body(self) -> bytes:
        """As JSON, in the form of OpenAI's errors."""
        told: dict[str, Any] = {
            "message": str(self),
            "type": "invalid_request_error" if self.status < 500 else "server",
        }
        return orjson.dumps({"error": told | ({"param": self.field, "field": self.field} if self.field else {})})


@dataclass(frozen=True, slots=True)
class Allowed:
    """What clients may refer to: named rubrics, and files if there is a media root."""

    rubrics: Mapping[str, Rubric | Sheet]
    files: bool = False

    def rubric(self, given: object, field: str) -> Rubric | Sheet | None:
        """The rubric that a request names or contains. Refused (404) for an unknown name."""
        if given is None:
            return None
        if isinstance(given, str):
            if given in self.rubrics:
                return self.rubrics[given]
            if given in builtin_rubrics():
                return load_rubric(given)
            known = list(dict.fromkeys((*self.rubrics, *builtin_rubrics())))
            near = near_miss(given, known)
            hint = f"; did you mean {near!r}?" if near else f": there are {', '.join(known)}"
            raise Refused(404, f"there is no rubric {given!r} here{hint}", field)
        if not isinstance(given, dict):
            raise Refused(422, f"a rubric is a name or an object, got {type(given).__name__}", field)
        try:
            return load_rubric(given)
        except UserError as error:
            raise Refused(422, str(error), field) from None

    def item(self, given: object, field: str, default: object = None) -> Item:
        """The item of a request. Refused (422) with the wrong field, also for paths of files."""
        if not isinstance(given, dict):
            raise Refused(422, f"an item is an object, got {type(given).__name__}", field or "items")
        rubric = self.rubric(given.get("rubric", default), _at(field, "rubric"))
        spelt = {key: each for key, each in given.items() if key != "rubric"}
        if slip := misnamed(spelt):
            told = f"unknown field {slip!r}: {meant(slip)} A column of yours goes into 'meta'"
            raise Refused(422, told, _at(field, slip))
        try:
            item = item_from(spelt if spelt.get("id") is not None else {**spelt, "id": "row"})
        except DataError as error:
            told = str(error).removeprefix(f"field {error.field!r}: ")
            raise Refused(422, told, _at(field, error.field)) from None
        if not self.files:
            media: list[Image | Any] = [*item.images, *item.videos]
            for each in media:
                if not each.source.startswith(("data:", "http://", "https://")):
                    told = "files of the server are not available to clients: send the image as a data URL"
                    raise Refused(422, told, _at(field, "images"))
        item = replace(item, rubric=rubric)
        return item if spelt.get("id") is not None else replace(item, id=named(item))


def _at(field: str, name: object) -> str:
    return f"{field}.{name}" if field and name else str(name or field)


def parsed(raw: bytes) -> dict[str, Any]:
    """The body as an object; Refused (422) for anything else."""
    try:
        value = read_json(raw)
    except ValueError as error:
        raise Refused(422, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(422, f"the body is an object, got {type(value).__name__}")
    if len(value) > _MOST_FIELDS:
        raise Refused(413, f"the body has {len(value):,} fields, and a request has at most {_MOST_FIELDS:,}")
    return value


def items_of(
    body: Mapping[str, Any], allowed: Allowed, least: int, options: Collection[str] = ()
) -> tuple[list[Item], bool]:
    """The items of a request, and whether they were a list; each has at least `least` responses.

    `options` are the request's own fields beside the item's. Refused (422) for a field that nearly has the name of one,
    for an option inside an item of a list, and for any other field beside such a list. Further columns of an item stay
    with it.
    """
    several = "items" in body
    body = {key: each for key, each in body.items() if key not in options}
    listed = body["items"] if several else [body]
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_ITEMS:
        raise Refused(422, f"items is a list of 1 to {_MOST_ITEMS} objects", "items")
    if sum(len(each) for each in listed if isinstance(each, dict)) > _MOST_COLUMNS:
        told = f"the items have more than {_MOST_COLUMNS:,} fields together: send fewer items, or put columns in 'meta'"
        raise Refused(413, told, "items")
    if several:
        beside = ("items", "rubric", *options)
        for name in sorted(body.keys() - {"items", "rubric"}):
            near = near_miss(name, beside)
            cure = f"did you mean {near!r}?" if near else f"beside items stand {', '.join(beside[1:])}"
            raise Refused(422, f"{name!r} is not read beside items: {cure}", name)
    default = body.get("rubric") if several else None
    items = []
    for i, each in enumerate(listed):
        field = f"items[{i}]" if several else ""
        if options and isinstance(each, dict):
            _check_options(each, options, field)
        item = allowed.item(each, field, default)
        if len(item.responses) < least:
            told = f"{counted(len(item.responses), 'response')}, but {least} or more are needed"
            raise Refused(422, told, _at(field, "responses"))
        items.append(item)
    return items, several


def _check_options(given: Mapping[str, Any], options: Collection[str], field: str) -> None:
    """Refused (422) for a field of an item that is an option of its request, or nearly has the name of one."""
    for name in sorted(given.keys() - set(ITEM_KEYS)):
        if name in options:
            raise Refused(422, f"{name!r} is an option of the request: put it beside items", _at(field, name))
        if (near := near_miss(name, options)) is not None:
            told = f"unknown option {name!r}: did you mean {near!r}? A column of yours goes into 'meta'"
            raise Refused(422, told, _at(field, name))


def check_rewards(body: Mapping[str, Any]) -> tuple[list[str], list[str] | None]:
    """The queries of `POST /get_reward`, and their prompts if there are any. Refused (422), naming the field.

    `labels` are not read, but are a list with one for each query.
    """
    known = ("query", "prompts", "labels")
    for name in sorted(body.keys() - set(known)):
        if (near := near_miss(name, known, 0.6)) is not None:
            raise Refused(422, f"unknown field {name!r}: did you mean {near!r}?", name)
    queries = _texts(body.get("query"), "query")
    prompts = None if body.get("prompts") is None else _texts(body["prompts"], "prompts")
    labels = body.get("labels")
    if labels is not None and not isinstance(labels, list):
        raise Refused(422, f"expected a list, got {type(labels).__name__}", "labels")
    for name, listed in (("prompts", prompts), ("labels", labels)):
        if listed is not None and len(listed) != len(queries):
            told = f"{counted(len(listed), name[:-1])} for {counted(len(queries), 'query', 'queries')}"
            raise Refused(422, told, name)
    return queries, prompts


def _texts(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise Refused(422, "expected a list of texts that is not empty", field)
    for i, each in enumerate(value):
        if not isinstance(each, str):
            raise Refused(422, f"expected text, got {type(each).__name__}", f"{field}[{i}]")
    return value


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON for clients."""
    return {
        "key": verdict.key,
        "criterion": verdict.question.criterion,
        "response": verdict.question.responses[0],
        "status": verdict.status.value,
        "label": verdict.label,
        "score": verdict.score,
        "expected": verdict.expected,
        "distribution": verdict.distribution,
        "reason": verdict.reason,
        "feedback": verdict.feedback,
        "usage": {"tokens_in": verdict.usage.tokens_in, "tokens_out": verdict.usage.tokens_out},
    }


def scores_json(item: Item, rubric: Rubric | Sheet, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The verdicts on an item's responses; `goodness` by response is None where a verdict is missing."""
    sheet = rubric if isinstance(rubric, Sheet) else Sheet(rubric.name, (rubric,))
    values: list[dict[str, float | None]] = [{} for _ in item.responses]
    for each in verdicts:
        number = each.score if each.expected is None else each.expected
        values[each.question.responses[0]][each.question.criterion] = number if each.status is Status.OK else None
    goodness = [sheet.total(each) for each in values]
    return {
        "id": item.id,
        "goodness": goodness[0] if len(goodness) == 1 else goodness,
        "verdicts": [verdict_json(each) for each in verdicts],
    }


def preference_json(preference: Preference) -> dict[str, Any]:
    """A preference as JSON for clients, with the label of each order."""
    return {
        "criterion": preference.criterion,
        "pair": list(preference.pair),
        "choice": preference.choice,
        "outcome": preference.outcome,
        "consistent": preference.consistent,
        "logit_a": preference.logit_a,
        "position_bias": preference.position_bias,
        "status": preference.status.value,
        "reason": preference.reason,
        "orders": [
            {
                "key": each.key,
                "shown": list(each.question.responses),
                "label": each.label,
                "status": each.status.value,
                "distribution": each.distribution,
                "feedback": each.feedback,
            }
            for each in preference.orders
        ],
    }
