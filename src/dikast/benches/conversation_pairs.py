"""Pairs of conversations with two assistants, each to the turn that was judged (MT-Bench human judgments)."""

from collections.abc import Mapping
from typing import Any

from dikast.benches.definition import Bench
from dikast.benches.row_values import due_at, fields_of_row
from dikast.corpus.schemas.preference_sets import paired_conversations

TURN = "turn"  # column of the turn that was judged, from 1


def conversation_pair(row: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """The item of a row whose columns for `response_0` and `response_1` are conversations, as lists of messages.

    DataError for a row without a turn, and as `paired_conversations`.
    """
    columns = [str(bench.fields[name]) for name in ("response_0", "response_1")]
    pair = paired_conversations([due_at(row, column) for column in columns], columns, due_at(row, TURN))
    return {**fields_of_row(bench, row, ("id", "image")), **pair}
