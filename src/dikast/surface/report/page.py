"""The report as one HTML file: no network, no outside resource, every word of a model escaped."""

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files

import jinja2
from markupsafe import Markup

from dikast.audit.rendering import shown
from dikast.audit.results import Agreement, Curve
from dikast.audit.statistics.intervals import Resampling
from dikast.core.text import one_line, printable
from dikast.surface.report import figures, headline
from dikast.surface.report.collect import RunPage


def _shown(value: object) -> object:
    """Text as the page shows it, from a file or a model: control characters are visible, and turn nothing round."""
    return printable(value) if type(value) is str else value


def render(pages: Sequence[RunPage], title: str, how: Resampling, *, redacted: bool = False) -> str:
    """The page of one run or several; the first is the one that others are compared with."""
    script, style = _asset("page.js"), _asset("page.css")
    environment = jinja2.Environment(
        autoescape=True, finalize=_shown, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        cards=headline.cards,
        opening=headline.opening,
        leaders=lambda page: _leaders(headline.leader_rows(page)),
        ruled=headline.ruled,
        slices=headline.slices,
        rulers=figures.rulers,
        histogram=figures.histogram,
        distribution=figures.distribution,
        forest_of=_forest,
        curve_of=lambda page, table: page.audit and page.audit.result(Curve, table),
        reliability=lambda curve: _curve(curve, diagonal=True),
        coverage=lambda curve: _curve(curve, diagonal=False),
        has_gold=lambda page: any(true for _, true in page.labels.values()) or any(e.gold for e in page.entries),
        statuses=lambda page: sorted({entry.status for entry in page.entries}),
        criteria=lambda page: sorted({entry.criterion for entry in page.entries}),
        shown=shown,
        one_line=one_line,
        labels_told=headline.labels_told,
    )
    return environment.from_string(_asset("page.html.j2")).render(
        pages=pages,
        beside=side_by_side(pages),
        title=title,
        version=version("dikast"),
        style=Markup(style),
        script=Markup(script),
        style_hash=_sha256(style),
        script_hash=_sha256(script),
        level=how.level,
        draws=how.draws,
        seed=how.seed,
        redacted=redacted,
    )


def side_by_side(pages: Sequence[RunPage]) -> list[list[str]]:
    """The cards of several runs as rows: a title, then a value with its interval for each run; none for one run."""
    if len(pages) < 2:
        return []
    each = [headline.cards(page) for page in pages]
    titles = list(dict.fromkeys(card.title for cards in each for card in cards))
    rows = []
    for title in titles:
        found = [next((card for card in cards if card.title == title), None) for cards in each]
        rows.append([title, *(" ".join([card.value, *card.notes[:1]]) if card else "" for card in found)])
    return rows


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


def _leaders(rows: Sequence[figures.Row]) -> Markup | None:
    known = [row.value for row in rows if not math.isnan(row.value)]
    return figures.forest(rows, math.nan, min(known), max(known)) if known else None


def _curve(curve: Curve, *, diagonal: bool) -> Markup:
    points = [(each.x, each.y.value, each.y.low, each.y.high) for each in curve.points]
    return figures.curve(points, curve.across, curve.up, diagonal=diagonal)


def _asset(name: str) -> str:
    return files("dikast.surface.report").joinpath(name).read_text("utf-8")


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
