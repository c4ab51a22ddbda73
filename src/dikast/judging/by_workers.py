"""Judging on workers that hold the judge: the driver hands out items with the keys of their questions.

Rendering, asking, reading replies and sealing lines is work of the workers, through the same `Judge.answer` as in one
process. The driver has planned the run: it takes only lines whose keys it is waiting for.
"""

import itertools
import secrets
import socket
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from dikast.core.errors import DataError, DikastError, EngineError, RunError
from dikast.core.item import Item
from dikast.core.media import MediaRules, check_image, media_rules
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.current_verdicts import is_in
from dikast.core.runs.lines import seal
from dikast.core.scale import Scale
from dikast.core.secrets import without_secrets
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Engine, Request
from dikast.judging.judge import Judge
from dikast.judging.settling import AskSettings, never_sent
from dikast.judging.task import Shape, Task, questions_of
from dikast.judging.watching import RunningTotal
from dikast.prompts.format import Format

_CHUNK = 1024  # items whose keys are looked up together
_KEY = slice(8, 40)  # of a line of `verdicts.jsonl`, which begins {"key":"


# An item and the keys of its questions in their order; None for those that have an answer. A plain tuple, which is
# pickled half as fast again as a named one.
KeyedItem = tuple[Item, tuple[str | None, ...]]


def unanswered(keyed: KeyedItem) -> int:
    """How many questions of an item have no answer yet."""
    _, keys = keyed
    return len(keys) - keys.count(None)


@dataclass
class JudgedBatch:
    """Lines of verdicts and what they say in sum; `unsent` is why questions were not asked, "" if all were."""

    lines: list[bytes] = field(default_factory=list)
    total: RunningTotal = field(default_factory=RunningTotal)
    unsent: str = ""
    broken: str = ""  # the exception, no error of Dikast's, that ended the batch

    def add(self, verdict: Verdict) -> None:
        """Seal a verdict and count it; one of a question that was never sent is left out."""
        if never_sent(verdict):
            self.unsent = self.unsent or verdict.reason
            return
        self.lines.append(seal(verdict))
        self.total.add(RunningTotal.of(verdict))


class Spreading(Protocol):
    """An engine that also runs functions beside the engines of its workers, as `engines.cluster` has it."""

    def spread(
        self,
        work: Callable[[Engine, Any, Callable[[], None]], Any],
        parts: Iterator[Any],
        failed: Callable[[list[Any], EngineError], Any],
        questions: Callable[[Any], int],
    ) -> Iterator[tuple[list[Any], Any]]:
        """Batches of the parts, each once, with the result of `work(engine, batch, tick)` on one of the workers."""
        ...


@dataclass(frozen=True, eq=False)
class _Terms:
    """What makes a judge of a worker's engine, and says which questions an item makes.

    Copies are equal, so that a worker keeps one judge for a run.
    """

    rubric: Rubric | Sheet | None
    format: Format
    settings: AskSettings
    equate: Scale | None
    shape: Any
    samples: range
    hash: str
    media: MediaRules
    token: str = field(default_factory=secrets.token_hex)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Terms) and other.token == self.token

    def __hash__(self) -> int:
        return hash(self.token)


def keyed(
    items: Iterator[Item], plan: Path, judge: Judge, shape: Shape, samples: range, known: Any
) -> Iterator[KeyedItem]:
    """The items of a planned run that have unanswered questions, with their keys as the file `plan` lists them.

    `known` are the sorted keys that have an answer. RunError where the items are no longer those that were planned.
    """
    changed = RunError("the items changed while they were read: run the same command again")
    with plan.open("rb") as file:
        while block := list(itertools.islice(items, _CHUNK)):
            numbers = [questions_of(item, judge.rubric, shape, samples) for item in block]
            keys = [line.rstrip() for line in itertools.islice(file, sum(numbers))]
            if len(keys) < sum(numbers):
                raise changed
            spelt = iter(zip(keys, is_in(keys, known), strict=True))
            for item, n in zip(block, numbers, strict=True):
                found = item, tuple(None if old else key.decode() for key, old in itertools.islice(spelt, n))
                if unanswered(found):
                    yield found
        if file.readline():
            raise changed


def judged_by_workers(
    engine: Spreading, judge: Judge, format: Format, shape: Shape, samples: range, items: Iterator[KeyedItem]
) -> Iterator[JudgedBatch]:
    """The verdicts of the items' questions, in batches in order of arrival, each question once.

    Where a worker raises what is no error of Dikast's, what is under way comes to its end, and RunError is raised.
    """
    broken = ""
    with media_rules() as media:
        terms = _Terms(judge.rubric, format, judge.settings, judge.equate, shape, samples, judge.hash, media)

    def failed(batch: list[KeyedItem], error: EngineError) -> JudgedBatch:
        return judge_batch(terms, _Dead(judge.engine, error), batch, lambda: None)

    going = itertools.takewhile(lambda _: not broken, items)
    for batch, judged in engine.spread(partial(judge_batch, terms), going, failed, unanswered):
        broken = broken or judged.broken
        due = {key for _, keys in batch for key in keys if key is not None}
        lines, judged.lines = judged.lines, []
        for line in lines:
            if (key := line[_KEY].decode()) in due:
                due.discard(key)
                judged.lines.append(line)
        yield judged
    if broken:
        raise RunError(f"the run ended, and what was answered is kept: {broken}")


def judge_batch(terms: _Terms, engine: Engine, batch: Sequence[KeyedItem], tick: Callable[[], None]) -> JudgedBatch:
    """Judge items on this machine; `tick` is called at the first verdict."""
    found = JudgedBatch()
    try:
        judge, settled = _judge(engine, terms)  # type: ignore[arg-type] # engines are hashable by identity
        with media_rules(**asdict(settled.media)):
            for verdict in judge.answer(_tasks(judge, settled, batch, found), settled.format):
                tick()
                found.add(verdict)
    except DikastError as error:
        found.unsent = f"the worker on {socket.gethostname()}: {error}"
    except Exception as error:  # not raised, since the verdicts so far would be lost with it
        told = f"{type(error).__name__}: {error}"
        found.broken = without_secrets(f"the worker on {socket.gethostname()}: {told}\n{traceback.format_exc()}")
    return found


def _tasks(judge: Judge, terms: _Terms, batch: Sequence[KeyedItem], found: JudgedBatch) -> Iterator[Task]:
    """The questions that have no answer. Those whose keys are others here are not asked: another file is shown here."""
    for item, keys in batch:
        for task, key in zip(judge.tasks_of(item, terms.shape, samples=terms.samples), keys, strict=True):
            if key is None:
                continue
            if task.key != key:
                found.unsent = found.unsent or _unlike(task)
                continue
            yield task


def _unlike(task: Task) -> str:
    host, item = socket.gethostname(), task.item
    if not (item.images or item.videos):
        return f"item {item.id!r} was edited while it was read: leave the items as they are during a run"
    try:
        for image in task.images:
            check_image(image)
    except DataError as error:
        return f"the worker on {host} cannot read what item {item.id!r} shows: {error}"
    return (
        f"the worker on {host} does not see item {item.id!r} as it was planned: its pictures and clips must be the same"
        " files there, and its text must stay as it is during a run"
    )


@lru_cache(maxsize=4)
def _judge(engine: Engine, told: _Terms) -> tuple[Judge, _Terms]:
    settings, place = told.settings, "format" if told.format.kind == "absolute" else "compare_format"
    judge = Judge(
        engine,
        told.rubric,
        sampling=settings.sampling,
        samples=max(told.samples) + 1,
        read=settings.read,
        min_mass=settings.min_mass,
        frames=settings.frames,
        equate=told.equate,
        **{place: told.format},
    )
    if judge.hash != told.hash:
        raise RunError("its judge is not the one that the run was planned for")
    return judge, told


class _Dead:
    """An engine in place of workers that died: every answer is the error."""

    def __init__(self, engine: Engine, error: EngineError) -> None:
        self.name, self.error, self._engine = engine.name, error, engine

    def identity(self) -> Any:
        return self._engine.identity()

    def versions(self) -> Any:
        return self._engine.versions()

    def stream(self, requests: Any) -> Iterator[Completion]:
        request: Request
        for request in requests:
            yield Completion(request.key, finish="error", error=self.error)
