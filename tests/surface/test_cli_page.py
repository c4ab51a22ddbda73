"""docs/cli.md lists every verb and flag as the code has them; rewrite it with DIKAST_WRITE_GOLDEN=1."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from rich.text import Text

from dikast.surface.cli import app
from dikast.surface.lazy_verbs import LazyVerbs

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
HEAD = """# The command line

Generated from the code by `DIKAST_WRITE_GOLDEN=1 pytest tests/surface/test_cli_page.py`. Data goes to standard output,
messages to standard error. Exit codes: 0 ok, 1 run-time failure, 2 usage or bad input, 3 some items
failed, 4 a gate was not met, 130 interrupted with everything kept.
"""


def verbs(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if isinstance(command, LazyVerbs):
        children = {each: lazy.build(each) for each, lazy in command.verbs.items()}
    if children is None:
        yield name, command
        return
    for child in sorted(children):
        yield from verbs(children[child], f"{name} {child}")


def row(parameter: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        flags = f"`{parameter.name.upper()}`"
    shown = parameter.default not in (None, False, "", ()) and parameter.default != []
    value = parameter.default
    value = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    default = "required" if parameter.required else f"`{value}`" if shown else ""
    told = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| {flags} | {told} | {default} |"


def page() -> str:
    parts = [HEAD]
    for name, command in verbs(typer.main.get_command(app), "dikast"):
        about = "\n".join(line.strip() for line in (command.help or "").strip().splitlines())
        parts.append(f"\n## {name}\n\n{about}\n\n| flag | meaning | default |\n|---|---|---|\n")
        parts.append("\n".join(row(p) for p in command.params if p.name != "help") + "\n")
    return "".join(parts)


def test_the_page_says_what_the_code_does() -> None:
    made = page()
    if os.environ.get("DIKAST_WRITE_GOLDEN"):
        PAGE.write_text(made, "utf-8")
    assert PAGE.read_text("utf-8") == made
    assert "## dikast grade" in made
    assert "`--max-failures`" in made
    assert "Path(" not in made


def test_the_terminal_shows_every_word_of_the_help() -> None:
    """`[start, end]` would be taken for markup and left out."""
    for name, command in verbs(typer.main.get_command(app), "dikast"):
        for text in (command.help, *(getattr(each, "help", None) for each in command.params)):
            assert text is None or Text.from_markup(text).plain == text, f"{name}: {text}"
