"""The findings of experiments: figures, effects and verdicts by the written rules, from run folders alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import Resampling, kept_within
from dikast.audit.tables.record_rows import GoldOfItems, gold_by_item
from dikast.audit.tables.run_rows import RunRows
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, changed_files
from dikast.core.text import Located, counted, in_shell
from dikast.core.verdict import Status
from dikast.lab.claim_by_claim import CLAIM_OF, joined_score
from dikast.lab.effect_kinds import Effect
from dikast.lab.effects import ArmRun, effect, next_doubling, over_arms, range_of_effect
from dikast.lab.experiment import Experiment, read_experiment
from dikast.lab.running import PLAN, read_plan
from dikast.lab.stages import AGAIN, COST
from dikast.lab.watched_anchors import watched

Verdict = Literal["holds", "fails", "cannot tell at this size", "not run"]
UNDECIDED: Verdict = "cannot tell at this size"
_MOST_DROPPED = 0.1
_LEAST = 40  # items of a slice
_OPENING = 2  # words of a criterion that name its phrase
_BAD_ITEM = f"{Status.BAD_ITEM}:"
_UNASKED = (_BAD_ITEM, f"{Status.ENGINE_ERROR}:")  # of failures that are not the judge's own


@dataclass(frozen=True, slots=True)
class RunVerdicts:
    """The verdicts of one run by what they are about: (item, criterion, response) -> score, gold, rubric, cluster.

    Score and gold are shares of their scale, 0 the worst and 1 the best, so that items of several scales can be joined.
    `unasked`: how many questions got no reply, by reason, such as a damaged picture.
    """

    found: Mapping[tuple[str, str, int], tuple[float, float, str, str]]
    openings: Mapping[str, str]
    unasked: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reversal:
    """A slice of the items in which an effect has the other sign, its interval (widened for all slices) without 0."""

    effect: str
    slice: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Finding:
    """One experiment: `figures` (arm, held, figure) -> what the arm reached by itself, with its interval as that of an
    effect; `cost` of what its arms share counts once. `unasked` is that of all its runs; `damaged`: the folders, of
    items and of their runs, to remove so that items which cannot be shown are drawn and asked again.
    """

    experiment: Experiment
    seeds: tuple[int, ...]
    effects: Mapping[str, Estimate]
    figures: Mapping[tuple[str, str, str], Estimate]
    verdict: Verdict
    why: str
    reversals: tuple[Reversal, ...] = ()
    slices: int = 0
    cost: Mapping[str, float] = field(default_factory=dict)
    unasked: Mapping[str, int] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()


def findings(out: str | Path, how: Resampling | None = None) -> list[Finding]:
    """The finding of every experiment in a folder that `run_experiments` made, by name; UserError for another."""
    plans = sorted(Path(out).glob(f"*/{PLAN}"))
    if not plans:
        raise UserError(f"{out}: holds no experiment: run `dikast lab run NAME --out {in_shell(out)}` first")
    drawn = how or Resampling()
    return [finding(Path(out), read_plan(plan), drawn) for plan in plans]


def finding(out: Path, plan: Mapping[str, Any], how: Resampling) -> Finding:
    """The finding of one experiment so far, from the seeds that every arm has finished."""
    experiment = read_experiment(Located(plan["told"], f"{plan['name']}.yaml"), Path(), plan["name"])
    places = {(each["arm"], each["seed"], each["held"]): each for each in plan["runs"]}
    seeds = sorted({seed for _, seed, _ in places})
    finished = {key: (out / each["run"] / COST).is_file() for key, each in places.items()}
    needed = {(arm, each.held) for each in experiment.written.effects.values() for arm in each.arms}
    done = tuple(
        seed
        for seed in seeds
        if all(there for key, there in finished.items() if key[1] == seed)
        and all((arm, seed, held) in finished for arm, held in needed)
    )
    if not done:
        return Finding(experiment, (), {}, {}, "not run", "no seed is done in every arm")
    rows = {key: _rows(out / each["run"]) for key, each in places.items() if key[1] in done}
    written = experiment.written.effects
    effects = {name: _effect(experiment, each, rows, done, how) for name, each in written.items()}
    slices = {name: _sliced(experiment, each, rows, done) for name, each in written.items()}
    looked = sum(map(len, slices.values()))
    stricter = Resampling(how.draws, 1 - (1 - how.level) / max(1, looked), how.seed)
    reversals = [
        found
        for name, each in written.items()
        for found in _reversals(name, experiment, each, rows, done, stricter, effects[name], slices[name])
    ]
    figures = {}
    for held, figure in dict.fromkeys((each.held, each.figure) for each in experiment.written.effects.values()):
        for arm in experiment.arms:
            if all((arm, seed, held) in rows for seed in done):
                alone = Effect(figure=figure, held=held, arm=arm)
                figures[arm, held, figure] = _effect(experiment, alone, rows, done, how)
    verdict, why = decided(experiment, effects, done)
    used = [each for key, each in places.items() if key[1] in done]
    unasked: Counter[str] = Counter()
    for run in {places[key]["run"]: each for key, each in rows.items()}.values():
        unasked.update(run.unasked)
    bad = [places[key] for key, each in rows.items() if any(why.startswith(_BAD_ITEM) for why in each.unasked)]
    damaged = tuple(dict.fromkeys(str(out / each[what]) for what in ("items", "run") for each in bad))
    cost = _cost(out, used)
    return Finding(experiment, done, effects, figures, verdict, why, tuple(reversals), looked, cost, unasked, damaged)


def decided(experiment: Experiment, effects: Mapping[str, Estimate], seeds: Sequence[int]) -> tuple[Verdict, str]:
    """The verdict by the written rule, and why there is none. There is none before all written seeds are done: who may
    stop at any seed stops at one that suits.
    """
    told = experiment.written
    if not set(told.seeds) <= set(seeds):
        done = len(set(told.seeds) & set(seeds))
        return UNDECIDED, f"{done} of {counted(len(told.seeds), 'seed')} of the experiment are done"
    for name in {**told.holds, **told.fails}:
        each = effects[name]
        if each.dropped > _MOST_DROPPED * (each.n + each.dropped):
            return UNDECIDED, f"{name}: {each.dropped:,} of {each.n + each.dropped:,} items lack a verdict in some arm"
    holds = all(region.holds(effects[name].low, effects[name].high) for name, region in told.holds.items())
    fails = all(region.holds(effects[name].low, effects[name].high) for name, region in told.fails.items())
    for name in {**told.holds, **told.fails} if holds == fails else ():
        if np.isnan(effects[name].low):
            return UNDECIDED, f"{name}: {effects[name].note}"
    if holds == fails:
        return UNDECIDED, "the interval reaches into both regions, or neither"
    return ("holds", "") if holds else ("fails", "")


def _rows(run: Path) -> RunVerdicts:
    rubrics = load_rubrics(run)
    gold = gold_by_item(run / GOLD, ["gold"]) if (run / GOLD).is_file() else GoldOfItems()
    found: dict[tuple[str, str, int], tuple[float, float, str, str]] = {}
    apart: dict[tuple[str, str, int, str], list[tuple[float, Mapping[str, Any]]]] = {}
    for row, _ in RunRows(str(run), gold=gold):
        if "response" not in row:
            raise UserError(f"{run}: the lab measures graded responses, and this run compared pairs")
        rubric = rubrics.get(str(row["rubric"]))
        score, right = (_share(row.get(name), rubric) for name in ("score", "gold"))
        about = row.get("meta") or {}
        if CLAIM_OF in about:
            claim_of = str(about[CLAIM_OF]), str(row["criterion"]), int(row["response"]), str(row["rubric"])
            apart.setdefault(claim_of, []).append((score, about))
            continue
        key = str(row["item"]), str(row["criterion"]), int(row["response"])
        cluster = str(about.get("response") or row["item"])
        found[key] = (score, right, str(row["rubric"]), cluster)
    for (item, criterion, response, rubric_of), claims in apart.items():
        found[item, criterion, response] = (*joined_score(claims), rubric_of, item)
    openings = {name: " ".join(rubric.criterion.split()[:_OPENING]) for name, rubric in rubrics.items()}
    unasked = {why: n for why, n in Run(run).summary.get("failures", {}).items() if why.startswith(_UNASKED)}
    return RunVerdicts(found, openings, unasked)


def _share(value: Any, rubric: Rubric | None) -> float:
    if not isinstance(value, int | float) or rubric is None:
        return np.nan
    return rubric.scale.goodness(float(value))


def _graded(rows: RunVerdicts, keys: list[tuple[str, str, int]]) -> ArmRun:
    nothing = (np.nan, np.nan, "", "")
    told = [rows.found.get(key, nothing) for key in keys]
    return ArmRun(np.array([each[0] for each in told]), np.array([each[1] for each in told]))


def _lined_up(
    experiment: Experiment,
    arms: Sequence[str],
    held: str,
    rows: Mapping[tuple[str, int, str], RunVerdicts],
    seeds: tuple[int, ...],
) -> tuple[dict[str, list[ArmRun]], list[tuple[str, str, int]], RunVerdicts]:
    """The verdicts of the arms that count, in one order of all their items.

    Without training, seeds only change the items, so those of all seeds are concatenated. Items that are the same with
    every seed, those of a file or of a world with a seed of its own, are one cluster with all of them.
    """
    first = arms[0]
    if experiment.trains:
        keys = sorted({key for seed in seeds for arm in arms for key in rows[arm, seed, held].found})
        lined = {arm: [_graded(rows[arm, seed, held], keys) for seed in seeds] for arm in arms}
        return lined, keys, rows[first, seeds[0], held]
    told = [experiment.arms[arm].held[held] for arm in arms]
    same = any(each.items or "seed" in each.world for each in told)
    worlds = {arm: fingerprint(each.world) for arm, each in zip(arms, told, strict=True)}
    pooled = _told_apart({arm: _pooled({s: rows[arm, s, held] for s in seeds}, same=same) for arm in arms}, worlds)
    keys = sorted({key for arm in pooled.values() for key in arm.found})
    return {arm: [_graded(found, keys)] for arm, found in pooled.items()}, keys, pooled[first]


def _told_apart(found: Mapping[str, RunVerdicts], worlds: Mapping[str, str]) -> Mapping[str, RunVerdicts]:
    """Items of different worlds under different names, where some have the same (as with other numbers of claims)."""
    items: dict[str, set[tuple[str, str, int]]] = {}
    for arm, each in found.items():
        items.setdefault(worlds[arm], set()).update(each.found)
    if len(set().union(*items.values())) == sum(map(len, items.values())):
        return found
    return {
        arm: replace(each, found={
            (f"{worlds[arm]}/{item}", criterion, response): (score, gold, rubric, f"{worlds[arm]}/{cluster}")
            for (item, criterion, response), (score, gold, rubric, cluster) in each.found.items()
        })
        for arm, each in found.items()
    }  # fmt: skip


def _pooled(by_seed: Mapping[int, RunVerdicts], *, same: bool) -> RunVerdicts:
    found = {
        (f"{seed}/{item}", criterion, response): (score, gold, rubric, cluster if same else f"{seed}/{cluster}")
        for seed, rows in by_seed.items()
        for (item, criterion, response), (score, gold, rubric, cluster) in rows.found.items()
    }
    return RunVerdicts(found, {name: told for rows in by_seed.values() for name, told in rows.openings.items()})


def _effect(
    experiment: Experiment, each: Effect, rows: Mapping[tuple[str, int, str], RunVerdicts], seeds: tuple[int, ...],
    how: Resampling,
) -> Estimate:  # fmt: skip
    lined, keys, first = _lined_up(experiment, each.arms, each.held, rows, seeds)
    if not keys:
        return undefined(0, "no item was graded", level=how.level)
    return _measured(experiment, each, lined, _clusters(first, keys), how)


def _measured(
    experiment: Experiment, each: Effect, lined: Mapping[str, list[ArmRun]], cluster: NDArray[np.int64], how: Resampling
) -> Estimate:
    """The effect; arms that have no item in common are not paired."""
    if each.alarms or each.delay:
        return _watched(each, lined[each.arm][0], lined[each.against][0], how)
    own = {arm: np.logical_or.reduce([~np.isnan(run.score) | ~np.isnan(run.gold) for run in runs])
           for arm, runs in lined.items()}  # fmt: skip
    apart = own if np.sum([rows.astype(int) for rows in own.values()], axis=0).max(initial=0) <= 1 else None
    if not each.of_trained:
        doses = tuple(each.change_point.values())
        return over_arms(lined, each.arms, doses, each.figure, how=how, cluster=cluster, apart=apart)
    told: dict[str, Any] = {"how": how, "cluster": cluster, "trained": experiment.trains, "apart": apart}
    if each.curve:
        return next_doubling(lined, each.curve, each.figure, **told)
    weights = each.weights()
    return kept_within(effect(lined, weights, each.figure, **told), range_of_effect(weights, each.figure))


def _watched(each: Effect, now: ArmRun, before: ArmRun, how: Resampling) -> Estimate:
    """How the change from one run to another is found when their items are looked at in order."""
    if each.figure == "mae":
        apart = np.abs(now.score - now.gold) - np.abs(before.score - before.gold)
    else:
        apart = now.score - before.score
    known = ~np.isnan(apart)
    length, dropped = each.delay or each.alarms, int((~known).sum())
    return watched(apart[known], length, delay=each.delay > 0, level=how.level, dropped=dropped)


def _clusters(rows: RunVerdicts, keys: list[tuple[str, str, int]]) -> NDArray[np.int64]:
    names = [rows.found[key][3] if key in rows.found else key[0] for key in keys]
    return np.unique(names, return_inverse=True)[1].ravel().astype(np.int64)


def _sliced(
    experiment: Experiment, each: Effect, rows: Mapping[tuple[str, int, str], RunVerdicts], seeds: tuple[int, ...]
) -> dict[str, NDArray[np.int64]]:
    """The rows of each slice that is large enough to look for a reversal."""
    if not each.of_trained:
        return {}
    _, keys, first = _lined_up(experiment, each.arms, each.held, rows, seeds)
    return {label: at for label, at in _slices(first, keys) if len(at) >= _LEAST}


def _reversals(
    name: str, experiment: Experiment, each: Effect, rows: Mapping[tuple[str, int, str], RunVerdicts],
    seeds: tuple[int, ...], how: Resampling, whole: Estimate, slices: Mapping[str, NDArray[np.int64]],
) -> Iterator[Reversal]:  # fmt: skip
    lined, keys, first = _lined_up(experiment, each.arms, each.held, rows, seeds)
    for label, at in slices.items():
        part = {arm: [ArmRun(run.score[at], run.gold[at]) for run in runs] for arm, runs in lined.items()}
        clusters = _clusters(first, [keys[i] for i in at])
        estimate = _measured(experiment, each, part, clusters, how)
        if whole.value * estimate.value < 0 and (estimate.low > 0 or estimate.high < 0):
            yield Reversal(name, label, estimate)


def _slices(rows: RunVerdicts, keys: list[tuple[str, str, int]]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """RunVerdicts by the aspects that their rubrics name and by the first words of these."""
    found: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        for aspect in dict.fromkeys(key[1].split("-")):
            found.setdefault(f"aspect {aspect}", []).append(i)
        if key in rows.found and (opening := rows.openings.get(rows.found[key][2])):
            found.setdefault(f"phrase {opening!r}", []).append(i)
    for label in sorted(found):
        yield label, np.array(found[label], np.int64)


def _cost(out: Path, places: list[Mapping[str, Any]]) -> dict[str, float]:
    """Sums over the folders that were used: examples and tokens taught, items and tokens graded, CPU seconds."""
    cost = {"taught_examples": 0.0, "taught_tokens": 0.0, "graded_items": 0.0, "graded_tokens": 0.0, "cpu_seconds": 0.0}
    used = {kind: {each[kind] for each in places if each[kind]} for kind in ("judge", "run")}
    used["run"].update(folder for each in places for folder in each.get("drawn", ()))
    for kind, folders in used.items():
        for folder in sorted(folders):
            path = out / folder / COST
            for wrong in changed_files(path.parent, COST).values():
                raise DataError(f"{wrong}: {AGAIN}", path=str(path))
            try:
                told = {key: float(each) for key, each in orjson.loads(path.read_bytes()).items()}
                cost["cpu_seconds"] += told["cpu_seconds"]
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise DataError(f"not what a stage cost ({error!r}): {AGAIN}", path=str(path)) from None
            for key in ("examples", "items", "tokens"):
                if key in told:
                    cost[f"{'taught' if kind == 'judge' else 'graded'}_{key}"] += told[key]
    return cost
