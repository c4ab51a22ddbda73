"""Prompts of a bench's authors where its rows hold none: brought beside the responses, sent as they are or learnt."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dikast.audit.tables.load import Data
from dikast.benches.bench_rows import LENGTH
from dikast.benches.brought import Brought
from dikast.benches.definition import Bench
from dikast.benches.unit_means import Floats, Masks
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import Content, Text, Turn, text_of
from dikast.core.rubric import Rubric
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.run_files import VERDICTS
from dikast.core.text import counted
from dikast.prompts.dialects.critic import first_score
from dikast.prompts.format import Format, load_format
from dikast.prompts.learn.learn import Learnt, Reading, learn_format

_REFERENCE_LOST = -1.0  # what the authors' code puts in the place of either score of a reply without both
_FIELDS = ("instruction", "response", "reference", "context")


def native_items(bench: Bench, brought: Brought) -> list[Item]:
    """The items with the prompt that came with each response in the place of what they hold.

    The pictures of a row stay before its prompt. UserError where a response has no prompt, or one without it inside.
    """
    _check(bench, brought)
    return [_asked_as(item, brought.prompts[item.id]) for item in brought.items]


def with_scale(bench: Bench, items: Sequence[Item]) -> list[Item]:
    """The items on the scale of the authors' prompts; a rubric that came with a response stays."""
    if bench.native is None:
        return list(items)
    rubric = Rubric(bench.name, "As the prompt of the bench's authors says.", bench.native.scale)
    return [replace(item, rubric=item.rubric or rubric) for item in items]


def native_format(bench: Bench) -> Format:
    """The format that sends prompts as they are, and reads replies in the form that these ask for."""
    form = load_format("verbatim")
    return form if bench.native is None else replace(form, dialect=bench.native.dialect)


def scores_of_both(data: Data) -> tuple[Floats, Floats, Masks] | None:
    """The scores of the responses and of the references (n,), and which rows have both; -1 for each of the others.

    The latter stand in the replies to prompts that grade a reference first; None where no reply does.
    """
    if not (data.plan.file / VERDICTS).is_file() or "item" not in data.words:
        return None
    said: dict[str, list[float]] = {}
    for verdict in current_verdicts(data.plan.file):
        if verdict.score is not None and (score := first_score(verdict.raw)) is not None:
            said.setdefault(verdict.question.item, []).append(score)
    if not said:
        return None
    items, scores = data.words["item"], data.numbers["score"]
    references = np.array([np.mean(said.get(items.names[code], math.nan)) for code in items.codes])
    both = ~np.isnan(scores) & ~np.isnan(references)
    return np.where(both, scores, _REFERENCE_LOST), np.where(both, references, _REFERENCE_LOST), both


def learnt_format(bench: Bench, brought: Brought) -> Learnt:
    """The format of the prompts that came with responses, from these and the fields of their rows."""
    _check(bench, brought, all_of_them=False)
    rows = [
        (line, {"prompt": brought.prompts[item.id], **dict(_told(item))})
        for line, item in enumerate(brought.items, 1)
        if item.id in brought.prompts
    ]
    fields = {name: name for name in _FIELDS if all(row.get(name, "\0") in row["prompt"] for _, row in rows)}
    native = bench.native
    how: Mapping[str, Any] = {} if native is None else {"dialect": native.dialect, "scale": str(native.scale)}
    return learn_format(rows, Reading(prompt=("prompt",), fields=fields), name=bench.name, **how)


def _told(item: Item) -> Iterator[tuple[str, str]]:
    said: dict[str, Content | None] = {
        "instruction": item.instruction[0].content if len(item.instruction) == 1 else None,
        "response": item.responses[0], "reference": item.reference, "context": item.context,
    }  # fmt: skip
    yield from ((name, text) for name, content in said.items() if content and (text := text_of(content)))


def _check(bench: Bench, brought: Brought, *, all_of_them: bool = True) -> None:
    lacking = [item.id for item in brought.items if item.id not in brought.prompts]
    if lacking and (all_of_them or not brought.prompts):
        published = "" if bench.native is None else f" ({bench.native.published})"
        raise UserError(
            f"{bench.name}: the rows hold no prompt of its authors, and none ships with Dikast: render one for each "
            f"response with their code{published}, and give it in a column 'prompt' of --responses, which is absent "
            f"from {counted(len(lacking), 'response')} of {len(brought.items):,}, such as {lacking[0]!r}; "
            "or use --prompt dikast"
        )
    for item in brought.items:
        prompt = brought.prompts.get(item.id)
        if prompt is not None and text_of(item.responses[0]).strip() not in prompt:
            raise UserError(
                f"{bench.name}: the prompt of {item.id!r} does not contain its response: the column 'prompt' of "
                "--responses holds the whole prompt that the authors' judge was sent"
            )


def _asked_as(item: Item, prompt: str) -> Item:
    pictures = [part for turn in item.instruction for part in turn.content if not isinstance(part, Text)]
    length = len(text_of(item.responses[0]))
    return replace(
        item,
        instruction=(Turn("user", (*pictures, Text(prompt))),),
        responses=(),
        reference=None,
        context=None,
        meta={**item.meta, LENGTH: length},
    )
