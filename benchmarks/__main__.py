"""`python -m benchmarks`: the figures of the main path in one table, then every other benchmark with its own output.

Exits with 1 when a goal is missed or a benchmark fails.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks import light, million
from benchmarks.figures import table

_OURS = {"__init__", "__main__", "figures", "light", "million", "peer", "peers", "safety", "gpu_models", "gpu_training"}
_LONG = {"rubrics", "coverage", "gpu", "rank_memory"}  # six judges, an hour of simulations, a GPU, 20 GB: by themselves


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="items of the long run (a million takes minutes)")
    parser.add_argument("--main-path", action="store_true", help="only the table")
    given = parser.parse_args()
    found = light.figures() + million.figures(given.n)
    print(table(found), flush=True)
    missed = not all(figure.met for figure in found)
    others = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _OURS | _LONG)
    for name in [] if given.main_path else others:
        print(f"\n== benchmarks.{name}", flush=True)
        missed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    sys.exit(missed)


if __name__ == "__main__":
    main()
