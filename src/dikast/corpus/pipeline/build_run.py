"""A build in progress (`BuildRun`), its outcome (`Built`), and what a recipe provides (`Kind`)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.core.output_folder import check_in_place, identity_of
from dikast.corpus.pipeline.post_processing import finish
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.stage import OTHERWISE, SHOWN, Asking, StageReport, Task, run_stage
from dikast.engines.base import Engine
from dikast.engines.http.prices import Price

_CHARACTERS = 4
_ROUND = re.compile(r"-\d+$")  # a stage's name ends with the number of its round

Options = TypeVar("Options")
Progress = Callable[[StageReport], None]


@dataclass(slots=True)
class Built:
    """The outcome of a build. `waits` says why it is unfinished, "" if finished; `dropped` counts items by reason.

    `figures` are what was measured on the finished items (length, families, topics, splits); `notes` are remarks.
    """

    folder: str
    items: int = 0
    waits: str = ""
    stages: list[StageReport] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `kept` counts items by score or preference."""
        return {
            "folder": self.folder, "items": self.items, "waits": self.waits, "kept": dict(sorted(self.kept.items())),
            "dropped": dict(self.dropped), "figures": self.figures, "notes": self.notes,
            "stages": [stage.to_dict() for stage in self.stages],
        }  # fmt: skip


@dataclass(slots=True)
class BuildRun:
    """One build in progress: what a recipe's `run` works with."""

    recipe: Recipe
    folder: Path
    asking: Asking
    progress: Progress | None
    built: Built
    wrote: dict[Path, tuple[int, int] | None] = field(default_factory=dict)  # what must stay in place, by identity

    def check_in_place(self) -> None:
        """RunError where a file that the build relies on was removed or replaced since it was written."""
        for path, identity in self.wrote.items():
            check_in_place(path, identity)

    def stage(self, name: str, tasks: Iterable[Task], asking: Asking | None = None) -> StageReport:
        """Ask the tasks that the stage's journal does not hold, as `asking` says if given, else as the recipe says.

        If tasks are left unanswered, `built.waits` says so. RunError, with examples, if no reply of the build, or of
        this stage's rounds, could be used so far, of three or more, unless the recipe never stops for rejected replies.
        """
        self.check_in_place()
        report = StageReport(name)
        self.built.stages.append(report)  # so that the report names a stage that stopped
        found = run_stage(name, tasks, self.path(name), asking or self.asking, self.progress)
        self.built.stages[-1] = found
        self.wrote[self.path(name)] = identity_of(self.path(name))
        self.check_in_place()
        if found.unasked:
            self.built.notes.append(
                f"stage {name!r}: answers to questions that are no longer asked, since an earlier stage was answered"
                f" anew: {found.unasked} (left out)"
            )
        if found.left["budget"]:
            self.built.waits = f"the budget is spent in stage {name!r}; raise it and run again to continue"
        elif found.left:
            told = ", ".join(f"{n} {reason}" for reason, n in found.left.items())
            self.built.waits = f"stage {name!r} has tasks without an answer ({told}): run again to ask them"
        self._check_replies(name)
        return found

    def _check_replies(self, name: str) -> None:
        """RunError for a teacher of which nothing can be used in the whole build or in the rounds of this stage, as one
        that refuses everything: few tasks may come to a stage, so that the share of its rejected replies stops none.
        """
        rounds = [stage for stage in self.built.stages if _ROUND.sub("", stage.name) == _ROUND.sub("", name)]
        for stages in (self.built.stages, rounds):
            rejects = sum(stage.rejects - stage.rejected[OTHERWISE] for stage in stages)
            if self.recipe.stop_after_rejects >= 1 or rejects < SHOWN or any(stage.accepted for stage in stages):
                continue
            shown = "\n".join(f"  {each}" for each in [each for stage in stages for each in stage.examples][:SHOWN])
            raise RunError(
                f"the build stopped after stage {name!r}: all {rejects} replies were rejected. What was answered is"
                " kept; give another teacher and another folder, or stop_after_rejects: 1 to go on."
                f" Examples:\n{shown}"
            )

    def path(self, name: str) -> Path:
        """The journal of a stage."""
        return self.folder / f"{name}.jsonl"

    def write(self, items: Iterable[Item]) -> None:
        """Write the finished items, balanced and split as the recipe says; call it once, after the last stage."""
        self.check_in_place()
        done = finish(self.recipe, self.folder, items)
        self.built.items, self.built.kept, self.built.figures = done.items, done.kept, done.figures
        self.built.dropped.update(done.dropped)
        self.built.notes += done.notes


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a stage would ask if every reply were accepted at the first try. Tokens are estimated as characters / 4."""

    stage: str
    calls: int
    tokens_in: int
    most_tokens_out: int

    def most_money(self, price: Price | None) -> float | None:
        """The most it can cost, in the currency of `price`; None if the price is not known."""
        return None if price is None else price.cost(self.tokens_in, 0, self.most_tokens_out)


def size_of(task: Task) -> int:
    """An estimate of the prompt tokens of a task."""
    return sum(len(message.text) for message in task.messages) // _CHARACTERS


@dataclass(frozen=True, slots=True)
class Kind(Generic[Options]):
    """A kind of recipe. `prompts` names files in `prompts/`; `files` names the options that are paths of input files.

    `run` asks stage by stage and writes the items; `estimate` says what it would ask, and asks nothing. `check` yields
    mistakes in the options as (key, message). `world` makes the teacher for `world:DOMAIN`. `defaults` override those
    of `Recipe` for common keys. `inputs`: what the file of an option (its own or Dikast's) says, by option; with other
    inputs a folder is not resumed.
    """

    name: str
    options: type[Options]
    prompts: tuple[str, ...]
    run: Callable[[BuildRun, Options], None]
    estimate: Callable[[Recipe, Options], list[BuildEstimate]]
    check: Callable[[Recipe, Options], Iterable[tuple[str, str]]]
    world: Callable[[Recipe, Options], Engine]
    files: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    inputs: Callable[[Recipe, Options], Mapping[str, Any]] = lambda recipe, options: {}
