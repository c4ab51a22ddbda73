"""The rows that a page does not hold, on pages of their own in a folder beside it."""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from dikast.core.errors import UserError
from dikast.core.html.page_templates import asset, asset_hash
from dikast.core.records import write_file
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.contents import Thumbs
from dikast.surface.report.embedded.page_size import MOST_BYTES, first_of, size_of
from dikast.surface.report.page import ROOM, page_environment, row_of
from dikast.surface.report.queue import Entry

_MOST_ROWS = 1000  # of one page
_NAME = re.compile(r"\d+-\d+\.html")


def folder_of(page: Path) -> Path:
    """Where the rows stand that a page does not hold."""
    return page.with_name(f"{page.stem}-rest")


def beside(page: Path) -> str:
    """The address of that folder, as the page links to it."""
    return quote(folder_of(page).name)


def write_rest(
    report: Path, pages: Sequence[RunPage], left: Sequence[Sequence[Entry]], title: str, pictures: int
) -> list[Path]:
    """Write the rows that `report` does not hold: those `left` over of each run, then its others in the items' order.

    Pages that an earlier report left in the folder are removed. UserError where the folder cannot be made.
    """
    folder = folder_of(report)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: the folder of the other rows cannot be made: {error.strerror or error}") from None
    written = [
        path
        for number, (page, rows) in enumerate(zip(pages, left, strict=True), 1)
        for path in _written(folder, report, page, rows, number, title, pictures)
    ]
    for path in folder.iterdir():
        if path not in written and _NAME.fullmatch(path.name):
            path.unlink()
    return written


def _written(
    folder: Path, report: Path, page: RunPage, left: Sequence[Entry], run: int, title: str, pictures: int
) -> Iterator[Path]:
    """The pages of one run, each written when it is full."""
    thumbs, environment = Thumbs(pictures, page.lock), page_environment()
    entries = itertools.chain(left, page.others(thumbs) if page.others is not None else ())
    row, template = row_of(environment), environment.get_template("rest.html.j2")
    script, style = asset(ROOM, "page.js"), asset(ROOM, "page.css")
    render = partial(
        template.render, run=page.name, title=title, back=f"../{quote(report.name)}", version=version("dikast"),
        style=Markup(style), script=Markup(script), style_hash=asset_hash(style), script_hash=asset_hash(script),
        number=run, gaps=bool(page.audit is not None and any(each.gold for each in page.entries)),
    )  # fmt: skip
    shown: list[Entry] = []
    drawn: list[Markup] = []
    at, room = 1, _room(style, script)

    def write(*, more: bool) -> Path:
        before, after = first_of(run, at - 1) if at > 1 else "", first_of(run, at + 1) if more else ""
        path = folder / first_of(run, at)
        write_file(path, render(entries=shown, rows=drawn, at=at, before=before, after=after).encode())
        return path

    for entry in entries:
        text = row(entry, number=run)
        if drawn and (size_of(text) > room or len(drawn) == _MOST_ROWS):
            yield write(more=True)
            at, room = at + 1, _room(style, script)
            shown, drawn = [], []
            thumbs.renew()
        shown.append(entry)
        drawn.append(text)
        room -= size_of(text)
    if drawn:
        yield write(more=False)


def _room(*fixed: str) -> int:
    """Bytes for the rows of a page; the filters name the criteria of its rows."""
    return MOST_BYTES - sum(map(size_of, fixed)) - 200_000
