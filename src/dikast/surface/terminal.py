"""What is printed: whatever files, models and servers say in it, a terminal shows it and obeys none of it."""

import logging

import typer

from dikast.core.text import printable


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line on stdout, or on stderr, with control characters as escapes (`core.text.printable`)."""
    typer.echo(printable(text), err=err)


class PrintableLines(logging.Formatter):
    """The same for warnings."""

    def format(self, record: logging.LogRecord) -> str:
        """The warning's text."""
        return printable(super().format(record))
