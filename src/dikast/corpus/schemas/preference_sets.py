"""Published sets of preferences and of several scores a response, in the fields of their authors.

VLFeedback (arXiv:2312.10665), RLHF-V and RLAIF-V (arXiv:2312.00849), LLaVA-RLHF (arXiv:2309.14525), HHH
(arXiv:2112.00861), MT-bench human judgments (arXiv:2306.05685) and FLASK (arXiv:2307.10928). What an item cannot
express, such as names of models, stays in `meta.source`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import orjson

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.corpus.schemas.conversation import images_at, read_llava, write_llava
from dikast.corpus.schemas.preference_rows import better_and_worse
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
    responses_of,
    text_at,
)

_WINNERS = {"model_a": "a", "model_b": "b", "tie": "tie", "tie (bothbad)": "tie"}


def _id(row: Row, *names: str) -> str | None:
    found = next((row[name] for name in names if row.get(name) is not None), None)
    return None if found is None else str(found)


def _at(value: Any, key: str, field: str) -> Any:
    if not isinstance(value, Mapping) or key not in value:
        raise DataError(f"has no {key!r}", field=field)
    return value[key]


def read_vlfeedback(row: Row) -> Row:
    """A picture, a prompt, and several completions, each with a rating and a rationale for each of three aspects.

    The score of a response is the mean of its ratings; `datasets` gives the completions as columns, the file as rows.
    """
    given = row.get("completions")
    if isinstance(given, Mapping):  # a Sequence of structs, as `datasets` reads it
        given = [dict(zip(given, values, strict=False)) for values in zip(*given.values(), strict=False)]
    if not isinstance(given, list) or not given:
        raise DataError("a list of completions with 'annotations' and 'response'", field="completions")
    responses, parts, means = [], [], []
    for i, each in enumerate(given):
        field = f"completions[{i}]"
        said = _at(each, "annotations", field)
        ratings = {name: _rating(_at(part, "Rating", field), field) for name, part in said.items()}
        known = {name: plain(value) for name, value in ratings.items() if value is not None}
        whys = {name: part.get("Rationale") for name, part in said.items()}
        feedback = "\n".join(f"{name}: {why}" for name, why in whys.items() if why)
        responses.append(_at(each, "response", field))
        parts.append({"scores": known, "feedback": feedback})
        means.append(round(fmean(known.values()), 9) if known else None)
    picture = text_at(row, "img_path")
    record: Row = {"instruction": pictured(need(row, "prompt"), [picture] if picture else []), "responses": responses}
    return put(record, id=_id(row, "id"), gold={"scores": means, "responses": parts})


def _rating(value: Any, field: str) -> float | None:
    return None if str(value).strip().casefold() in ("n/a", "") else number_of(value, f"{field}.Rating")


def write_vlfeedback(item: Item) -> Row:
    """The prompt, the completions with their ratings, and the path of the picture."""
    parts = gold_of(item).get("responses") or []
    completions = []
    for i, text in enumerate(responses_of(item, len(item.responses))):
        said = parts[i].get("scores") if i < len(parts) else None
        marks = {name: {"Rating": str(value)} for name, value in (said or {}).items()}
        completions.append({"annotations": marks, "response": text})
    row = put({"prompt": asked(item), "completions": completions}, id=own_id(item))
    return put(row, img_path=next(iter(image_sources(item)), None))


def is_rlhf_v(row: Row) -> bool:
    """Whether a row has a question, a better and a worse response, by themselves or in its column `text`."""
    return {"question", "chosen", "rejected"} <= (row.keys() | _text_of_rlhf_v(row).keys())


def _text_of_rlhf_v(row: Row) -> Mapping[str, Any]:
    text = row.get("text")
    if isinstance(text, str) and text.startswith("{"):
        try:
            text = orjson.loads(text)
        except ValueError:
            return {}
    return text if isinstance(text, Mapping) else {}


def read_rlhf_v(row: Row) -> Row:
    """A picture, a question, and a better and a worse response; in RLHF-V these are JSON in the column `text`."""
    told = {**row, **_text_of_rlhf_v(row)}
    images = images_at(row) if row.get("image") else [each for each in (text_at(row, "image_path"),) if each]
    record: Row = {"instruction": pictured(need(told, "question"), images)}
    record["responses"] = [need(told, "chosen"), need(told, "rejected")]
    return put(record, id=_id(row, "idx"), gold={"preference": "a"})


def write_rlhf_v(item: Item) -> Row:
    """`text` with question, chosen and rejected, the picture, and the index."""
    chosen, rejected = better_and_worse(item)
    text = {"question": asked(item), "chosen": chosen, "rejected": rejected}
    return put({"text": text}, image=next(iter(image_sources(item)), None), idx=own_id(item))


def read_llava_rlhf(row: Row) -> Row:
    """A conversation, two last replies, and the better of them as 1 or 2; the reply in the conversation gives way."""
    turns = row.get("conversations")
    record = read_llava({**row, "conversations": turns[-1] if turns and isinstance(turns[-1], list) else turns})
    record.pop("response", None)
    outputs = [_at(row.get(name), "value", name) for name in ("output_1", "output_2")]
    if row.get("preference") not in (1, 2):
        raise DataError(f"is 1 or 2, got {row.get('preference')!r:.40}", field="preference")
    return {**record, "responses": outputs, "gold": {"preference": "ab"[row["preference"] - 1]}}


def write_llava_rlhf(item: Item) -> Row:
    """The conversation before the replies, both replies, and which is better."""
    first, second = responses_of(item, 2)
    said = gold_of(item).get("preference")
    if said not in ("a", "b"):
        raise DataError(f"item {item.id!r} has no better response, which this schema needs", field="gold")
    row = write_llava(replace(item, responses=(), gold=None))
    outputs = {f"output_{n}": {"from": "gpt", "value": text} for n, text in enumerate((first, second), 1)}
    return {**row, **outputs, "preference": 1 + (said == "b")}


def read_hhh(row: Row) -> Row:
    """`input`, and `targets` with the choices and their labels, 1 for the better one."""
    choices, labels = (_at(row.get("targets"), name, "targets") for name in ("choices", "labels"))
    if len(choices) != 2 or sorted(labels) != [0, 1]:
        raise DataError(f"two choices of which one has the label 1, got {labels!r:.40}", field="targets")
    gold = {"preference": "ab"[list(labels).index(1)]}
    return {"instruction": need(row, "input"), "responses": list(choices), "gold": gold}


def write_hhh(item: Item) -> Row:
    """The input and both choices with their labels."""
    said, choices = gold_of(item).get("preference"), responses_of(item, 2)
    if said not in ("a", "b"):
        raise DataError(f"item {item.id!r} has no better response, which this schema needs", field="gold")
    return {"input": asked(item), "targets": {"choices": choices, "labels": [int(said == "a"), int(said == "b")]}}


def read_mt_bench(row: Row) -> Row:
    """Two conversations to the turn that was judged, and the winner that a person named."""
    columns = ("conversation_a", "conversation_b")
    talks = [row.get(name) for name in columns]
    turn = row.get("turn")
    if turn is None and isinstance(talks[0], list):  # the arena's rows: the whole conversation was judged
        turn = len(talks[0]) // 2
    winner = _WINNERS.get(str(row.get("winner")))
    if winner is None:
        raise DataError(f"is model_a, model_b or tie, got {row.get('winner')!r:.40}", field="winner")
    record = paired_conversations(talks, columns, turn)
    return put(record, id=_id(row, "question_id"), gold={"preference": winner})


def write_mt_bench(item: Item) -> Row:
    """Conversations of one turn, and the winner."""
    said = gold_of(item).get("preference")
    if said not in ("a", "b", "tie"):
        raise DataError(f"item {item.id!r} has no preference, which this schema needs", field="gold")
    row: Row = {}
    for name, text in zip("ab", responses_of(item, 2), strict=True):
        turns = [{"content": asked(item), "role": "user"}, {"content": text, "role": "assistant"}]
        row[f"conversation_{name}"] = turns
    return put({**row, "winner": said if said == "tie" else f"model_{said}", "turn": 1}, question_id=own_id(item))


def paired_conversations(talks: Sequence[Any], columns: Sequence[str], turn: Any) -> Row:
    """Instruction and responses of two conversations, as lists of messages, to the turn that was judged (from 1).

    A first turn is its question and both answers. For a later one the judge sees all that was said before it: the
    instruction has all questions to the turn, each response is the conversation with its assistant. DataError for a
    turn that cannot be, for conversations that end before it, and for questions that differ.
    """
    if not isinstance(turn, int) or turn < 1:
        raise DataError(f"{turn!r:.40} is no turn of a conversation, which count from 1", field="turn")
    spoken = [_to_turn(talk, turn, column) for talk, column in zip(talks, columns, strict=True)]
    questions, other = ([question for question, _ in talk] for talk in spoken)
    if questions != other:
        raise DataError("asks other questions than the first conversation", field=columns[1])
    if turn == 1:
        return {"instruction": questions[0], "responses": [talk[0][1] for talk in spoken]}
    listed = "\n\n".join(f"### Question {n}:\n{question}" for n, question in enumerate(questions, 1))
    task = f"A conversation of {turn} questions. Judge the answer to the last; the others are what was said before it."
    return {"instruction": f"{task}\n\n{listed}", "responses": [_written(talk) for talk in spoken]}


def _to_turn(messages: Any, turn: int, column: str) -> list[tuple[str, str]]:
    """Questions and answers of a conversation, to the turn that was judged."""
    listed = isinstance(messages, Sequence) and all(isinstance(each, Mapping) for each in messages)
    texts = [(_at(each, "role", column), str(_at(each, "content", column))) for each in messages] if listed else []
    roles, said = [role for role, _ in texts], [text for _, text in texts]
    if roles[: 2 * turn] != ["user", "assistant"] * turn:
        raise DataError(
            f"is no list of messages in which an assistant answers {turn} questions of a user", field=column
        )
    return list(zip(said[: 2 * turn : 2], said[1 : 2 * turn : 2], strict=True))


def _written(talk: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"### User:\n{question}\n\n### Assistant:\n{answer}" for question, answer in talk)


def read_flask(row: Row) -> Row:
    """An instruction with a known answer; a review adds the response, its scores by skill and the reasons."""
    record: Row = {"instruction": need(row, "instruction", "text"), "reference": need(row, "answer")}
    put(record, id=_id(row, "idx", "question_id"), response=text_at(row, "target_txt"))
    scores = row.get("score")
    if isinstance(scores, Mapping) and "response" in record:
        known = {name: value for name, value in scores.items() if isinstance(value, int | float)}
        record["gold"] = put({"scores": known}, feedback=text_at(row, "review"))
    return record


def write_flask(item: Item) -> Row:
    """The columns of a review; without a response those of the evaluation set."""
    if item.reference is None:
        raise DataError(f"item {item.id!r} has no reference answer, which this schema needs", field="reference")
    gold = gold_of(item)
    row: Row = put({"text": asked(item), "answer": text_of(item.reference), "metrics": []}, question_id=own_id(item))
    if item.responses:
        row["target_txt"] = responses_of(item, 1)[0]
        row["metrics"] = list(gold.get("scores") or [])
        put(row, score=gold.get("scores"), review=gold.get("feedback"))
    return row
