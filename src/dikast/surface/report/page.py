"""The report as one HTML file: no network, no outside resource, all text from models escaped."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, shown
from dikast.audit.results import Agreement, Curve, Meeting, Orders, RaterPairs
from dikast.audit.statistics.intervals import Resampling
from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.core.text import one_line
from dikast.surface.report import figures, headline
from dikast.surface.report.claim_places import stretches
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusion import conclusion, of_judges
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.contents import clipped
from dikast.surface.report.embedded.long_tables import DRAWN, TABLED, slices, table_rows
from dikast.surface.report.embedded.page_size import MOST_BYTES, HeldRows, first_of, held, size_of
from dikast.surface.report.queue import Entry
from dikast.surface.report.standings import as_latex, as_markdown, board_of_judges, standings
from dikast.surface.report.subject import Subject, subject

ROOM = "dikast.surface.report"  # of the templates, and of the style that other pages share
_NOTES = 2000  # bytes of what is said of the rows of a run


class RenderedPage(NamedTuple):
    """A page, and the rows of each run that do not fit on it."""

    text: str
    left: list[Sequence[Entry]]


def render(
    pages: Sequence[RunPage], title: str, how: Resampling, *, redacted: bool = False, beside: str = ""
) -> RenderedPage:
    """The page of one run or several, of at most MOST_BYTES; the first is the one that others are compared with.

    beside: the folder of the pages with the rows that this one does not hold (`embedded.rest_pages`), "" for none.
    """
    script, style = asset(ROOM, "page.js"), asset(ROOM, "page.css")
    environment = page_environment()
    environment.globals.update(
        cards=headline.cards,
        opening=headline.opening,
        conclusion=conclusion,
        of_judge=of_judge,
        of_judges=of_judges,
        subject=lambda page: subject(page, redacted=redacted),
        shared_subject=lambda pages: _shared_subject(pages, redacted=redacted),
        standings=standings,
        as_markdown=as_markdown,
        as_latex=as_latex,
        percent=lambda found, board: board.shown(found),
        bar=lambda found, board: figures.bar(found.value, found.low, found.high, (board.low, board.high), board.middle),
        ends=lambda found: "" if math.isnan(found.low) else f"{found.low:.0%}–{found.high:.0%}",
        finite=lambda number: f"{number:g}" if math.isfinite(number) else "",
        shade=_shade,
        heat=_heat,
        judges=_judges,
        position=_position,
        shifts=lambda page: figures.histogram({name: (n, 0) for name, n in page.shifts.items()}, "Shift by pair"),
        lengths=_lengths,
        among=_among,
        board_of_judges=board_of_judges,
        ruler_rows=lambda rows: [[row.name, *map(_number, row[1:])] for row in rows],
        label_rows=lambda page: [[name, f"{said:,}", f"{true:,}"] for name, (said, true) in page.labels.items()],
        forest_rows=lambda rows: [
            [row.name, figures.value_with_interval(row.value, row.low, row.high), f"{row.n:,}"] for row in rows
        ],
        shift_rows=lambda page: [[name, f"{n:,}"] for name, n in page.shifts.items() if n],
        length_rows=lambda page: [
            [each.name, f"{each.judge:.3f}", f"{each.gold:.3f}" if each.gold is not None else "", f"{each.judge.n:,}"]
            for each in page.by_length
        ],
        deep=lambda found: _deep(found.value),
        curve_rows=lambda curve: [[f"{each.x:.3f}", f"{each.y:.3f}", f"{each.y.n:,}"] for each in curve.points],
        ruled=headline.ruled,
        slices=lambda page: slices(page.audit or ()),
        table_rows=table_rows,
        most_drawn=DRAWN,
        most_tabled=TABLED,
        rulers=figures.rulers,
        histogram=figures.histogram,
        forest_of=_forest,
        curve_of=lambda page, table: page.audit and page.audit.result(Curve, table),
        reliability=lambda curve: _curve(curve, diagonal=True),
        coverage=lambda curve: _curve(curve, diagonal=False),
        has_gaps=lambda page: page.gaps and _has_gold(page),
        has_gold=_has_gold,
        shown=shown,
        labels_told=headline.labels_told,
    )
    template = environment.get_template("page.html.j2")
    values = dict(
        pages=pages,
        beside=side_by_side(pages),
        title=title,
        version=version("dikast"),
        style=Markup(style),
        script=Markup(script),
        style_hash=asset_hash(style),
        script_hash=asset_hash(script),
        level=how.level,
        draws=how.draws,
        seed=how.seed,
        redacted=redacted,
    )
    nothing = [HeldRows((), (), (), ())] * len(pages)
    room = MOST_BYTES - size_of(template.render(held=nothing, rest=[""] * len(pages), **values)) - _NOTES * len(pages)
    row, found = row_of(environment), []
    for number, page in enumerate(pages, 1):
        found.append(held(page, partial(row, number=number), max(0, room) // (len(pages) - number + 1)))
        room -= found[-1].size
    rest = [
        f"{beside}/{first_of(number)}" if beside and (each.left or page.others is not None) else ""
        for number, (page, each) in enumerate(zip(pages, found, strict=True), 1)
    ]
    return RenderedPage(template.render(held=found, rest=rest, **values), [each.left for each in found])


def row_of(environment: jinja2.Environment) -> Callable[..., Markup]:
    """What renders a row: an entry, and the `number` of its run on the page."""
    row: Callable[..., Markup] = vars(environment.get_template("rows.html.j2").make_module())["row"]
    return row


def page_environment() -> jinja2.Environment:
    """The templates of the report with the parts that pages share (`entry.html.j2`)."""
    environment = template_environment(ROOM)
    environment.globals.update(
        distribution=figures.distribution, one_line=one_line, stretches=stretches, clipped=clipped
    )
    levels = vars(environment.get_template("levels.html.j2").make_module())["levels"]
    environment.globals["levels"] = lru_cache(maxsize=1024)(levels)  # the same in thousands of rows
    return environment


def side_by_side(pages: Sequence[RunPage]) -> list[list[str]]:
    """The cards of several runs as rows: a title, then a value with its interval for each run; none for one run."""
    if len(pages) < 2:
        return []
    each = [headline.cards(page) for page in pages]
    titles = list(dict.fromkeys(card.title for cards in each for card in cards))
    rows = []
    for title in titles:
        found = [next((card for card in cards if card.title == title), None) for cards in each]
        rows.append([title, *(_in_a_cell(card) if card else "" for card in found)])
    return rows


def _in_a_cell(card: headline.Card) -> str:
    between = " " if card.notes[:1] and card.notes[0].startswith("[") else ": "
    return between.join([card.value, *card.notes[:1]])


def _shared_subject(pages: Sequence[RunPage], *, redacted: bool) -> Subject | None:
    """What all runs are about, where they judged the same data by the same rubric; a panel's is that of its judges."""
    found = [subject(page, redacted=redacted) for page in pages if page.lock]
    alike = {(each.data, each.rows, tuple(rubric.hash for rubric in each.rubrics), each.prompt) for each in found}
    return found[0] if len(alike) == 1 else None


def _forest(page: RunPage, column: str, rows: Sequence[figures.Row]) -> Markup:
    main = headline.main_figure(page)
    overall = main[1] if main is not None and column in (main[0], "all") else None
    agreement = page.audit.result(Agreement) if page.audit else None
    if overall is None and agreement is not None and column in agreement.statistics:
        overall = agreement.statistics[column].value
    value = overall.value if overall is not None else math.nan
    known = [row.value for row in rows if not math.isnan(row.value)] or [0.0]
    middle = known[0] if math.isnan(value) else value
    return figures.forest(rows, value, middle, middle)


def _has_gold(page: RunPage) -> bool:
    return any(true for _, true in page.labels.values()) or any(entry.gold for entry in page.entries)


class _Drawn(NamedTuple):
    figure: Markup
    rows: list[figures.Row]


def _lengths(page: RunPage) -> Markup:
    """Means of judge and gold by the length of what was judged."""
    judge = [_row(each.name, each.judge) for each in page.by_length]
    gold = [_row(each.name, each.gold) for each in page.by_length if each.gold is not None]
    known = [each.value for each in judge]
    beside = gold if len(gold) == len(judge) else []
    return figures.forest(
        judge, math.nan, min(known), max(known), beside=beside, name="Means by the length of responses"
    )


def _row(name: str, found: Estimate) -> figures.Row:
    return figures.Row(name, found.value, found.low, found.high, found.n)


def _among(page: RunPage) -> tuple[str, list[tuple[str, list[Estimate | None]]]] | None:
    """A coefficient of agreement of each judge of a panel with each other; its name and the rows of a matrix."""
    found = page.audit.result(RaterPairs, "judge pairs") if page.audit else None
    if found is None or not found.pairs:
        return None
    kind = next(iter(found.pairs[0].statistics))
    names = list(dict.fromkeys(name for each in found.pairs for name in (each.first, each.second)))
    told = {(each.first, each.second): each.statistics[kind] for each in found.pairs}
    return "share of the same choice" if kind == "exact" else kind, [
        (one, [told.get((one, two)) or told.get((two, one)) for two in names]) for one in names
    ]


def _judges(pages: Sequence[RunPage]) -> Markup | None:
    """The main figure of each judge where all have the same one."""
    found = [headline.main_figure(page) for page in pages]
    if len({each[0] for each in found if each is not None}) != 1 or None in found:
        return None
    rows = [
        figures.Row(page.name, each[1].value, each[1].low, each[1].high, each[1].n)
        for page, each in zip(pages, found, strict=True)
        if each is not None
    ]
    known = [row.value for row in rows if not math.isnan(row.value)]
    return figures.forest(rows, math.nan, min(known), max(known)) if known else None


def _position(page: RunPage) -> _Drawn | None:
    """What both orders said together, as shares of pairs."""
    orders = page.audit.result(Orders) if page.audit else None
    if orders is None:
        return None
    shares = {"same verdict in both orders": orders.same, **orders.disagreements}
    rows = [figures.Row(name, each.value, each.low, each.high, each.n) for name, each in shares.items()]
    return _Drawn(figures.forest(rows, math.nan, 0.0, 1.0), rows)


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:z.3f}"


def _shade(met: Meeting) -> str:
    """Blue where the row wins, orange where the column does, by how much; nothing where it is undecided."""
    if not met.decided:
        return ""
    colour = "--judge" if met.rate.value > 0.5 else "--gold"
    return f"background:color-mix(in srgb, var({colour}) {60 * abs(met.rate.value - 0.5):.0f}%, transparent)"


def _heat(cells: Sequence[Cell], at: int, each: Table) -> str:
    """A share of its row as depth of colour; none for totals."""
    counts = [cell for cell, name in zip(cells[1:], each.columns[1:], strict=True) if name != "all"]
    total = sum(cell for cell in counts if isinstance(cell, int))
    cell = cells[at]
    if each.columns[at] == "all" or not isinstance(cell, int) or not total or not cell:
        return ""
    return _deep(cell / total)


def _deep(value: float) -> str:
    """A number from 0 to 1 as depth of colour."""
    share = min(1.0, max(0.0, value)) if not math.isnan(value) else 0.0
    return f"background:color-mix(in srgb, var(--judge) {5 + 40 * share:.0f}%, transparent)"


def _curve(curve: Curve, *, diagonal: bool) -> Markup:
    points = [(each.x, each.y.value, each.y.low, each.y.high) for each in curve.points]
    return figures.curve(points, curve.across, curve.up, diagonal=diagonal)
