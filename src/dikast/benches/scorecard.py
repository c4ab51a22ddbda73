"""The scorecard of a judge on a bench: the official figure and Dikast's own, from one audit of the same rows."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.audit.audit import audit_rows
from dikast.audit.estimate import Estimate, undefined
from dikast.audit.graded_pairs import ALONE, of_choices
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit, Table, table
from dikast.audit.results import Accuracy, Agreement, Baselines, Calibration, Failures, Orders, plain
from dikast.audit.sections.players import NothingToRankError
from dikast.audit.tables.run_rows import SAMPLES_MEAN, kept_metadata
from dikast.benches.bench_terms import KINDS
from dikast.benches.brought import MODEL
from dikast.benches.definition import Bench, load_bench
from dikast.benches.length import length_bias
from dikast.benches.official import columns_of, floors, official_figures
from dikast.benches.pair_points import with_strength
from dikast.benches.subset import asked_of, drawn_whole, told_of_rows
from dikast.benches.unit_means import OfficialFigure
from dikast.core.errors import DataError, UserError
from dikast.core.records import read_records
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import COMBINED, GOLD, changed_files
from dikast.core.runs.schema import GoldLine, derived_lines, fields_misfit
from dikast.core.text import counted

RATERS = "raters.jsonl"  # file in the run folder: what each rater said of an item, where some have several
BENCH = "bench.json"  # file in the run folder: the bench of its items, and how they were sampled
SCHEMA = 2  # 1 had the figures over all rows among the official ones
_OURS = ("pearson", "spearman", "kendall_tau_b", "exact", "mae", "bias")
_ROLES = {"floor": "floor", "ceiling": "ceiling", "other": "beside"}
_ABOUT = {
    "bench": str, "file": str, "hash": str, "rows": int, "taken": int, "prompt": str, "left_out": Mapping[str, int],
    "notes": tuple[str, ...],
}  # fmt: skip
_SAME_JUDGE = 4  # minimum letters that two names must share to be reported as related


@dataclass(frozen=True, slots=True)
class Scorecard:
    """The results of a judge on a bench. `told` describes the rows of every figure: which, how many, how sampled.

    `official` is what the authors' code would report, `ours` the audit's main figures; `audit` holds all its tables.
    `beside` are more figures with their rules: length bias, and differences from runs without pictures. `plan` is that
    of the audit, for a run; `without` what the run left out of its questions; `alone` whether the responses of a pair
    were graded separately, so that verdicts have no order; `floors` what judges earn that read nothing, by the official
    rule; `cut` whether the budget ended the run before all was asked, so that questions without an answer are no
    failures.
    """

    bench: Bench
    judge: str
    told: tuple[str, ...]
    official: tuple[OfficialFigure, ...]
    audit: Audit
    spent: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    beside: tuple[tuple[str, Estimate, str], ...] = ()
    plan: AuditPlan | None = None
    without: tuple[str, ...] = ()
    alone: bool = False
    floors: tuple[tuple[str, Estimate, str], ...] = ()
    cut: bool = False

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader has to know before the figures: which rows, how far the bench was checked, what misleads."""
        return (*self.warnings, *self.told, *filter(None, [self.bench.official.trap]))

    @property
    def tables(self) -> list[Table]:
        """The two tables of the scorecard, then the audit's."""
        groups = [each for each in (self._groups(),) if each is not None]
        return [self._figures(), *groups, *self.audit.tables]

    def _figures(self) -> Table:
        rows: list[list[Any]] = []
        for each in self.official:
            rows.append([each.title, each.value.n, each.value, each.rule])
        rows += [[name, each.n, each, rule] for name, each, rule in self._ours()]
        rows += [[name, self.spent["verdicts"], number, rule] for name, number, rule in _costs(self.spent)]
        notes = [self.bench.official.trap, *self.told, *self.warnings]
        return table("scorecard", f"{self.bench.title}: {self.judge}", ("figure", "n", "value", "rule"), rows, *notes)

    def _ours(self) -> Iterator[tuple[str, Estimate, str]]:
        yield from self._headlines()
        accuracy = self.audit.result(Accuracy)
        if (failures := self.audit.result(Failures)) is not None and not self.cut:
            both = accuracy is not None and not accuracy.one_order and not self.alone
            lost = "share of pairs without a verdict in one order or both" if both else "share without a verdict"
            yield "failed", failures.failed, lost
        if (orders := self.audit.result(Orders)) is not None:
            yield "same in both orders", orders.same, "of pairs with a verdict in both"
            for name, each in orders.disagreements.items():
                yield f"position bias: {name}", each, "of pairs with a choice in both orders: these disagree so"
        yield from self.beside
        yield from ((f"floor: {name}", each, rule) for name, each, rule in self.floors)
        if (beside := self.audit.result(Baselines)) is not None:
            for row in beside.rows:
                if row.role == "floor" and accuracy is not None:
                    continue  # of responses, whatever their slots
                for name in ("all",) if accuracy is not None else ("pearson", "exact"):
                    if row.role != "judge" and name in row.statistics:
                        told = "accuracy" if name == "all" else name
                        yield f"{_ROLES[row.role]}: {row.label} ({told})", row.statistics[name], told
        if (calibration := self.audit.result(Calibration)) is not None and "as read" in calibration.errors:
            yield (
                "calibration error",
                calibration.errors["as read"],
                calibration.told or "of the probabilities read from the model",
            )

    def _headlines(self) -> Iterator[tuple[str, Estimate, str]]:
        accuracy, agreement = self.audit.result(Accuracy), self.audit.result(Agreement)
        if accuracy is not None:
            order = (
                "each graded alone" if self.alone else "one order" if accuracy.one_order else "both orders must agree"
            )
            half = "pairs whose gold is a tie are left out; a tie, or orders that disagree, earn a half"
            left = "pairs whose gold is a tie are left out; a tie, or orders that disagree, are wrong"
            rules = [("accuracy", "all", order), ("accuracy, ties half", "half", half)]
            if accuracy.rules["no_gold_ties"].n < accuracy.rules["all"].n:
                rules.insert(1, ("accuracy, without gold ties", "no_gold_ties", left))
            for name, rule, told in rules:
                bounds = _bounds(*accuracy.bounds.get(rule, (None, None)))
                weighed = "all rows alike, where the official figure weighs groups; "
                alike = "" if self.bench.official.over in ("rows", "verdicts") else weighed
                if self.bench.official.printed:
                    alike = "all rows alike, where the official figures are of some groups; "
                yield f"ours: {name}", accuracy.rules[rule], f"{told}; {alike}{bounds}"
        for figure in self.official:
            if figure.answered is not None:
                told = f"rows with a verdict, all alike; {_bounds(*(figure.bounds or (None, None)))}"
                yield f"ours: {figure.name}", figure.answered, told
        if agreement is not None:
            for name in _OURS:
                if name in agreement.statistics:
                    head = agreement.statistics[name]
                    yield f"ours: {name}", head.value, _extremes(head.worst, head.best)

    def _groups(self) -> Table | None:
        names = list(dict.fromkeys(name for each in self.official for name in each.groups))
        if not names:
            return None
        figures = [(name, each) for figure in self.official for name, each in _by_group(figure) if each]
        rows = [[group, *(each.get(group) for _, each in figures)] for group in names]
        return table("official by group", "Official figures by group", ("group", *(name for name, _ in figures)), rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are null."""
        return {
            "schema": SCHEMA,
            "bench": self.bench.name,
            "state": self.bench.state,
            "judge": self.judge,
            "told": list(self.told),
            "warnings": list(self.warnings),
            "official": [_plain(each) for each in self.official if not each.pooled],
            "pooled": [_plain(each) for each in self.official if each.pooled],
            "ours": {name: {**each.to_dict(), "rule": rule} for name, each, rule in self._ours()},
            "spent": dict(self.spent),
            "audit": self.audit.to_dict(),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Flat rows, one for each figure and group, as in the CSV."""
        base = {"bench": self.bench.name, "state": self.bench.state, "judge": self.judge}
        told = "; ".join(self.told)
        for figure in self.official:
            whole = (figure.title, {"": figure.value}, figure.rule)
            theirs = (f"official: {figure.name}", figure.groups, figure.rule)
            ours = [(f"ours: {figure.name}", groups, rule) for rule, groups in figure.ours.items()]
            for name, groups, rule in (whole, theirs, *ours):
                for group, each in groups.items():
                    yield {**base, "figure": name, "group": group, **_flat(each), "rule": rule, "told": told}
        for name, each, rule in self._ours():
            yield {**base, "figure": name, "group": "", **_flat(each), "rule": rule, "told": told}
        for name, number, rule in _costs(self.spent):
            blank = dict.fromkeys(("low", "high", "level", "dropped"), "")
            cells = {"n": self.spent["verdicts"], "value": number, **blank, "rule": rule, "told": told}
            yield {**base, "figure": name, "group": "", **cells}


def _by_group(figure: OfficialFigure) -> Iterator[tuple[str, Mapping[str, Estimate]]]:
    """The authors' figure of each group, then ours beside it."""
    yield figure.name, figure.groups
    yield from ((f"ours: {figure.name}, {rule}", each) for rule, each in figure.ours.items())


def _plain(figure: OfficialFigure) -> dict[str, Any]:
    """A figure of the authors' rule as JSON values."""
    told = {"metric": figure.name, "value": plain(figure.value), "groups": plain(figure.groups)}
    return {**told, "rule": figure.rule, "ours": plain(figure.ours)}


def _flat(each: Estimate) -> dict[str, Any]:
    """An estimate as cells; "" where it is undefined."""
    return {
        "n": each.n,
        **{name: value if math.isfinite(value) else "" for name, value in
           (("value", each.value), ("low", each.low), ("high", each.high))},
        "level": each.level,
        "dropped": each.dropped,
    }  # fmt: skip


def _extremes(worst: float | None, best: float | None) -> str:
    """Of a figure whose best value may lie inside its range, as 0 does for bias."""
    if worst is None or best is None or math.isnan(worst) or math.isnan(best):
        return _bounds(None, None)
    return f"at worst {worst:.4f} and at best {best:.4f}, whatever the missing verdicts had been"


def _bounds(worst: float | None, best: float | None) -> str:
    if worst is None or best is None or math.isnan(worst) or math.isnan(best):
        return "missing verdicts are dropped and counted"
    return f"between {worst:.4f} and {best:.4f} whatever the missing verdicts had been"


def scorecard(
    run: Path, asked: AuditPlan | None = None, *, about: Path | None = None, told: Sequence[str] = ()
) -> Scorecard:
    """The scorecard of a run that `dikast bench run` made; UserError for any other folder.

    `about` is the folder that names the bench; for a judge of a panel, the panel's. `told` stands beside what that
    folder says of the rows.
    """
    noted = read_about(about or run)
    bench = bench_of(about or run)
    if noted["hash"] not in bench.hashes:
        raise UserError(f"{run}: bench {bench.name!r} has changed since this run: run it again into a new folder")
    groups = sorted(bench.groups, key=lambda name: name != bench.official.group)
    plan = asked or AuditPlan(run)
    if plan.second and not plan.second.startswith("="):
        groups.append(plan.second)  # the models that play against the baseline
    models = {str(each["meta"][MODEL]) for each in kept_metadata(run).values() if MODEL in each.get("meta", {})}
    if bench.responses == "to be brought" and len(models) > 1 and MODEL not in groups:
        groups.append(MODEL)
        told = (*told, f"figures of all rows pool the responses of {len(models)} models; each model's are by group")
    plan = replace(plan, file=run, by=tuple(groups[:1]))
    if bench.kind == "scores" and bench.protocol.samples > 1 and (run / COMBINED).exists():
        plan = replace(plan, score=SAMPLES_MEAN)  # as the authors join their runs
    plan = _with_raters(plan, bench, about or run)
    summary = Run(run).summary
    crossed = [(name,) for name in groups]
    alone = Run(run).kind == "from-absolute"
    if noted["taken"] < noted["rows"] and not noted.get("whole") and drawn_whole(bench):
        cure = "an earlier version drew single rows: run it again into a new folder"
        told = (*told, f"its figure is of whole groups, and the sample holds parts of them, which raises it; {cure}")
    put, of = asked_of(summary)
    if put < of:
        told = (
            f"cut short: {put:,} of {counted(of, 'question')} asked, the budget does not cover the others; "
            "official figures are undefined, the others are of what was asked; run it again with more to continue",
            *told,
        )
    notes = [*told_of_rows(noted, cut=put < of), *told]
    if alone:  # the run notes its rule for equal scores where the authors have another than ties
        notes.append(ALONE.partition(";")[0] if any(each.startswith("equal scores") for each in notes) else ALONE)
    with of_choices(plan) as choices, with_strength(bench, choices) as read:
        if bench.official.strong != 1 and read is plan:
            notes.append("no reply says how strongly a response is better ([[A>>B]]): every win counts as a plain one")
        try:
            found = measured(bench, read, str(summary["judge"]), notes, _spent(summary), crossed)
        except NothingToRankError:
            bare = replace(read, first="", second="", anchor="")
            found = measured(bench, bare, str(summary["judge"]), notes, _spent(summary), crossed)
    audit = replace(found.audit, source=str(run))
    if put < of:
        why = f"undefined: {put:,} of {counted(of, 'question')} asked (budget)"
        blank = undefined(0, why, level=plan.level)
        official = tuple(replace(each, value=blank, groups={}, answered=None, ours={}) for each in found.official)
        found = replace(found, official=official, cut=True)
    return replace(found, audit=audit, plan=plan, without=tuple(noted.get("without", ())), alone=alone or found.alone)


def _with_raters(plan: AuditPlan, bench: Bench, folder: Path) -> AuditPlan:
    """The plan with the bench's raters as gold, so that people are the ceiling; as it is where it names gold.

    The items' own gold stays where it is that of the first rater who spoke, and where the raters of some are not known:
    folders of earlier versions lack those of rows with a single one.
    """
    if plan.gold or plan.gold_file is not None or bench.gold is None or not (folder / RATERS).is_file():
        return plan
    told = [each.value for each in read_records(folder / RATERS)]
    known = {each["item"] for each in told}
    labelled = {line["item"] for line, _ in derived_lines(plan.file, GOLD, GoldLine) if line["gold"] is not None}
    if bench.gold.rule == "first" or labelled - known:
        return plan
    names = dict.fromkeys(name for each in told for name in each if name != "item")
    return replace(plan, gold=tuple(names), gold_file=folder / RATERS, gold_rule=bench.gold.rule)


def measured(
    bench: Bench,
    plan: AuditPlan,
    judge: str,
    told: Sequence[str] = (),
    spent: Mapping[str, Any] | None = None,
    groups: Sequence[tuple[str, ...]] | None = None,
) -> Scorecard:
    """The scorecard of the verdicts that `plan` selects, in a run folder or in another file of verdicts.

    Official figures are sliced by `groups` (each entry crosses its columns), by default by the plan's own slices.
    """
    gold = bench.gold is not None or bool(plan.gold)
    plan = replace(plan, unscored="drop")  # how the authors count missing verdicts is part of the official figures
    sliced = groups if groups is not None else [plan.by] if plan.by else []
    beside = [name for name in columns_of(sliced) if name not in plan.by]
    audit, data = audit_rows(plan, beside=beside)
    holds = "rankings" if data.plan.ranked else "choices between two responses" if data.plan.pairwise else "scores"
    if data.plan.ranked or data.plan.pairwise != bench.pairs:
        cure = "name the columns of its verdicts with --columns, or another bench"
        raise UserError(f"{plan.file}: holds {holds}, and in bench {bench.name!r} {KINDS[bench.kind]}: {cure}")
    if not gold and "agreement" not in audit and "accuracy" not in audit:
        told = (*told, "the bench has no gold: agreement cannot be measured")
    official = tuple(official_figures(bench, audit, data, sliced))
    biased = (length_bias(bench, data),) if plan.length and bench.kind in ("pairs", "graded pairs", "scores") else ()
    about = (_state(bench), f"licence of the rows: {bench.licence_told}", *told)
    alone = bench.kind == "graded pairs"
    return Scorecard(
        bench, judge, about, official, audit, spent or {}, _warnings(bench, judge), biased, alone=alone,
        floors=tuple(floors(bench, data, sliced)),
    )  # fmt: skip


def _state(bench: Bench) -> str:
    told = f"state of the bench: {bench.state} ({bench.standing})"
    return told + (f"; not checked against the source: {'; '.join(bench.from_memory)}" if bench.from_memory else "")


def _warnings(bench: Bench, judge: str) -> tuple[str, ...]:
    own = bench.gold_by.casefold()
    if own and len(own) >= _SAME_JUDGE and re.search(rf"(?<!\w){re.escape(own)}(?![\w.])", judge.casefold()):
        told = f"the gold of this bench was written by {bench.gold_by}, whose name the judge bears"
        return (f"{told}: where they are one model, it agrees with itself",)
    return ()


def bench_of(run: Path) -> Bench:
    """The bench of a run folder as it is now; UserError as `read_about` and `load_bench`."""
    told = read_about(run)
    return load_bench(told["file"] or told["bench"])


def read_about(run: Path) -> dict[str, Any]:
    """The bench of a run folder; UserError if `dikast bench run` did not write it."""
    path = run / BENCH
    if not path.is_file():
        raise UserError(
            f"{run}: not made by `dikast bench run` (it has no {BENCH}); use `dikast report` for other runs"
        )
    told = changed_files(run, BENCH).get(BENCH, "")
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes()) if not told else {}
        told = told or fields_misfit(found, _ABOUT, "bench", "file", "hash").strip(", ")
    except ValueError as error:
        told = f"cannot be read ({error})"
    if told:
        raise DataError(f"{told}: remove it and run the same command again, which asks nothing twice", path=str(path))
    return found


def _spent(summary: Mapping[str, Any]) -> dict[str, Any]:
    missing = asked_of(summary)[0] - summary["status"].get("ok", 0)
    kept = {name: summary[name] for name in ("verdicts", "status", "usage", "seconds") if name in summary}
    return {**kept, "missing": missing}


def _costs(spent: Mapping[str, Any]) -> Iterator[tuple[str, float | str, str]]:
    """Missing verdicts, tokens, seconds and money, with what each is; none for recorded verdicts."""
    if "usage" not in spent:
        return
    usage = spent["usage"]
    yield "answers without a verdict", spent["missing"], "of those asked for; each sample and each order counts"
    yield "tokens in", usage["tokens_in"], "of all verdicts"
    yield "tokens out", usage["tokens_out"], "of all verdicts"
    yield "seconds of answering", usage["seconds"], "of all verdicts, added up"
    unknown = usage["cost"] is None
    yield (
        "money",
        "" if unknown else usage["cost"],
        "price unknown" if unknown else "in the currency of the price table",
    )
