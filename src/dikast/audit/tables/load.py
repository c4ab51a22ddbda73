"""From a plan to arrays: columns are found, joined and checked against the scale, and lost rows are counted."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit.plan import NO_CLUSTER, AuditPlan
from dikast.audit.statistics.building_blocks.exact_means import settled
from dikast.audit.tables.columns import (
    Frame,
    Wanted,
    Words,
    duplicate_note,
    from_json_text,
    keys_of,
    match,
    read_frame,
)
from dikast.audit.tables.derived_roles import Inputs, check_definitions, derive, undefined_told
from dikast.audit.tables.long_form import LongRows
from dikast.audit.tables.record_rows import GoldOfItems, Rows, Watch
from dikast.audit.tables.refs import (
    UNEQUAL,
    UNEQUAL_PAIRS,
    Long,
    Ref,
    Refs,
    beside,
    label_chances,
    rated,
    refuse_all_of_nothing,
    refuse_twice,
    run_gold,
    take_chance,
    take_derived,
    take_unnamed,
    within_columns,
)
from dikast.audit.tables.row_scales import RowScales, check_same_scale
from dikast.audit.tables.run_rows import (
    JOINT,
    RunRows,
    open_rows,
    unmatched_items,
)
from dikast.core.errors import UserError
from dikast.core.gold import LABEL_CHANCE
from dikast.core.text import counted, near_miss

_REASON = "reason of "  # before the name of a derived column: why its rows are undefined
_ANNOTATIONS = ("claims", "gold_claims", "spans", "gold_spans")
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(slots=True)
class Data:
    """Columns of all files side by side, row i of each about the same thing; `notes` say what did not match."""

    frame: Frame
    plan: AuditPlan
    keys: list[str]
    numbers: dict[str, Floats] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    objects: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    scales: RowScales | None = None  # where rows lie on several scales, or gold on another than scores
    gold_of_pairs: bool = False  # rows are single responses, and gold says which of two is better
    places: dict[str, tuple[str, Codes]] = field(default_factory=dict)  # of gold: its file, and its line in each row
    repeats: tuple[str, int] | None = None  # a column that seems to name the items, and its values, fewer than rows

    def __len__(self) -> int:
        return len(self.frame)

    def first(self, role: str, chosen: NDArray[np.bool_]) -> tuple[int, str]:
        """Which of the chosen rows holds what stands first in the file under a role, and its place there."""
        path, lines = self.places.get(role, (self.frame.path, self.frame.lines))
        row = int(np.flatnonzero(chosen)[np.argmin(lines[chosen])])
        return row, f"{path}:{lines[row]}" if lines[row] else path

    def rows(self, chosen: NDArray[np.bool_] | Codes) -> "Data":
        """The chosen rows only: a mask, or indices in the order that is wanted."""
        at = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return Data(
            Frame(self.frame.path, self.frame.lines[at]),
            self.plan,
            [self.keys[i] for i in at] if self.keys else [],
            {name: values[at] for name, values in self.numbers.items()},
            {name: Words(each.codes[at], each.names) for name, each in self.words.items()},
            {name: [values[i] for i in at] for name, values in self.objects.items()},
            self.notes,
            None if self.scales is None else self.scales.rows(at),
            self.gold_of_pairs,
            {role: (path, lines[at]) for role, (path, lines) in self.places.items()},
            self.repeats,
        )


def load(plan: AuditPlan, watch: Watch | None = None) -> Data:
    """Read what the plan names. UserError or DataError says what, where and how to fix it."""
    gold_names = [Ref.of(each).name for each in plan.gold]
    run = plan.file.is_dir()
    gold = run_gold(plan, gold_names) if run else GoldOfItems()
    rows = open_rows(plan.file, gold, plan.scale if plan.equate is not None else plan.gold_scale)
    refuse_all_of_nothing(plan)
    long = _folded(plan, rows, run) if plan.long else None
    if long is not None:
        plan = rated(plan, long)
        rows = long.rows if not long.file else rows
    refs = _refs(plan, run)
    refuse_twice(refs)
    take_unnamed(refs, plan, None if run else next(iter(rows))[0])
    keys = _key_columns(plan, rows, refs)
    _check_columns(plan, rows)
    data = _read_all(plan, rows, refs, keys, long, watch)
    data.notes += [] if run else duplicate_note(data.keys, keys)
    if isinstance(rows, RunRows):
        data.notes += rows.notes()
        data.gold_of_pairs = rows.of_choices > 0
        data.notes += unmatched_items(data.words.get("item"), gold, rows.asked_once_items)
    data = _filtered(data, plan)
    if "chance" in data.objects:
        data.notes.append(UNEQUAL_PAIRS if plan.pairwise else UNEQUAL)
    told = [undefined_told(role.removeprefix(_REASON), why) for role, why in data.words.items() if _REASON in role]
    data.notes += filter(None, told)
    return _without_empty_gold(data)


def _refs(plan: AuditPlan, run: bool) -> Refs:
    """Each role of the plan and the column that plays it."""
    refs = Refs()
    values = refs.words if plan.pairwise else refs.objects if plan.ranked else refs.numbers
    for role in ("score", "rival", "retest", "earlier"):
        if name := getattr(plan, role):
            values[role] = Ref.of(name)
    for i, name in enumerate(plan.gold):
        ref = Ref.of(name)
        if plan.gold_file is not None and not ref.file and not run:
            ref = Ref(ref.name, str(plan.gold_file))
        values[f"gold {i}"] = ref
    if plan.swapped:
        refs.words["swapped"] = Ref.of(plan.swapped)
    for role in ("cluster", "system", "status", "first", "second"):
        if (name := getattr(plan, role)) and not name.startswith("=") and (role, name) != ("cluster", NO_CLUSTER):
            refs.words[role] = Ref.of(name)
    refs.words |= {role: Ref.of(name) for role, name in within_columns(plan, run).items()}
    refs.words |= {f"by {i}": Ref.of(name) for i, name in enumerate(plan.by)}
    refs.words |= {f"where {i}": Ref.of(name.partition("=")[0]) for i, name in enumerate(plan.where)}
    refs.numbers |= {f"logprob {i}": Ref.of(name) for i, name in enumerate(plan.logprobs)}
    refs.numbers |= {f"mean {i}": Ref.of(name) for i, name in enumerate(plan.means)}
    refs.numbers |= {f"covariate {i}": Ref.of(name) for i, name in enumerate(plan.covariates)}
    if plan.length:
        refs.numbers["length"] = Ref.of(plan.length)
    for role in _ANNOTATIONS:
        if name := getattr(plan, role):
            refs.objects[role] = Ref.of(name)
    if run and plan.pairwise:
        refs.numbers["sample"], refs.objects["distribution"] = Ref("sample", ""), Ref("distribution", "")
        refs.words |= {name: Ref(name, "") for name in ("item", "criterion")}
        refs.words |= {name: Ref(f"{name}_shown", "") for name in ("marker", "conflict", "status")}
        refs.words |= {"pair first": Ref("first", ""), "pair second": Ref("second", "")}
        if plan.swapped == "swapped":
            refs.words |= {name: Ref(name, "") for name in ("status_swapped", "marker_swapped", "conflict_swapped")}
    elif run:
        refs.objects["distribution"] = Ref("distribution", "")
        refs.numbers["expected"], refs.numbers["sample"] = Ref("expected", ""), Ref("sample", "")
        words = ("marker", "conflict", "item", "criterion", "response", "status", "rubric")
        refs.words |= {name: Ref(name, "") for name in words}
    take_derived(refs, plan)
    refs.objects |= label_chances(refs)
    return refs


def _check_columns(plan: AuditPlan, rows: Rows) -> None:
    """All definitions of derived columns, used or not, before the file is read."""
    if not plan.columns:
        return

    def has(name: str) -> str:
        ref = Ref.of(name)
        path = beside(ref.file, plan.file)
        if ref.file and not Path(path).exists():
            return f"there is no file {path}"
        known: dict[str, None] = {}
        for record, _ in open_rows(path) if ref.file else rows:  # only as long as the column has not been seen
            if ref.name in record or ref.name.partition(".")[0] in record:
                return ""
            known.update(dict.fromkeys(record))
        hint = f"did you mean {near!r}?" if (near := near_miss(ref.name, known)) else "there are " + ", ".join(known)
        return f"{path if ref.file else plan.file} has no column {ref.name!r}; {hint}"

    check_definitions(plan, next(iter(rows), ({}, 0))[0], has)


def _folded(plan: AuditPlan, rows: Rows, run: bool) -> Long:
    rater = Ref.of(plan.long)
    if run and not rater.file:
        raise UserError("--long: a run folder has one row for each verdict; it is for tables with one row a rater")
    base = open_rows(beside(rater.file, plan.file)) if rater.file else rows
    refs = _refs(plan, run)
    key = _key_columns(plan, rows, refs)
    if not key:
        raise UserError("--long: name the columns that identify an item with --id")
    wanted = [ref.name for ref in refs.all() if ref.file == rater.file]
    return Long(LongRows.fold(base, key, rater.name, wanted), rater.file)


def _key_columns(plan: AuditPlan, rows: Rows, refs: Refs) -> tuple[str, ...]:
    """Which columns name a row; needed where files are joined, useful to find duplicates."""
    joined = any(ref.file for ref in refs.all())
    if plan.key:
        return plan.key
    if isinstance(rows, RunRows):
        return ("item", "criterion", *(("first", "second") if plan.pairwise else ("response",))) if joined else ()
    if "id" in next(iter(rows))[0]:
        return ("id",)
    if joined:
        raise UserError(f"{plan.file}: name the columns that identify a row with --id (or 'line' for its position)")
    return ()


def _read_all(
    plan: AuditPlan, rows: Rows, refs: Refs, keys: tuple[str, ...], long: Long | None, watch: Watch | None
) -> Data:
    frame = read_frame(rows, _wanted(refs, "", plan, keys), watch(rows) if watch is not None else None)
    places = {"": (frame.path, frame.lines)}
    data = Data(frame, plan, keys_of(frame, keys) if keys else [])
    _take(data, refs, frame, "", None)
    for file in dict.fromkeys(ref.file for ref in refs.all() if ref.file):
        path = beside(file, plan.file)
        other_rows = long.rows if long is not None and file == long.file else open_rows(path)
        compared = any(refs.numbers.get(role, Ref("", "")).file == file for role in ("rival", "retest", "earlier"))
        if compared and plan.file.is_dir() and isinstance(other_rows, RunRows):
            check_same_scale(plan.file, Path(path))
        other_keys = _keys_there(other_rows, keys)
        wanted = _wanted(refs, file, plan, tuple(other_keys.values()), sample=isinstance(other_rows, RunRows))
        other = _one_each(read_frame(other_rows, wanted), other_rows)
        mine = data.keys if len(other_keys) == len(keys) else keys_of(frame, tuple(other_keys))
        found = match(frame, mine, other, keys_of(other, tuple(other_keys.values())))
        missing = int((found.partner < 0).sum())
        if missing == len(frame):
            raise UserError(
                f"{path}: no row of it belongs to a row of {plan.file}: are the --id columns the right ones?"
            )
        if missing:
            data.notes.append(
                f"{counted(missing, 'row')} without a partner in {Path(path).name} (by {', '.join(other_keys)})"
            )
        if found.unused:
            data.notes.append(
                f"{counted(found.unused, 'row')} of {Path(path).name} that belong to no row of {plan.file.name}"
            )
        _take(data, refs, other, file, found.partner)
        places[file] = other.path, np.where(found.partner < 0, 0, other.lines[found.partner])
    take_chance(data.objects)
    _derive(data, refs, places)
    for role in ("score", *(f"gold {i}" for i in range(len(plan.gold))), *_ANNOTATIONS):
        if role in data.objects:  # a list in the cell of a table
            data.objects[role] = [from_json_text(each) for each in data.objects[role]]
    return data


def _derive(data: Data, refs: Refs, places: Mapping[str, tuple[str, Codes]]) -> None:
    """Put derived columns under their roles. Why a verdict is undefined is its status, where no column says it."""
    if not refs.made:
        return
    sources = {name: ref for role, ref in refs.objects.items() if (name := role.removeprefix("input ")) != role}
    values = {name: data.objects.pop(f"input {name}") for name in sources}
    inputs = Inputs(values, {name: places[ref.file] for name, ref in sources.items()})
    found = derive(data.plan, refs.made, inputs, len(data))
    data.numbers |= found.numbers
    data.words |= found.words
    data.objects |= found.objects
    data.words |= {f"{_REASON}{name}": why for name, why in found.reasons.items()}
    if "status" not in refs.words and "score" in found.why:
        data.words["status"] = found.why["score"]
        if data.plan.swapped:
            data.words["status_swapped"] = found.why.get("swapped", Words(np.full(len(data), -1), []))


def _wanted(refs: Refs, file: str, plan: AuditPlan, keys: tuple[str, ...], *, sample: bool = False) -> Wanted:
    def names(chosen: dict[str, Ref]) -> list[str]:
        return [ref.name for ref in chosen.values() if ref.file == file]

    failed = frozenset(plan.failed)
    numbers = names(refs.numbers) + ["sample"] * sample
    log = frozenset(names({role: ref for role, ref in refs.numbers.items() if role.startswith("logprob ")}))
    words, objects = [*names(refs.words), *keys], names(refs.objects)
    alone = objects.count(LABEL_CHANCE) == 1 and LABEL_CHANCE not in (*numbers, *words)  # nothing else asks for it
    return Wanted(numbers, words, objects, plan.scale, failed, frozenset({LABEL_CHANCE} if alone else ()), log)


def _take(data: Data, refs: Refs, frame: Frame, file: str, index: Codes | None) -> None:
    """Put the columns of one file under their roles, in the order of the audited file."""
    absent = np.zeros(0, bool) if index is None else index < 0
    for role, ref in (*refs.numbers.items(), *refs.words.items(), *refs.objects.items()):
        if ref.file == file and role.startswith("gold "):
            path, lines = frame.places.get(ref.name, (frame.path, frame.lines))
            data.places[role] = path, lines if index is None else np.where(absent, 0, lines[index])
    for role, ref in refs.numbers.items():
        if ref.file == file:
            values = frame.numbers[ref.name]
            if ref.name == "expected" and Path(file or data.plan.file).is_dir():  # computed: equal but for rounding
                values = settled(values)
            data.numbers[role] = values if index is None else np.where(absent, np.nan, values[index])
    for role, ref in refs.words.items():
        if ref.file == file:
            words = frame.words[ref.name]
            data.words[role] = words if index is None else Words(np.where(absent, -1, words.codes[index]), words.names)
    for role, ref in refs.objects.items():
        if ref.file == file:
            found = frame.objects[ref.name]
            data.objects[role] = found if index is None else [found[i] if i >= 0 else None for i in index]


def _keys_there(rows: Rows, keys: tuple[str, ...]) -> dict[str, str]:
    """Each key column of the audited file and what it is called in a joined one: the same, or `id` for `item`.

    What only runs have (criterion, the index of a response, the two of a pair) is matched where the other file has it
    too; a response of items is a text.
    """
    record = rows.an_example()
    has = {name for name in record if name not in _INDICES or str(record[name]).isdecimal()}
    found = {key: key for key in keys if key in has or key == "line" or key not in _OF_RUNS}
    if (name := keys[0]) not in record and name != "line":
        found[name] = next((each for each in ("id", "item") if each in record), name)
    return found


_INDICES = ("response", "first", "second")
_OF_RUNS = ("criterion", *_INDICES)


def _one_each(frame: Frame, rows: Rows) -> Frame:
    """Of another run with several samples, the joint verdict of each question, or else its first answer."""
    if not isinstance(rows, RunRows) or not (frame.numbers["sample"] != 0).any():
        return frame
    sample = frame.numbers["sample"]
    joint = sample == JOINT
    at = np.flatnonzero(joint if int(joint.sum()) >= int((sample == 0).sum()) else sample == 0)
    return Frame(
        frame.path,
        frame.lines[at],
        {name: values[at] for name, values in frame.numbers.items()},
        {name: Words(each.codes[at], each.names) for name, each in frame.words.items()},
        {name: [values[i] for i in at] for name, values in frame.objects.items()},
    )


def _filtered(data: Data, plan: AuditPlan) -> Data:
    """Keep the rows that every --where names."""
    chosen = np.ones(len(data), bool)
    for i, text in enumerate(plan.where):
        words, wanted = data.words[f"where {i}"], text.partition("=")[2]
        if wanted not in words.names:
            raise UserError(f"--where {text}: no row has that value; there are {', '.join(words.names[:20])}")
        chosen &= words.codes == words.names.index(wanted)
    if chosen.all():
        return data
    data.notes.append(f"{int((~chosen).sum()):,} of {len(data):,} rows were left out by --where {' '.join(plan.where)}")
    if not chosen.any():
        raise UserError("no row is left: the --where conditions exclude each other")
    return data.rows(chosen)


def _without_empty_gold(data: Data) -> Data:
    """Leave out the gold columns that hold nothing; UserError when none holds anything."""
    gold = data.plan.gold
    rated = [i for i in range(len(gold)) if _holds(data, f"gold {i}")]
    if len(rated) == len(gold):
        return data
    empty = ", ".join(repr(name) for i, name in enumerate(gold) if i not in rated)
    if not rated and data.plan.file.is_dir() and data.plan.gold_file is None and gold == ("gold",):
        data.notes += [] if data.gold_of_pairs else ["the run has no gold for these rows"]
    elif not rated and not data.gold_of_pairs:
        raise UserError(f"{data.frame.path}: no row has gold in {empty}: is it the right column?")
    elif not data.gold_of_pairs:  # of choices, what a column rated is told where choices are measured
        data.notes.append(f"{empty} rated nothing: left out")
    columns: tuple[dict[str, Any], ...] = (data.numbers, data.words, data.objects, data.places)
    for kept in columns:
        found = {i: kept.pop(f"gold {i}") for i in range(len(gold)) if f"gold {i}" in kept}
        kept.update((f"gold {new}", found[old]) for new, old in enumerate(rated) if old in found)
    data.plan = dataclasses.replace(data.plan, gold=tuple(gold[i] for i in rated))
    return data


def _holds(data: Data, role: str) -> bool:
    """Whether a column has any value."""
    if role in data.numbers:
        return not bool(np.isnan(data.numbers[role]).all())
    if role in data.words:
        return bool((data.words[role].codes >= 0).any())
    return any(value is not None for value in data.objects[role])
