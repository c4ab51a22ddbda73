"""What the audit costs: 10,000 bootstrap draws, a large ranking, a million verdicts. `python -m benchmarks.audit`."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # one core, before numpy starts its own

import numpy as np  # noqa: E402

from benchmarks.figures import Figure, table  # noqa: E402
from dikast.audit.statistics.correlation import weighted_pearson  # noqa: E402
from dikast.audit.statistics.intervals import Resampling, bootstrap  # noqa: E402
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, bradley_terry  # noqa: E402
from dikast.audit.statistics.paired_comparison.ranking import Bouts, rank_players  # noqa: E402

VERDICTS = 1_000_000


def bootstrap_seconds() -> float:
    """10,000 draws of Pearson's correlation of 5,717 continuous pairs."""
    rng = np.random.default_rng(0)
    gold = rng.normal(size=5717)
    score = 0.4 * gold + rng.normal(size=5717)
    start = time.perf_counter()
    bootstrap(weighted_pearson(score, gold), 5717, Resampling(10_000))
    return time.perf_counter() - start


def ranking_seconds() -> float:
    """Bradley-Terry of 100 players from 1,000,000 games, from the games one by one."""
    rng = np.random.default_rng(0)
    strength = rng.normal(size=100)
    first = rng.integers(0, 100, VERDICTS)
    second = (first + rng.integers(1, 100, VERDICTS)) % 100
    outcome = (rng.random(VERDICTS) > 1 / (1 + np.exp(strength[second] - strength[first]))).astype(int)
    start = time.perf_counter()
    bradley_terry(Games.of(first, second, outcome, players=100))
    return time.perf_counter() - start


def drawn_ranking_seconds() -> float:
    """Intervals of the strengths of six players from 2,000 games: plain, with two covariates, with ties."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6, 2000)
    second, outcome = (first + rng.integers(1, 6, 2000)) % 6, rng.choice(3, 2000, p=(0.5, 0.4, 0.1))
    none, two = np.zeros((2000, 0)), np.column_stack([np.sign(rng.normal(size=2000)), rng.normal(size=2000)])
    one = np.ones(2000)
    start = time.process_time()
    bouts = Bouts("abcdef", first, second, outcome, one, none)
    rank_players(bouts, Resampling())
    rank_players(replace(bouts, covariates=two), Resampling())
    rank_players(bouts, Resampling(), model="davidson")
    return time.process_time() - start


def write_verdicts(folder: Path) -> tuple[Path, Path]:
    """A CSV of a million scores, and a run folder of as many verdicts with distributions and feedback."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, VERDICTS)
    score = np.clip(gold + rng.integers(-1, 2, VERDICTS), 1, 5)
    table = folder / "verdicts.csv"
    with table.open("w") as file:
        file.write("id,score,gold,rubric,scene\n")
        file.writelines(
            f"i{k},{s},{g},r{k % 200},{k // 5}\n"
            for k, (s, g) in enumerate(zip(score.tolist(), gold.tolist(), strict=True))
        )
    run = folder / "run"
    run.mkdir()
    with (run / "verdicts.jsonl").open("w") as file, (run / "gold.jsonl").open("w") as golds:
        for k, (s, g) in enumerate(zip(score.tolist(), gold.tolist(), strict=True)):
            rest = 0.3 / 4
            p = ",".join(f'"{label}":{0.7 if label == s else rest}' for label in range(1, 6))
            file.write(
                f'{{"key":"{k:032x}","question":{{"item":"i{k}","criterion":"r{k % 20}","responses":[0],"sample":0}},'
                f'"status":"ok","label":"{s}","score":{s}.0,"reason":"","feedback":"{"word " * 40}","raw":"",'
                f'"distribution":{{{p}}},"mass":0.99,"marker":"own","expected":{0.7 * s + rest * (15 - s):.4f}}}\n'
            )
            golds.write(f'{{"item":"i{k}","gold":{g}}}\n')
    return table, run


def write_cells(folder: Path) -> Path:
    """A CSV of 120,000 scores and choices in 1,200 cells of 100."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, 120_000)
    score = np.clip(gold + rng.integers(-1, 2, len(gold)), 1, 5)
    with (folder / "cells.csv").open("w") as file:
        file.write("id,score,gold,cell,said,chosen\n")
        file.writelines(
            f"i{k},{s},{g},c{k % 1200},{'b' if s > 3 else 'a'},{'b' if g > 3 else 'a'}\n"
            for k, (s, g) in enumerate(zip(score.tolist(), gold.tolist(), strict=True))
        )
    return folder / "cells.csv"


def audit_cost(*arguments: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and peak memory (GB) of one audit in a process of its own."""
    code = (
        "import sys, typer; from dikast.surface.commands.audit_command import audit; app = typer.Typer();"
        "app.command('audit')(audit); app.command('other')(lambda: None); app(sys.argv[1:], standalone_mode=False)"
    )
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, "audit", *arguments, "--json"], check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, processor, after.ru_maxrss / 2**20


def figures() -> list[Figure]:
    """Every figure, on one core."""
    found = [
        Figure("10,000 bootstrap draws of Pearson, 5,717 rows", bootstrap_seconds(), "s", 2),
        Figure("Bradley-Terry, 100 players, 1,000,000 games", ranking_seconds(), "s", 2),
        Figure("three rankings of six players, 500 draws each", drawn_ranking_seconds(), "s", 2),
    ]
    with tempfile.TemporaryDirectory() as name:
        verdicts, run = write_verdicts(Path(name))
        plain = ("--score", "score", "--gold", "gold", "--scale", "1-5", "--by", "rubric")
        audits = {
            "audit of 1,000,000 verdicts (CSV, 200 rubrics)": (str(verdicts), *plain),
            "the same in 200,000 clusters": (str(verdicts), *plain, "--cluster", "scene"),
            "audit of a run of 1,000,000 with distributions": (str(run), "--scale", "1-5"),
        }
        cells = str(write_cells(Path(name)))
        audits |= {
            "120,000 scores by 1,200 cells": (cells, *plain[:-1], "cell"),
            "120,000 choices by 1,200 cells": (
                cells,
                "--score",
                "said",
                "--gold",
                "chosen",
                "--pairwise",
                "--by",
                "cell",
            ),
        }
        for what, arguments in audits.items():
            seconds, processor, peak = audit_cost(*arguments)
            found.append(Figure(what, seconds, "s", 60, f"{processor:.1f} s of processor"))
            found.append(Figure(f"{what}: memory", peak, "GB", 2))
    return found


if __name__ == "__main__":
    print(table(figures()))
