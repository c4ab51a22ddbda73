"""A judge as a reward function (reward model): from completions to numbers, None where there is no verdict."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from dikast.core.checking import near_keywords
from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.rubric import Rubric, Sheet
from dikast.core.text import counted, near_miss
from dikast.core.verdict import Status, Verdict
from dikast.engines.base import Engine
from dikast.engines.wrapper import found_in
from dikast.judging.joining import join_samples
from dikast.judging.judge import Judge
from dikast.judging.settling import Read
from dikast.rewards.dynamic_batching import Gathering
from dikast.rewards.rollouts import Pictures, item_of_rollout

_log = logging.getLogger(__name__)
Value = Literal["goodness", "expected", "score"]
Rewards = list[float | None]
_VALUES = ("goodness", "expected", "score")


class MissingVerdict(RunError):
    """A completion has no verdict, and the caller cannot represent a missing reward."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One completion's reward with the verdicts behind it; `value` None where a verdict is missing, `reason` why."""

    value: float | None
    verdicts: tuple[Verdict, ...]
    reason: str = ""


class Reward:
    """A judge that trainers can call; itself a reward function of trl.

    `judge` is a Judge, or a spec or Engine of which one is made with `rubric`, `read` and `settings` (those of Judge).
    The verdicts and their keys equal those of `judge.grade`. `value` says which number is the reward: `goodness` is 0
    (worst) to 1 (best), `expected` and `score` lie on the rubric's scale, which must then not be one where lower is
    better. The first two are the mean of the distribution that was read; where a judge writes its verdict as text there
    is none, and both come from its label. Of a sheet of several criteria `goodness` is the weighted mean, None where a
    criterion has no verdict. `gather` is the number of seconds that a call waits for others, for trainers that send one
    completion a call. Calls from several threads are answered together. `name` is what trainers use in their logs.
    """

    @near_keywords(passes_to=Judge)
    def __init__(
        self,
        judge: str | Engine | Judge,
        rubric: str | Path | Mapping[str, Any] | Rubric | Sheet | None = None,
        *,
        read: Read | None = None,
        value: Value = "goodness",
        gather: float = 0.0,
        name: str = "judge",
        **settings: Any,
    ) -> None:
        if isinstance(judge, Judge):
            if rubric is not None or read is not None or settings:
                raise UserError("a judge that is made already has its rubric and settings: give them to Judge(...)")
            self.judge = judge
        else:
            self.judge = Judge(judge, rubric, read=read or "auto", **settings)
        if value not in _VALUES:
            near = near_miss(str(value), _VALUES)
            raise UserError(
                f"value {value!r}: use {', '.join(_VALUES)}" + (f"; did you mean {near!r}?" if near else "")
            )
        self.value, self.__name__ = value, name
        self.scored = self.missing = 0
        self._check_scale(self.judge.rubric)
        self._gathering = Gathering(self.judge, wait=gather)
        self._pictures = Pictures()

    def __repr__(self) -> str:
        return f"Reward({self.judge!r}, {self.scored:,} scored, {self.missing:,} without a verdict)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise UserError(
            "a Reward cannot be sent to another process, as its judge is open in this one: make it there, call it in"
            " this process (in verl with the manager naive, dapo or batch), or use `dikast serve`"
        )

    def close(self) -> None:
        """Close the judge's engine."""
        self._gathering.close()
        self.judge.close()

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: object = None, **columns: Any
    ) -> Rewards:
        """The call of trl's reward functions.

        None for a completion without a verdict, which gets no advantage in trl.
        """
        scored = self.score(self.items(prompts, completions, columns))
        return self._rewards(scored, columns)

    @property
    def trl_async(self) -> Callable[..., Coroutine[Any, Any, Rewards]]:
        """A coroutine function for trl, which runs such rewards concurrently."""

        async def judge(
            prompts: Sequence[Any], completions: Sequence[Any], completion_ids: object = None, **columns: Any
        ) -> Rewards:
            items = await asyncio.to_thread(self.items, prompts, completions, columns)
            return self._rewards(await self.score_async(items), columns)

        judge.__name__ = self.__name__
        return judge

    def items(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any] | None = None
    ) -> list[Item]:
        """The items of a batch. `columns` hold one value a row for `images`, `reference`, `context`, `rubric`.

        DataError names the row and the field of what cannot be judged.
        """
        used = {name: column for name, column in (columns or {}).items() if name in USED and column is not None}
        for name, column in {"completions": completions, **used}.items():
            if isinstance(column, str) or not hasattr(column, "__len__") or len(column) != len(prompts):
                told = f"expected {counted(len(prompts), 'value')}, one for each prompt"
                raise DataError(told, field=name)
        items = []
        for i, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            row = {name: column[i] for name, column in used.items()}
            try:
                items.append(item_of_rollout(prompt, completion, row, self._pictures))
            except DataError as error:
                told = str(error).removeprefix(f"field {error.field!r}: ")
                raise DataError(f"row {i}: {told}", field=error.field) from None
        return items

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """The reward of each item's one response, in their order. RunError where the engine has given up."""
        return self._scored([[each.result() for each in asked] for asked in self._ask(items)], items)

    async def score_async(self, items: Sequence[Item]) -> list[Scored]:
        """As `score`, without blocking the event loop."""
        asked = await asyncio.to_thread(self._ask, items)
        waited = [[await asyncio.wrap_future(each) for each in futures] for futures in asked]
        return self._scored(waited, items)

    def one(self, prompt: object, completion: object, columns: Mapping[str, Any] | None = None) -> Scored:
        """The reward of one completion."""
        row = {name: [value] for name, value in (columns or {}).items()}
        return self.score(self.items([prompt], [completion], row))[0]

    def _ask(self, items: Sequence[Item]) -> "list[list[Future[Verdict]]]":
        tasks = []
        for item in items:
            self._check_scale(item.rubric)
            _ = item.response
            tasks.append(list(self.judge.tasks(iter((item,)), "each")))
        futures = iter(self._gathering.ask([task for each in tasks for task in each], self.judge.format))
        return [[next(futures) for _ in each] for each in tasks]

    def _scored(self, answers: Sequence[Sequence[Verdict]], items: Sequence[Item]) -> list[Scored]:
        scored = [self._of(verdicts, item) for verdicts, item in zip(answers, items, strict=True)]
        missing = sum(each.value is None for each in scored)
        if missing and missing == len(scored) and (why := found_in(self.judge.engine, "gave_up", None)) is not None:
            raise RunError(f"{self.judge.engine.name}: {why}; no completion of this batch has a reward")
        self.scored += len(scored)
        self.missing += missing
        return scored

    def _of(self, verdicts: Sequence[Verdict], item: Item) -> Scored:
        rubric = item.rubric or self.judge.rubric
        assert rubric is not None  # tasks were made from it
        criteria = rubric if isinstance(rubric, Sheet) else Sheet(rubric.name, (rubric,))
        rubrics = {each.hash: each for each in criteria}
        joined = tuple(join_samples(verdicts, self.judge.samples, rubrics))
        values = {each.question.criterion: self._number(each) for each in joined}
        if (failed := next((each for each in joined if each.status is not Status.OK), None)) is not None:
            return Scored(None, joined, f"{failed.status.value}: {failed.reason}")
        if self.value == "goodness":
            return Scored(criteria.total(values), joined)
        return Scored(next(iter(values.values())), joined)

    def _number(self, verdict: Verdict) -> float | None:
        return verdict.score if self.value == "score" or verdict.expected is None else verdict.expected

    def _check_scale(self, rubric: Rubric | Sheet | None) -> None:
        if self.value == "goodness" or rubric is None:
            return
        if isinstance(rubric, Sheet):
            raise UserError(f"{rubric.name!r} is a sheet of several criteria: its reward is value='goodness'")
        if rubric.scale.lower_is_better:
            told = f"on the scale of {rubric.name!r} lower is better, and a trainer seeks the highest reward"
            raise UserError(f"{told}: use value='goodness'")

    def _rewards(self, scored: Sequence[Scored], columns: Mapping[str, Any]) -> Rewards:
        """The rewards, and the warning to the trainer about missing ones."""
        missing = [each for each in scored if each.value is None]
        if (metric := columns.get("log_metric")) is not None:
            metric(f"{self.__name__}/no_verdict", len(missing) / max(len(scored), 1))
        if (extra := columns.get("log_extra")) is not None:
            extra(f"{self.__name__}/verdict", [_label(each) for each in scored])
        if missing:
            _log.warning(
                "%s: %d of %d completions have no verdict, such as %s. They get None: with one reward function the "
                "trainer leaves them out; with several it sums up the others, which is a lower reward",
                self.__name__, len(missing), len(scored), missing[0].reason,
            )  # fmt: skip
        return [each.value for each in scored]


USED = ("image", "images", "reference", "context", "rubric")


def _label(scored: Scored) -> str:
    return ", ".join(str(each.label) if each.status is Status.OK else each.status.value for each in scored.verdicts)
