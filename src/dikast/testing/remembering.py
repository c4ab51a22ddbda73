"""A judge that remembers its verdicts in a file, so that a test suite pays for a question once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError
from dikast.core.runs.lines import open_record, seal
from dikast.core.verdict import Status, Verdict, verdict_from
from dikast.engines.base import Engine
from dikast.judging.judge import Judge
from dikast.judging.task import Task
from dikast.prompts.format import Format

_TRANSIENT = (Status.ENGINE_ERROR, Status.BAD_ITEM)  # asked again; nothing was answered


class VerdictMemory:
    """Verdicts by the key of their question, which covers the judge, the prompt, the rubric and the item.

    `path` is JSON Lines, sealed as in a run folder, to which several processes may append; None remembers for this
    process only. Lines that cannot be read are questions that are asked again.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.asked = self.remembered = self.tokens = 0  # questions, questions, and tokens of the first ones
        self._known: dict[str, Verdict] = {}
        for line in path.read_bytes().splitlines(keepends=True) if path is not None and path.exists() else ():
            try:
                verdict = verdict_from(open_record(line))
            except (ValueError, KeyError, TypeError, DataError):  # incomplete, edited, or of another version
                continue
            self._known[verdict.key] = verdict

    def find(self, key: str) -> Verdict | None:
        """The verdict of a question that was asked before."""
        found = self._known.get(key)
        self.remembered += found is not None
        return found

    def keep(self, verdict: Verdict) -> None:
        """Remember a verdict that was just given; one that no model answered is only counted."""
        self.asked += 1
        self.tokens += verdict.usage.tokens_in + verdict.usage.tokens_out
        if verdict.status in _TRANSIENT:
            return
        self._known[verdict.key] = verdict
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, seal(verdict))  # one write, so that lines of several processes do not mix
            finally:
                os.close(file)


class RememberingJudge(Judge):
    """A judge that asks only what its memory does not hold. `spec` is what the engine was opened from."""

    def __init__(self, engine: Engine, memory: VerdictMemory, spec: str = "", rubric: Any = None, **options: Any):
        super().__init__(engine, rubric, **options)
        self._spec, self._memory = spec, memory

    def answer(self, tasks: Iterator[Task], format: Format) -> Iterator[Verdict]:
        """Remembered verdicts first, then those of the engine."""
        unknown = []
        for task in tasks:
            found = self._memory.find(task.key)
            if found is None:
                unknown.append(task)
            else:
                yield found
        for verdict in super().answer(iter(unknown), format) if unknown else ():
            self._memory.keep(verdict)
            yield verdict
