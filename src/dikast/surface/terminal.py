"""Printing: control characters in text from files, models and servers are shown as escapes, so a terminal never obeys
them.
"""

import logging
from typing import Any

import typer

from dikast.core.text import printable


def echo(text: str = "", *, err: bool = False, bold: bool = False, dim: bool = False) -> None:
    """Print a line on stdout, or on stderr, with control characters as escapes (`core.text.printable`)."""
    shown = printable(text)
    typer.echo(typer.style(shown, bold=bold or None, dim=dim or None) if bold or dim else shown, err=err)


def echo_json(value: Any, *, err: bool = False) -> None:
    """Print a value as indented JSON."""
    import orjson

    echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode(), err=err)


class PrintableLines(logging.Formatter):
    """The same for warnings."""

    def format(self, record: logging.LogRecord) -> str:
        """The warning's text."""
        return printable(super().format(record))
