"""The audit of choices between two responses: accuracy by rule and order, consistency, a second judge, slices."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, by_slice, table
from dikast.audit.results import Accuracy, Orders
from dikast.audit.sections.judge_names import judge_names
from dikast.audit.sections.scores import spread_of
from dikast.audit.sections.slices import COUNTS, counts_told, worst_decile
from dikast.audit.statistics.against_gold.bounds import share_bounds
from dikast.audit.statistics.against_gold.classes import class_estimates
from dikast.audit.statistics.against_gold.measures import FEW
from dikast.audit.statistics.intervals import bounded_mean, error_of, share
from dikast.audit.statistics.sample_size import labels_for_rate, labels_for_width
from dikast.audit.statistics.significance import (
    Against,
    holm,
    mcnemar,
    mcnemar_told,
    two_rates,
)
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.choices import (
    DISAGREE,
    FIRST,
    NONE,
    ONE_ORDER,
    SECOND,
    TIE,
    TIE_RULES,
    TWO_GAMES,
    WRONG,
    Share,
    TieRule,
)
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired, ratio, read_column, rule_told, ruled
from dikast.audit.tables.refs import Ref
from dikast.audit.tables.soft_preferences import NEAREST
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_THREE = Scale(pairs.NAMES, (0.0, 1.0, 2.0))  # for the discrimination index of choices


def accuracy_table(given: Paired, wanted: float = 0.03) -> Table:
    """Accuracy under each tie rule: of the joint verdict, in each order, right in both; bounds over the unscored."""
    views = _views(given)
    rows: list[list[Cell]] = []
    main: dict[str, Estimate] = {}
    bounds: dict[str, tuple[float, float]] = {}
    for rule in TIE_RULES:
        row: list[Cell] = [f"accuracy ({rule})"]
        row += [given.estimate(_share(each, given.gold, rule)) for each in views.values()]
        if given.swapped is not None and given.choice is not None:
            row.append(given.estimate(_right_twice(given, rule)) if rule in _RIGHT_OR_WRONG else None)
        main[rule] = _first(row)
        row.insert(1, main[rule].n)
        if ends := _bounds(given, rule):
            bounds[rule] = ends
        rows.append([*row, *(ends or (None, None)), labels_for_width(main[rule].half_width, main[rule].n, wanted)])
    columns = ["statistic", "n", *views, *(["right in both"] if given.swapped is not None else [])]
    n, having = main["all"].n, int((given.gold != NONE).sum())
    on = counted(n, "pair") if n == having else f"{n:,} of {counted(having, 'pair')} with gold, those with a verdict"
    first = next(iter(views))
    return table(
        "accuracy",
        f"Accuracy against gold on {on}",
        (*columns, "worst", "best", f"labels for ±{wanted:g}"),
        rows,
        *(f"{rule}: {text}" for rule, text in TIE_RULES.items()),
        f"n: pairs that the rule counts, of the figures {first}"
        + " (those of others are in --json)" * (len(views) > 1),
        NEAREST if given.soft else "",
        "" if given.scored.all() else "worst and best: if the missing verdicts had been any choice",
        _orders_told(given),
        ONE_ORDER if given.one_order else "",
        f"only {counted(n, 'pair')}: too few to conclude anything" if n < FEW else "",
        f"left out: {counted(given.undecided, 'pair')} on which raters are split" if given.undecided else "",
        result=Accuracy(main, given.one_order, bounds, *given.alike, given.undecided),
        one_order=given.one_order,
    )


_RIGHT_OR_WRONG: tuple[TieRule, ...] = ("all", "no_gold_ties")  # the others earn halves, or leave out disagreements


def _first(row: Sequence[Cell]) -> Estimate:
    return next(cell for cell in row if isinstance(cell, Estimate))


def _orders_told(given: Paired) -> str:
    if given.joint:
        return "both together: verdicts that depend on no order (joint ones, or responses graded alone), as they stand"
    if given.swapped is None:
        return ""
    return (
        f"both together: the joint verdict ({TWO_GAMES[given.two_games]}; --two-games {given.two_games}); "
        "as shown and swapped: one order by itself; right in both: right in each order, under the rules by which every "
        "verdict is right or wrong"
    )


def _views(given: Paired) -> dict[str, Codes]:
    """The views of the pairs: the joint verdict first, then each order under its name."""
    if given.choice is None or given.final is None:
        return {}
    if given.swapped is None:
        return {"both together" if given.joint else "as shown": given.choice}
    return {"both together": given.final, "as shown": given.choice, "swapped": given.swapped}


def _share(choice: Codes, gold: Codes, rule: TieRule) -> Share:
    return pairs.accuracy(choice, gold, rule)


def _right_twice(given: Paired, rule: TieRule) -> Share:
    if given.choice is None or given.swapped is None:
        raise ValueError("two orders are due")
    one, two = _share(given.choice, given.gold, rule), _share(given.swapped, given.gold, rule)
    return Share(np.minimum(one.worth, two.worth), one.counts & two.counts)


def _bounds(given: Paired, rule: TieRule) -> tuple[float, float] | None:
    """If every missing verdict, in either order, had been the worst or the best choice, whatever --unscored says."""
    lost = ~given.scored
    filled = [_share(each, given.gold, rule) for each in given.fillings()]
    known = filled[0].counts & given.scored
    worth, counts = (np.array([getattr(each, name)[lost] for each in filled]) for name in ("worth", "counts"))
    if not counts.any():
        return None
    return share_bounds(float(filled[0].worth[known].sum()), int(known.sum()), worth, counts)


_SLOTS_READ = (
    "the orders agree less often than by chance: either position decides, or the column of the other order names "
    "slots (first shown, second shown) where responses were read; if so, say --swapped-as slots"
)


def orders_table(given: Paired, *, may_be_slots: bool = False) -> Table:
    """How strongly the order decides (position bias); `may_be_slots`: the user named the column of the other order."""
    if given.choice is None or given.swapped is None:
        raise ValueError("two orders are due")
    shown = np.where(given.known, given.choice, NONE)  # an order without a verdict says nothing, whatever --unscored
    swapped = np.where(given.known_swapped, given.swapped, NONE)
    same = pairs.order_consistency(shown, swapped)
    twice = f"{counted(int(same.counts.sum()), 'pair')} with a verdict in both orders"
    alike = given.estimate(same)
    rows: list[list[Cell]] = [["same verdict in both orders", alike, twice]]
    kinds = pairs.flips(shown, swapped)
    differ = Share(np.sum([each.worth for each in kinds.values()], 0), kinds["a tie in one order"].counts)
    judged = f"{counted(int(differ.counts.sum()), 'pair')} with a choice in both orders"
    found = Orders(alike, given.estimate(differ), {name: given.estimate(each) for name, each in kinds.items()})
    differs = "disagree" if given.two_games == "both" else "orders differ"  # not what joint verdicts call disagree
    rows.append([differs, found.disagree, judged])
    rows += [[f"{differs}: {name}", each, judged] for name, each in found.disagreements.items()]
    slot = pairs.slot_preference(shown, swapped)
    told = (
        f"{counted(int(slot.counts.sum()), 'pair')} whose orders name different responses, of "
        f"{int(differ.worth[differ.counts].sum()):,} that differ (a tie in one order is left out)"
    )
    rows.append(["first slot, where they differ", given.estimate(slot), told])
    for name, view in (("as shown", shown), ("swapped", swapped)):
        ties = given.estimate(Share((view == TIE).astype(np.float64), view != NONE))
        rows.append([f"ties {name}", ties, f"{counted(ties.n, 'verdict')} in that order"])
    both = given.scored
    classes = class_estimates(swapped[both], shown[both], given.how, given.clusters(both))
    rows.append(["cohen_kappa of the orders", classes["cohen_kappa"], twice])
    turned = classes["cohen_kappa"].high < 0 and may_be_slots
    return table(
        "orders", "Order of the responses", ("statistic", "value", "of"), rows, _SLOTS_READ if turned else "",
        result=replace(found, turned=turned),
    )  # fmt: skip


def class_table(given: Paired) -> Table:
    """As three classes: accuracy, macro precision, recall, F1, Cohen's kappa, tie rates, and the counts."""
    rows: list[list[Cell]] = []
    for name, view in _views(given).items():
        counts = (view != NONE) & (given.gold != NONE)
        said, gold = view[counts], given.gold[counts]
        codes = given.clusters(counts)
        scores = class_estimates(said, gold, given.how, codes, outside=(WRONG, DISAGREE))
        ties = [share(each == TIE, given.level, codes) for each in (said, gold)]
        if given.may_disagree:
            ties.append(share(said == DISAGREE, given.level, codes))
        chosen = counts & np.isin(view, (FIRST, SECOND, TIE))
        spread = spread_of(view[chosen].astype(np.float64), _THREE, given.how, given.clusters(chosen))
        rows.append([name, int(counts.sum()), *scores.values(), *ties, spread])
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
        *(["disagree"] if given.may_disagree else []),
        "discrimination",
    )
    note = "a disagreement of the orders counts as a miss, not as a class; discrimination is of the other verdicts"
    told = note if given.may_disagree else ""
    return table("classes", "As classes: first, second, tie", columns, rows, told, one_order=given.one_order)


def confusion_table(given: Paired) -> Table:
    """Counts, gold down and the judge's verdict across."""
    rows: list[list[Cell]] = []
    final = given.final
    if final is None:
        raise ValueError("verdicts are due")
    said_codes = (FIRST, SECOND, TIE, DISAGREE) if given.may_disagree else (FIRST, SECOND, TIE)
    for code, name in enumerate(pairs.NAMES):
        mine = given.gold == code
        rows.append(
            [
                name,
                *(int((mine & (final == said)).sum()) for said in said_codes),
                int((mine & np.isin(final, (NONE, WRONG))).sum()),
            ]
        )
    columns = ("gold", *pairs.NAMES, *(["disagree"] if given.may_disagree else []), "none")
    return table("confusion", "Gold (down) and judge (across)", columns, rows, one_order=given.one_order)


_SLOT_TOLD = "first slot, where they differ: of the pairs whose orders name different responses; ties are left out"


def headlines(given: Paired) -> dict[str, Share]:
    """The statistics of each slice of pairs with gold; the first is the accuracy of the verdict that is used."""
    views = _views(given)
    shares = {name: _share(each, given.gold, "all") for name, each in views.items()}
    main = next(iter(shares))
    shares |= {f"{main} ({rule})": _share(views[main], given.gold, rule) for rule in TIE_RULES if rule != "all"}
    if given.swapped is not None and given.choice is not None:
        shares["right in both"] = _right_twice(given, "all")
        shares["consistent"] = pairs.order_consistency(given.choice, given.swapped)
        shares["first slot, where they differ"] = pairs.slot_preference(given.choice, given.swapped)
    return shares


def slice_table(codes: Codes, names: Sequence[str], given: Paired, by: str) -> Table:
    """One row a slice: failures, accuracy in each order and in both, consistency; Holm over slices against the rest."""
    shares = headlines(given)
    headline, main = next(iter(shares.items()))
    rows, tests = [], []
    hits, sizes = (
        np.bincount(codes[main.counts & (codes >= 0)], weight, len(names))
        for weight in (main.worth[main.counts & (codes >= 0)], None)
    )
    tested = main.counts & (codes >= 0)
    cluster = given.clusters(tested)
    against = None if cluster is None else Against(main.worth[tested], cluster)
    for code, name in enumerate(names):
        mine = codes == code
        failed = share(~given.scored[mine], given.level, given.clusters(mine))
        found: list[Cell] = [name, int(mine.sum()), int((mine & main.counts).sum()), failed]
        rows.append([*found, *(given.estimate(each, mine) for each in shares.values())])
        if against is not None:
            tests.append(against.p(np.flatnonzero(mine[tested])))
        else:
            rest = hits.sum() - hits[code], int(sizes.sum() - sizes[code])
            tests.append(two_rates(hits[code], int(sizes[code]), *rest))
    cells: list[list[Cell]] = [[*row, p, q] for row, p, q in zip(rows, tests, holm(tests), strict=True)]
    values = [float(h / s) if s else float("nan") for h, s in zip(hits, sizes, strict=True)]
    title = f"By {by}: {counted(len(names), 'slice')}"
    columns = (by, *COUNTS, *shares, "p", "p (Holm)")
    filled = given.swapped is not None and given.unscored != NONE and not given.scored.all()
    both = "consistent: an order without a verdict counts by --unscored too, so two of them agree" if filled else ""
    return table(
        f"by {by}",
        title,
        columns,
        cells,
        both,
        f"p: accuracy {headline} against all the rest" + ("" if against is None else ", by cluster"),
        _SLOT_TOLD if given.swapped is not None else "",
        counts_told("pairs", "verdict and gold", f"accuracy {headline} (each figure's own n is in --json)"),
        worst_decile(names, values, "accuracy"),
        result=by_slice(by, columns, cells),
        one_order=given.one_order,
    )


def unlabelled_table(codes: Codes, names: Sequence[str], given: Paired, by: str) -> Table:
    """Without gold: how often each slice failed and who won."""
    if given.final is None:
        raise ValueError("verdicts are due")
    known = (given.final != NONE) & (given.final != WRONG)
    shares = {name: Share((given.final == code).astype(np.float64), known) for code, name in _sides(given)}
    if given.swapped is not None and given.choice is not None:
        shares["consistent"] = pairs.order_consistency(given.choice, given.swapped)
    rows: list[list[Cell]] = []
    for code, name in enumerate(names):
        mine = codes == code
        failed = share(~given.scored[mine], given.level, given.clusters(mine))
        counts = [int(mine.sum()), int((mine & known).sum())]
        rows.append([name, *counts, failed, *(given.estimate(each, mine) for each in shares.values())])
    title = f"By {by}: {counted(len(names), 'slice')}, without gold"
    columns, told = (by, *COUNTS, *shares), ONE_ORDER if given.one_order else ""
    found, pairs_told = by_slice(by, columns, rows), counts_told("pairs", "verdict")
    return table(f"by {by}", title, columns, rows, told, pairs_told, result=found, one_order=given.one_order)


def other_judge_table(data: Data, given: Paired) -> Table:
    """A second judge on the same pairs: accuracy, paired difference, McNemar."""
    plan = data.plan
    names = judge_names(plan)
    found = read_column(data, "rival", Ref.of(plan.rival).name)
    other, labelled = ruled(found, plan.unscored), given.gold != NONE
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
            test = mcnemar(one.worth[both] == 1, two.worth[both] == 1, given.clusters(both))
            note = mcnemar_told(test, names, "right", given.level)
    title = f"{names.own} compared with {names.rival}, on the same pairs"
    lost = (int((labelled & ~given.scored).sum()), int((labelled & (found.codes == NONE)).sum()))
    counted_as = [
        f"{name}: {told}" for name, n in zip(names, lost, strict=True) if (told := rule_told(n, given.unscored))
    ]
    return table("rival", title, ("statistic", *names, "difference"), rows, note, *counted_as)


def preference_table(given: Paired) -> Table:
    """Without gold: how often each side wins, as in blind preference studies, and the net win rate."""
    if given.final is None:
        raise ValueError("verdicts are due")
    known = (given.final != NONE) & (given.final != WRONG)
    rows: list[list[Cell]] = [
        [name, given.estimate(Share((given.final == code).astype(np.float64), known))] for code, name in _sides(given)
    ]
    net = np.where(given.final == FIRST, 1.0, np.where(given.final == SECOND, -1.0, 0.0))[known]
    lost = int((~known).sum())
    rows.append(["first less second", bounded_mean(net, given.level, given.clusters(known), dropped=lost)])
    if given.softly is not None:
        rows += _soft_rows(given, given.softly)
    wins, decided = int((given.final == FIRST).sum()), int(np.isin(given.final, (FIRST, SECOND)).sum())
    needed = labels_for_rate(wins / decided, level=1 - given.level) if decided else float("inf")
    note = ""
    if np.isfinite(needed):
        told = "pairs decided in this one order" if given.one_order else "decided pairs"
        note = f"to distinguish {wins / decided:.3f} from one half with power .8 takes {needed:,} {told}"
        if given.one_order:
            note += ": also where it is the slot that wins, not a response"
    both = given.joint or given.two_games == "both"
    joint = "a side wins where both name it" if both else TWO_GAMES[given.two_games]
    joint = f"joint verdicts of both orders: {joint}"
    if given.joint and not given.may_disagree:
        joint = _orders_told(given).removeprefix("both together: ")
    return table(
        "preferences",
        f"Preferences in {counted(int(known.sum()), 'pair')}",
        ("side", "share"),
        rows,
        note,
        ONE_ORDER if given.one_order else joint,
        NEAREST if given.soft else "",
        one_order=given.one_order,
    )


def _soft_rows(given: Paired, soft: Floats) -> list[list[Cell]]:
    """The mean preference for each side with its standard error."""
    known = ~np.isnan(soft) & (given.final != WRONG)
    rows: list[list[Cell]] = []
    for name, worth in (("first, soft", soft[known]), ("second, soft", 1 - soft[known])):
        lost = int((~known).sum())
        mean = share(worth, given.level, given.clusters(known), dropped=lost)
        rows.append([name, mean])
    error = error_of((soft[known] - soft[known].mean()) / max(known.sum(), 1), given.clusters(known)).error
    return [*rows, ["standard error of the soft shares", error if error > 0 else None]] if known.any() else rows


def _sides(given: Paired) -> list[tuple[int, str]]:
    found = [(FIRST, "first wins"), (TIE, "tie"), (SECOND, "second wins")]
    return found if not given.may_disagree else [*found[:2], (DISAGREE, "disagree"), found[2]]
