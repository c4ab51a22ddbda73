"""Rows of Feedback-, Preference- and Perception-Collection and their evaluation files; also Auto-J and BiGGen rows."""

from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import Content, text_of
from dikast.core.scale import Scale
from dikast.corpus.schemas import sections
from dikast.corpus.schemas.public_schema import (
    Row,
    asked,
    gold_of,
    image_sources,
    need,
    number_of,
    own_id,
    pictured,
    plain,
    put,
    rendered,
    responses_of,
    text_at,
    the_rubric,
)
from dikast.prompts.parse import parse_reply

FIVE = Scale.parse("1-5")
_LEVELS = tuple(f"orig_score{n}_description" for n in range(1, 6))


def _rubric(row: Row) -> Row:
    levels = {str(n): told for n, name in enumerate(_LEVELS, 1) if (told := text_at(row, name))}
    return {"criterion": need(row, "orig_criteria"), "scale": "1-5", "levels": levels}


def _rubric_columns(item: Item) -> Row:
    rubric = the_rubric(item)
    if rubric.scale.values != FIVE.values or rubric.scale.lower_is_better:
        raise DataError(
            f"item {item.id!r}: this schema has scores 1-5, the rubric {rubric.scale}; use another --to",
            field="rubric",
        )
    levels = dict(rubric.levels)
    return {"orig_criteria": rubric.criterion, **{n: levels.get(str(i), "") for i, n in enumerate(_LEVELS, 1)}}


def _reference(content: Content | None) -> str:
    return text_of(content) if content is not None else ""


def _scored(reply: str | None, dialect: str) -> Row | None:
    """Gold from a training target: the score, and the feedback before the marker."""
    if not reply:
        return None
    parsed = parse_reply(dialect, reply, FIVE, marker="[RESULT]")
    if parsed.label is None:
        return {"feedback": reply}
    return {"score": int(parsed.label), "feedback": parsed.feedback}


def read_feedback(row: Row) -> Row:
    """One row: parts from the `orig_` columns if present, else from the rendered prompt."""
    if "orig_criteria" in row:
        record: Row = {
            "instruction": need(row, "orig_instruction"),
            "response": need(row, "orig_response", "original_response"),
        }
        put(record, reference=text_at(row, "orig_reference_answer") or None, rubric=_rubric(row))
        score = number_of(row.get("orig_score", row.get("score")), "orig_score")
        gold = put({}, score=None if score is None else plain(score), feedback=text_at(row, "orig_feedback"))
        gold = gold or _scored(text_at(row, "output"), "bracketed") or {}
    else:
        record = sections.fields_of(need(row, "instruction"))
        gold = _recorded(row)
    if images := _images(row):
        record["instruction"] = pictured(record["instruction"], images)
    return put(record, id=row.get("id"), gold=gold or None)


def _recorded(row: Row) -> Row:
    """Scores that judges gave to a rendered prompt: a single one is gold, several are raters."""
    scores, feedback = row.get("gpt4_score"), row.get("gpt4_feedback")
    if isinstance(scores, list):
        raters = [number_of(each, "gpt4_score") for each in scores]
        return {"raters": [None if each is None else plain(each) for each in raters], "feedbacks": feedback or []}
    score = number_of(scores, "gpt4_score")
    gold = put({}, score=None if score is None else plain(score), feedback=feedback)
    return gold or _scored(text_at(row, "output"), "bracketed") or {}


def write_feedback(item: Item) -> Row:
    """All columns of Feedback-Collection; `instruction` is Dikast's rendered prompt."""
    [response], gold = responses_of(item, 1), gold_of(item)
    score, feedback = gold.get("score"), gold.get("feedback")
    row: Row = {
        **_rubric_columns(item),
        "orig_instruction": asked(item),
        "orig_response": response,
        "orig_reference_answer": _reference(item.reference),
    }
    told = None if score is None else str(plain(float(score)))
    put(row, orig_feedback=feedback, orig_score=told)
    row |= {"instruction": rendered(item), "input": ""}
    if told is not None:
        row["output"] = f"{feedback or ''} [RESULT] {told}".strip()
    return put(row, id=own_id(item))


def read_preference(row: Row) -> Row:
    """One pair with both scores and feedbacks."""
    parts, scores = [], []
    for side in "AB":
        score = number_of(row.get(f"orig_score_{side}"), f"orig_score_{side}")
        scores.append(None if score is None else plain(score))
        parts.append(put({}, score=scores[-1], feedback=text_at(row, f"orig_feedback_{side}")))
    said = text_at(row, "orig_preference")
    if said is not None and said.casefold() not in ("a", "b", "tie"):
        raise DataError(f"{said!r} is not a preference: A, B or tie", field="orig_preference")
    gold: Row = put({}, preference=said and said.casefold(), feedback=text_at(row, "orig_feedback"))
    if None not in scores:
        gold["scores"] = scores
    if any(parts):
        gold["responses"] = parts
    record: Row = {
        "instruction": need(row, "orig_instruction"),
        "responses": [need(row, "orig_response_A"), need(row, "orig_response_B")],
    }
    rubric = sections.rubric_of(need(row, "orig_criteria"))
    return put(
        record, id=row.get("id"), reference=text_at(row, "orig_reference_answer") or None, rubric=rubric, gold=gold
    )


def write_preference(item: Item) -> Row:
    """All columns of Preference-Collection; a tie, which the original data never has, is written `tie`."""
    a, b = responses_of(item, 2)
    rubric, gold = the_rubric(item), gold_of(item)
    criteria = "\n".join([rubric.criterion, *(f"Score {label}: {told}" for label, told in rubric.levels)])
    row: Row = {
        "orig_criteria": criteria,
        "orig_instruction": asked(item),
        "orig_reference_answer": _reference(item.reference),
        "orig_response_A": a,
        "orig_response_B": b,
    }
    parts: list[Any] = list(gold.get("responses") or [{}, {}])
    scores: list[Any] = list(gold.get("scores") or [part.get("score") for part in parts])
    for side, score, part in zip("AB", scores, parts, strict=True):
        put(row, **{f"orig_score_{side}": None if score is None else str(plain(float(score)))})
        put(row, **{f"orig_feedback_{side}": part.get("feedback")})
    said = gold.get("preference")
    word = None if said is None else {"a": "A", "b": "B"}.get(said, said)
    put(row, orig_preference=word, orig_feedback=gold.get("feedback"))
    row |= {"instruction": rendered(item), "input": ""}
    if word is not None:
        row["output"] = f"{gold.get('feedback') or ''} [RESULT] {word}".strip()
    return put(row, id=own_id(item))


def _images(row: Row) -> list[str]:
    found = row.get("images", row.get("image"))
    listed = found if isinstance(found, list) else [] if found is None else [found]
    if not all(isinstance(each, str) for each in listed):
        raise DataError("images are paths or URLs here", field="image")
    return listed


def read_perception(row: Row) -> Row:
    """A training row: the rendered prompt is the human turn; feedback, bridge phrase and score are the reply."""
    turns = row["conversations"]
    prompt, reply = str(turns[0].get("value", "")), str(turns[1].get("value", "")) if len(turns) > 1 else ""
    record = sections.fields_of(prompt)
    record["instruction"] = pictured(record["instruction"], _images(row))
    return put(record, id=_id(row), gold=_scored(reply, "bridge"))


def write_perception(item: Item) -> Row:
    """A training row: Dikast's prompt, the feedback, and the score after the schema's bridge phrase."""
    gold = gold_of(item)
    _rubric_columns(item)
    responses_of(item, 1)
    images = image_sources(item)
    turns = [{"from": "human", "value": "<image>\n" * len(images) + rendered(item)}]
    if gold.get("score") is not None:
        score = plain(float(gold["score"]))
        said = f"{gold.get('feedback') or ''} So the overall score is {score}.\n[RESULT] {score}".strip()
        turns.append({"from": "gpt", "value": said})
    return put({}, id=own_id(item)) | _image_column(images) | {"conversations": turns}


def write_perception_eval(item: Item) -> Row:
    """A row of the evaluation file: flat columns, the response as `original_response`, no gold."""
    row = write_feedback(item)
    row["original_response"] = row.pop("orig_response")
    for name in ("input", "output", "orig_feedback", "orig_score"):
        row.pop(name, None)
    return {**_image_column(image_sources(item)), **row}


def _image_column(images: list[str]) -> Row:
    return {"image": images[0]} if len(images) == 1 else {"images": images} if images else {}


def _id(row: Row) -> str | None:
    value = row.get("id")
    return None if value is None else str(value)


def read_autoj(row: Row) -> Row:
    """A pair in the columns `response 1` and `response 2`; label 0 prefers the first, 1 the second, 2 is a tie."""
    record: Row = {"instruction": need(row, "prompt"), "responses": [need(row, "response 1"), need(row, "response 2")]}
    label = row.get("label")
    if label is not None and label not in (0, 1, 2):
        raise DataError(f"{label!r} is not a label: 0, 1, or 2 for a tie", field="label")
    return put(record, gold=None if label is None else {"preference": ("a", "b", "tie")[label]})


def write_autoj(item: Item) -> Row:
    """`prompt`, `response 1`, `response 2`, `label`."""
    first, second = responses_of(item, 2)
    said = gold_of(item).get("preference")
    label = None if said is None else ("a", "b", "tie").index(said)
    return put({"prompt": asked(item), "response 1": first, "response 2": second}, label=label)


def read_biggen(row: Row) -> Row:
    """An item with its own rubric: an object with `criteria` and `scoreN_description`."""
    told = row["score_rubric"]
    levels = {str(n): text for n in range(1, 6) if (text := text_at(told, f"score{n}_description"))}
    turns: Any = need(row, "input")
    if system := text_at(row, "system_prompt"):
        turns = [{"role": "system", "content": system}, {"role": "user", "content": turns}]
    score = number_of(row.get("score"), "score")
    gold = put({}, score=None if score is None else plain(score), feedback=text_at(row, "feedback"))
    record: Row = {
        "instruction": turns,
        "rubric": {"criterion": need(told, "criteria"), "scale": "1-5", "levels": levels},
    }
    put(record, reference=text_at(row, "reference_answer") or None, response=text_at(row, "response"))
    return put(record, id=_id(row), gold=gold or None)


def write_biggen(item: Item) -> Row:
    """`input`, `reference_answer`, `score_rubric`, `response`, and, if known, `score` and `feedback`."""
    columns, gold = _rubric_columns(item), gold_of(item)
    rubric = {"criteria": columns["orig_criteria"]}
    rubric |= {f"score{n}_description": columns[name] for n, name in enumerate(_LEVELS, 1)}
    system = [turn for turn in item.instruction if turn.role == "system"]
    row = put({}, id=own_id(item), system_prompt=text_of(system[0].content) if system else None)
    said = [turn for turn in item.instruction if turn.role != "system"]
    row["input"] = text_of(said[0].content) if len(said) == 1 else asked(item)
    row["reference_answer"] = _reference(item.reference)
    row["score_rubric"] = rubric
    put(row, response=responses_of(item, 1)[0] if item.responses else None)
    return put(row, score=gold.get("score"), feedback=gold.get("feedback"))
