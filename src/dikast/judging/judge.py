"""The judge (LLM-as-a-judge): a rubric, a format for each kind of question, and an engine."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dikast.core.canonical import fingerprint
from dikast.core.checking import near_keywords
from dikast.core.errors import UserError
from dikast.core.gold import GoldCheck, gold_for
from dikast.core.item import ITEM_KEYS, Item, meant
from dikast.core.media.video import DEFAULT_FRAMES
from dikast.core.part import MOST_FRAMES
from dikast.core.records import item_of, read_items
from dikast.core.records.column_names import PAIRS
from dikast.core.records.rows_in_memory import rows_in
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.scale import Scale
from dikast.core.text import counted
from dikast.core.verdict import Preference, Verdict
from dikast.engines.base import Engine, Sampling, close_engine
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import found_in
from dikast.judging.defaults import default_format
from dikast.judging.joining import join_orders, join_samples
from dikast.judging.pair_orders import RESAMPLES, EqualRule, from_scores
from dikast.judging.settling import AskSettings, Read, answer
from dikast.judging.task import Shape, Task, tasks_of
from dikast.prompts.format import Format, load_format

if TYPE_CHECKING:
    from dikast.ranking.item_ranking import Ranking

Items = (
    str | Path | Iterable[Item | Mapping[str, Any]] | Mapping[str, Any]
)  # a file, or rows: a list, a data frame, a table, a data set

_SAMPLING = {each.name: f"sampling=Sampling({each.name}=...)" for each in fields(Sampling)}


@dataclass(frozen=True, slots=True)
class SheetVerdict:
    """The verdicts of every criterion of a sheet on one response.

    `total` is 0 (worst) to 1 (best), None if any criterion failed.
    """

    item: str
    verdicts: tuple[Verdict, ...]
    total: float | None


class Judge:
    """Grades and compares with one engine.

    `engine` is a spec such as `hf:ORG/NAME`, a folder, `mock:oracle,r=.8`, or an Engine. `rubric` may be left out when
    every item brings its own. `format` and `compare_format` are names of built-in formats or YAML files; left out, a
    judge is asked as it was taught (the engine's `formats`, or the prompt of a released judge of the catalog), any
    other in `absolute` and `pairwise`. `samples` above 1 asks every question that often (with a temperature) and
    averages the verdicts. `frames` is how many are sampled from a video file whose item names no number. `equate` is
    the scale of the items' gold (`1-10`) if it differs from the rubric's: gold that is on neither is a UserError before
    anything is asked. Its direction is the rubric's.
    """

    @near_keywords(_SAMPLING)
    def __init__(
        self,
        engine: str | Engine,
        rubric: str | Path | Mapping[str, Any] | Rubric | Sheet | None = None,
        *,
        format: str | Path | Format | None = None,
        compare_format: str | Path | Format | None = None,
        sampling: Sampling | None = None,
        samples: int = 1,
        read: Read = "auto",
        min_mass: float = 0.5,
        frames: int = DEFAULT_FRAMES,
        equate: str | Scale | None = None,
    ) -> None:
        self.engine = open_engine(engine)
        self.rubric = load_rubric(rubric) if rubric is not None else None
        self.settings = AskSettings(sampling or Sampling(), read, min_mass, frames=frames)
        self.equate = Scale.parse(equate) if isinstance(equate, str) else equate
        self._spec = engine if isinstance(engine, str) else ""
        if format is not None:
            self.format = _of_kind(load_format(format), "absolute", "format")
        if compare_format is not None:
            self.compare_format = _of_kind(load_format(compare_format), "pairwise", "compare_format")
        self.samples = samples
        self.identity = {"engine": dict(self.engine.identity()), "settings": asdict(self.settings)}
        self.hash = fingerprint(self.identity)
        if samples < 1:
            raise UserError(f"samples must be at least 1, got {samples}")
        drawn, own = self.settings.sampling, samples_on_its_own(self.engine)
        if samples > 1 and drawn.temperature <= 0 and not own:
            raise UserError("several samples at temperature 0 are all the same: set a temperature, such as 1.0")
        if read not in ("auto", "only", "never"):
            raise UserError(f"read {read!r}: use auto, only or never")
        if read == "only" and (why := _lack(self.engine, "logprobs")):
            raise UserError(f"{self.engine.name} {why.partition(':')[0]}: use read='auto' (--read auto)")
        if own and drawn.temperature not in (0, 1):
            raise UserError(f"{self.engine.name} samples at its own temperature: leave --temperature out")
        if own and drawn.top_p < 1:
            raise UserError(f"{self.engine.name} samples at its own temperature: leave --top-p out")
        if drawn.top_p < 1 and drawn.temperature not in (0, 1) and (why := _lack(self.engine, "top_p")):
            raise UserError(f"{self.engine.name} {why}: leave --top-p out, or set --temperature to 1")
        if not 1 <= frames <= MOST_FRAMES:
            raise UserError(f"frames is how many to sample from a video, from 1 to {MOST_FRAMES}, got {frames}")
        if not 0 <= min_mass <= 1:
            raise UserError(f"min_mass is a probability from 0 to 1, got {min_mass}")

    def go_on_as(self, identity: Mapping[str, Any]) -> None:
        """Answer as the engine of an earlier run did, if the only difference is that it did not share prefixes."""
        mine = self.identity["engine"]
        stop: Callable[[], None] | None = found_in(self.engine, "stop_sharing", None)
        if stop is not None and "share" in mine and mine == {**identity, "share": mine["share"]} != identity:
            stop()
            self.identity = {**self.identity, "engine": dict(self.engine.identity())}
            self.hash = fingerprint(self.identity)

    def __repr__(self) -> str:
        rubric = f", {self.rubric.name!r}" if self.rubric is not None else ""
        return f"Judge({self.engine.name!r}{rubric})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine: connections, processes and memory are freed. `with Judge(...) as judge:` does it."""
        close_engine(self.engine)

    @cached_property
    def format(self) -> Format:
        """How one response is asked about."""
        return self._taught("absolute")

    @cached_property
    def compare_format(self) -> Format:
        """How a pair is asked about."""
        return self._taught("pairwise")

    def _taught(self, kind: str) -> Format:
        formats: Mapping[str, str] = getattr(self.engine, "formats", {})
        return load_format(formats[kind]) if kind in formats else default_format(self._spec, kind)

    def grade(self, item: Item | Mapping[str, Any] | None = None, **fields: Any) -> Verdict:
        """Judge the one response of an item: an Item, a dict, or keywords (`instruction=`, `response=`, ...).

        A dict is one item here, and its lists are lists of parts, unless one holds numbers, as a column may. To
        `grade_many` and to `dikast.grade` a dict of lists is a table.
        """
        one = _item(item, fields)
        if isinstance(self._rubric(one), Sheet):
            raise UserError("this rubric is a sheet of several criteria: use grade_sheet")
        _ = one.response if one.responses else None  # several responses: grade_many
        return next(iter(self.grade_many([one])))

    def grade_sheet(self, item: Item | Mapping[str, Any] | None = None, **fields: Any) -> SheetVerdict:
        """Judge the one response of an item by every criterion of a sheet, and sum up by weight."""
        one = _item(item, fields)
        _ = one.response if one.responses else None
        rubric = self._rubric(one)
        sheet = rubric if isinstance(rubric, Sheet) else Sheet(rubric.name, (rubric,))
        verdicts = tuple(self.grade_many([one]))
        return SheetVerdict(one.id, verdicts, sheet.total({v.question.criterion: v.score for v in verdicts}))

    def grade_many(self, items: Items) -> Iterator[Verdict]:
        """Judge every response of every item by every criterion; verdicts come in order of arrival.

        items: as for `dikast.grade`, the path of a file, a list of Items or dicts, a data frame, a table or a data set.
        Ids tell the items apart; a row without one gets its position as id (`0`, `1`, ...).
        """
        rubrics: dict[str, Rubric] = {}

        def noting(tasks: Iterator[Task]) -> Iterator[Task]:
            for task in tasks:
                rubrics[task.hashes.rubric] = task.rubric
                yield task

        tasks = noting(self.tasks(items_of(items), "each"))
        yield from join_samples(self.answer(tasks, self.format), self.samples, rubrics)

    def compare(
        self, item: Item | Mapping[str, Any] | None = None, *, both_orders: bool = True, **fields: Any
    ) -> Preference:
        """Compare the two responses of an item, each shown first once; disagreeing orders are a tie that says so."""
        one = _item(item, fields)
        if len(one.responses) != 2:
            told = f"item {one.id!r} has {counted(len(one.responses), 'response')}"
            raise UserError(f"{told} where compare takes 2; compare_many takes any")
        return next(iter(self.compare_many([one], both_orders=both_orders)))

    def compare_many(self, items: Items, *, both_orders: bool = True) -> Iterator[Preference]:
        """Compare every pair of responses of every item by every criterion, in order of arrival; ids are distinct."""
        tasks = self.tasks(items_of(items), "both-orders" if both_orders else "pairs")
        yield from join_orders(self.answer(tasks, self.compare_format), self.samples, both_orders=both_orders)

    def compare_by_scores(self, item: Item | Mapping[str, Any], *, equal: EqualRule = "tie") -> Preference:
        """Grade both responses of an item and prefer the better score; `equal` names the rule for equal scores."""
        one = _item(item, {})
        rubric = self._rubric(one)
        if isinstance(rubric, Sheet) or len(one.responses) != 2:
            raise UserError("comparing by scores takes one criterion and two responses")
        rounds: list[list[Verdict]] = []
        for sample in resample_rounds(equal, self.settings.sampling):
            tasks = self.tasks(iter([one]), "each", samples=range(sample, sample + 1), pairs=True)
            rounds.append(sorted(self.answer(tasks, self.format), key=lambda v: v.question.responses))
            a, b = [[each[i] for each in rounds] for i in (0, 1)]
            preference = from_scores(a, b, rubric.scale, equal=equal)
            if preference.choice != "tie":
                break
        return preference

    def rank(self, item: Item | Mapping[str, Any] | None = None, *, schedule: str = "full", **fields: Any) -> "Ranking":
        """Order the responses of an item from best to worst by comparing them; `dikast rank` does it for files.

        schedule: which pairs are compared (see `dikast.ranking.schedules`); the full round robin asks each in both
        orders. UserError for fewer than two different responses, or fewer than the schedule takes.
        """
        from dikast.ranking.rank_item import rank_item

        return rank_item(self, _item(item, fields), schedule)

    @property
    def reads_gold(self) -> bool:
        """Whether the engine reads the items' gold, as mocks do."""
        return bool(self.identity["engine"].get("reads_gold"))

    def tasks(
        self, items: Iterable[Item], shape: Shape, *, samples: range | None = None, pairs: bool = False
    ) -> Iterator[Task]:
        """Every question about the items, with its key; UserError for gold that does not lie on its scale.

        `pairs` says that single responses are asked about to compare them, so that gold may be a preference.
        """
        for item in items:
            tasks = list(self.tasks_of(item, shape, samples=samples))
            check = GoldCheck(self.equate, pairs, read=self.reads_gold)
            for task in tasks:
                check.look(item, task.rubric, task.question.responses)
            if (wrong := check.error()) is not None:
                raise wrong
            yield from tasks

    def tasks_of(self, item: Item, shape: Shape, *, samples: range | None = None) -> Iterator[Task]:
        """Every question about one item, with its key."""
        format = self.format if shape == "each" else self.compare_format
        if self.settings.read == "only" and not format.marker:
            raise UserError(f"format {format.name!r} has no marker to read a label after: use read='auto'")
        rubric = self._rubric(item)
        for one in rubric if isinstance(rubric, Sheet) else (rubric,):
            format.check_rubric(one, item.origin)
        equate = self.equate if self.reads_gold else None  # without gold, its scale does not change the question
        tasks = tasks_of(
            item,
            rubric,
            judge=self.hash if equate is None else fingerprint([self.hash, str(equate)]),
            format=format.hash,
            shape=shape,
            samples=samples or range(self.samples),
            reads_gold=self.reads_gold,
        )
        return tasks if equate is None else (_with_gold(task, equate) for task in tasks)

    def answer(self, tasks: Iterator[Task], format: Format) -> Iterator[Verdict]:
        """Ask the engine every question; a verdict for each, in order of arrival."""
        return answer(tasks, self.engine, format, self.settings)

    def _rubric(self, item: Item) -> Rubric | Sheet:
        rubric = item.rubric or self.rubric
        if rubric is None:
            raise UserError(
                f"{item.origin or item.id}: no rubric: give the judge one (--rubric with a criterion, a file or"
                " a built-in name), or the item a 'rubric'"
            )
        return rubric


def _with_gold(task: Task, equate: Scale) -> Task:
    """The task with its gold moved from `equate` to the scale of its rubric, for engines that read gold."""
    gold = gold_for(task.item, task.rubric, task.question.responses, equate)
    return replace(task, item=replace(task.item, gold=gold))


def resample_rounds(equal: EqualRule, sampling: Sampling) -> range:
    """The samples that a rule for equal scores may ask for; UserError when it would draw the same thing again."""
    if equal != "resample":
        return range(1)
    if sampling.temperature <= 0:
        raise UserError("the rule 'resample' draws again, which needs a temperature above 0")
    return range(RESAMPLES + 1)


def _of_kind(format: Format, kind: str, where: str) -> Format:
    if format.kind != kind:
        raise UserError(f"{where} {format.name!r} is {format.kind}; a format of kind {kind} is needed here")
    return format


def samples_on_its_own(engine: Engine) -> bool:
    """Whether the model samples at a temperature of its own, whatever is asked for."""
    return bool(_lack(engine, "temperature"))


def _lack(engine: Engine, what: str) -> str:
    """The consequence of what the engine is known not to support; "" if it may support it."""
    return str(found_in(engine, "cannot", {}).get(what, ""))


def items_of(items: Items) -> Iterator[Item]:
    """The items of a file or of rows in memory; rows without an id are called by their position."""
    if isinstance(items, str | Path):
        yield from read_items(items)
        return
    for place, row in enumerate(rows_in(items)):
        yield row if isinstance(row, Item) else item_of(row, str(place))


def _is_one(item: Any) -> bool:
    """Whether a mapping is an item with lists of parts: columns may hold numbers, splits are tables."""
    if not isinstance(item, Mapping) or hasattr(item, "column_names"):
        return False
    lists = (value for value in item.values() if isinstance(value, list | tuple))
    return not any(isinstance(one, int | float) for one in itertools.chain.from_iterable(lists))


def _item(item: Any, fields: Mapping[str, Any]) -> Item:
    if item is None:
        for name in fields.keys() - set(ITEM_KEYS):
            told = "give both in responses=[..., ...]" if name.rpartition("_")[0] in PAIRS else meant(name)
            raise UserError(f"unknown keyword {name!r}: {told} (metadata goes into meta={{...}})")
        return Item.of(**fields)
    if fields:
        raise UserError(f"an item is given whole or by keywords, not both: put {', '.join(fields)} into the item")
    if isinstance(item, Item):
        return item
    if isinstance(item, str | bytes | Path | int | float):
        raise UserError(
            f"an item is an Item, a dict, or keywords (instruction=..., response=...), not {type(item).__name__}"
        )
    rows = list(itertools.islice(rows_in([item] if _is_one(item) else item), 2))
    if len(rows) != 1:
        told = "several rows: use grade_many, compare_many or dikast.rank" if rows else "no rows"
        raise UserError(f"this takes one item, and the {type(item).__name__} has {told}")
    return rows[0] if isinstance(rows[0], Item) else item_of(rows[0])
