"""How often each schedule finds the best response, simulated: `python -m benchmarks.ranking [--items N] [--write]`.

The judge is that of the table the schedules are measured by: gain 1.5, slot bias 1, noise .7 (nats), systematic error
.3 and error of a grade .8 (standard deviations of quality); `--gain`, `--bias` and `--noise` simulate another, such as
one that benchmarks.ranking_scout measured. `--write` puts the tables into docs/ranking.md.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import markdown, rows_table, write_between
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.simulation import Goal, JudgeModel, Read, Simulated, simulate

JUDGE = JudgeModel(gain=1.5, bias=1.0, noise=0.7, systematic=0.3, graded=0.8)
SIZES = (5, 8, 16)
READS: tuple[tuple[str, Read], ...] = (("full", "vote"), ("full", "verdict"))
PAGE = Path(__file__).parents[1] / "docs" / "ranking.md"


def cells(name: str, read: Read, k: int, found: Simulated) -> list[str]:
    """One line of the table."""
    told = {"logit": "logits", "verdict": "greedy verdicts", "vote": "sampled verdicts"}[read]
    goals: tuple[Goal, ...] = ("best", "best-and-worst", "order")
    rates = [found.goals[goal] for goal in goals]
    shown = [f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]" for rate in rates]
    return [str(k), name, told, f"{found.calls:g}", *shown]


def main() -> None:
    """Simulate, print, and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--items", type=int, default=500, help="items of each simulation")
    parser.add_argument("--write", action="store_true", help="put the table into docs/ranking.md")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of responses, K")
    parser.add_argument("--schedules", nargs="+", choices=list(SCHEDULES), default=list(SCHEDULES))
    for name in ("gain", "bias", "noise"):
        parser.add_argument(f"--{name}", type=float, default=getattr(JUDGE, name), help=f"{name} of the judge, nats")
    given = parser.parse_args()
    judge = replace(JUDGE, gain=given.gain, bias=given.bias, noise=given.noise)
    rows = []
    for k in given.sizes:
        asked: list[tuple[str, Read]] = [*READS, *((name, "logit") for name in SCHEDULES)]
        for name, read in ((n, r) for n, r in asked if n in given.schedules and k >= SCHEDULES[n].least):
            found = simulate(SCHEDULES[name], k, judge, read=read, items=given.items)
            rows.append(cells(name, read, k, found))
            print(rows_table(rows[-1:]), flush=True)
    columns = ["K", "schedule", "read as", "calls", "best", "best and worst", "Kendall's tau"]
    table = markdown([columns, *rows])
    print(table)
    if given.write:
        write_between(PAGE, "schedules", table)


if __name__ == "__main__":
    main()
