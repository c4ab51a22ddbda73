"""The orders of a run of rankings against the gold of its items."""

from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.plan import NO_CLUSTER
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.statistics.against_gold.rank_agreement import RankAgreement, Ranks, rank_agreement
from dikast.audit.tables.load import Data
from dikast.audit.tables.run_rows import gold_scale_of
from dikast.core.gold import gold_number, gold_of_response, own_scale, stated
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import GOLD, RANKINGS, RUBRICS
from dikast.core.runs.schema import GoldLine, RankingLine, derived_lines
from dikast.core.scale import Scale
from dikast.core.text import counted


def agreement_rows(found: RankAgreement) -> list[list[Cell]]:
    """How rankings agree with gold, as lines of a table."""
    return [
        ["kendall_tau_b, mean over items", found.tau_b],
        ["best response found", found.top_1],
        ["pairs in the right order", found.pairs],
    ]


def run_rankings_table(data: Data) -> Table | None:
    """The rankings of a run against its items' gold of each response; None without rankings, or without such gold.

    Items whose responses gold does not tell apart are left out, and so are those whose order lacks a response that was
    compared, or gold for one of it: both are counted. What a random order reaches stands beside the best found. With
    `--where` or `--cluster` the items are those of the audited rows, since only these have the column.
    """
    plan, folder = data.plan, data.plan.file
    if "gold" not in plan.gold or plan.gold_file is not None:
        return None
    if not all((folder / each).exists() for each in (RANKINGS, GOLD, RUBRICS)):
        return None
    gold, said, truth, chance = _gold_of(folder), list[Ranks](), list[Ranks](), list[float]()
    asked, clusters = _clusters(data), list[int]()
    partial = equal = without = outside = 0
    for line, _ in derived_lines(folder, RANKINGS, RankingLine):
        known, order = gold.get(line["item"], {}), line["order"]
        if asked is not None and line["item"] not in asked:
            outside += 1
        elif not known:
            without += 1
        elif len(order) < len(line["ranks"]) - len(line["left_out"]) or any(i not in known for i in order):
            partial += 1
        elif len({known[i] for i in order}) == 1:
            equal += 1
        else:
            said.append({str(i): float(line["ranks"][i] or 0) for i in order})
            truth.append({str(i): -known[i] for i in order})
            best = max(known[i] for i in order)
            clusters.append(-1 if asked is None else asked[line["item"]])
            chance.append(sum(known[i] == best for i in order) / len(order))
    if not said:
        return None
    found = rank_agreement(said, truth, plan.resampling.level, np.array(clusters) if max(clusters) >= 0 else None)
    rows = agreement_rows(found)
    rows.insert(2, ["best response found by a random order", float(np.mean(chance))])
    notes = [
        f"{counted(n, 'item')} left out: {why}"
        for n, why in (
            (equal, "gold does not tell the responses apart"),
            (partial, "the order or the gold lacks a response that was compared"),
            (without, "no gold of each response"),
            (outside, "none of its pairs is among the audited rows"),
        )
        if n
    ]
    told = "responses that share a place: the first earn their mean, a pair of them a half"
    return table(
        "rankings", f"Rankings of {counted(len(said), 'item')} against gold", ("statistic", "value"), rows, told, *notes
    )


def _clusters(data: Data) -> dict[str, int] | None:
    """The cluster of each item of the audited rows, -1 without one; None where no column chooses or groups items."""
    plan, items, column = data.plan, data.words["item"], data.words.get("cluster")
    grouped = column is not None and plan.cluster not in ("", NO_CLUSTER)
    if not plan.where and not grouped:
        return None
    codes = column.codes if column is not None and grouped else np.full(len(data), -1)
    found: dict[str, int] = {}
    for item, code in zip(items.codes, codes, strict=True):
        found.setdefault(items.names[item], int(code))
    return found


def _gold_of(folder: Path) -> dict[str, dict[int, float]]:
    """The goodness of each response by gold, by item and index; items with another form of gold are not in it."""
    rubrics = list(load_rubrics(folder).values())
    if len({(each.name, each.scale) for each in rubrics}) != 1:
        return {}
    name, own = rubrics[0].name, own_scale(rubrics[0], gold_scale_of(folder))
    return {line["item"]: _goodness(line.get("gold"), name, own) for line, _ in derived_lines(folder, GOLD, GoldLine)}


def _goodness(gold: Any, criterion: str, scale: Scale) -> dict[int, float]:
    values = stated(gold, criterion)
    found = {}
    for i in range(len(values) if isinstance(values, list | tuple) else 0):
        value = gold_of_response(gold, criterion, i)
        number = None if value is None else gold_number(value, scale)
        if number is not None:
            found[i] = scale.goodness(number)
    return found
