"""The map of the rooms is a test, not a drawing."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
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
    "ranking": {"core", "prompts", "engines", "judging", "audit"},
    "probes": {"core", "prompts", "judging", "audit"},
    "training": {"core", "prompts", "engines", "judging", "audit", "corpus"},
    "corpus": {"core", "prompts", "engines", "judging", "audit", "worlds"},
    "benches": {"core", "prompts", "engines", "audit", "corpus"},
    "rewards": {"core", "prompts", "engines", "judging", "audit"},
    "annotation": {"core", "audit", "serving"},  # how answers are delivered, in one place for both servers
    "serving": {"core", "prompts", "engines", "judging", "ranking", "rewards"},
    "alignment": {
        "core",
        "prompts",
        "engines",
        "judging",
        "audit",
        "worlds",
        "training",
        "ranking",
        "rewards",
    },
    "lab": {"core", "prompts", "engines", "judging", "audit", "worlds", "corpus", "training"},
    "testing": {"core", "prompts", "engines", "judging"},  # outside the rooms; imported by none of them
}
MAY_IMPORT["surface"] = set(MAY_IMPORT) - {"testing"}
UPWARDS = {"judging/judge.py": "dikast.ranking."}  # `Judge.rank`, when it is called
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_FILES = 18  # of a folder, before they want rooms of their own
# What is left to mend; each of these lists may only get shorter.
STILL_FLAT: set[str] = set()
SAME_FILE_NAME = {
    "engine.py": ["engines/http", "engines/local", "engines/vllm"],  # one engine each
    "gold.py": ["core", "prompts"],
    "plan.py": ["audit", "probes"],
    "rows.py": ["prompts/learn", "prompts/released"],
    "run.py": ["core/runs", "probes"],
}
SAME_CLASS_NAME: dict[str, int] = {}
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


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, which many tests look at."""
    return ast.parse(path.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _forget_trees() -> Iterator[None]:
    yield
    parsed.cache_clear()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_names(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(parsed(path)):
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
        upwards = UPWARDS.get(str(path.relative_to(PACKAGE)), "nothing")
        if parts[0] == "dikast" and parts[1] != room and not name.startswith(upwards):
            assert parts[1] in MAY_IMPORT[room], f"{path}: {room} may not import {name}"


def test_the_map_itself_refuses_a_wrong_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from dikast.judging.judge import Judge\n    return Judge\n")
    assert list(imported_names(wrong)) == ["dikast.judging.judge.Judge"]
    assert "judging" not in MAY_IMPORT["core"]


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in FILES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def run_time_imports(path: Path, known: Container[str]) -> set[str]:
    """The modules of the package that a file imports when it runs, also inside functions."""
    tree, found = parsed(path), set()
    hints = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    skipped = {id(inner) for node in hints for outer in node.body for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name in known}


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules that import one another in a circle, from the first to itself again; empty where there is none."""
    done: set[str] = set()

    def follow(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := follow(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := follow(name, []))), [])


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = modules()
    graph = {name: run_time_imports(path, known) for name, path in known.items()}
    for name, upwards in UPWARDS.items():
        module = "dikast." + name.removesuffix(".py").replace("/", ".")
        graph[module] = {each for each in graph[module] if not each.startswith(upwards)}
    assert cycle({**graph, "dikast": set()}) == []  # the front door names every room, and loads them when they are used
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]


def test_the_walks_name_what_exists() -> None:
    walks = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8").partition("## The rooms")[0]
    hops = re.findall(r"\*\*`([\w.]+)`\*\*", walks)
    known = [name.removeprefix("dikast.") for name in modules()]
    lost = [
        hop
        for hop in hops
        if not any(f".{name}".endswith(f".{each}") for name in known for each in (hop, hop.rpartition(".")[0]) if each)
    ]
    assert len(hops) >= 50
    assert not lost


def test_the_map_lists_every_room_inside_a_room() -> None:
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+/[\w/]+)` \| \S", page, re.M)
    there = {str(path.parent.relative_to(PACKAGE)) for path in FILES}
    assert set(listed) == {each for each in there if "/" in each}, "one line each in docs/architecture.md"
    assert len(listed) == len(set(listed))


def test_rooms_of_many_files_have_rooms_of_their_own() -> None:
    flat = {}
    for folder in {path.parent for path in FILES} - {PACKAGE}:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(files) > MOST_FILES:
            flat[str(folder.relative_to(PACKAGE))] = len(files)
    assert flat.keys() == STILL_FLAT, f"make rooms of {flat}, or take what is mended off the list"


def test_tests_mirror_the_rooms() -> None:
    tests = Path(__file__).parent
    counted = Counter(str(path.parent.relative_to(tests)) for path in tests.rglob("test_*.py"))
    missing = [folder for folder in counted if not (PACKAGE / folder).is_dir()]
    assert not missing, f"folders of tests without a counterpart in the package: {missing}"
    flat = {folder for folder, files in counted.items() if files > MOST_FILES}
    assert flat <= STILL_FLAT, f"mirror the rooms inside {flat - STILL_FLAT}"


def test_no_two_files_have_the_same_name() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        if not path.name.startswith("__"):
            found.setdefault(path.name, []).append(str(path.relative_to(PACKAGE).parent))
    twice = {name: sorted(at) for name, at in found.items() if len(at) > 1}
    assert twice == SAME_FILE_NAME, "give files names that say what they hold, or take what is mended off the list"


def test_no_class_name_stands_more_than_twice() -> None:
    names = [node.name for path in FILES for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)]
    often = {name: n for name, n in Counter(names).items() if n > 2}
    assert often == SAME_CLASS_NAME, "name classes by what they are, or take what is mended off the list"


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


def test_what_is_printed_goes_through_one_door() -> None:
    """`surface.terminal.echo`, which shows control characters instead of obeying them."""
    printed = {path.name for path in FILES if re.search(r"typer\.s?echo\(", path.read_text("utf-8"))}
    assert printed == {"terminal.py"}


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
        names = [n.name for n in ast.walk(parsed(path)) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        assert any(name.startswith(("test", "Test")) for name in names), f"{path} holds no test"


# rooms inside a room: what each may import of the same room, beside itself
WITHIN: dict[str, set[str]] = {
    "audit/statistics": {"estimate"},
    "audit/tables": {"estimate", "plan", "rendering", "statistics"},
    "audit/sections": {"estimate", "plan", "rendering", "results", "statistics", "tables"},
}


def test_rooms_inside_the_audit_import_downwards() -> None:
    for inner, allowed in WITHIN.items():
        room, name = inner.split("/")
        for path in sorted((PACKAGE / inner).rglob("*.py")):
            for imported in imported_names(path):
                parts = imported.split(".")
                if parts[:2] == ["dikast", room] and parts[2] != name:
                    assert parts[2] in allowed, f"{path}: {inner} may not import {imported}"


# where each statistic is defined; `linearised` holds what each row adds to it, with the value from its one definition
DEFINED = {
    "pearson": "audit/statistics/correlation",
    "spearman": "audit/statistics/correlation",
    "ranks": "audit/statistics/correlation",
    "tau": "audit/statistics/concordance",
    "kappa": "audit/statistics/agreement",
    "discrimination": "audit/statistics/agreement",
    "fleiss": "audit/statistics/rater_agreement",
    "krippendorff": "audit/statistics/rater_agreement",
    "icc": "audit/statistics/rater_agreement",
    "wilson": "core/confidence",
    "fisher": "audit/statistics/intervals",
    "mcnemar": "audit/statistics/significance",
    "brier": "audit/statistics/calibration",
    "calibration_error": "audit/statistics/calibration",
}
LINEARISED = "audit/statistics/building_blocks/linearised"
ALSO = {(LINEARISED, "pearson"), (LINEARISED, "spearman"), (LINEARISED, "tau")}
OF_LIBRARIES = {"corrcoef", "pearsonr", "spearmanr", "kendalltau", "rankdata", "cohen_kappa_score", "somersd"}
QUANTILES = {"ndtri", "stdtrit", "ppf", "inv_cdf", "NormalDist", "proportion_ci"}  # in core/confidence alone
# names with these words that are no statistic: sample sizes, an average over slices, fleiss' kappa
NO_DEFINITION = {"labels_for_pearson", "pairs_for_mcnemar", "fisher_mean_over", "mcnemar_told", "fleiss_kappa"}


def second_definitions(path: Path) -> Iterator[str]:
    """Statistics that a file outside their own defines by name, or takes from a library."""
    own = str(path.relative_to(PACKAGE).with_suffix("")) if path.is_relative_to(PACKAGE) else ""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef) and node.name not in NO_DEFINITION:
            for word, home in DEFINED.items():
                named = f"_{word}_" in f"_{node.name}_".replace("__", "_")
                if named and own != home and (own, word) not in ALSO:
                    yield f"{path.name}:{node.lineno}: {node.name} ({word} is defined in {home}.py)"
        name = node.attr if isinstance(node, ast.Attribute) else node.name if isinstance(node, ast.alias) else ""
        if name.rpartition(".")[2] in OF_LIBRARIES | (QUANTILES if own != "core/confidence" else set()):
            yield f"{path.name}: {name} of a library"


def bodies(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Functions by what they do: their statements, without docstrings and names of variables."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                names: dict[str, str] = {}
                for each in (inner for statement in [node.args, *body] for inner in ast.walk(statement)):
                    if isinstance(each, ast.arg):
                        each.arg = names.setdefault(each.arg, f"v{len(names)}")
                    elif isinstance(each, ast.Name) and (isinstance(each.ctx, ast.Store) or each.id in names):
                        each.id = names.setdefault(each.id, f"v{len(names)}")
                told = "\n".join(ast.dump(statement) for statement in body)
                if len(told) > 400:
                    found.setdefault(told, []).append(f"{path.name}:{node.lineno} {node.name}")
    return found


def test_statistics_are_defined_once() -> None:
    found = [told for path in FILES for told in second_definitions(path)]
    assert not found, "use the one definition:\n" + "\n".join(found)
    copies = [each for each in bodies(FILES).values() if len(each) > 1]
    assert not copies, f"one of them is enough: {copies}"


def test_a_second_definition_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import numpy as np\ndef _weighted_pearson(x, y):\n    return np.corrcoef(x, y)\n")
    assert len(list(second_definitions(wrong))) == 2
    again = tmp_path / "again.py"
    again.write_text("from scipy.special import stdtrit\ndef _wilson(count, n):\n    return stdtrit(n - 1, 0.975)\n")
    assert len(list(second_definitions(again))) == 2
    core = PACKAGE / "audit" / "statistics" / "correlation.py"
    copy = tmp_path / "copy.py"
    copy.write_text(
        core.read_text("utf-8")
        .replace("def correlation_of_sums(moments", "def other(numbers")
        .replace("moments", "numbers")
    )
    assert any(len(each) > 1 for each in bodies([core, copy]).values())
