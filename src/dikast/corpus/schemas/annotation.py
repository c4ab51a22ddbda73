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
_MARKS = ("spans", "boxes")
_WRONG = "wrong"  # what marks are called in the tools
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
    """The gold as answers to the questions `score`, `preference`, `feedback`, and the marks `spans` and `boxes`."""
    gold = gold_of(item)
    score = gold.get("score")
    said = put({}, score=_number(score), preference=gold.get("preference"))
    marks = {name: gold[name] for name in _MARKS if gold.get(name) and len(item.responses) == 1}
    if any(box[0] >= len(image_sources(item)) for box in marks.get("boxes", ())):  # on a picture that is not shown
        del marks["boxes"]
    return put(said, feedback=gold.get("feedback") or None) | marks


def _gold(people: list[Row], machine: Row) -> Row | None:
    """The gold of a record: the answer of one annotator or of several who agree; if they differ, a list `raters`.

    Without annotators it is the machine's suggestion.
    """
    if not people:
        return machine or None
    gold = dict(machine)
    several = {"score": "raters", "preference": "raters", "feedback": "feedbacks"}
    for key in (*several, *_MARKS):
        said = [each[key] for each in people if key in each]
        if not said:
            continue
        if all(each == said[0] for each in said):
            gold[key] = said[0]
        else:
            gold.pop(key, None)
            gold[several.get(key, f"rater_{key}")] = said
    return gold


def _ends(region: Row) -> list[Any]:
    """Where the characters of a region begin and end, in a text or in HTML."""
    return _numbers(region, "start", "end") or _numbers(region.get("globalOffsets"), "start", "end")


def _numbers(value: Any, *names: str) -> list[Any]:
    """The numbers under these names; none where one of them is missing or no number, as regions of other tags have."""
    found = [value.get(name) if isinstance(value, dict) else None for name in names]
    return found if all(isinstance(each, int | float) and not isinstance(each, bool) for each in found) else []


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
    kept = [_argilla_answers(one) for one in people.values()]
    gold = _gold([one for one in kept if one], _argilla_answers(machine))
    return put(record, id=None if row.get("id") is None else str(row["id"]), gold=gold)


def _argilla_answers(said: Row) -> Row:
    """The answers to questions that are known; a span question says its label with each stretch."""
    known: Row = {key: said[key] for key in ("score", "preference", "feedback") if key in said}
    if isinstance(said.get("spans"), list):
        known["spans"] = sorted(ends for each in said["spans"] if (ends := _numbers(each, "start", "end")))
    return known


def _submitted(responses: Any) -> Iterator[tuple[str, Row]]:
    for name, answers in (responses or {}).items():
        for each in answers if isinstance(answers, list) else [answers]:
            if isinstance(each, dict) and each.get("status", "submitted") == "submitted":
                yield name, each


def write_argilla(item: Item) -> Row:
    """A record with the gold as suggestions for the questions `score`, `preference`, `feedback`, `spans`; the tool has
    no question for boxes.
    """
    given = _answers(item)
    given.pop("boxes", None)
    if "spans" in given:
        given["spans"] = [{"start": start, "end": end, "label": _WRONG} for start, end in given["spans"]]
    said = {name: {"value": value} for name, value in given.items()}
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
    """The answers of one annotation by control: rating, number, choices, pairwise, text, labels, rectangles."""
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
        elif kind == "labels" and (ends := _ends(value)):
            said["spans"] = sorted([*said.get("spans", []), ends])
        elif kind == "rectanglelabels" and (sides := _numbers(value, "x", "y", "width", "height")):
            box = [each.get("item_index") or 0, *(round(side / 100, 8) for side in sides)]
            said["boxes"] = sorted([*said.get("boxes", []), box])
    return said


def write_label_studio(item: Item) -> Row:
    """A task with the gold as a prediction: controls `score` (rating), `preference` (choices), `feedback`, and the
    regions `spans` (labels of the response) and `boxes` (rectangles on its pictures).
    """
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
    for start, end in said.get("spans", ()):
        value = {"start": start, "end": end, "text": fields[to][start:end], "labels": [_WRONG]}
        results.append({"from_name": "spans", "to_name": to, "type": "labels", "value": value})
    for picture, *box in said.get("boxes", ()):
        sides = {name: round(100 * side, 6) for name, side in zip(("x", "y", "width", "height"), box, strict=True)}
        region = {"from_name": "boxes", "to_name": "image", "type": "rectanglelabels", "item_index": picture}
        results.append({**region, "value": {**sides, "rotation": 0, "rectanglelabels": [_WRONG]}})
    row = put({}, id=own_id(item))
    return row | {"data": fields} | ({"predictions": [{"result": results}]} if results else {})
