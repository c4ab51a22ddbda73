"""Pairs of conversations with two assistants, each to the turn that was judged (MT-Bench human judgments)."""

from collections.abc import Mapping, Sequence
from typing import Any

from dikast.benches.definition import Bench
from dikast.benches.row_values import due_at, fields_of_row
from dikast.core.errors import DataError

TURN = "turn"  # column of the turn that was judged, from 1


def conversation_pair(row: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """The item of a row whose columns for `response_0` and `response_1` are conversations, as lists of messages.

    A first turn is its question and both answers. For a later one the judge sees all that was said before it: the
    instruction has all questions to the turn, each response is the conversation with its assistant. DataError for a row
    without a turn, for conversations that end before it, and for questions that differ.
    """
    columns = [str(bench.fields[name]) for name in ("response_0", "response_1")]
    turn = due_at(row, TURN)
    if not isinstance(turn, int) or turn < 1:
        raise DataError(f"{turn!r:.40} is no turn of a conversation, which count from 1", field=TURN)
    talks = [_to_turn(due_at(row, column), turn, column) for column in columns]
    asked, other = ([question for question, _ in talk] for talk in talks)
    if asked != other:
        raise DataError("asks other questions than the first conversation", field=columns[1])
    found = fields_of_row(bench, row, ("id", "image"))
    if turn == 1:
        return {**found, "instruction": asked[0], "responses": [talk[0][1] for talk in talks]}
    listed = "\n\n".join(f"### Question {n}:\n{question}" for n, question in enumerate(asked, 1))
    task = f"A conversation of {turn} questions. Judge the answer to the last; the others are what was said before it."
    return {**found, "instruction": f"{task}\n\n{listed}", "responses": [_written(talk) for talk in talks]}


def _to_turn(messages: Any, turn: int, column: str) -> list[tuple[str, str]]:
    """Questions and answers of a conversation, to the turn that was judged."""
    texts = [(due_at(each, "role"), str(due_at(each, "content"))) for each in messages] if _listed(messages) else []
    roles, said = [role for role, _ in texts], [text for _, text in texts]
    if roles[: 2 * turn] != ["user", "assistant"] * turn:
        raise DataError(
            f"is no list of messages in which an assistant answers {turn} questions of a user", field=column
        )
    return list(zip(said[: 2 * turn : 2], said[1 : 2 * turn : 2], strict=True))


def _listed(messages: Any) -> bool:
    return isinstance(messages, Sequence) and all(isinstance(each, Mapping) for each in messages)


def _written(talk: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"### User:\n{question}\n\n### Assistant:\n{answer}" for question, answer in talk)
