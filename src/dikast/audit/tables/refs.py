"""References to columns: the role of each, and its file."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dikast.audit.plan import AuditPlan
from dikast.audit.tables.derived import in_order
from dikast.audit.tables.long_form import ALL, LongRows
from dikast.audit.tables.record_rows import GoldOfItems, gold_by_item
from dikast.audit.tables.run_rows import LENGTH, PROMPT, has_gold, kept_metadata, of_shared_responses
from dikast.core.errors import UserError
from dikast.core.gold import LABEL_CHANCE
from dikast.core.item import plain_name
from dikast.core.records.column_names import SYSTEMS
from dikast.core.runs.run_files import GOLD

UNEQUAL = (
    "labels were chosen with unequal chances (label_chance): the mean of gold under few labels allows for it; agreement"
    " and bias are of the labelled rows, of which more are rows that the judge was less certain of"
)
UNEQUAL_PAIRS = (
    "labels were chosen with unequal chances (label_chance): accuracy is of the labelled pairs, of which more are pairs"
    " that the judge was less certain of"
)
_COMPARED = ("score", "rival", "retest", "earlier", "swapped", "gold")  # roles, of which no two are one column
_CHANCE = "chance "  # before a number: roles of columns that may hold chances
PLAYED_LENGTH = "played length"  # the role of the lengths that a run measured of the responses of its systems
NAMED = "named "  # before a column: the role of one that seems to name the items of a table without ids
_OF_ITEMS = ("item", "item_id", "question_id", "prompt_id", "example_id", "sample_id", "instance_id", "qid", "uid")
SLOTS = ("written first", "written second")  # the systems that wrote the responses of a pair, where columns say so
PLAYED = ("played system", "played prompt")  # whose response a row is of, and what was asked, for a leaderboard


class Ref(NamedTuple):
    """A column and the file it stands in ("" for the audited one)."""

    name: str
    file: str

    @classmethod
    def of(cls, text: str) -> "Ref":
        """Read `COLUMN` or `COLUMN@FILE`."""
        name, _, file = text.partition("@")
        if not name:
            raise UserError(f"{text!r} names no column: write COLUMN, or COLUMN@FILE")
        return cls(name, file)


@dataclass(slots=True)
class Refs:
    """Each role and the column that plays it, by how it is read."""

    numbers: dict[str, Ref] = field(default_factory=dict)
    words: dict[str, Ref] = field(default_factory=dict)
    objects: dict[str, Ref] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)  # the derived column that plays a role

    def all(self) -> list[Ref]:
        """Every column that is read from a file."""
        return [*self.numbers.values(), *self.words.values(), *self.objects.values()]


def refuse_twice(refs: Refs) -> None:
    """UserError where two roles that are compared with each other have one column, which agrees with itself."""
    played: dict[Ref, str] = {}
    for role, ref in (*refs.numbers.items(), *refs.words.items(), *refs.objects.items()):
        name = role.split()[0]
        if name not in _COMPARED:
            continue
        if ref in played and {played[ref], name} & {"score", "gold"}:  # others are compared with these alone
            other = f"--{played[ref]} and --{name}" if played[ref] != name else f"--{name} twice"
            raise UserError(f"{other}: column {ref.name!r} would be compared with itself; name another column")
        played[ref] = name


def take_derived(refs: Refs, plan: AuditPlan) -> None:
    """Roles that derived columns play, and what these are made of in their place."""
    names = {column.name for column in plan.columns}
    for kind, found in (("numbers", refs.numbers), ("words", refs.words), ("objects", refs.objects)):
        for role, ref in list(found.items()):
            if ref.name in names and ref.file in ("", str(plan.gold_file)):
                refs.made[f"{kind}:{role}"] = ref.name
                del found[role]
    for column in in_order(plan.columns, list(refs.made.values())):
        for name in column.all_inputs:
            if name not in names:
                refs.objects[f"input {name}"] = Ref.of(name)


def label_chances(refs: Refs) -> dict[str, Ref]:
    """Where the probability with which a row was chosen to be labelled may stand: beside gold, or in the audited file.

    `dikast annotate --order active` writes it. Call it when derived columns are known by what they are made of.
    """
    roles = {**refs.numbers, **refs.words, **refs.objects}
    files = [ref.file for kind in ("gold ", "input ") for role, ref in roles.items() if role.startswith(kind)]
    gold = any(role.startswith("gold ") for role in (*roles, *(made.partition(":")[2] for made in refs.made)))
    return (
        {f"{_CHANCE}{i}": Ref(LABEL_CHANCE, file) for i, file in enumerate(dict.fromkeys([*files, ""]))} if gold else {}
    )


def take_chance(objects: dict[str, list[Any]]) -> None:
    """Keep as the role `chance` the first of the columns of `label_chances` that holds anything."""
    found = [objects.pop(role) for role in sorted(objects) if role.startswith(_CHANCE)]
    if (first := next((each for each in found if any(value not in (None, "") for value in each)), None)) is not None:
        objects["chance"] = first


class Long(NamedTuple):
    """A file in long form, folded, and the name it was given by ("" for the audited one)."""

    rows: LongRows
    file: str


def refuse_all_of_nothing(plan: AuditPlan) -> None:
    """`.*` names nothing where no file is in long form."""
    for name in plan.gold:
        if Ref.of(name).name.endswith(f".{ALL}") and not plan.long:
            raise UserError(
                f"--gold {name}: '.*' is what all raters of a file in long form said (--long); name the entries of a "
                f"list one by one ({name.removesuffix('*')}0, ...), or derive a column from it"
            )


def rated(plan: AuditPlan, long: Long) -> AuditPlan:
    """The plan with `COLUMN.*` among its gold written out, one column for each rater that has no other role."""
    gold = list[str]()
    file = f"@{long.file}" if long.file else ""
    others = [getattr(plan, role) for role in ("score", "rival", "retest", "earlier", "swapped")]
    taken = [Ref.of(name).name for name in (*others, *plan.gold) if name]
    for name in plan.gold:
        ref = Ref.of(name)
        all_of = ref.name.endswith(f".{ALL}") and ref.file == long.file
        gold += [each + file for each in long.rows.expand(ref.name, taken)] if all_of else [name]
    return dataclasses.replace(plan, gold=tuple(gold))


def take_unnamed(refs: Refs, plan: AuditPlan, record: Mapping[str, Any] | None) -> None:
    """Put columns that no option names under their roles: of a table with this first `record`, or of a run (None)."""
    if record is not None and not plan.key and not plan.cluster and "id" not in record:
        names = {plain_name(name): name for name in reversed(list(record))}
        found = next((names[name] for name in _OF_ITEMS if name in names), "")
        if found and Ref(found, "") not in refs.all():
            refs.words[NAMED + found] = Ref(found, "")
    if record is not None and plan.pairwise:
        names = {plain_name(name): name for name in reversed(list(record))}
        both = next(([names[a], names[b]] for a, b in SYSTEMS if {a, b} <= names.keys()), ())
        refs.words |= {role: Ref(name, "") for role, name in zip(SLOTS, both, strict=False)}
    if not (plan.pairwise or plan.ranked):
        _take_played(refs, plan, run=record is None)


def _take_played(refs: Refs, plan: AuditPlan, *, run: bool) -> None:
    """Put the columns of a leaderboard under their roles: of a run whose items name several systems, or of a table."""
    columns = plan.players
    if run:
        columns, measured = _players_of(plan.file)
        refs.numbers |= {PLAYED_LENGTH: Ref(LENGTH, "")} if measured else {}
    refs.words |= {role: Ref(name, "") for role, name in zip(PLAYED, columns, strict=False)}


def within_columns(plan: AuditPlan, run: bool) -> dict[str, str]:
    """The columns of agreement within groups by role; of runs whose items share responses these, unless told others."""
    unasked = run and bool(plan.gold) and not (plan.pairwise or plan.ranked or plan.within)
    within, *over = (of_shared_responses(plan.file) if unasked else ()) or (plan.within,)
    if plan.over and not within:
        raise UserError("--over needs --within: name the column of groups, such as that of responses")
    return {"within": within, **{f"over {name}": name for name in plan.over or over}} if within else {}


def _players_of(folder: Path) -> tuple[tuple[str, ...], bool]:
    """The columns that name the system and the prompt of each response, of a run that judged several systems; whether
    it measured the responses.
    """
    kept = [about for about in kept_metadata(folder).values() if len(about.get("systems", ())) == 1]
    if len({about["systems"][0] for about in kept}) < 2:
        return (), False
    columns = ("system", PROMPT) if any(about.get("prompt") for about in kept) else ("system",)
    return columns, any("lengths" in about for about in kept)


def beside(file: str, main: Path) -> str:
    """A joined file as named, or beside the audited one."""
    if Path(file).exists():
        return file
    near = (main if main.is_dir() else main.parent) / file
    return str(near) if near.exists() else file


def run_gold(plan: AuditPlan, names: list[str]) -> GoldOfItems:
    """Gold of a run folder: from --gold-file, or from the gold that the run wrote beside its verdicts."""
    key = plan.key[0] if len(plan.key) == 1 else ""
    if plan.gold_file is not None:
        return gold_by_item(plan.gold_file, [*(names or ["gold"]), LABEL_CHANCE], key)
    if not has_gold(plan.file) or (names and names != ["gold"]):
        return GoldOfItems()
    return gold_by_item(plan.file / GOLD, ["gold"])
