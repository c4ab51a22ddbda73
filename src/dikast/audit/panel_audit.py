"""The audit of a panel: each judge and their joint verdict, agreement among judges, agreement of the joint verdict."""

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from dikast.audit.audit import audit_file
from dikast.audit.estimate import Estimate
from dikast.audit.graded_pairs import choice_rows, with_gold_beside
from dikast.audit.plan import NO_CLUSTER, AuditPlan
from dikast.audit.rendering import Audit, Cell, Table, table
from dikast.audit.results import Accuracy, Agreement, Failures, Orders
from dikast.audit.tables.record_rows import GoldOfItems, gold_by_item
from dikast.audit.tables.row_scales import scale_of
from dikast.audit.tables.run_rows import JOINT, PROMPT, gold_scale_of, has_gold, open_rows
from dikast.core.errors import UserError
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, SUMMARY, VERDICTS
from dikast.core.runs.schema import PanelLine, derived_lines
from dikast.core.text import counted
from dikast.core.verdict import DISAGREE

_PANEL, _STATUS = "panel", "panel status"  # the columns of the joint verdict, and of why there is none
_SHOWN = ("pearson", "exact", "mae", "bias")


def is_panel(folder: Path) -> bool:
    """Whether a folder holds the runs of a panel's judges, and no verdicts of its own."""
    return (folder / SUMMARY).is_file() and not (folder / VERDICTS).exists() and Run(folder).kind == "panel"


def audit_source(plan: AuditPlan) -> Audit:
    """The audit of a panel's folder; for any other source, `audit_file`."""
    return panel_audit(plan) if is_panel(plan.file) else audit_file(plan)


def asked_in_one_order(run: Run) -> bool:
    """Whether a judge of a panel saw each pair in one order only."""
    return any((judge.summary.get("preferences") or {}).get("one_order") for judge in run.runs)


def panel_audit(plan: AuditPlan) -> Audit:
    """A row for each judge and for their joint verdict (the mean score, of pairs the majority), then the joint verdict.

    `plan` is used as for a run; columns are those of the judges' runs. Raises UserError where no judge has finished.
    """
    run = Run(plan.file)
    judges = run.runs
    if not judges:
        raise UserError(f"{plan.file}: no judge of this panel has finished: run the command that made it again")
    plan = with_gold_beside(plan, judges[0].folder)
    names = [f"{number} {judge.summary['judge']}" for number, judge in enumerate(judges, 1)]
    each = [audit_file(dataclasses.replace(plan, file=judge.folder)) for judge in judges]
    pairs = judges[0].kind in ("pairwise", "from-absolute")
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        file = Path(scratch, "panel.jsonl")
        rows = list(_rows(run, judges[0].folder, plan, pairs=pairs))
        file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        gold = any("gold" in row for row in rows)
        joint = audit_file(_plan(plan, file, run, pairs=pairs, gold=gold, metas=rows))
        among = _among(plan, file, judges[0].folder, len(judges), rows, pairs=pairs) if len(judges) > 1 else ()
    first = _judges_table([*names, f"panel of {len(judges)}"], [*each, joint], pairs=pairs)
    told = [f"judge {name}: {note}" for name, found in zip(names, each, strict=True) for note in found.notes]
    if len(judges) > 1 and not among:
        judged = sum(any(row[f"judge {number}"] is not None for row in rows) for number in range(1, len(names) + 1))
        told.append(f"no agreement among the judges: {judged} of {len(names)} have verdicts, and it takes two")
    return Audit(
        str(plan.file), joint.rows, (joint.tables[0], first, *among, *joint.tables[1:]), tuple(told), each[0].plan
    )


def _rows(run: Run, first: Path, plan: AuditPlan, *, pairs: bool) -> Iterator[dict[str, Any]]:
    """The panel's verdict on each question, with its gold and the metadata of its item."""
    path = plan.gold_file or first / GOLD
    known = plan.gold_file is not None or has_gold(first)
    column = plan.gold[0].partition("@")[0] if plan.gold else "gold"
    gold = gold_by_item(path, [column], plan.key[0] if plan.key else "") if known else GoldOfItems()
    about: dict[tuple[Any, ...], dict[str, Any]] = {}
    if Run(first).kind == "from-absolute":
        rows = choice_rows(dataclasses.replace(plan, file=first, gold=(column,)))
    else:
        rows = (row for row, _ in open_rows(first, gold, gold_scale_of(first)) if row["sample"] in (0, JOINT))
    for row in rows:
        about[(row["item"], row["criterion"], *_responses(row))] = row
    for line, _ in derived_lines(run.folder, "panel.jsonl", PanelLine):
        if line["sample"]:
            continue
        own = about.get((line["item"], line["criterion"], *sorted(line["responses"])), {})
        told: dict[str, Any] = {**own.get("meta", {}), "item": line["item"], "criterion": line["criterion"]}
        told |= {name: own[name] for name in ("system", PROMPT, "system_a", "system_b") if own.get(name)}
        said = [None if label == DISAGREE else label for label in line["labels"]] if pairs else line["scores"]
        told |= {f"judge {number}": each for number, each in enumerate(said, 1)}
        told[_PANEL] = line["majority"] if pairs else line["mean"]
        told[_STATUS] = "ok" if told[_PANEL] is not None else "no_majority" if pairs else "no_score"
        if (value := own.get(column)) is not None:
            told["gold"] = value
        yield told


def _responses(row: dict[str, Any]) -> tuple[int, ...]:
    return (row["first"], row["second"]) if "first" in row else (row["response"],)


def _plan(plan: AuditPlan, file: Path, run: Run, *, pairs: bool, gold: bool, metas: list[dict[str, Any]]) -> AuditPlan:
    """The plan for the joint verdict."""
    met = "system_a" in metas[0] and any(row[_PANEL] is not None for row in metas)  # else there is nothing to rank
    systems = {"first": "system_a", "second": "system_b"} if pairs and met else {}
    own: dict[str, Any] = {"pairwise": True, "joint": not asked_in_one_order(run), **systems}
    if not pairs:
        own = {"scale": scale_of(run.runs[0].folder), "between": True}
    if not pairs and len({row["system"] for row in metas if "system" in row}) > 1:
        own["players"] = ("system", PROMPT) if any(PROMPT in row for row in metas) else ("system",)
    return AuditPlan(
        file, score=_PANEL, status=_STATUS, gold=("gold",) if gold else (), by=plan.by,
        cluster=_cluster(plan, metas), where=plan.where, draws=plan.draws, level=plan.level, seed=plan.seed,
        width=plan.width, **own,
    )  # fmt: skip


def _cluster(plan: AuditPlan, metas: list[dict[str, Any]]) -> str:
    """The column whose rows are drawn together: that of the plan, else the item where items have several rows."""
    if plan.cluster == NO_CLUSTER or "@" in plan.cluster or any(plan.cluster in row for row in metas):
        return plan.cluster
    return "item" if len({row["item"] for row in metas}) < len(metas) else ""


def _among(
    plan: AuditPlan, file: Path, first: Path, count: int, metas: list[dict[str, Any]], *, pairs: bool
) -> tuple[Table, ...]:
    """Agreement among the judges, measured as among raters; of pairs, orders that disagree are no verdict. None where
    fewer than two judges have verdicts.
    """
    plan = AuditPlan(
        file, gold=tuple(f"judge {number}" for number in range(1, count + 1)), pairwise=pairs,
        scale=None if pairs else scale_of(first), cluster=_cluster(plan, metas), where=plan.where,
        draws=plan.draws, level=plan.level, seed=plan.seed,
    )  # fmt: skip
    try:
        found = audit_file(plan)
    except UserError:  # the rows could be audited before, so that here fewer than two judges have verdicts
        return ()
    titles = {"raters": "Judges among themselves", "rater pairs": "Judge against judge"}
    names = {"raters": "judges", "rater pairs": "judge pairs"}
    return tuple(
        dataclasses.replace(each, name=names[each.name], title=titles[each.name])
        for each in found
        if each.name in names
    )


def _judges_table(names: list[str], audits: list[Audit], *, pairs: bool) -> Table:
    """One row a judge, the panel last."""
    rows: list[list[Cell]] = []
    for name, found in zip(names, audits, strict=True):
        failures = found.result(Failures)
        failed = failures.failed if failures else None
        rows.append([name, failed.n if failed else found.rows, failed, *_figures(found, pairs=pairs)])
    columns = ("accuracy", "same in both orders") if pairs else _SHOWN
    if not pairs:
        rows[-1][3 + _SHOWN.index("exact")] = None  # a mean lies between labels
    kept = [i for i in range(len(columns)) if any(row[3 + i] is not None for row in rows)]
    head = ("judge", "n", "no verdict", *(columns[i] for i in kept))
    cells = [[*row[:3], *(row[3 + i] for i in kept)] for row in rows]
    note = "of pairs the panel says what most judges say" if pairs else "the panel's score is the mean of its judges"
    return table("panel", f"{counted(len(names) - 1, 'judge')} and their joint verdict", head, cells, note)


def _figures(found: Audit, *, pairs: bool) -> list[Estimate | None]:
    if pairs:
        accuracy, orders = found.result(Accuracy), found.result(Orders)
        return [accuracy.rules.get("all") if accuracy else None, orders.same if orders else None]
    agreement = found.result(Agreement)
    told = agreement.statistics if agreement else {}
    return [told[name].value if name in told else None for name in _SHOWN]
