"""Rankings by `scout` on fresh scenes, and what best of N gains: `python -m benchmarks.ranking_scout FOLDER [--write]`.

Each item is compared once in full and its responses are graded once; every schedule then takes its comparisons from
these, since the same question has the same answer. The gold is the exact penalty of each response: the best response
is any with the least, the worst any with the greatest. Items whose responses all have the same penalty, or of which two
are equal, are left out.
A schedule is drawn `--draws` times for each item, and intervals are over items. `auto` is played `--pilots` times, as
`dikast rank` plays it: a pilot is drawn and measured, the rest is planned from it, and all calls are counted. FOLDER
keeps the verdicts: a second call goes on where the first was stopped. `--write` puts the tables into docs/ranking.md.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.align_figures import best_of
from benchmarks.figures import markdown, rows_table, write_between
from benchmarks.ranking_auto import by_auto
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.concordance import kendall_tau_b
from dikast.audit.statistics.intervals import mean_estimate
from dikast.core.records.items import read_items
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.watching import Progress, Watcher
from dikast.ranking.comparisons import Comparison, Floats, OrderedPair
from dikast.ranking.rank_file import rank_file
from dikast.ranking.rank_options import RankOptions
from dikast.ranking.schedules import SCHEDULES, Schedule
from dikast.ranking.simulation import Goal, Read, with_duel
from dikast.ranking.tournament import Tournament
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

PAGE = Path(__file__).parents[1] / "docs" / "ranking.md"
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)  # of best of N
_EVERY = 30  # seconds
GOALS: tuple[Goal, ...] = ("best", "best-and-worst", "order")


class Group(NamedTuple):
    """An item's responses: their penalties, lengths in words, grades (NaN: none), goodness by gold, comparisons."""

    penalties: Floats
    words: Floats
    grades: Floats
    goodness: Floats
    said: Mapping[OrderedPair, Comparison]


def drawn(k: int, n: int, seed: int) -> list[Sample]:
    """Fresh scenes with `k` responses each, whose penalties are not all the same."""
    maker, found, i = Maker(Settings(domain="scenes", split="fresh", seed=seed, responses=k)), list[Sample](), 0
    while len(found) < n:
        sample = maker.sample(i)
        i += 1
        if len({each["penalty"] for each in sample.gold()["responses"]}) > 1:
            found.append(replace(sample, name=f"{len(found)}"))
    return found


def watching() -> Watcher:
    """Prints how far a run is, every half minute."""
    last = time.monotonic()

    def watch(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > _EVERY:
            last = time.monotonic()
            print(f"  {now.done:,} of {now.total:,} after {now.seconds:.0f} s", flush=True)

    return watch


def groups(folder: Path, k: int, n: int, seed: int, *, pairs: bool) -> list[Group]:
    """Draw, grade and compare what is not there yet."""
    print(f"K={k}: {n} items are drawn, graded{' and compared in full' if pairs else ''} in {folder}", flush=True)
    samples = drawn(k, n, seed)
    file = write_samples(samples, folder / "items", {"fresh": 1}).files[0]
    with Judge("scout") as judge:
        grade_file(judge, str(file), folder / "grades", watch=watching())
        if pairs:
            rank_file(judge, str(file), folder / "pairs", RankOptions(schedule="full"), watch=watching())
    items = {item.id: item for item in read_items(str(file))}
    grades = {
        (v.question.item, v.question.responses[0]): v.score if v.expected is None else v.expected
        for v in current_verdicts(folder / "grades")
    }
    said: dict[str, dict[OrderedPair, Comparison]] = {}
    for verdict in current_verdicts(folder / "pairs") if pairs else ():
        one = Comparison.of(verdict)
        said.setdefault(verdict.question.item, {})[one.pair] = one
    found = []
    for sample in samples:
        if len({response.text for response in sample.responses}) < k:
            continue
        gold, scale = sample.gold()["responses"], items[sample.id].rubric.scale  # type: ignore[union-attr]
        told = [grades[sample.id, i] for i in range(k)]
        found.append(
            Group(
                np.array([each["penalty"] for each in gold], float),
                np.array([len(response.text.split()) for response in sample.responses], float),
                np.array([np.nan if value is None else scale.goodness(value) for value in told]),
                np.array([scale.goodness(each["score"]) for each in gold]),
                said.get(sample.id, {}),
            )
        )
    return found


def orders(found: Sequence[Group], schedule: Schedule, read: Read, seed: int) -> Iterator[list[int]]:
    """The order of each item by a schedule, from its recorded comparisons."""
    rng, k = np.random.default_rng([seed, 1]), len(found[0].penalties)
    tournament = Tournament(seed, "logit" if read == "logit" else "verdict")
    for at, group in enumerate(found):
        tournament.enter(str(at), k, schedule, known(group.grades) if schedule.grades else None)
    if schedule.grades == "fitted":  # the pilot of `auto`
        for at in rng.permutation(len(found))[: max(8, len(found) // 10)].tolist():
            tournament.enter(f"{at} pilot", k, SCHEDULES["full"], known(found[at].grades))
    while pairs := tournament.draw():
        tournament.note(
            {at: [voted(found[int(at.split()[0])].said[p], read, rng) for p in each] for at, each in pairs.items()}
        )
    for at, group in enumerate(found):
        yield order_of(tournament, str(at), group)


def known(grades: Floats) -> Floats:
    """Grades with the lowest one where there is none."""
    return np.nan_to_num(grades, nan=0.0)


def voted(said: Comparison, read: Read, rng: np.random.Generator) -> Comparison:
    """The comparison; with `vote` its verdict is drawn by the probability that was read."""
    if read != "vote" or np.isnan(said.logit):
        return said
    return replace(said, verdict=1.0 if rng.random() < 1 / (1 + np.exp(-said.logit)) else -1.0)


def reached(found: Sequence[Group], schedule: Schedule, read: Read, draws: int) -> dict[Goal, Floats]:
    """Each goal of each item (n,), averaged over `draws` draws of the schedule."""
    total = {goal: np.zeros(len(found)) for goal in GOALS}
    for seed in range(draws if schedule.name != "full" or read == "vote" else 1):
        for at, order in enumerate(orders(found, schedule, read, seed)):
            for goal, value in worth(order, found[at]).items():
                total[goal][at] += value
    return {goal: values / (seed + 1) for goal, values in total.items()}


def worth(order: Sequence[int], group: Group) -> dict[Goal, float]:
    """How far an order reaches each goal."""
    penalties = group.penalties
    best, worst = penalties[order[0]] == penalties.min(), penalties[order[-1]] == penalties.max()
    tau = kendall_tau_b(range(len(order), 0, -1), -penalties[list(order)])
    return {"best": float(best), "best-and-worst": float(best and worst), "order": tau}


def shown(estimate: Estimate, digits: int = 2) -> str:
    """An estimate with its interval."""
    if np.isnan(estimate.low if estimate.low is not None else np.nan):
        return f"{estimate.value:.{digits}f}"
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def of_share(values: Floats) -> str:
    """A mean of shares."""
    return shown(mean_estimate(values, 0.95, within=(0, 1)))


def schedule_rows(found: Sequence[Group], draws: int) -> Iterator[list[str]]:
    """Lines of the table for one K."""
    k = len(found[0].penalties)
    fitting: list[tuple[str, Read]] = [(name, "logit") for name, each in SCHEDULES.items() if k >= each.least]
    full = reached(found, SCHEDULES["full"], "logit", 1)
    reads: list[tuple[str, Read]] = [("full", "vote"), ("full", "verdict"), *fitting]
    for name, read in reads:
        got = reached(found, SCHEDULES[name], read, draws)
        yield row_of(found, name, read, str(SCHEDULES[name].in_all(k)), got, full)


def row_of(
    found: Sequence[Group], name: str, read: Read, calls: str, got: Mapping[Goal, Floats], full: Mapping[Goal, Floats]
) -> list[str]:
    """One line of the table."""
    said = {"logit": "logits", "verdict": "greedy verdicts", "vote": "sampled verdicts"}[read]
    apart = [got[goal] - full[goal] for goal in GOALS[:2]]
    told = ["" if not one.any() else f" ({shown(mean_estimate(one, 0.95))})" for one in apart]
    both = [of_share(got[goal]) + more for goal, more in zip(GOALS[:2], told, strict=True)]
    tau = shown(mean_estimate(got["order"], 0.95, within=(-1, 1)))
    return [str(len(found[0].penalties)), str(len(found)), name, said, calls, *both, tau]


def auto_rows(found: Sequence[Group], pilots: int) -> Iterator[tuple[list[str], str]]:
    """A line for `auto` with each goal, and what its pilots chose, at what cost."""
    k, n, full = len(found[0].penalties), len(found), reached(found, SCHEDULES["full"], "logit", 1)
    grades = {str(at): known(group.grades) for at, group in enumerate(found)}

    def play(tournament: Tournament) -> dict[str, int]:
        calls = Counter[str]()
        while pairs := tournament.draw():
            calls.update({at: len(each) for at, each in pairs.items()})
            tournament.note({at: [found[int(at)].said[pair] for pair in each] for at, each in pairs.items()})
        return calls

    for goal in GOALS[:2]:
        total, calls, chosen = {each: np.zeros(n) for each in GOALS}, 0, Counter[str]()
        for seed in range(pilots):
            run = by_auto(k, grades, play, goal, seed)
            for at, group in enumerate(found):
                for each, value in worth(order_of(run.tournament, str(at), group), group).items():
                    total[each][at] += value / pilots
            calls, chosen[run.schedule] = calls + run.calls, chosen[run.schedule] + 1
            print(f"K={k}, {goal}: pilot {seed + 1} of {pilots}, {run.schedule}", flush=True)
        apart, spent = total[goal] - full[goal], calls / pilots / n
        names = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
        told = f"auto for {goal}: {shown(mean_estimate(apart, 0.95), 3)} from the full round robin with"
        share = f"{spent / (k * (k - 1)):.3f} of its calls; of {pilots} pilots it chose {names}"
        yield row_of(found, f"auto, {goal}", "logit", f"{spent:.2f}", total, full), f"K={k}: {told} {share}"


def order_of(tournament: Tournament, at: str, group: Group) -> list[int]:
    """The order of an item's responses."""
    if tournament.contests[at].schedule.grades == "first":
        return list(with_duel(known(group.grades), tournament.strengths([at])[at]))
    return tournament.order(at)


def best_of_rows(found: Sequence[Group], seed: int) -> list[list[str]]:
    """The mean goodness of the best of N responses by each chooser, exact over all draws of N of the responses."""
    noise = np.random.default_rng(seed)
    choosers = {
        "scout": [np.nan_to_num(each.grades, nan=-1.0) for each in found],
        "gold": [-each.penalties for each in found],
        "longest": [each.words for each in found],
        "random": [noise.random(len(each.words)) for each in found],
    }
    rows = []
    for n in SIZES:
        by = {
            name: np.array(
                [best_of(r.tolist(), each.goodness.tolist(), n) for r, each in zip(rewards, found, strict=True)]
            )
            for name, rewards in choosers.items()
        }
        by["random"] = np.array([each.goodness.mean() for each in found])  # its expectation, whatever N is
        row = [str(n), *(of_share(values) for values in by.values())]
        gain, most = by["scout"] - by["random"], by["gold"] - by["random"]
        rows.append([*row, "" if n == 1 else ratio(gain, most)])
    return rows


def ratio(gain: Floats, most: Floats) -> str:
    """The share of the way from random to gold, a ratio of sums over items, with its linearised interval."""
    share = gain.sum() / most.sum()
    parts = mean_estimate((gain - share * most) / most.mean(), 0.95)
    half = 0.0 if parts.low is None or parts.high is None else (parts.high - parts.low) / 2
    return f"{share:.2f} [{share - half:.2f}, {share + half:.2f}]"


def main() -> None:
    """Draw, ask, print, and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking_scout", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the verdicts are kept")
    parser.add_argument("--items", nargs="*", default=["5:100", "8:60", "16:30"], help="K:N, N items of K responses")
    parser.add_argument("--best-of", type=int, default=150, help="items of the best-of-N curve, 0 for no curve")
    parser.add_argument("--draws", type=int, default=20, help="draws of each schedule")
    parser.add_argument("--pilots", type=int, default=10, help="pilots of `auto`, 0 for none")
    parser.add_argument("--seed", type=int, default=2311)
    parser.add_argument("--more", type=int, nargs="*", default=[], help="further seeds, with as many items each")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/ranking.md")
    given = parser.parse_args()
    told = dict[str, str]()
    if given.best_of:
        curve = groups(given.folder / "best-of", 16, given.best_of, given.seed + 1, pairs=False)
        header = ["N", "scout", "gold", "longest", "random", "share of the way"]
        told["best-of-n"] = markdown([header, *best_of_rows(curve, given.seed)])
        print(told["best-of-n"], flush=True)
    rows, plans = list[list[str]](), list[str]()
    for each in given.items:
        k, n = map(int, each.split(":"))
        found = list[Group]()
        for seed in (given.seed, *given.more):
            folder = given.folder / (f"k{k}" if seed == given.seed else f"k{k}-{seed}")
            found += groups(folder, k, n, seed + k, pairs=True)
        for row in schedule_rows(found, given.draws):
            rows.append(row)
            print(rows_table([row]), flush=True)
        for row, said in auto_rows(found, given.pilots) if given.pilots else ():
            rows.append(row)
            plans.append(said)
            print(rows_table([row]), said, sep="\n", flush=True)
    columns = ["K", "items", "schedule", "read as", "calls", "best", "best and worst", "Kendall's tau"]
    told["scout"] = markdown([columns, *rows]) + "\n\n" + "\n".join(f"- {each}" for each in plans)
    if given.write:
        for name, text in told.items():
            write_between(PAGE, name, text)


if __name__ == "__main__":
    main()
