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
MOVER = SOURCE / "core" / "output_folder.py"
NAMING_PARTS = {
    "core/output_folder.py",
    "core/runs/run_files.py",
    "core/runs/examine.py",  # with its own order of syncing: moved lines first
    "surface/export/hf_folder.py",  # a file's name holds how many there are, which is known at the end
    "training/models/folders.py", "training/models/model.py",  # whole folders
    "alignment/align.py", "corpus/pipeline/build.py", "worlds/write.py",  # which pass over what a killed call left
}  # fmt: skip
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
    assert len(LINES) >= 39
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


def moves(path: Path) -> list[str]:
    """Calls in a module that rename or move files or folders, as `line: call`.

    `replace` of one value is a path's: that of a text takes two, that of a dataclass or a date takes keywords.
    """
    calls = [node for node in ast.walk(ast.parse(text(path))) if isinstance(node, ast.Call)]
    found = [(call, call.func) for call in calls if isinstance(call.func, ast.Attribute)]
    return [
        f"{path.name}:{call.lineno}: {ast.unparse(call)}"
        for call, named in found
        if ast.unparse(named) in ("os.replace", "os.rename", "os.renames", "shutil.move")
        or (named.attr in ("replace", "rename") and len(call.args) == 1 and not call.keywords)
    ]


def test_files_and_folders_are_moved_in_one_place() -> None:
    found = [told for path in sorted(SOURCE.rglob("*.py")) if path != MOVER for told in moves(path)]
    assert not found, "use core.output_folder or core.runs.run_files:\n" + "\n".join(found)
    assert len(moves(MOVER)) == 2


def test_a_second_way_to_move_files_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "part.replace(path)\npart.rename(path)\nos.rename(part, path)\n"
        "shutil.move(part, path)\nos.replace(part, path)\n"
        "text.replace('a', 'b')\nreplace(item, id='1')\ndataclasses.replace(item, id='1')\n"
    )
    assert [told.split(":")[1] for told in moves(wrong)] == list("12345")


def test_unfinished_files_are_named_in_one_place() -> None:
    named = {
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if re.search(r"(?<!core)\.part[\"']", text(path))
    }
    assert named == NAMING_PARTS
