"""What is printed: whatever files, models and servers say in it, a terminal shows it and obeys none of it."""

import logging

import typer

from dikast.core.text import printable


def echo(text: str = "", *, err: bool = False, bold: bool = False, dim: bool = False) -> None:
    """Print a line on stdout, or on stderr, with control characters as escapes (`core.text.printable`)."""
    shown = printable(text)
    typer.echo(typer.style(shown, bold=bold or None, dim=dim or None) if bold or dim else shown, err=err)


class PrintableLines(logging.Formatter):
    """The same for warnings."""

    def format(self, record: logging.LogRecord) -> str:
        """The warning's text."""
        return printable(super().format(record))
