"""The map of the rooms is a test, not a drawing."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dikast

PACKAGE = Path(dikast.__file__).parent
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "prompts": {"core"},
    "engines": {"core"},
    "judging": {"core", "prompts", "engines"},
    "audit": {"core"},
    "worlds": {"core"},
    "probes": {"core", "prompts", "judging", "audit"},
    "training": {"core", "prompts", "engines", "judging", "audit"},
    "corpus": {"core", "prompts", "engines", "judging", "audit", "worlds"},
    "testing": {"core", "engines", "judging"},  # outside the rooms; imported by none of them
}
MAY_IMPORT["surface"] = set(MAY_IMPORT) - {"testing"}
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = (
    "torch",
    "transformers",
    "scipy",
    "matplotlib",
    "pandas",
    "pyarrow",
    "aiohttp",
    "httpx",
    "requests",
    "numpy",
    "PIL",
)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_names(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the absolute import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_room_is_on_the_map() -> None:
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert rooms <= set(MAY_IMPORT), f"rooms that are not on the map: {rooms - set(MAY_IMPORT)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_what_the_map_allows(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):  # the front door may see every room
        return
    for name in imported_names(path):
        parts = name.split(".")
        if parts[0] == "dikast":
            assert len(parts) > 1, f"{path}: import from the room, not from the front door"
        if parts[0] == "dikast" and parts[1] != room:
            assert parts[1] in MAY_IMPORT[room], f"{path}: {room} may not import {name}"


def test_the_map_itself_refuses_a_wrong_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from dikast.judging.judge import Judge\n    return Judge\n")
    assert list(imported_names(wrong)) == ["dikast.judging.judge.Judge"]
    assert "judging" not in MAY_IMPORT["core"]


def test_public_names_are_sorted_and_there() -> None:
    names = dikast.__all__
    assert names == sorted(names)
    assert set(names) <= set(dir(dikast))  # for those who complete names by tab
    for name in names:
        assert getattr(dikast, name).__doc__, f"{name} has no docstring"


def test_source_files_stay_small() -> None:
    long = {
        str(path.relative_to(PACKAGE)): n for path in FILES if (n := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert not long, f"split these: {long}"


def test_importing_does_nothing(tmp_path: Path) -> None:
    """In an empty home: no file made, no logging set up, nothing heavy loaded, no environment variable read."""
    script = f"""
import logging, os, sys
read = []
class Watched(dict):
    def __getitem__(self, key): read.append(key); return super().__getitem__(key)
    def get(self, key, default=None): read.append(key); return super().get(key, default)
    def __contains__(self, key): read.append(key); return super().__contains__(key)
os.environ = Watched(os.environ)
before = set(sys.modules)
import dikast
ours = [key for key in read]
assert not ours, f"importing read the environment: {{ours}}"
assert not logging.getLogger().handlers and not logging.getLogger("dikast").handlers
dikast.Item, dikast.Judge, dikast.Rubric
loaded = sorted(set({HEAVY!r}) & set(sys.modules))
assert not loaded, f"importing loaded {{loaded}}"
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGE.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_test_file_holds_a_test() -> None:
    for path in Path(__file__).parent.rglob("test_*.py"):
        names = [
            n.name
            for n in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(n, ast.FunctionDef | ast.ClassDef)
        ]
        assert any(name.startswith(("test", "Test")) for name in names), f"{path} holds no test"
