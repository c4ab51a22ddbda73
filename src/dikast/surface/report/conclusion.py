"""One conclusion in plain words, and its light: green, amber, red or grey, by the rules that docs/report.md states."""

import math
from collections.abc import Sequence

from dikast.core.text import counted
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import Conclusion, all_told, ends_told, figure_told, lost_told, so_far
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.conclusions.of_rankings import of_rankings
from dikast.surface.report.conclusions.of_systems import of_systems
from dikast.surface.report.standings import board_of_judges


def conclusion(page: RunPage) -> Conclusion:
    """Which system is best if systems are known, how good the orders are in a run of rankings, otherwise whether the
    judge can be used; red takes precedence, apart from rankings, whose gold says more than that of pairs.
    """
    judge = of_judge(page)
    if (order := of_rankings(page, judge)) is not None:
        return so_far(page, order)
    systems = of_systems(page)
    if systems is None or judge.light == "red":
        return judge
    if (systems.light == "green" or systems.few) and (judge.light == "grey" or judge.few):
        systems = Conclusion("amber", systems.text + ", says the judge", judge.why)
    elif systems.light == "green" and (lost := lost_told(page)):
        systems = Conclusion("amber", systems.text, lost)
    return so_far(page, systems)


def of_judges(pages: Sequence[RunPage]) -> Conclusion | None:
    """Which of several judges agrees best with gold, or that it cannot be told; None where that is not known of all.

    Two judges are compared by the difference on the same rows, more of them by the leaderboard's rank sets.
    """
    if (found := _best_judge(pages)) is None:
        return None
    for page in pages:
        found = so_far(page, found, page.name)
    return found


def _best_judge(pages: Sequence[RunPage]) -> Conclusion | None:
    if apart := [page for page in pages if page.apart]:
        told = "Which judge agrees best with gold cannot be told: no item of "
        told += f"{all_told([page.name for page in apart])} is one of {apart[0].compared_with}"
        return Conclusion("amber", told, "judges are compared on the same items; each run stands by itself")
    board = board_of_judges(pages)
    if board is None:
        return None
    best, other = board.rows[0], board.rows[1]
    what = "accuracy" if pages[0].chosen else "correlation"
    rival = pages[1].audit if len(pages) == 2 else None
    if rival is not None and "rival" in rival:
        less = rival["rival"].estimate("accuracy (all)" if pages[0].pairwise else "pearson", "difference")
        if math.isnan(less.low):
            return None
        lead = f"{abs(less.value):.2f} {ends_told(less, '.2f')} on {counted(less.n, 'row')} of both"
        if less.low <= 0 <= less.high:
            told = (
                f"Cannot tell which of {best.name} and {other.name} agrees better with gold: {what} differs by {lead}"
            )
            return Conclusion("amber", told, "the interval of the difference on the same rows includes 0")
        worse, better = pages if less.value > 0 else reversed(pages)
        told = f"{better.name} agrees better with gold than {worse.name}: {what} higher by {lead}"
        return _of_best(better, told, "the interval of the difference on the same rows excludes 0")
    if math.isnan(best.main.low):
        return None
    figure = f"{best.name} has the highest {what}"
    if best.rank.text == "1":
        page = next(each for each in pages if each.name == best.name)
        told = f"{figure} with gold, {figure_told(best.main)}"
        return _of_best(page, told, "its interval lies above those of all others")
    silent = [row.name for row in board.rows[1:] if math.isnan(row.main.low)]
    open_to = [row.name for row in board.rows[1:] if row.name not in silent and not row.main.high < best.main.low]
    without = f"; without an interval of their own: {all_told(silent)}" if silent else ""
    if not open_to:
        told = f"{figure} with gold, {figure_told(best.main)}, of the judges that have an interval{without}"
        return Conclusion("amber", told, "a judge whose agreement has no interval cannot be compared")
    told = f"Cannot tell which of {all_told([best.name, *open_to])} agrees best with gold: {figure}, "
    told += f"{figure_told(best.main)}{without}"
    return Conclusion("amber", told, "their intervals overlap; differences on the same rows stand under side by side")


def _of_best(page: RunPage, told: str, why: str) -> Conclusion:
    """Green only if the best judge could be used by itself: the better of two bad judges is no good judge."""
    alone = of_judge(page)
    if alone.light == "red":
        return Conclusion("amber", f"{told}. By itself, {page.name}: {alone.text}", alone.why)
    if lost := lost_told(page):
        return Conclusion("amber", told, lost)
    return Conclusion("amber" if alone.few else "green", told, alone.why if alone.few else why)
