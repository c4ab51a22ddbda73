"""Templates of HTML pages: every text is escaped, and inline styles and scripts are named by their hash."""

import base64
import hashlib
from functools import partial
from importlib.resources import files

import jinja2

from dikast.core.text import printable


def template_environment(room: str) -> jinja2.Environment:
    """The Jinja environment of the templates in a package, such as `dikast.surface.report`.

    Whatever is shown is escaped, and its control characters are shown as escapes, so that text from a file or a model
    cannot reverse what stands beside it. A name that a template is not given is an error.
    """
    return jinja2.Environment(
        autoescape=True, finalize=_shown, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(partial(asset, room)),
    )  # fmt: skip


def asset(room: str, name: str) -> str:
    """A file of a package: a template, a style or a script."""
    return files(room).joinpath(name).read_text("utf-8")


def asset_hash(text: str) -> str:
    """What a Content-Security-Policy names an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _shown(value: object) -> object:
    return printable(value) if type(value) is str else value
