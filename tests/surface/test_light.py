"""What typing a command costs before it does anything."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from runs import environment

HEAVY = ("torch", "transformers", "scipy", "matplotlib", "aiohttp", "httpx", "requests", "numpy", "PIL", "pyarrow")
CLIENTS = ("http.client", "urllib.request", "urllib3")


@pytest.mark.parametrize(
    ("verb", "module"),
    [((), ""), (("grade",), "judge_commands"), (("audit",), "audit_command"), (("format", "show"), "format_commands")],
)
def test_help_loads_its_own_verb_alone_and_leaves_nothing(tmp_path: Path, verb: tuple[str, ...], module: str) -> None:
    script = (
        f"import sys\nsys.argv = ['dikast', *{list(verb)!r}, '--help']\nfrom dikast.surface.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"print('loaded:', *sorted(set({HEAVY + CLIENTS!r}) & set(sys.modules)))\n"
        "print(*(name for name in sys.modules if name.endswith(('_command', '_commands'))))"
    )
    known = environment(HOME=str(tmp_path))
    bare = {key: known[key] for key in ("HOME", "PATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=tmp_path, env=bare, capture_output=True, text=True, check=True
    )
    heavy, verbs = done.stdout.splitlines()[-2:]
    assert heavy == "loaded:"
    assert verbs.split() == ([f"dikast.surface.commands.{module}"] if module else [])
    assert list(tmp_path.iterdir()) == []


def test_judging_with_a_mock_loads_no_model_library(tmp_path: Path) -> None:
    script = (
        "import sys, dikast\n"
        "dikast.Judge('mock:oracle', 'helpfulness').compare({'responses': ['a', 'b'], 'gold': [1, 2]})\n"
        f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_plain_installation_has_every_verb_and_makes_pages(tmp_path: Path) -> None:
    """Without the packages of the extras: every module of the surface is imported, and a table becomes a page."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[<>=\[]", each)[0].lower() for each in project["dependencies"]}
    extra = {
        re.split(r"[<>=\[]", each)[0].lower() for listed in project["optional-dependencies"].values() for each in listed
    }
    script = (
        f"import sys\nextra = {sorted(extra - named)!r}\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0].lower() in extra:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import importlib, pkgutil, dikast.surface\n"
        "found = pkgutil.walk_packages(dikast.surface.__path__, 'dikast.surface.')\n"
        "for each in found: importlib.import_module(each.name)\n"
        "from dikast.surface.cli import main\n"
        "sys.argv = ['dikast', 'report', 'old.csv', '-o', 'page.html']\nmain()\n"
    )
    assert {"torch", "transformers", "pyarrow", "fsspec"} <= extra - named
    cells = "\n".join(f"q{i},a{i},{i % 5 + 1},{(i * 2) % 5 + 1}" for i in range(10))
    (tmp_path / "old.csv").write_text(f"question,answer,judge_score,human_score\n{cells}\n")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
