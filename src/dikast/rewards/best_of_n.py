"""Best of n: the response with the highest reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.rubric import Rubric, Sheet
from dikast.core.text import hint
from dikast.engines.base import Engine
from dikast.judging.judge import Judge
from dikast.rewards.reward import USED, Reward, Scored

_EQUAL = 1e-9  # rewards that differ by less are equal: a mean over criteria is rounded


@dataclass(frozen=True, slots=True)
class Best:
    """The best response. `index` is None if none has a verdict; `tied` lists all with the same highest reward.

    `missing` counts responses without a verdict; any of them may be better.
    """

    index: int | None
    response: Any
    value: float | None
    scored: tuple[Scored, ...]
    tied: tuple[int, ...] = ()
    missing: int = 0


def best_of_n(
    judge: str | Engine | Judge | Reward,
    prompt: object,
    responses: Sequence[Any],
    rubric: str | Path | Mapping[str, Any] | Rubric | Sheet | None = None,
    **columns: Any,
) -> Best:
    """The best of several responses to one prompt; the first of those that share the highest reward.

    `columns` are `images`, `reference` and `context`, each one value for all responses; UserError for others. Equal
    responses are judged once. A judge given as a spec is opened and closed on each call: for many prompts, make a
    Reward.
    """
    if isinstance(responses, str):
        raise UserError("responses is a list of responses, not a text")
    if not responses:
        raise UserError("there is no response to choose from")
    if unknown := [name for name in columns if name not in USED]:
        raise UserError(f"best_of_n shows no {unknown[0]!r} to the judge; {hint(unknown[0], USED)}")
    if not isinstance(judge, Reward):
        reward = Reward(judge, rubric)
        try:
            return best_of_n(reward, prompt, responses, **columns)
        finally:
            if not isinstance(judge, Judge):
                reward.close()
    rows = {name: [value] * len(responses) for name, value in columns.items()}
    scored = judge.score(judge.items([prompt] * len(responses), responses, rows))
    values = [each.value for each in scored]
    given = [value for value in values if value is not None]
    if not given:
        return Best(None, None, None, tuple(scored), missing=len(scored))
    tied = tuple(i for i, value in enumerate(values) if value is not None and value >= max(given) - _EQUAL)
    return Best(tied[0], responses[tied[0]], max(given), tuple(scored), tied, len(scored) - len(given))
