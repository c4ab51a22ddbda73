"""Scorecards of benches as one HTML file: no script, no network, all text from models escaped."""

from collections.abc import Sequence
from importlib.metadata import version

import jinja2
from markupsafe import Markup

from dikast.audit.rendering import shown
from dikast.benches.scorecard import Scorecard
from dikast.surface.report.page import asset, asset_hash, page_text

_WORDS = "td.words{text-align:left;white-space:normal;overflow-wrap:break-word;min-width:14rem}\n"  # cells of sentences


def cards_page(cards: Sequence[Scorecard]) -> str:
    """The page of scorecards, each with the tables of its audit."""
    style = asset("page.css") + _WORDS
    environment = jinja2.Environment(
        autoescape=True, finalize=page_text, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset("cards.html.j2", "dikast.surface.benching")).render(
        cards=cards, style=Markup(style), style_hash=asset_hash(style), version=version("dikast"), shown=shown
    )
