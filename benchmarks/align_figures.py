"""What the arms of `python -m benchmarks.align` came to, as the tables of docs/measurements/alignment.md.

All seeds are measured on the same held-out prompts, so a prompt is one cluster: intervals are over prompts with every
seed of a prompt drawn together. They do not cover other seeds; what each seed came to stands beside them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dikast.alignment.round_report import BOUNDS, HELD, Measured, read_measured
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.correlation import weighted_pearson
from dikast.audit.statistics.intervals import Resampling, bootstrap, mean_estimate
from dikast.audit.statistics.ppi import ANY
from dikast.core.gold import goodness_of
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.rubric import Rubric

HOW = Resampling(draws=4000)
STEPS = ("sample", "judge", "train", "measure")


class Rows(NamedTuple):
    """Values with the held-out prompt that each belongs to."""

    ids: list[str]
    values: list[float]

    def mean(self, within: tuple[float, float] = ANY) -> Estimate:
        """The mean, its interval by prompt, of which no end lies outside `within`."""
        return mean_estimate(self.values, HOW.level, codes_of(self.ids), within=within)


class Arm:
    """One arm with its seeds, as far as they are finished. `folders` are those of finished alignments."""

    def __init__(self, name: str, folders: Iterable[Path]) -> None:
        self.name, self.folders = name, tuple(folders)
        self.reports: list[dict[str, Any]] = [json.loads((each / "report.json").read_text("utf-8")) for each in folders]
        self.states = [_states(each) for each in self.folders]

    def column(self, number: int, name: str) -> Rows:
        """A measure in the state after round `number`, 0 the start, of all seeds that came so far."""
        found = Rows([], [])
        for each in self.states:
            if number < len(each):
                for key, value in zip(each[number].ids, each[number].columns[name], strict=True):
                    if value is not None:
                        found.ids.append(key)
                        found.values.append(value)
        return found

    def kept(self, seed: int) -> int:
        """The round whose model a seed ended with, 0 the start."""
        parent = Path(self.reports[seed]["model"]).parent.name
        return int(parent.rpartition("-")[2]) if parent.startswith("round-") else 0

    def gains(self, seed: int, name: str = "gold") -> dict[str, float]:
        """By prompt, a measure of the model that a seed ended with less that of its start."""
        first, last = (dict(zip(state.ids, state.columns[name], strict=True))
                       for state in (self.states[seed][0], self.states[seed][self.kept(seed)]))  # fmt: skip
        pairs = ((key, value, first.get(key)) for key, value in last.items())
        return {key: value - then for key, value, then in pairs if value is not None and then is not None}

    def all_gains(self, name: str = "gold") -> Rows:
        """The same of all seeds."""
        each = [(key, value) for seed in range(len(self.folders)) for key, value in self.gains(seed, name).items()]
        return Rows([key for key, _ in each], [value for _, value in each])


def _states(folder: Path) -> list[Measured]:
    paths = [folder / "start" / HELD, *sorted(folder.glob(f"round-*/{HELD}"))]
    return [read_measured(path) for path in paths if (path / "measures.jsonl").is_file()]


def codes_of(ids: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Codes from 0 of the clusters."""
    return np.unique(np.asarray(ids), return_inverse=True)[1].astype(np.int64)


def share_of_gap(arm: Rows, gold: Rows) -> Estimate:
    """What an arm gained as a share of what the gold arm gained, each in the mean; prompts of both drawn together."""
    ids = [*arm.ids, *gold.ids]
    ours = np.r_[np.ones(len(arm.ids)), np.zeros(len(gold.ids))]
    values = np.array([*arm.values, *gold.values])

    def statistic(weights: Any) -> Any:
        mine, theirs = weights * ours, weights * (1 - ours)
        gained = [(each @ values) / each.sum(1) for each in (mine, theirs)]
        return gained[0] / np.where(gained[1] > 0, gained[1], np.nan)

    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(np.ones((1, len(values))))[0])
        codes = codes_of(ids)
        low, high = HOW.interval(bootstrap(statistic, len(values), HOW, cluster=codes), groups=int(codes.max()) + 1)
    return Estimate(value, len(set(ids)), low, high, HOW.level, "bootstrap by prompt")


def best_of(rewards: Sequence[float], golds: Sequence[float], n: int) -> float:
    """The expected gold of the reply with the highest reward among `n` of the replies, drawn without replacement.

    Exact: with replies in order of reward, the one at rank i of m (from 0, best first) is the best of a draw with
    probability C(m-i-1, n-1) / C(m, n). Of equal rewards each is as likely to be taken, so they share their mean gold.
    """
    reward, gold = np.asarray(rewards, float), np.asarray(golds, float)
    order = np.argsort(-reward, kind="stable")
    total, m = 0.0, len(order)
    left = 1.0  # the chance that the best of a draw is at this rank or later
    shared = {value: float(gold[reward == value].mean()) for value in set(reward.tolist())}
    for rank, place in enumerate(order):
        if m - rank < n:
            break
        here = left * n / (m - rank)
        total += here * shared[float(reward[place])]
        left -= here
    return total


def states_table(arms: Sequence[Arm]) -> list[str]:
    """Figures of each arm by state."""
    lines = ["| arm | state | seeds | gold | judge's reward | words | unreadable | KL, nats a reply |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for arm in arms:
        for number in range(max((len(each) for each in arm.states), default=0)):
            seeds = sum(number < len(each) for each in arm.states)
            cells = [_cell(arm.column(number, name), digits, BOUNDS[name])
                     for name, digits in (("gold", 3), ("reward", 3), ("words", 1), ("unreadable", 3))]  # fmt: skip
            kl = _cell(arm.column(number, "kl"), 1) if number else "0"
            lines.append(f"| {arm.name} | {_name(number)} | {seeds} | {' | '.join(cells)} | {kl} |")
    return lines


def gains_table(arms: Sequence[Arm]) -> list[str]:
    """What the model that each arm ended with gained, and the share of what the gold arm gained."""
    known = {arm.name: arm for arm in arms}
    columns = (
        "arm",
        "seeds",
        "gold gained, paired",
        "by seed",
        "share of the gold arm's gain",
        "by seed",
        "words gained",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for arm in arms:
        each = [float(np.mean(list(arm.gains(seed).values()))) for seed in range(len(arm.folders))]
        shares, told = "", ""
        if "gold" in known and arm.name != "gold":
            gold, both = known["gold"], min(len(arm.folders), len(known["gold"].folders))
            tops = [float(np.mean(list(gold.gains(seed).values()))) for seed in range(both)]
            pooled = [_joined(side.gains(seed) for seed in range(both)) for side in (arm, gold)]
            told = f"{share_of_gap(*pooled):.2f}"
            shares = ", ".join(
                f"{mine / top:.2f}" if top > 0 else "undefined" for mine, top in zip(each, tops, strict=False)
            )
        grown = arm.all_gains("words").mean()
        lines.append(f"| {arm.name} | {len(arm.folders)} | {arm.all_gains().mean():.3f} | "
                     f"{', '.join(f'{value:.3f}' for value in each)} | {told} | {shares} | {grown:+.1f} |")  # fmt: skip
    return lines


def _joined(parts: Iterable[Mapping[str, float]]) -> Rows:
    pairs = [pair for part in parts for pair in part.items()]
    return Rows([key for key, _ in pairs], [value for _, value in pairs])


def ends_table(arms: Sequence[Arm]) -> list[str]:
    """How each arm ended, with the gold of the model that was kept beside the start's."""
    lines = ["| arm | seed | rounds begun | kept | gold of the kept model less the start's | why it stopped |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for arm in arms:
        for seed, report in enumerate(arm.reports):
            gained = arm.gains(seed)
            change = mean_estimate(list(gained.values()), HOW.level) if arm.kept(seed) else None
            lines.append(f"| {arm.name} | {seed + 1} | {len(report['rounds']) - 1} | {_name(arm.kept(seed))} | "
                         f"{'0 (it is the start)' if change is None else f'{change:.3f}'} | "
                         f"{report['stopped'] or 'all rounds done'} |")  # fmt: skip
    return lines


def pairs_table(arms: Sequence[Arm]) -> list[str]:
    """What each round was taught from: pairs, how reward and gold go together, how often a pair is the right way."""
    columns = ("arm", "round", "pairs of prompts", "reward and gold of replies, Pearson's r",
               "the better has more gold", "less", "as much")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for arm in arms:
        for number in range(1, max((len(each["rounds"]) for each in arm.reports), default=1)):
            found = [_taught(folder / f"round-{number}", seed) for seed, folder in enumerate(arm.folders)
                     if (folder / f"round-{number}" / "pairs.jsonl").is_file()]  # fmt: skip
            replies = [reply for each in found for reply in each.replies]
            r = correlation(replies)
            sides = np.array([side for each in found for side in each.sides])
            shares = (
                " | ".join(f"{float((sides == sign).mean()):.2f}" for sign in (1, -1, 0)) if len(sides) else " | | "
            )
            lines.append(f"| {arm.name} | {number} | {sum(len(each.sides) for each in found)} of "
                         f"{sum(each.prompts for each in found)} | {r:.2f} | {shares} |")  # fmt: skip
    return lines


class Taught(NamedTuple):
    """Of a round: (prompt, reward, gold) of each reply, which way each pair points by gold, and how many prompts."""

    replies: list[tuple[str, float, float]]
    sides: list[int]
    prompts: int


def _taught(folder: Path, seed: int) -> Taught:
    golds = {item.id: golds_of(item) for item in read_items(str(folder / "samples.jsonl"))}
    replies = []
    for line in map(json.loads, (folder / "rankings.jsonl").read_text("utf-8").splitlines()):
        both = zip(line["rewards"], golds[line["item"]], strict=False)
        replies += [(f"{seed}/{line['item']}", reward, gold) for reward, gold in both if reward is not None]
    sides = []
    pairs = folder / "pairs.jsonl"
    for pair in read_items(str(pairs)) if pairs.stat().st_size else ():  # empty where a round gave no pair
        best, worst = (golds[pair.id][place] for place in pair.meta["samples"])
        sides.append((best > worst) - (best < worst))
    return Taught(replies, sides, len(golds))


def golds_of(item: Item) -> list[float]:
    """The gold of each reply as goodness, 0 (worst) to 1: some rubrics count what is bad."""
    assert isinstance(item.rubric, Rubric)
    return [float(value) for value in goodness_of(item, item.rubric, None)]


def correlation(replies: Sequence[tuple[str, float, float]]) -> Estimate:
    """Pearson's r of rewards and golds, its interval by prompt."""
    if not replies:
        return Estimate(float("nan"), 0, level=HOW.level, note="no replies")
    reward, gold = (np.array([each[place] for each in replies], float) for place in (1, 2))
    codes = codes_of([each[0].partition("/")[2] for each in replies])
    statistic = weighted_pearson(reward, gold)
    low, high = HOW.interval(bootstrap(statistic, len(reward), HOW, cluster=codes), groups=int(codes.max()) + 1)
    return Estimate(float(statistic(np.ones((1, len(reward))))[0]), len(reward), low, high, HOW.level, "bootstrap")


def seconds_table(arms: Sequence[Arm]) -> list[str]:
    """CPU seconds of an arm by step, the mean of its seeds, and what the judge was asked."""
    lines = [
        f"| arm | {' | '.join(STEPS)} | all | questions to the judge | tokens |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        seconds, asked = spent(arm)
        cells = [f"{value:.0f}" for value in [*seconds, sum(seconds)]] + [f"{value:,.0f}" for value in asked]
        lines.append(f"| {arm.name} | {' | '.join(cells)} |")
    return lines


def spent(arm: Arm) -> tuple[list[float], list[float]]:
    """CPU seconds of an arm by step, and the questions and tokens of its judge, each the mean of its seeds."""
    rounds, seeds = [each for report in arm.reports for each in report["rounds"]], len(arm.reports)
    seconds = [sum(each["seconds"].get(step, {}).get("cpu", 0.0) for each in rounds) / seeds for step in STEPS]
    asked = [sum(each.get(name, 0) + each["asked_held_out"].get(name, 0) for each in rounds) / seeds
             for name in ("calls", "tokens")]  # fmt: skip
    return seconds, asked


def best_of_table(curves: Mapping[str, Callable[[int], Rows]], sizes: Sequence[int]) -> list[str]:
    """Gold of the best of N replies of the start, by the judge that chooses."""
    lines = [f"| N | {' | '.join(curves)} |", f"|---|{'---|' * len(curves)}"]
    for n in sizes:
        cells = [_cell(curve(n), 3, BOUNDS["gold"]) for curve in curves.values()]
        lines.append(f"| {n} | {' | '.join(cells)} |")
    return lines


def _cell(rows: Rows, digits: int, within: tuple[float, float] = ANY) -> str:
    return format(rows.mean(within), f".{digits}f")


def _name(number: int) -> str:
    return "start" if number == 0 else f"round {number}"
