"""docs/mechanisms.md says where each mechanism stands, and it stands nowhere else."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dikast"
LINES = [
    line.strip("|").split("|")
    for line in (ROOT / "docs" / "mechanisms.md").read_text("utf-8").partition("## ")[0].splitlines()
    if re.match(r"\| .*`", line)
]
NAMES = re.compile(r"`([^`]+)`")
PLACES = [(place, NAMES.findall(line[2])) for line in LINES for place in NAMES.findall(line[1])]


@cache
def defined(path: Path) -> frozenset[str]:
    """The names of functions and classes at the top of a module."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, kinds))


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def definitions() -> Counter[str]:
    """How many modules define each name."""
    return Counter(name for path in SOURCE.rglob("*.py") for name in defined(path))


def module(place: str) -> Path | None:
    """The file of a module, or of a package."""
    path = SOURCE.joinpath(*place.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


def test_the_table_is_read() -> None:
    assert len(LINES) == 38
    assert len(PLACES) >= 35


@pytest.mark.parametrize(("place", "calls"), PLACES, ids=[place for place, _ in PLACES])
def test_a_mechanism_stands_where_the_table_says_and_nowhere_else(place: str, calls: list[str]) -> None:
    file = module(place)
    if file is None:
        above, _, name = place.rpartition(".")
        file = module(above)
        assert file is not None, place
        assert name in defined(file), place
        assert definitions()[name] == 1, name
    for call in calls:
        holders = {path for path in SOURCE.rglob("*.py") if call in text(path)}
        assert holders == {file}, call
