"""How light the door is: `import dikast` and `dikast --help`, each in fresh processes, and what they load."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.figures import Figure

HEAVY = ("torch", "transformers", "scipy", "matplotlib", "aiohttp", "httpx", "requests", "numpy", "PIL")


def seconds(arguments: Sequence[str], times: int) -> float:
    """The median wall time of a Python process with these arguments, after one that warms the caches."""
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
    return statistics.median(took[1:])


def loaded(statement: str) -> list[str]:
    """Which heavy packages a statement loads."""
    script = f"import sys\n{statement}\nprint(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stderr.split()


def figures(times: int = 9) -> list[Figure]:
    """Measure; `times` processes each."""
    bare = seconds(["-c", "pass"], times)
    helping = "from dikast.surface.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    return [
        Figure("python -c pass", bare, "s", note=f"median of {times}"),
        Figure("import dikast", seconds(["-c", "import dikast"], times), "s", 0.3, f"median of {times}"),
        Figure("dikast --help", seconds(["-m", "dikast", "--help"], times), "s", 0.5, f"median of {times}"),
        Figure("heavy packages after import dikast", len(loaded("import dikast")), "", 1, ", ".join(HEAVY)),
        Figure("heavy packages after dikast --help", len(loaded(helping)), "", 1, f"{os.cpu_count()} processors"),
    ]
