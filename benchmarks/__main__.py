"""`python -m benchmarks`: every figure that the documentation states, in one table; exit 1 when a goal is missed."""

import argparse
import sys

from benchmarks import light, million
from benchmarks.figures import table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="items of the long run (a million takes minutes)")
    found = light.figures()
    found += million.figures(parser.parse_args().n)
    print(table(found))
    sys.exit(not all(figure.met for figure in found))


if __name__ == "__main__":
    main()
