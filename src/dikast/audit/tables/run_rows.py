"""The rows of a run folder: current verdicts only, both orders of a pair side by side, gold beside them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from dikast.audit.tables.columns import Words
from dikast.audit.tables.record_rows import GoldOfItems, Rows
from dikast.audit.tables.row_scales import scales_by_rubric
from dikast.core.canonical import fingerprint
from dikast.core.distribution import likeliest_choice, mean_distribution
from dikast.core.errors import DataError, UserError
from dikast.core.gold import LABEL_CHANCE, gold_number, gold_of_pair, gold_of_response, named_side, stated
from dikast.core.records import escaped_formula
from dikast.core.runs.current_verdicts import RunReader
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.run_files import AGAIN, COMBINED, GOLD, META, VERDICTS, check
from dikast.core.runs.samples import Vote, join_votes
from dikast.core.runs.schema import GoldLine, MetaLine, derived_lines
from dikast.core.scale import Scale
from dikast.core.text import counted
from dikast.core.verdict import Verdict, joint_outcome

JOINT = -1  # the `sample` of a row that joins all samples of its question
ORDERS = ("shown", "swapped")  # of a pair: a first, b first
LABELS = ("a", "b", "tie")  # of one order of a pair, as responses
PROMPT = "prompt fingerprint"  # the column that is alike for the responses of several systems to one prompt
SAMPLES_MEAN = "mean of samples"  # the column of the mean score of the samples of a question
LENGTH = "response length"  # in characters; of a pair of two systems that of its second response minus the first
RESPONSE = "meta.response"  # the column of metadata that names a response which stands under several rubrics
NAMED = ("meta.phrase", "meta.composition")  # by which a rubric's text names what it weighs, and what it combines
CONFLICT = "conflict"  # the word in the column `conflict` of a verdict that its own reply contradicts
ASKED_ONCE = "asked once"  # marks a pair that a ranking asked in one order, beside pairs with both
_OF_ONE_ORDER = ("status", "marker", "distribution", "conflict", "line")
_KEPT = ("label", "score", "expected", "mass", "marker", "distribution", "feedback", "claims")
_OWN = frozenset({  # columns that metadata never gives, whatever the run holds
    "item", "criterion", "rubric", "sample", "status", "conflict", "line", "response", "first", "second", "choice",
    *ORDERS, *(f"{name}_{order}" for name in _OF_ONE_ORDER for order in ORDERS),
})  # fmt: skip


Pairs = dict[tuple[Any, ...], tuple[dict[str, Any], int]]  # the row of each pair, and its first line
Parts = dict[tuple[Any, ...], dict[int, tuple[str, float | None]]]  # the key and the score of each sample of a question


@dataclass(slots=True)
class RunRows(Rows):
    """The verdicts of a run folder, one row for each response or, in a pairwise run, for each pair with both orders.

    Rows hold `item`, `criterion`, `rubric` (its hash), `sample`, `status`, `label`, `score`, `expected`, `mass`,
    `marker`, `conflict` (that word where another verdict of the reply contradicts it, else None), `distribution`,
    `feedback` and `claims`; `response` for a response, and `line`, where its verdict stands in `verdicts.jsonl`;
    `mean of samples`, the mean of the scores that its samples were given (of one sample its own score). For a pair
    `first` < `second` (indices), and `choice`, the joint verdict: "a", "b", "tie" (as responses) or "disagree", None
    where either order has none. What is about one order says so: `shown` (a first) and `swapped` (b first), each
    with its `status_...`, `marker_...`, `conflict_...`, `line_...` and `distribution_...`; a run that asked in one
    order has no `swapped` ones. `status`, `marker` and `distribution` of a pair join these (`_pair_joined`). Verdicts
    that are not of the current configuration (`keys.txt`) are left out and counted in `stale`. Where the run joined
    several samples of a response, the joint verdicts (`combined.jsonl`) follow with the sample -1; those that do not
    join the very verdicts that are current are left out and counted in `outdated`. Several samples of a pair are joined
    here, as sample -1.
    Each row also has the metadata of its item, under its own names (where a name is one of the above, only as
    `meta.NAME`), and where columns named the systems whose responses were judged, `system` of a response, `system_a`
    and `system_b` of a pair and `response length`: characters, of a pair those of its second response minus the first.
    `gold` maps a column to item -> value, where a value may be an object by criterion or a list by response; it is read
    on the scale of the rubric, or on `gold_scale`. A ranking asks some pairs in both orders and some in one: if any has
    both, the others are left out and counted in `asked_once`; else the order that was asked stands as `shown`. In a run
    that compares by scores gold is one only as a list by response; else it is a choice, and counted in `of_choices`.
    """

    gold: GoldOfItems = field(default_factory=GoldOfItems)
    gold_scale: Scale | None = None
    stale: int = 0
    outdated: int = 0
    of_choices: int = 0
    asked_once: int = 0
    asked_once_items: frozenset[str] = frozenset()
    _by_scores: bool = False
    _rubrics: dict[str, tuple[str, Scale]] | None = None
    _meta: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        folder = Path(self.path)
        self._meta, self.of_choices = kept_metadata(folder), 0
        self._by_scores = _way_of(folder).get("kind") == "from-absolute"
        pairs: Pairs = {}
        joined, path = (folder / COMBINED).exists(), folder / VERDICTS
        parts: Parts = {}
        reader = RunReader(folder)
        for verdict, line in reader:
            row = self.checked(verdict, path, line)
            if "first" not in row:
                if joined:
                    parts.setdefault(_asked(row), {})[row["sample"]] = (verdict["key"], row["score"])
                yield row, line
                continue
            key = _pair(row)
            if key in pairs:
                pairs[key][0].update(row)
            else:
                pairs[key] = (row, line)
        self.stale = reader.stale
        if "schedule" in _way_of(folder):
            pairs = self._of_schedule(pairs)
        both = any("swapped" in row for row, _ in pairs.values())
        for row, line in pairs.values():
            yield _pair_joined(row, both=both and ASKED_ONCE not in row), line
        if any(row["sample"] != 0 for row, _ in pairs.values()):
            for row, line in _joined(pairs.values()):
                yield _pair_joined(row, both=both), line
        if joined:
            yield from self._joint(folder / COMBINED, parts)

    def an_example(self) -> Mapping[str, Any]:
        """As `Rows.an_example`: what the first verdict says; of a pair its one order, while rows wait for the other."""
        folder = Path(self.path)
        self._meta = kept_metadata(folder)
        verdict, line = next(iter(RunReader(folder)))
        return self.checked(verdict, folder / VERDICTS, line)

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """As `Rows.elsewhere`: gold stands in a file of gold."""
        return dict.fromkeys(self.gold, self.gold.path) if self.gold.path else {}

    def place(self, column: str, record: Mapping[str, Any], line: int) -> tuple[str, int]:
        """As `Rows.place`: of gold the line that holds it."""
        if column not in self.gold or not self.gold.path:
            return self.path, line
        return self.gold.path, self.gold.line(
            str(record["item"]), str(record["criterion"]), record.get("response") or 0
        )

    def notes(self) -> Iterator[str]:
        """What was left out while the rows were read."""
        if self.stale:
            yield f"{counted(self.stale, 'verdict')} of an earlier configuration left out"
        if self.asked_once:
            yield f"{counted(self.asked_once, 'pair')} that the ranking asked in one order only left out"
        if self.outdated:
            yield f"{counted(self.outdated, 'joint verdict')} of other samples left out: run again to join these"
        if self.of_choices:
            yield (
                "gold says which of two responses is better, and these rows are single responses: gold is compared "
                "with the choices that follow from their scores (not with --where)"
            )

    def _of_schedule(self, pairs: Pairs) -> Pairs:
        """The pairs of a ranking that are comparable: those with both orders if there are any, else all in one."""
        twice = {key: found for key, found in pairs.items() if all(order in found[0] for order in ORDERS)}
        self.asked_once = len(pairs) - len(twice) if twice else 0
        self.asked_once_items = frozenset(str(key[0]) for key in pairs if key not in twice) if twice else frozenset()
        return twice or {key: (_as_shown(row), line) for key, (row, line) in pairs.items()}

    def _joint(self, path: Path, parts: Parts) -> Iterator[tuple[dict[str, Any], int]]:
        self.outdated = 0
        for verdict, line in derived_lines(path.parent, COMBINED, Verdict):
            row = self.checked(verdict, path, line)
            asked = [part for _, part in sorted(parts.get(_asked(row), {}).items())]
            if verdict["key"] == fingerprint([key for key, _ in asked]):
                scores = [score for _, score in asked if score is not None]
                yield row | {"sample": JOINT, SAMPLES_MEAN: fmean(scores) if scores else None}, line
            else:
                self.outdated += 1

    def checked(self, verdict: dict[str, Any], path: Path, line: int) -> dict[str, Any]:
        """The row of one verdict; DataError for a record that is none."""
        try:
            return self._row(verdict, line)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"not a verdict ({error!r})", path=str(path), line=line) from None

    def _row(self, verdict: dict[str, Any], line: int) -> dict[str, Any]:
        question, responses = verdict["question"], verdict["question"].get("responses") or [0]
        row = {name: question.get(name) for name in ("item", "criterion", "sample")}
        conflict = CONFLICT if verdict.get("conflict") else None
        row["rubric"] = (verdict.get("hashes") or {}).get("rubric")
        if len(responses) == 1:
            row |= {name: verdict.get(name) for name in _KEPT} | {"status": verdict["status"]}
            row |= {"response": responses[0], "conflict": conflict, "line": line, SAMPLES_MEAN: row["score"]}
        else:
            row["first"], row["second"] = sorted(responses[:2])
            order = "swapped" if responses[0] > responses[1] else "shown"
            row[order] = verdict.get("label")
            row |= {f"{name}_{order}": verdict.get(name) for name in ("status", "marker", "distribution")}
            row[f"conflict_{order}"], row[f"line_{order}"] = conflict, line
        if about := self._meta.get(str(row["item"])):
            row = {**about_columns(about, responses), **row}
        for column, values in self.gold.items():
            item = str(row["item"])
            value = values.get(item, values.get(escaped_formula(item)))  # as `dikast export` wrote it to a table
            if value is not None:
                row[column] = self._gold(value, row, responses, as_written=column == LABEL_CHANCE)
        return row

    def _gold(self, value: Any, row: Mapping[str, Any], responses: Sequence[int], *, as_written: bool) -> Any:
        """Gold of one question: a number in the values of its scale, or of a pair the better one."""
        if as_written:
            return gold_of_response(value, str(row["criterion"]), responses[0])
        if self._rubrics is None:
            known = scales_by_rubric(Path(self.path))
            self._rubrics = {name: (name, scale) for name, scale in known.values()} | known  # by name too
        _, scale = self._rubrics.get(str(row["rubric"] or row["criterion"]), ("", None))
        if self.gold_scale is not None:
            scale = replace(self.gold_scale, lower_is_better=scale is not None and scale.lower_is_better)
        if len(responses) > 1:
            found = gold_of_pair(value, str(row["criterion"]), responses, scale)
            return named_side(found, (row.get("system_a"), row.get("system_b")))
        if self._by_scores and not isinstance(stated(value, str(row["criterion"]), pair=True), list):
            self.of_choices += 1
            return None
        found = gold_of_response(value, str(row["criterion"]), responses[0])
        number = gold_number(found, scale) if scale is not None else None
        return found if number is None else number


def kept_metadata(folder: Path) -> dict[str, dict[str, Any]]:
    """What a run kept of each item's metadata; runs of earlier versions kept none."""
    found: dict[str, dict[str, Any]] = {}
    for about, _ in derived_lines(folder, META, MetaLine):
        found[about["item"]] = about
    return found


def of_shared_responses(folder: Path) -> tuple[str, ...]:
    """`RESPONSE` if every item of a run names its response and some share one, and those of `NAMED` that all have."""
    kept = [about.get("meta", {}) for about in kept_metadata(folder).values()]
    columns = [name for name in (RESPONSE, *NAMED) if all(meta.get(name.partition(".")[2]) for meta in kept)]
    shared = RESPONSE in columns and len({str(meta["response"]) for meta in kept}) < len(kept)
    return tuple(columns) if shared else ()


def about_columns(about: Mapping[str, Any], responses: Sequence[int]) -> dict[str, Any]:
    """Columns of a row from what is kept about its item (`kept_metadata`): its metadata and systems."""
    meta, systems, lengths = about.get("meta", {}), about.get("systems", []), about.get("lengths", [])
    places = sorted(responses[:2])
    names = [systems[i] if i < len(systems) else None for i in places]
    if not systems:
        named = {}
    elif len(names) == 1:
        named = {"system": names[0], PROMPT: about.get("prompt")}
        named |= {LENGTH: lengths[places[0]]} if places[0] < len(lengths) else {}
    else:
        named = {"system_a": names[0], "system_b": names[1]}
        if places[1] < len(lengths):
            named |= {LENGTH: lengths[places[1]] - lengths[places[0]]}
    return {"meta": meta, **{name: value for name, value in meta.items() if name not in _OWN}, **named}


def _joined(pairs: Iterable[tuple[dict[str, Any], int]]) -> Iterator[tuple[dict[str, Any], int]]:
    """One row for each pair from all its samples: in each order the likeliest choice of the mean of their distributions
    (of labels, where there are none), as a run joins them. A sample without a verdict has no vote; where all failed
    the first failure stands.
    """
    groups: dict[tuple[Any, ...], list[tuple[dict[str, Any], int]]] = {}
    for row, line in pairs:
        groups.setdefault((row["item"], row["criterion"], row["first"], row["second"]), []).append((row, line))
    for group in groups.values():
        rows = sorted((row for row, _ in group), key=lambda row: row["sample"])
        joint = rows[0] | {"sample": JOINT}
        for order in ORDERS:
            asked = [row for row in rows if order in row]
            if not asked:
                continue
            joint |= _joined_order(asked, order)
        yield joint, group[0][1]


def _joined_order(asked: Sequence[Mapping[str, Any]], order: str) -> dict[str, Any]:
    """The columns of one order of a pair from all samples of it."""
    status, marker, read, conflict, _ = (f"{name}_{order}" for name in _OF_ONE_ORDER)
    voting = [row for row in asked if row.get(status) == "ok"]
    if not voting:
        return {order: None, conflict: None, read: None, **{name: asked[0].get(name) for name in (status, marker)}}
    votes = [Vote(str(row[order]), row[read], row.get(marker) == "forced", bool(row.get(conflict))) for row in voting]
    found = join_votes(votes, LABELS)
    return {
        order: likeliest_choice(found.distribution),
        status: "ok",
        marker: "forced" if found.forced else voting[0].get(marker),
        conflict: CONFLICT if found.conflict else None,
        read: found.distribution if found.read else None,
    }


def _pair(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["item"], row["criterion"], row["sample"], row["first"], row["second"]


def _way_of(folder: Path) -> Mapping[str, Any]:
    return (read_lock(folder) or {}).get("way") or {}


def _as_shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of one order with that order as `shown`."""
    names = {"swapped": "shown", **{f"{name}_swapped": f"{name}_shown" for name in _OF_ONE_ORDER}}
    return {names.get(name, name): value for name, value in row.items()}


def _pair_joined(row: dict[str, Any], *, both: bool) -> dict[str, Any]:
    """The row of a pair with what its orders say together; `both` orders are due, or the one that was asked.

    `choice` by `joint_outcome`; `status` "ok", or that of the first order without a verdict ("unasked" where a run has
    not come to it); `marker` "forced" if it was in either order; `distribution` the mean of both orders, None unless
    each has one.
    """
    orders = [order for order in ORDERS if both or order in row]
    said = [row.get(order) for order in orders]
    known = [read for order in orders if (read := row.get(f"distribution_{order}"))]
    markers = [row.get(f"marker_{order}") for order in orders]
    statuses = [row.get(f"status_{order}", "unasked") for order in orders]
    return row | {
        "choice": joint_outcome(said[0], said[-1]),
        "status": next((each for each in statuses if each != "ok"), "ok"),
        "marker": "forced" if "forced" in markers else next((each for each in markers if each), None),
        "distribution": mean_distribution(known, LABELS) if len(known) == len(orders) else None,
    }


def _asked(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["item"], row["criterion"], row["response"]


def asked_orders(folder: Path) -> set[str] | None:
    """The pair orders (of ORDERS) in a run: empty for single responses, None if the run has no verdict.

    Stops after the block of lines in which both orders were seen, in a ranking those of one pair. UserError or
    DataError as `open_rows`.
    """
    rows, of_pairs = open_rows(folder), "schedule" in _way_of(folder)
    found: dict[Any, set[str]] = {}
    for verdict, line in RunReader(folder):
        row = rows.checked(verdict, folder / VERDICTS, line) if isinstance(rows, RunRows) else {}
        orders = found.setdefault(_pair(row) if of_pairs and "first" in row else (), set())
        orders |= row.keys() & set(ORDERS)
        if "first" not in row or len(orders) == len(ORDERS):
            return orders
    return ({"shown"} if of_pairs else found[()]) if found else None


def gold_scale_of(folder: Path) -> Scale | None:
    """The scale of its own that the gold of a run lies on, as `--equate` said when the run was made."""
    if not has_gold(folder):
        return None
    first, line = next(derived_lines(folder, GOLD, GoldLine))
    try:
        return Scale.parse(first["scale"]) if "scale" in first else None
    except UserError as error:
        raise DataError(f"{error}: {AGAIN}", path=str(folder / GOLD), line=line, field="scale") from error


def open_rows(path: str | Path, gold: GoldOfItems | None = None, gold_scale: Scale | None = None) -> Rows:
    """The rows of a file, or of a folder that a run wrote."""
    if Path(path).is_dir():
        if not (Path(path) / VERDICTS).exists():
            inner = sorted(each.parent.name for each in Path(path).glob(f"*/{VERDICTS}"))
            hint = f"; runs lie in {', '.join(inner[:10])}: audit one of them" if inner else ""
            raise UserError(f"{path}: not a run folder: it holds no {VERDICTS}{hint}")
        return RunRows(str(path), gold=gold or GoldOfItems(), gold_scale=gold_scale)
    return Rows(str(path))


def has_gold(folder: Path) -> bool:
    """Whether any item of a run had gold; where none had, the run leaves an empty file."""
    path = folder / GOLD
    check(folder, GOLD)
    return path.is_file() and path.stat().st_size > 0


def unmatched_items(items: Words | None, gold: GoldOfItems, left_out: Collection[str]) -> list[str]:
    """Which items lack gold or a verdict; those of pairs that were `left_out` were judged."""
    if not gold or items is None:
        return []
    judged = set(items.names)
    known = set().union(*gold.values())
    found = []
    if without := len(judged - known):
        found.append(f"{counted(without, 'judged item')} without gold")
    if unused := len(known - judged - set(left_out)):
        found.append(f"{counted(unused, 'item')} with gold that were not judged")
    return found
