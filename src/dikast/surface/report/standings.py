"""The leaderboard as the page shows it: a row a system with its interval as a bar, who beats whom, and to be copied."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.results import Failures, HeadToHead, Leaderboard, Meeting, PlayerRanking, Players
from dikast.audit.sections.leaderboard import length_told, weighted_told
from dikast.core.text import markdown, one_line
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.headline import main_figure

_MOST_IN_MATRIX = 20
_TEX = (
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {c: "\\" + c for c in "&%$#_{}"}
    | {"–": "--"}
)


class Cell(NamedTuple):
    """What a cell says, and the number that it sorts by (NaN: by its words)."""

    text: str
    number: float = math.nan


class Standing(NamedTuple):
    """A row: the rank set, the name, the main figure, and further figures."""

    rank: Cell
    name: str
    main: Estimate
    more: tuple[Cell, ...]


class Standings(NamedTuple):
    """Systems from the first; `middle` is where neither wins (NaN: there is no such value)."""

    title: str
    figure: str
    columns: tuple[str, ...]
    rows: tuple[Standing, ...]
    low: float
    high: float
    middle: float
    note: str
    head_to_head: HeadToHead | None
    of: str = "system"

    def shown(self, found: Estimate) -> str:
        """A main figure as it is read: per cent of shares, two decimals of scores and correlations."""
        cell = _share(found) if self.figure in ("win rate", "accuracy") else _mean(found)
        return cell.text or "undefined"

    @property
    def matrix(self) -> tuple[tuple[str, tuple[Meeting | None, ...]], ...]:
        """Each of the first systems against each, from the row's side; none where nobody met."""
        found = self.head_to_head
        if found is None or not found.meetings:
            return ()
        names = [row.name for row in self.rows[:_MOST_IN_MATRIX]]
        return tuple((one, tuple(None if one == two else found.of(one, two) for two in names)) for one in names)


def standings(page: RunPage) -> Standings | None:
    """The leaderboard of a run, of scores or of pairs; None where fewer than two systems are known."""
    if page.audit is None:
        return None
    met = page.audit.result(HeadToHead)
    if (board := page.audit.result(Leaderboard)) is not None:
        return _of_scores(board, met)
    ranking, players = page.audit.result(PlayerRanking), page.audit.result(Players)
    if ranking is None or players is None or len(ranking.players) < 2:
        return None
    return _of_pairs(page, ranking, players, met)


def _of_scores(board: Leaderboard, met: HeadToHead | None) -> Standings:
    met_any = any(_share(each.win_rate).text for each in board.systems.values())
    equal = [each.controlled for each in board.systems.values() if each.controlled is not None]
    controlled = any(not math.isnan(each.value) for each in equal)
    rows = []
    for name, each in board.systems.items():
        cells = [*([_mean(each.controlled)] if controlled else []), *([_share(each.win_rate)] if met_any else []),
                 _count(each.mean.n), _count(each.failed)]  # fmt: skip
        rows.append(Standing(_rank(each.rank, len(board.systems)), name, each.mean, tuple(cells)))
    ends = [end for row in rows for end in (row.main.low, row.main.high, row.main.value) if not math.isnan(end)]
    note = "Rank set: every place that the differences on the same prompts leave open."
    note += " Win rate: a tie is half a win." if met_any else " No prompt is known to have been answered by two."
    if controlled:
        note += (
            " Length-controlled mean: the mean score if all responses were equally long, by the slope of the score on"
            " the logarithm of the length among responses to the same prompt; whether longer is better is not asked."
        )
    for told in filter(None, (weighted_told(board.weights), length_told(board))):
        note += f" {told[0].upper()}{told[1:]}."
    columns = (
        *(["length-controlled mean"] if controlled else []),
        *(["win rate"] if met_any else []),
        "n",
        "no verdict",
    )
    return Standings("Leaderboard", "mean score", columns, tuple(rows),
                     min(ends, default=0.0), max(ends, default=1.0), math.nan, note, met)  # fmt: skip


def _of_pairs(page: RunPage, ranking: PlayerRanking, players: Players, met: HeadToHead | None) -> Standings:
    told = [each.controlled for each in ranking.players.values() if each.controlled is not None]
    controlled = any(not math.isnan(each.value) for each in told)
    outcomes = [name for name in next(iter(players.players.values())).outcomes if "strong" not in name]
    rows = []
    for name, each in ranking.players.items():
        record = players.players[name]
        cells = [*([_share(each.controlled)] if controlled else []), _count(record.games)]
        counts = {what: record.outcomes.get(what, 0) + record.outcomes.get(f"strong {what}", 0) for what in outcomes}
        rows.append(
            Standing(
                _rank(each.rank, len(ranking.players)),
                name,
                record.win_rates["half"],
                (*cells, *map(_count, counts.values())),
            )
        )
    columns = [*([f"{ranking.held} controlled"] if controlled else []), "games", *outcomes]
    orders = "each pair in one order only" if page.one_order else "orders that disagree count as ties"
    note = (
        "Rank set: the interval of the rank in a Bradley-Terry model, for which games against all others count too; the"
        f" conclusion is of the first two's own pairs alone. Win rate: a tie is half a win; {orders}."
    )
    if controlled:
        note += f" Controlled: the chance to win against the average system if {ranking.held} were alike for both."
    return Standings("Leaderboard", "win rate", tuple(columns), tuple(rows), 0.0, 1.0, 0.5, note, met)


def board_of_judges(pages: Sequence[RunPage]) -> Standings | None:
    """Judges by their agreement with gold, best first; None where they have no such figure, or no items, in common."""
    if any(page.apart for page in pages):
        return None
    named = [(page, main_figure(page)) for page in pages]
    found = [(page, *main) for page, main in named if main is not None]
    if len(found) < 2 or len(found) < len(pages) or len({name for _, name, _ in found}) > 1:
        return None
    found.sort(key=lambda each: math.inf if math.isnan(each[2].value) else -each[2].value)
    rows = []
    for page, _, main in found:
        others = [each for other, _, each in found if other is not page]
        better, worse = sum(each.low > main.high for each in others), sum(each.high < main.low for each in others)
        rank = Estimate(better + 1, main.n, better + 1, len(found) - worse)
        failures = page.audit.result(Failures) if page.audit else None
        more = (_share(failures.failed if failures else None), _count(main.n), Cell(one_line(page.judge, 60)))
        rows.append(Standing(_rank(rank, len(found)), page.name, main, more))
    ends = [end for row in rows for end in (row.main.low, row.main.high, row.main.value) if not math.isnan(end)]
    name = "accuracy" if pages[0].chosen else f"agreement ({found[0][1]})"
    note = (
        "Agreement with gold. Rank set: every place that the intervals leave open (intervals that overlap decide"
        " nothing); differences on the same items are below."
    )
    return Standings("Judges", name, ("no verdict", "n", "judge"), tuple(rows), min(ends, default=0.0),
                     max(ends, default=1.0), math.nan, note, None, "run")  # fmt: skip


def as_markdown(found: Standings) -> str:
    """The leaderboard as a Markdown table."""
    head, rows = _plain(found)
    lines = ["| " + " | ".join(map(markdown, head)) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(markdown, row)) + " |" for row in rows)])


def as_latex(found: Standings) -> str:
    """The leaderboard as a LaTeX table (booktabs)."""
    head, rows = _plain(found)
    lines = [r"\begin{tabular}{rl" + "r" * (len(head) - 2) + "}", r"\toprule", _tex(head), r"\midrule"]
    return "\n".join([*lines, *map(_tex, rows), r"\bottomrule", r"\end{tabular}"])


def _plain(found: Standings) -> tuple[list[str], list[list[str]]]:
    head = ["rank", found.of, found.figure, *found.columns]
    rows = [
        [row.rank.text, one_line(row.name, 60), found.shown(row.main), *(cell.text for cell in row.more)]
        for row in found.rows
    ]
    return head, rows


def _tex(cells: Sequence[str]) -> str:
    return " & ".join("".join(_TEX.get(each, each) for each in one_line(cell)) for cell in cells) + r" \\"


def _rank(found: Estimate | None, of: int) -> Cell:
    """The places that are open: of a rank without an interval all `of` them."""
    if found is None or math.isnan(found.value):
        return Cell("", math.inf)
    if math.isnan(found.low):
        return Cell(f"1–{of}" if of > 1 else "1", found.value)
    low, high = round(found.low), round(found.high)
    return Cell(f"{low}" if low == high else f"{low}–{high}", found.value)


def _share(found: Estimate | None) -> Cell:
    if found is None or math.isnan(found.value):
        return Cell("")
    known = not (math.isnan(found.low) or math.isnan(found.high))
    return Cell(f"{found.value:.1%}" + (f" [{found.low:.1%}, {found.high:.1%}]" if known else ""), found.value)


def _mean(found: Estimate | None) -> Cell:
    if found is None or math.isnan(found.value):
        return Cell("")
    return Cell(f"{found:.2f}", found.value)


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)
