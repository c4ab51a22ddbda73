"""How much code a mechanism takes: code lines and syntax nodes at one commit or several, side by side.

    python -m benchmarks.house --commit c5cb13d --commit HEAD

A code line holds something other than a comment or a docstring. A syntax node is what `ast.walk` yields, docstrings
aside, so that neither denser lines nor longer ones count as less code or more. A mechanism is a list of places: a path
or a pattern of paths, `PATH:NAME` for a function or class (`PATH:CLASS.METHOD` for one of its methods). A place that a
commit does not have counts nothing there; code that moves is counted where it went, so list both places.
"""

import argparse
import ast
import fnmatch
import io
import subprocess
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SRC = "src/dikast/"
_EMPTY = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

MECHANISMS: Mapping[str, Sequence[str]] = {
    "1 run folders": (
        "judging/ledger.py", "judging/joining.py", "core/runs/*.py", "audit/runs.py", "audit/tables/run_rows.py",
        "engines/replay.py",
    ),
    "2 results and their rendering": (
        "audit/report.py", "audit/results.py", "audit/rendering.py", "surface/report/headline.py",
        "surface/*audit_command.py:show", "surface/*audit_command.py:show_table",
    ),
    "3 statistics of agreement and order": (
        "audit/agreement.py", "audit/contingency.py", "audit/weighted.py", "audit/linear.py", "audit/raters.py",
        "audit/concordance.py", "corpus/agreement.py", "corpus/quality/rank_agreement.py",
        *(f"audit/statistics/{name}.py" for name in (
            "agreement", "concordance", "contingency", "correlation", "linearised", "reliability", "weights",
            "building_blocks/contingency", "building_blocks/linearised", "building_blocks/weights",
        )),
    ),
    "4 ask loops and atomic writes": (
        "judging/ask.py", "judging/settling.py", "judging/ledger.py", "engines/asking.py",
        "corpus/stage.py", "corpus/journal.py", "corpus/pipeline/stage.py", "corpus/pipeline/journal.py",
        "core/writing.py", "core/output_folder.py",
    ),
    "5 columns of an audit": (
        "audit/columns.py", "audit/load.py", "audit/rows.py",
        "audit/tables/columns.py", "audit/tables/load.py", "audit/tables/record_rows.py",
    ),
    "6 checks of configuration": (
        "core/checking.py", "core/text.py:hint", "core/text.py:Located.find",
        "training/config.py",
        "corpus/load.py", "corpus/recipe.py:count", "corpus/recipe.py:share",
        "corpus/pipeline/recipe_file.py", "corpus/pipeline/recipe.py:count", "corpus/pipeline/recipe.py:share",
        "engines/options.py",
        "surface/config.py", "surface/verbs.py:read_config", "surface/verbs.py:_long",
        "audit/column_file.py", "audit/tables/column_file.py",
    ),
    "7 flags": (
        "surface/audit_flags.py", "surface/audit_config.py", "surface/media_options.py",
        "surface/*audit_command.py:audit", "surface/*audit_command.py:_one_of",
        "surface/*audit_command.py:with_replies",
        "audit/plan.py:AuditPlan", "audit/plan.py:AuditOptions", "probes/probe_options.py",
        "surface/report/report_options.py", "surface/keywords.py",
        "surface/*judge_commands.py", "surface/*probe_command.py",
        "surface/*report_command.py", "surface/*corpus_command.py:build", "surface/verbs.py:verb",
        "surface/verbs.py:_default", "surface/verbs.py:_shown", "surface/verbs.py:_takes",
        "surface/verbs.py:_typer_type", "surface/verbs.py:_spelt", "surface/verbs.py:_flag",
        "surface/verbs.py:_collected", "surface/verbs.py:_config_flag", "surface/verbs.py:ShowOptions",
        "judging/run_options.py", "surface/judge_runs.py",
    ),
    "8 prompts of the local engine": ("engines/local/*.py",),
    "9 proof code of worlds": ("worlds/check/*.py", "worlds/leaks.py"),
    "10 checks before a checkpoint": ("training/loop.py", "training/checkpoint.py"),
    "11 what a library could do": (
        "engines/http/portal.py", "engines/http/limit.py", "corpus/languages.py", "corpus/lookalikes.py",
        "corpus/topics.py", "training/shards.py", "engines/http/event_loop.py", "corpus/quality/languages.py",
        "corpus/dedup/image_dedup.py", "corpus/quality/topics.py", "training/data/shards.py",
    ),
    "rooms of c5cb13d": tuple(f"{room}/*.py" for room in (
        "audit", "core", "corpus", "engines", "judging", "models", "probes", "prompts", "surface", "testing",
        "training", "worlds",
    )),
    "all of src": ("*.py",),
}  # fmt: skip


class Size(NamedTuple):
    """Code lines and syntax nodes."""

    lines: int
    nodes: int


def size_of(source: str, name: str = "") -> Size:
    """The size of a module, or of the function, class or `CLASS.METHOD` called `name` in it; 0 if it is not there."""
    tree = ast.parse(source)
    found: ast.AST | None = tree
    for part in filter(None, name.split(".")):
        inside = getattr(found, "body", [])
        found = next((each for each in inside if getattr(each, "name", "") == part), None)
    if found is None:
        return Size(0, 0)
    told = [each for node in ast.walk(found) if isinstance(node, _Documented) for each in _docstring(node)]
    lines = _code_lines(source) - {line for each in told for line in range(each.lineno, (each.end_lineno or 0) + 1)}
    if name:
        decorators = getattr(found, "decorator_list", [])
        first = min([getattr(found, "lineno", 0), *(each.lineno for each in decorators)])
        lines &= set(range(first, getattr(found, "end_lineno", 0) + 1))
    return Size(len(lines), sum(1 for _ in ast.walk(found)) - 2 * len(told))  # a docstring is an Expr and a Constant


def _docstring(node: _Documented) -> list[ast.Expr]:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return [first]
    return []


def _code_lines(source: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {line for each in tokens if each.type not in _EMPTY for line in range(each.start[0], each.end[0] + 1)}


@cache
def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def files_at(commit: str) -> list[str]:
    """The Python files of the package at a commit, from its folder."""
    listed = _git("ls-tree", "-r", "--name-only", commit, SRC).splitlines()
    return [path.removeprefix(SRC) for path in listed if path.endswith(".py")]


def sizes(commit: str, places: Sequence[str]) -> Iterator[tuple[str, Size]]:
    """The size of each place of a mechanism at a commit; a file that two patterns name is counted once."""
    seen = set[str]()
    for place in places:
        pattern, _, name = place.partition(":")
        for path in fnmatch.filter(files_at(commit), pattern):
            if (path, name) not in {(each.partition(":")[0], each.partition(":")[2]) for each in seen}:
                seen.add(f"{path}:{name}")
                yield f"{path}:{name}" if name else path, size_of(_git("show", f"{commit}:{SRC}{path}"), name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", action="append", help="a commit; several are put side by side [HEAD]")
    parser.add_argument("--only", default="", help="mechanisms whose name contains this")
    parser.add_argument("--places", action="store_true", help="every place of a mechanism by itself")
    given = parser.parse_args()
    commits = given.commit or ["HEAD"]
    print("| mechanism | " + " | ".join(f"{each} lines | nodes" for each in commits) + " |")
    print("|---" + "|--:|--:" * len(commits) + "|")
    for mechanism, places in MECHANISMS.items():
        if given.only not in mechanism:
            continue
        found = [dict(sizes(commit, places)) for commit in commits]
        totals = [Size(sum(e.lines for e in each.values()), sum(e.nodes for e in each.values())) for each in found]
        print(_row(mechanism, totals))
        for place in sorted({place for each in found for place in each}) if given.places else ():
            print(_row(f"- {place}", [each.get(place, Size(0, 0)) for each in found]))


def _row(name: str, columns: Sequence[Size]) -> str:
    return f"| {name} | " + " | ".join(f"{each.lines:,} | {each.nodes:,}" for each in columns) + " |"


if __name__ == "__main__":
    main()
