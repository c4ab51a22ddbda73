"""How often each schedule finds the best response, simulated: `python -m benchmarks.ranking [--items N] [--write]`.

The judge is that of the table the schedules are measured by: gain 1.5, slot bias 1, noise .7 (nats), systematic error
.3 and error of a grade .8 (standard deviations of quality); `--gain`, `--bias` and `--noise` simulate another, such as
one that benchmarks.ranking_scout measured. `auto` is played as `dikast rank` plays it, on `--runs` files of `--file`
items each: a pilot is drawn and measured, the rest is planned from it, and all calls are counted. `--write` puts the
tables into docs/ranking.md.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.figures import markdown, rows_table, write_between
from benchmarks.ranking_auto import by_auto
from dikast.audit.statistics.intervals import mean_estimate
from dikast.ranking.schedules import SCHEDULES, Schedule, none
from dikast.ranking.simulation import Goal, Judged, JudgeModel, Read, Simulated, simulate, simulated
from dikast.ranking.tournament import Tournament

JUDGE = JudgeModel(gain=1.5, bias=1.0, noise=0.7, systematic=0.3, graded=0.8)
SIZES = (5, 8, 16)
GRADES_ALONE = replace(SCHEDULES["duel"], draw=none, calls=lambda k: 0)
ROWS: tuple[tuple[str, Schedule, Read], ...] = (
    ("full", SCHEDULES["full"], "vote"),
    ("full", SCHEDULES["full"], "verdict"),
    *((name, each, "logit") for name, each in SCHEDULES.items()),
    ("grades alone", GRADES_ALONE, "logit"),
)
GOALS: tuple[Goal, ...] = ("best", "best-and-worst")
PAGE = Path(__file__).parents[1] / "docs" / "ranking.md"
COLUMNS = (
    "K", "schedule", "read as", "calls", "best", "best and worst", "Kendall's tau", "gain in sd",
    "P(chosen > rejected)",
)  # fmt: skip


def cells(name: str, read: Read, k: int, found: Simulated) -> list[str]:
    """One line of the table."""
    told = {"logit": "logits", "verdict": "greedy verdicts", "vote": "sampled verdicts"}[read]
    goals: tuple[Goal, ...] = ("best", "best-and-worst", "order")
    rates = [*(found.goals[goal] for goal in goals), found.gain, found.told_apart]
    shown = [f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]" for rate in rates]
    return [str(k), name, "grades" if name == "grades alone" else told, f"{found.calls:g}", *shown]


def auto_rows(
    k: int, judge: JudgeModel, runs: int, items: int, goals: Sequence[Goal]
) -> Iterator[tuple[list[str], str]]:
    """A line for `auto` with each goal, and what it chose and how far it was from full round robins on its items."""
    for goal in goals:
        orders, whole, quality, chosen = list[list[int]](), list[list[int]](), list[np.ndarray](), Counter[str]()
        calls = 0
        for seed in range(runs):
            judged = Judged(k, judge, items, "logit", seed)
            assert judged.grades is not None
            run = by_auto(k, dict(zip(map(str, range(items)), judged.grades, strict=True)), judged.played, goal, seed)
            full = Tournament(seed, "logit")
            for at in range(items):
                full.enter(str(at), k, SCHEDULES["full"])
            judged.played(full)
            orders += judged.orders(run.tournament, items)
            whole += judged.orders(full, items)
            quality.append(judged.quality)
            calls, chosen[run.schedule] = calls + run.calls, chosen[run.schedule] + 1
            print(f"K={k}, {goal}: file {seed + 1} of {runs}, {run.schedule}", flush=True)
        truth, n = np.concatenate(quality), runs * items
        apart = [
            float(reached(one, each, goal) - reached(other, each, goal))
            for one, other, each in zip(orders, whole, truth, strict=True)
        ]
        told = mean_estimate(apart, 0.95, np.repeat(np.arange(runs), items) if runs > 2 else None)
        names = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
        spent = calls / n / (k * (k - 1))
        yield (
            cells(f"auto, {goal}", "logit", k, simulated(orders, truth, round(calls / n, 2))),
            f"K={k}: auto for {goal} is {told.value:.3f} [{told.low:.3f}, {told.high:.3f}] from full round robins on"
            f" the same items with {spent:.3f} of their calls; of {runs} files of {items} items it chose {names}",
        )


def reached(order: list[int], quality: np.ndarray, goal: Goal) -> bool:
    """Whether the order reaches the goal."""
    best = order[0] == quality.argmax()
    return bool(best and (goal == "best" or order[-1] == quality.argmin()))


def main() -> None:
    """Simulate, print, and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--items", type=int, default=500, help="items of each simulation")
    parser.add_argument("--write", action="store_true", help="put the table into docs/ranking.md")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of responses, K")
    names = list(dict.fromkeys(name for name, *_ in ROWS))
    parser.add_argument("--schedules", nargs="*", choices=names, default=names)
    parser.add_argument("--runs", type=int, default=0, help="files that `auto` is simulated on, 0 for none")
    parser.add_argument("--file", type=int, default=200, help="items of such a file")
    parser.add_argument("--goals", nargs="+", choices=GOALS, default=GOALS, help="of `auto`")
    for name in ("gain", "bias", "noise"):
        parser.add_argument(f"--{name}", type=float, default=getattr(JUDGE, name), help=f"{name} of the judge, nats")
    given = parser.parse_args()
    judge = replace(JUDGE, gain=given.gain, bias=given.bias, noise=given.noise)
    rows, said = list[list[str]](), list[str]()
    for k in given.sizes:
        for name, schedule, read in ROWS:
            if name in given.schedules and k >= schedule.least:
                found = simulate(schedule, k, judge, read=read, items=given.items)
                rows.append(cells(name, read, k, found))
                print(rows_table(rows[-1:]), flush=True)
        for row, told in auto_rows(k, judge, given.runs, given.file, given.goals) if given.runs else ():
            rows.append(row)
            said.append(told)
            print(rows_table(rows[-1:]), told, sep="\n", flush=True)
    table = markdown([COLUMNS, *rows]) + "".join(f"\n{chr(10) * (not i)}- {each}" for i, each in enumerate(said))
    print(table)
    if given.write:
        write_between(PAGE, "schedules", table)


if __name__ == "__main__":
    main()
