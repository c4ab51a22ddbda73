"""Files of other programs whose texts lie inside lists and objects: the command that makes columns of them."""

from collections.abc import Mapping
from typing import Any

from dikast.core.item import NAMES

_JOINED = (
    """jq -c --slurpfile q QUESTIONS '. as $a | $q[] | select(.question_id == $a.question_id) | {id:"""
    """ "\\(.question_id)", instruction: .turns[0], response: $a.choices[0].turns[0], model: $a.model_id}' ANSWERS >"""
    """ OTHER.jsonl"""
)

_OTHERS: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"doc", "arguments", "filtered_resps"}),
        "a sample of lm-evaluation-harness",
        """jq -c '{id: "\\(.doc_id)", instruction: (.arguments | if type == "array" then .[0][0] else"""
        """ .gen_args_0.arg_0 end), response: .filtered_resps[0], reference: "\\(.target)"}' FILE > OTHER.jsonl""",
    ),
    (
        frozenset({"question_id", "model_id", "choices"}),
        "an answer of MT-Bench, whose question is in another file (QUESTIONS)",
        _JOINED.replace("ANSWERS", "FILE"),
    ),
    (
        frozenset({"question_id", "category", "turns"}),
        "a question of MT-Bench without an answer, which is in another file (ANSWERS)",
        _JOINED.replace("QUESTIONS", "FILE"),
    ),
)


def foreign_record(value: Mapping[str, Any]) -> str:
    """What a record is and how to make its texts columns; "" for a record that may hold them."""
    if isinstance(value.get("fields"), dict) and isinstance(value.get("responses"), dict):
        return "an Argilla record: make its fields columns (jq -c '{id} + .fields' FILE > OTHER.jsonl)"
    if any(name in value for name in NAMES["response"]):
        return ""
    for keys, told, command in _OTHERS:
        if keys <= value.keys() and any(isinstance(value[key], list | dict) for key in keys):
            return f"{told}: make its texts columns ({command})"
    return ""
