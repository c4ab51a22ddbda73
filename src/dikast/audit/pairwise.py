"""The audit of choices between two responses: accuracy by rule and order, consistency, floors, ceiling, slices."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit import pairs
from dikast.audit.classes import class_estimates
from dikast.audit.contingency import discrimination
from dikast.audit.estimate import Estimate
from dikast.audit.failures import rate
from dikast.audit.intervals import clusters_of
from dikast.audit.load import Data, Ref
from dikast.audit.measures import FEW
from dikast.audit.paired import WRONG, Paired, ratio, ruled
from dikast.audit.pairs import FIRST, NONE, SECOND, TIE, TIE_RULES, Share, TieRule
from dikast.audit.report import Cell, Table, table
from dikast.audit.significance import holm, labels_for_width, mcnemar, two_rates
from dikast.audit.slices import worst_decile

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def accuracy_table(given: Paired, unscored: str) -> Table:
    """Accuracy under each tie rule, in each order, in both, and of what both say together; bounds over the unscored."""
    views = _views(given)
    rows: list[list[Cell]] = []
    for rule in TIE_RULES:
        row: list[Cell] = [f"accuracy ({rule})"]
        row += [given.estimate(_share(each, given.gold, rule)) for each in views.values()]
        if given.swapped is not None and given.choice is not None:
            row.append(given.estimate(_right_twice(given, rule)))
        main = _share(views["as shown"], given.gold, rule)
        rows.append([*row, *_bounds(main, given, rule), labels_for_width(_first(row).half_width, _first(row).n)])
    columns = ["statistic", *views, *(["right in both"] if given.swapped is not None else [])]
    n = int((given.gold != NONE).sum())
    return table(
        "accuracy",
        f"Accuracy against gold on {n:,} pairs",
        (*columns, "worst", "best", "labels for ±0.03"),
        rows,
        *(f"{rule}: {text}" for rule, text in TIE_RULES.items()),
        _told(unscored),
        "" if given.scored.all() else "worst and best: if the unscored of the order shown were all wrong, or all right",
        f"only {n} pairs: too few to conclude anything" if n < FEW else "",
    )


def _first(row: Sequence[Cell]) -> Estimate:
    return next(cell for cell in row if isinstance(cell, Estimate))


def _told(unscored: str) -> str:
    told = {"tie": "counted as ties", "wrong": "counted as wrong"}
    return f"pairs without a verdict were {told[unscored]} (--unscored {unscored})" if unscored in told else ""


def _views(given: Paired) -> dict[str, Codes]:
    views: dict[str, Codes] = {}
    if given.choice is not None:
        views["as shown"] = given.choice
    if given.swapped is not None and given.choice is not None:
        views["swapped"] = given.swapped
        views["both together"] = pairs.both_orders(given.choice, given.swapped)
    return views


def _share(choice: Codes, gold: Codes, rule: TieRule) -> Share:
    return pairs.accuracy(choice, gold, rule)


def _right_twice(given: Paired, rule: TieRule) -> Share:
    if given.choice is None or given.swapped is None:
        raise ValueError("two orders are due")
    one, two = _share(given.choice, given.gold, rule), _share(given.swapped, given.gold, rule)
    return Share(np.minimum(one.worth, two.worth), one.counts & two.counts)


def _bounds(share: Share, given: Paired, rule: TieRule) -> list[Cell]:
    """If every unscored pair of the order shown were wrong, or right, whatever --unscored made of it."""
    due = (given.gold != NONE) & ((given.gold != TIE) | (rule == "all"))
    lost = int((due & ~given.scored).sum())
    counted = share.counts & given.scored
    total = int(counted.sum()) + lost
    if lost == 0 or total == 0:
        return [None, None]
    hits = float(share.worth[counted].sum())
    return [hits / total, (hits + lost) / total]


def orders_table(given: Paired) -> Table:
    """How far the verdict depends on the order of the responses."""
    if given.choice is None or given.swapped is None:
        raise ValueError("two orders are due")
    rows: list[list[Cell]] = [
        ["same verdict in both orders", given.estimate(pairs.order_consistency(given.choice, given.swapped))],
        ["first slot, where they differ", given.estimate(pairs.slot_preference(given.choice, given.swapped))],
    ]
    for name, view in (("as shown", given.choice), ("swapped", given.swapped)):
        known = (view != NONE) & (view != WRONG)
        rows.append([f"ties {name}", given.estimate(Share((view == TIE).astype(np.float64), known))])
    both = (given.choice != NONE) & (given.swapped != NONE)
    found = class_estimates(given.swapped[both], given.choice[both], given.how, _clusters(given, both))
    rows.append(["cohen_kappa of the orders", found["cohen_kappa"]])
    return table("orders", "Order of the responses", ("statistic", "value"), rows)


def _clusters(given: Paired, chosen: NDArray[np.bool_]) -> Codes | None:
    return None if given.cluster is None else clusters_of(given.cluster[chosen])


def class_table(given: Paired) -> Table:
    """As three classes: accuracy, macro precision, recall, F1, Cohen's kappa, tie rates, and the counts."""
    rows: list[list[Cell]] = []
    for name, view in _views(given).items():
        counts = (view != NONE) & (given.gold != NONE)
        said, gold = view[counts], given.gold[counts]
        confusion = np.zeros((4, 4))
        np.add.at(confusion, (gold, said), 1)
        scores = class_estimates(said, gold, given.how, _clusters(given, counts))
        spread = float(discrimination(confusion.sum(0)[:3], 3)) if len(said) else float("nan")
        ties = rate(int((said == TIE).sum()), len(said), given.level)
        rows.append(
            [
                name,
                int(counts.sum()),
                *scores.values(),
                ties,
                rate(int((gold == TIE).sum()), len(gold), given.level),
                spread,
            ]
        )
    columns = (
        "verdict",
        "n",
        "accuracy",
        "macro P",
        "macro R",
        "macro F1",
        "cohen_kappa",
        "ties",
        "gold ties",
        "discrimination",
    )
    return table("classes", "As classes: first, second, tie", columns, rows)


def confusion_table(given: Paired) -> Table:
    """Counts, gold down and the judge's verdict across."""
    rows: list[list[Cell]] = []
    final = given.final
    if final is None:
        raise ValueError("verdicts are due")
    for code, name in enumerate(pairs.NAMES):
        mine = given.gold == code
        rows.append(
            [
                name,
                *(int((mine & (final == said)).sum()) for said in (FIRST, SECOND, TIE)),
                int((mine & (final == NONE)).sum()),
            ]
        )
    return table("confusion", "Gold (down) and judge (across)", ("gold", *pairs.NAMES, "none"), rows)


def beside_table(data: Data, given: Paired) -> Table:
    """The judge between floors and ceiling, three-way and where gold is decided."""
    rules: tuple[TieRule, ...] = ("all", "no_gold_ties")
    known = given.gold != NONE

    def row(label: str, view: Codes, gold: Codes) -> list[Cell]:
        return [label, *(given.estimate(_share(view, gold, rule)) for rule in rules)]

    rows = []
    if given.final is not None:
        rows.append(row("judge", given.final, given.gold))
    rows.extend(_rater_rows(given, rules))
    for role, label in (("retest", "the judge asked again (test-retest)"), ("earlier", "the judge in the earlier run")):
        if role in data.words and given.final is not None:
            again = pairs.read_choices(data.words[role], data.plan.pair_labels, getattr(data.plan, role)).codes
            rows.append(row(label, again, given.final))
    n = len(given.gold)
    for code, name in enumerate(pairs.NAMES):
        rows.append(row(f"a judge that always says {name}", np.full(n, code, np.int64), given.gold))
    if given.final is not None and known.any():
        shares = np.bincount(given.gold[known], minlength=3)[:3] / known.sum()
        said = given.final[known & (given.final != NONE)]
        own = np.bincount(said, minlength=4)[:3] / max(len(said), 1)
        decided = shares[:2].sum()
        half = float(own[:2] @ shares[:2] / decided) if decided else float("nan")
        note = "expected under independence"
        chance = [Estimate(float(own @ shares), len(said), method=note), Estimate(half, len(said), method=note)]
        rows.append(["a judge that draws its labels at random", *chance])
    if "length" in data.numbers:
        extra = data.numbers["length"]
        longer = np.where(np.isnan(extra), NONE, np.where(extra == 0, TIE, np.where(extra > 0, SECOND, FIRST)))
        rows.append(row("the longer response", longer, given.gold))
    note = "no human ceiling: give more than one --gold" if len(given.raters) < 2 else ""
    return table("beside", "The judge between floor and ceiling", ("who", *rules), rows, note)


def _rater_rows(given: Paired, rules: Sequence[TieRule]) -> list[list[Cell]]:
    if len(given.raters) < 2:
        return []
    codes = [np.where(np.isnan(each), NONE, each).astype(np.int64) for each in given.raters]
    rows: list[list[Cell]] = []
    for label, others in (("one rater against another (ceiling)", codes), ("judge against one rater", None)):
        row: list[Cell] = [label]
        for rule in rules:
            if others is not None:
                shares = [_share(a, b, rule) for i, a in enumerate(codes) for j, b in enumerate(codes) if i != j]
            elif given.final is not None:
                shares = [_share(given.final, each, rule) for each in codes]
            else:
                continue
            worth, counts = (
                np.array([s.worth * s.counts for s in shares]).sum(0),
                np.array([s.counts for s in shares]).sum(0),
            )
            row.append(ratio(worth, counts.astype(np.float64), given))
        if len(row) > 1:
            rows.append(row)
    return rows


def slice_table(codes: Codes, names: Sequence[str], given: Paired, by: str) -> Table:
    """One row a slice: failures, accuracy in each order and in both, consistency; Holm over slices against the rest."""
    views = _views(given)
    shares = {name: _share(each, given.gold, "all") for name, each in views.items() if name != "both together"}
    if given.swapped is not None and given.choice is not None:
        shares["right in both"] = _right_twice(given, "all")
        shares["consistent"] = pairs.order_consistency(given.choice, given.swapped)
    main = next(iter(shares.values()))
    rows, tests = [], []
    hits, sizes = (
        np.bincount(codes[main.counts & (codes >= 0)], weight, len(names))
        for weight in (main.worth[main.counts & (codes >= 0)], None)
    )
    for code, name in enumerate(names):
        mine = codes == code
        unscored = int((mine & ~given.scored).sum())
        found: list[Cell] = [name, int(mine.sum()), rate(unscored, int(mine.sum()), given.level)]
        rows.append([*found, *(given.estimate(share, mine) for share in shares.values())])
        tests.append(two_rates(hits[code], int(sizes[code]), hits.sum() - hits[code], int(sizes.sum() - sizes[code])))
    cells: list[list[Cell]] = [[*row, p, q] for row, p, q in zip(rows, tests, holm(tests), strict=True)]
    values = [float(h / s) if s else float("nan") for h, s in zip(hits, sizes, strict=True)]
    title = f"By {by}: {len(names)} slices"
    columns = (by, "n", "failed", *shares, "p", "p (Holm)")
    both = "pairs without a verdict in either order count as consistent" if _counts_wrong(views) else ""
    return table(
        f"by {by}",
        title,
        columns,
        cells,
        both,
        "p: accuracy as shown against all the rest",
        worst_decile(names, values, "accuracy"),
    )


def _counts_wrong(views: Mapping[str, Codes]) -> bool:
    """Whether the unscored were counted as wrong."""
    return any((view == WRONG).any() for view in views.values())


def rival_table(data: Data, given: Paired) -> Table:
    """A second judge on the same pairs: accuracy, paired difference, McNemar."""
    plan = data.plan
    name = Ref.of(plan.rival).name
    other = ruled(pairs.read_choices(data.words["rival"], plan.pair_labels, name), plan.unscored)
    if other is None or given.final is None:
        raise ValueError("two judges are due")
    rows: list[list[Cell]] = []
    note = ""
    for rule in TIE_RULES:
        one, two = _share(given.final, given.gold, rule), _share(other, given.gold, rule)
        both = one.counts & two.counts
        less = ratio(np.where(both, one.worth - two.worth, 0), both.astype(np.float64), given)
        rows.append(
            [f"accuracy ({rule})", given.estimate(Share(one.worth, both)), given.estimate(Share(two.worth, both)), less]
        )
        if rule == "all":
            test = mcnemar(one.worth[both] == 1, two.worth[both] == 1)
            note = (
                f"McNemar: only the judge right {test.only_first:,}, only {name} {test.only_second:,}, p = {test.p:.4g}"
            )
    return table("rival", f"Beside {name}, on the same pairs", ("statistic", "judge", name, "difference"), rows, note)


def preference_table(given: Paired) -> Table:
    """Without gold: how often each side wins, as in blind preference studies, and the net win rate."""
    if given.final is None:
        raise ValueError("verdicts are due")
    known = (given.final != NONE) & (given.final != WRONG)
    rows: list[list[Cell]] = [
        [name, given.estimate(Share((given.final == code).astype(np.float64), known))]
        for code, name in ((FIRST, "first wins"), (TIE, "tie"), (SECOND, "second wins"))
    ]
    net = np.where(given.final == FIRST, 1.0, np.where(given.final == SECOND, -1.0, 0.0))
    rows.append(["first less second", ratio(np.where(known, net, 0), known.astype(np.float64), given)])
    return table("preferences", f"Preferences in {int(known.sum()):,} pairs", ("side", "share"), rows)
