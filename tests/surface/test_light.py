"""What typing a command costs before it does anything."""

import subprocess
import sys
from pathlib import Path

import pytest

from runs import environment

HEAVY = ("torch", "transformers", "scipy", "matplotlib", "aiohttp", "httpx", "requests", "numpy", "PIL", "pyarrow")
CLIENTS = ("http.client", "urllib.request", "urllib3")


@pytest.mark.parametrize("verb", [(), ("grade",), ("compare",), ("format",)], ids=" ".join)
def test_help_loads_nothing_heavy_and_leaves_nothing(tmp_path: Path, verb: tuple[str, ...]) -> None:
    script = (
        f"import sys\nsys.argv = ['dikast', *{list(verb)!r}, '--help']\nfrom dikast.surface.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"print('loaded:', *sorted(set({HEAVY + CLIENTS!r}) & set(sys.modules)))"
    )
    known = environment(HOME=str(tmp_path))
    bare = {key: known[key] for key in ("HOME", "PATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=tmp_path, env=bare, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded:"
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
