"""Records of annotation tools, with the annotators' answers: Argilla (its JSON export) and Label Studio tasks."""

from collections.abc import Iterator
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.corpus.schemas.public_schema import (
    Row,
    asked,
    gold_of,
    image_sources,
    own_id,
    pictured,
    plain,
    put,
    responses_of,
    the_rubric,
)

_FIELDS = ("instruction", "response", "response_a", "response_b", "reference", "criterion", "image")
_SIDES = {"left": "a", "right": "b", "a": "a", "b": "b", "tie": "tie", "equal": "tie", "both": "tie"}


def _shown_fields(item: Item) -> Row:
    """What an annotator sees: flat text fields."""
    row: Row = {"instruction": asked(item)}
    n = len(item.responses)
    if n not in (1, 2):
        raise DataError(f"item {item.id!r} has {n} responses: annotation records hold one or a pair", field="responses")
    names = ("response",) if n == 1 else ("response_a", "response_b")
    row.update(zip(names, responses_of(item, n), strict=True))
    if item.reference is not None:
        row["reference"] = text_of(item.reference)
    if item.rubric is not None:
        row["criterion"] = the_rubric(item).criterion
    images = image_sources(item)
    return put(row, image=None if not images else images[0] if len(images) == 1 else images)


def _fields_to_record(fields: Row, name: str) -> Row:
    text = {key: fields[key] for key in _FIELDS if isinstance(fields.get(key), str)}
    if "instruction" not in text:
        raise DataError(f"{name} has no text 'instruction'; it has {', '.join(fields)}", field=name)
    image = fields.get("image")
    images = [image] if isinstance(image, str) else image or []
    record: Row = {"instruction": pictured(text["instruction"], images)}
    if "response_a" in text and "response_b" in text:
        record["responses"] = [text["response_a"], text["response_b"]]
    put(record, response=text.get("response"), reference=text.get("reference"))
    return put(record, rubric={"criterion": text["criterion"]} if "criterion" in text else None)


def _number(score: Any) -> Any:
    """A score as a number where it is one; people may also have given a label of the scale."""
    try:
        return plain(float(score))
    except (TypeError, ValueError):
        return score


def _answers(item: Item) -> Row:
    """The gold as answers to the questions `score`, `preference`, `feedback`."""
    gold = gold_of(item)
    score = gold.get("score")
    said = put({}, score=_number(score), preference=gold.get("preference"))
    return put(said, feedback=gold.get("feedback") or None)


def _gold(people: list[Row], machine: Row) -> Row | None:
    """The gold of a record: the answer of one annotator or of several who agree; if they differ, a list `raters`.

    Without annotators it is the machine's suggestion.
    """
    if not people:
        return machine or None
    gold = dict(machine)
    for key in ("score", "preference", "feedback"):
        said = [each[key] for each in people if key in each]
        if not said:
            continue
        if all(each == said[0] for each in said):
            gold[key] = said[0]
        else:
            gold.pop(key, None)
            gold["raters" if key != "feedback" else "feedbacks"] = said
    return gold


def read_argilla(row: Row) -> Row:
    """A record; submitted answers take precedence over suggestions."""
    fields = row.get("fields")
    if not isinstance(fields, dict):
        raise DataError("an Argilla record has an object 'fields'", field="fields")
    record = _fields_to_record(fields, "fields")
    machine = {
        name: each["value"]
        for name, each in (row.get("suggestions") or {}).items()
        if isinstance(each, dict) and "value" in each
    }
    people: dict[str, Row] = {}
    for name, each in _submitted(row.get("responses")):
        people.setdefault(str(each.get("user_id")), {})[name] = each.get("value")
    known = ("score", "preference", "feedback")
    kept = [{key: value for key, value in one.items() if key in known} for one in people.values()]
    gold = _gold([one for one in kept if one], {key: value for key, value in machine.items() if key in known})
    return put(record, id=None if row.get("id") is None else str(row["id"]), gold=gold)


def _submitted(responses: Any) -> Iterator[tuple[str, Row]]:
    for name, answers in (responses or {}).items():
        for each in answers if isinstance(answers, list) else [answers]:
            if isinstance(each, dict) and each.get("status", "submitted") == "submitted":
                yield name, each


def write_argilla(item: Item) -> Row:
    """A record with the gold as suggestions for the questions `score`, `preference`, `feedback`."""
    said = {name: {"value": value} for name, value in _answers(item).items()}
    row = put({}, id=own_id(item))
    return row | {"fields": _shown_fields(item), "metadata": {}, "suggestions": said, "responses": {}}


def read_label_studio(row: Row) -> Row:
    """A task; annotations that were not cancelled take precedence over predictions."""
    data = row.get("data")
    if not isinstance(data, dict):
        raise DataError("a Label Studio task has an object 'data'", field="data")
    record = _fields_to_record(data, "data")
    people = [_results(each) for each in row.get("annotations") or () if not each.get("was_cancelled")]
    predictions = [_results(each) for each in row.get("predictions") or ()]
    gold = _gold([each for each in people if each], predictions[0] if predictions else {})
    return put(record, id=None if row.get("id") is None else str(row["id"]), gold=gold)


def _results(annotation: Row) -> Row:
    """The answers of one annotation by control: rating, number, choices, pairwise, text."""
    said: Row = {}
    for each in annotation.get("result") or ():
        kind, value = each.get("type"), each.get("value") or {}
        if kind in ("rating", "number") and value.get(kind) is not None:
            said["score"] = value[kind]
        elif kind == "pairwise" and str(value.get("selected")).casefold() in _SIDES:
            said["preference"] = _SIDES[str(value["selected"]).casefold()]
        elif kind == "choices" and str((value.get("choices") or [""])[0]).casefold() in _SIDES:
            said["preference"] = _SIDES[str(value["choices"][0]).casefold()]
        elif kind == "textarea":
            text = value.get("text")
            said["feedback"] = "\n".join(text) if isinstance(text, list) else text
    return said


def write_label_studio(item: Item) -> Row:
    """A task with the gold as a prediction: controls `score` (rating), `preference` (choices), `feedback`."""
    said, fields = _answers(item), _shown_fields(item)
    to = "response" if "response" in fields else "response_a"
    results: list[Row] = []
    if "score" in said:
        rated = {"number": said["score"]} if isinstance(said["score"], float) else {"rating": said["score"]}
        results.append({"from_name": "score", "to_name": to, "type": next(iter(rated)), "value": rated})
    if "preference" in said:
        chosen = {"choices": [said["preference"]]}
        results.append({"from_name": "preference", "to_name": to, "type": "choices", "value": chosen})
    if "feedback" in said:
        results.append(
            {"from_name": "feedback", "to_name": to, "type": "textarea", "value": {"text": [said["feedback"]]}}
        )
    row = put({}, id=own_id(item))
    return row | {"data": fields} | ({"predictions": [{"result": results}]} if results else {})
