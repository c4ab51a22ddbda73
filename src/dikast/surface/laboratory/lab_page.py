"""The findings of the lab as one HTML file: no script, no network, all text from files escaped."""

from collections.abc import Sequence
from importlib.metadata import version

import jinja2
from markupsafe import Markup

from dikast.lab.findings import Finding
from dikast.lab.lab_report import HOW, NOTICE, rule
from dikast.surface.report.page import asset, asset_hash, page_text


def lab_page(found: Sequence[Finding]) -> str:
    """The page of all experiments."""
    style = asset("page.css")
    environment = jinja2.Environment(
        autoescape=True, finalize=page_text, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset("lab.html.j2", "dikast.surface.laboratory")).render(
        found=found, notice=NOTICE, how=HOW, rule=rule, style=Markup(style), style_hash=asset_hash(style),
        version=version("dikast"),
    )  # fmt: skip
