"""The plan of a run: the source of the items, the number of questions, and the plan's files."""

import itertools
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from dikast.core.errors import DataError, RunError
from dikast.core.gold import goodness_of
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import Arrangement, scan_items, systems_of
from dikast.core.records.content_ids import prompt_id
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.current_verdicts import is_in
from dikast.core.runs.judge_lock import NAMES_OF
from dikast.core.runs.run_files import GOLD, KEYS, META, RUBRICS, SHEETS, written_together
from dikast.core.scale import Scale
from dikast.core.secrets import without_secrets
from dikast.core.text import counted
from dikast.engines.priced import price_of_engine
from dikast.engines.wrapper import found_in
from dikast.judging.judge import Judge
from dikast.judging.settling import first_request
from dikast.judging.task import Task
from dikast.prompts.format import Format

_log = logging.getLogger(__name__)
_CHUNK = 1024
_MOST_BAD = 20  # questions that cannot be asked whose reasons a dry run lists
_MOST_META = 200  # characters of a value of metadata that a run keeps
_TOKEN = 4  # characters, the usual rule of thumb for English


@dataclass(frozen=True, slots=True)
class Source:
    """Where the items are: a file, a folder, an address or `-`; which columns hold the fields, how many to take.

    `without`: `rubric` asks by the scale of an item's rubric alone, `reference` leaves references out, `media`
    pictures and clips. `origins`: where each item of a copy came from, by its line, for messages.
    `gold_cures`: what to do about gold off its scale, where that is not what flags say; `gold_named` about a column
    that looks like gold.
    """

    path: str
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    limit: int | None = None
    without: tuple[str, ...] = ()
    origins: Callable[[int], str] | None = field(default=None, compare=False)
    gold_cures: tuple[str, ...] = field(default=(), compare=False)
    gold_named: str = field(default="", compare=False)

    def items(
        self, on_error: Callable[[DataError], None] | None = None, reading: Arrangement | None = None
    ) -> Iterator[Item]:
        """The items from the top. With `on_error`, records that cannot be used are reported there and left out.

        `reading` says how they are read, and is filled with what was done.
        """
        return itertools.islice(self._items(on_error, reading), self.limit)

    def columns_line(self, names: int = NAMES_OF) -> str:
        """The recognised columns of the first record, in one line; "" if none had to be recognised.

        Raises errors in the columns of the file. Standard input is not read.
        """
        if self.path == "-":
            return ""
        arrangement = Arrangement(names)
        next(self._items(lambda _: None, arrangement), None)
        return arrangement.mapping_line()

    def _items(self, on_error: Callable[[DataError], None] | None, reading: Arrangement | None) -> Iterator[Item]:
        for found in scan_items(self.path, self.columns, reading):
            if not isinstance(found, DataError):
                if self.origins is not None:
                    found = replace(found, origin=self.origins(int(found.origin.rpartition(":")[2])))
                yield lacking_parts(found, self.without)
            elif on_error is None:
                raise found
            else:
                on_error(found)


def lacking_parts(item: Item, without: tuple[str, ...]) -> Item:
    """The item without its reference or its media, and with the bare scale of its rubric, as `without` says."""
    if "media" in without:
        item = item.text_only()
    if "reference" in without and item.reference is not None:
        item = replace(item, reference=None)
    if "rubric" in without and item.rubric is not None:
        item = replace(item, rubric=item.rubric.bare)
    return item


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions of a run: `questions` in all, of which `answered` have an answer in the folder already.

    Only a dry run fills the other fields: how many questions cannot be asked (their items would be `bad_item`) and why
    the first of them cannot, the tokens of the text to send, at 4 characters each, the most that could come back
    (`thinking` of them for the reasoning of each question), and what both would cost where the engine knows its price
    (`price_unknown`: it may cost money, and how much is not known).
    """

    items: int
    questions: int
    answered: int
    unaskable: int = 0
    bad_items: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    price_unknown: bool = False
    thinking: int = 0
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Questions to ask."""
        return self.questions - self.answered

    def summary(self) -> dict[str, Any]:
        """The JSON form, for a dry run."""
        return {"plan": {**asdict(self), "missing": self.missing}}


class Count:
    """Counts questions in blocks; for a dry run also renders those without an answer, to estimate their tokens."""

    def __init__(self, judge: Judge, format: Format, known: Any, *, estimate: bool) -> None:
        self.judge, self.format, self.known, self.estimate = judge, format, known, estimate
        self.questions = self.answered = self.unaskable = self.characters = self.tokens_out = 0
        self.thinking = int(found_in(judge.engine, "thinking", 0)) if estimate else 0
        self.bad_items: dict[str, None] = {}  # what is wrong with the first of them, each said once
        self.unreadable, self._first, self._last = 0, "", ""  # items with such media, why of the first, id of the last
        self._keys: list[bytes] = []
        self._tasks: list[Task] = []  # only to estimate

    def add(self, task: Task) -> None:
        """Count one question."""
        self._keys.append(task.key.encode())
        if task.unreadable and task.item.id != self._last:
            self.unreadable, self._last = self.unreadable + 1, task.item.id
            self._first = self._first or without_secrets(f"{task.item.origin}: {task.unreadable}")
        if self.estimate:
            self._tasks.append(task)
        if len(self._keys) == _CHUNK:
            self.flush()

    def tell_unreadable(self, items: int, path: str) -> None:
        """Say that media of some items cannot be read; DataError where it is all of several items."""
        if 1 < self.unreadable == items:
            raise DataError(
                f"no picture or clip of the {items:,} items can be read; the first: {self._first}", path=path
            )
        if self.unreadable:
            told = "%s: %s of %s items have media that cannot be read, and get no verdict; the first: %s"
            _log.warning(told, path, f"{self.unreadable:,}", f"{items:,}", self._first)

    def flush(self) -> None:
        """Count the buffered questions."""
        known = is_in(self._keys, self.known)
        self.questions += len(known)
        self.answered += sum(known)
        if self.estimate:
            for task, answered in zip(self._tasks, known, strict=True):
                if not answered:
                    self._estimate(task)
        self._keys.clear()
        self._tasks.clear()

    def _estimate(self, task: Task) -> None:
        try:
            request = first_request(task, self.format, self.judge.settings)
        except DataError as error:
            self.unaskable += 1
            if len(self.bad_items) < _MOST_BAD:
                self.bad_items[without_secrets(str(error))] = None
            return
        self.characters += sum(len(message.text) for message in request.messages)
        writes = self.format.feedback or self.thinking  # a model that reasons is not scored by its labels
        self.tokens_out += self.thinking + (request.sampling.max_tokens if writes else 1)

    def plan(self, items: int) -> Plan:
        """The counts so far."""
        self.flush()
        tokens_in = self.characters // _TOKEN
        price = price_of_engine(self.judge.engine) if self.estimate else None
        cost = price.cost(tokens_in, 0, self.tokens_out) if price is not None else None
        unknown = self.estimate and found_in(self.judge.engine, "price_unknown", False)
        return Plan(
            items, self.questions, self.answered, self.unaskable, tuple(self.bad_items), tokens_in, self.tokens_out,
            cost, unknown, self.thinking,
        )  # fmt: skip


class AsPlanned:
    """Of the questions of a second reading of the items those that were planned, in the order of `keys.txt` from byte
    `begin`; the others, of items or media that changed since, are not asked.
    """

    def __init__(self, out: Path, begin: int) -> None:
        self._keys, self._begin = out / KEYS, begin
        self.changed, self._first = 0, ""

    def of(self, tasks: Iterator[Task]) -> Iterator[Task]:
        """The questions that are the planned ones; `changed` counts the others, and those that are gone."""
        with self._keys.open("rb") as keys:
            keys.seek(self._begin)
            for task in tasks:
                if keys.readline().rstrip() == task.key.encode():
                    yield task
                else:
                    self.changed, self._first = self.changed + 1, self._first or task.item.origin or task.item.id
            self.changed += sum(1 for _ in keys)

    def check(self, path: str) -> None:
        """RunError if questions were not asked, since their items were no longer those that were planned."""
        if self.changed:
            where = f", the first of {self._first}" if self._first else ""
            raise RunError(
                f"{path}: the items, or what they show, changed while they were read, so that"
                f" {counted(self.changed, 'question')} could not be asked{where}: run the same command again"
            )


class SameItems:
    """The file of the items, which must stay as it was when it was first checked: a plan has its gold and its keys.

    Folders, addresses and what is not there are not looked at.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._mark: tuple[int, ...] | None = None

    def check(self) -> None:
        """RunError if the file has been replaced or edited since the first check."""
        now = self._now()
        if self._mark is not None and now != self._mark:
            raise RunError(f"{self._path}: the items changed while they were read: run the same command again")
        self._mark = now

    def _now(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def metadata_of(item: Item) -> dict[str, Any]:
    """The metadata that a run keeps of an item: plain values, the systems whose responses it holds with the lengths of
    these, and of a single response a fingerprint of its prompt, by which systems are compared.
    """
    if not item.meta:
        return {}
    meta = {key: each for key, each in item.meta.items() if isinstance(each, bool | int | float) or _short(each)}
    systems = systems_of(item)
    more: dict[str, Any] = {"prompt": prompt_id(item)} if len(systems) == 1 else {}
    if systems:
        more |= {"lengths": [len(text_of(each)) for each in item.responses]}
    return ({"meta": meta} if meta else {}) | ({"systems": list(systems)} if systems else {}) | more


def _short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_META


@contextmanager
def plan_files(out: Path, equate: Scale | None, *, add: bool) -> Iterator["PlanFiles"]:
    """The files of a plan, which replace the old ones together at the end; RunError where they cannot be written."""
    names = (KEYS, RUBRICS, GOLD, SHEETS, META)
    try:
        with written_together(*(out / name for name in names)) as parts, ExitStack() as stack:
            files = {name: stack.enter_context(part.open("wb")) for name, part in zip(names, parts, strict=True)}
            old = {name: (out / name).read_bytes() if add and (out / name).exists() else b"" for name in names}
            for name, file in files.items():
                file.write(old[name])
            rubrics = {str(orjson.loads(line)["hash"]) for line in old[RUBRICS].splitlines()}
            yield PlanFiles(files, rubrics, equate, add=add)
    except OSError as problem:
        raise RunError(
            f"{out}: cannot write the plan ({problem.strerror}); what was written before is kept:"
            " fix this and run the same command again"
        ) from problem


class PlanFiles:
    """The open files of a plan by their names; `rubrics` are the hashes of those that are written."""

    def __init__(
        self, files: Mapping[str, BinaryIO], rubrics: set[str], equate: Scale | None = None, *, add: bool
    ) -> None:
        self._files, self.rubrics, self.equate, self.add = files, rubrics, equate, add

    def item(self, item: Item, rubric: Rubric | Sheet | None) -> None:
        """Note an item's gold and metadata, for audits, and the sheet that it brings, for replays.

        Gold is kept as it was given. If it has a scale of its own, that scale is recorded too, with the
        goodness of gold on it, by criterion.
        """
        if self.add:
            return
        if item.gold is not None:
            record = {"item": item.id, "gold": item.gold}
            if self.equate is not None and rubric is not None:
                rubrics = rubric if isinstance(rubric, Sheet) else (rubric,)
                goodness = {each.name: goodness_of(item, each, self.equate) for each in rubrics}
                record |= {"scale": str(self.equate), "goodness": goodness}
            self._files[GOLD].write(orjson.dumps(record) + b"\n")
        if meta := metadata_of(item):
            self._files[META].write(orjson.dumps({"item": item.id, **meta}) + b"\n")
        if isinstance(item.rubric, Sheet):
            criteria = [{"hash": rubric.hash, "weight": rubric.weight} for rubric in item.rubric]
            record = {"item": item.id, "name": item.rubric.name, "criteria": criteria}
            self._files[SHEETS].write(orjson.dumps(record) + b"\n")

    def forget_gold(self) -> None:
        """Leave out the gold: it was guessed and does not lie on its scale."""
        self._files[GOLD].seek(0)
        self._files[GOLD].truncate()

    def task(self, task: Task) -> None:
        """Note a question's key, and its rubric the first time it comes."""
        self._files[KEYS].write(task.key.encode() + b"\n")
        if task.hashes.rubric not in self.rubrics:
            self.rubrics.add(task.hashes.rubric)
            line = orjson.dumps({"hash": task.hashes.rubric, "rubric": task.rubric.to_dict()})
            self._files[RUBRICS].write(line + b"\n")
