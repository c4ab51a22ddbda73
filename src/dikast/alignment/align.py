"""Iterative preference optimisation with a judge as the only teacher (LLaVA-Critic, Xiong et al. 2024, section 4).

A round: the policy answers every prompt several times, the judge gives each reply a reward, the best and the worst of a
prompt are a pair, and one run of `train dpo` learns from the pairs. Every step stores its result and is skipped if that
exists, so that an interrupted alignment resumes and ends with the same pairs and weights.
"""

import gc
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from dikast.alignment.align_inputs import Given, checked
from dikast.alignment.align_options import AlignOptions
from dikast.alignment.launched_training import train_round
from dikast.alignment.policy_samples import FAILED, Draw, sampled
from dikast.alignment.round_pairs import SAMPLES, make_pairs
from dikast.alignment.round_report import (
    HELD,
    MEASURES,
    Measured,
    estimates,
    held_out_measure,
    measure,
    read_measured,
    reason_to_stop,
    too_few_pairs,
)
from dikast.core.errors import DataError, DikastError, UserError
from dikast.core.item import Item
from dikast.core.output_folder import check_in_place, identity_of, move, one_writer
from dikast.core.part import text_of
from dikast.core.runs.examine import damaged
from dikast.core.runs.last_verdict import told_at
from dikast.core.runs.opening import tell_writer
from dikast.core.runs.run_files import CHECKSUMS, changed_files, write_checked
from dikast.engines.base import Engine, Sampling, close_engine

if TYPE_CHECKING:
    from dikast.engines.local.engine import LocalEngine

PLAN = "align.json"
REPORT = "report.json"
ASKED = "asked.json"
SECONDS = "seconds.json"  # of each step, of all calls that finished it
_log = logging.getLogger(__name__)
Tell = Callable[[str], None]


def align(options: AlignOptions, *, judge: Engine | None = None, tell: Tell = lambda line: None) -> dict[str, Any]:
    """Run an alignment, or resume an earlier one; returns the content of `report.json`.

    The folder gets `start/` and `round-N/`. A round has `samples.jsonl`, the judge's run folder `judge`,
    `rankings.jsonl`, `pairs.jsonl`, `model/`, `held-out/` and `report.json`. `judge`: an engine that no spec
    names, asked instead of `options.judge`, which reports then only quote; closed at the end. `tell` hears a line for
    each step.
    UserError, with all mistakes, before anything is asked; TooManyMissing where too many verdicts are missing.
    """
    given = checked(options, judge)
    out = options.out.absolute()
    with one_writer(out, "aligning"):
        _check_plan(out, given)
        _set_damaged_aside(out)
        run = _Alignment(given, out, tell)
        try:
            return run.run()
        except (DikastError, OSError):
            run.check_in_place()  # what fails without the folder is told as that
            raise
        finally:
            close_engine(given.judge.engine)
            if given.second is not None:
                close_engine(given.second.engine)


def _check_plan(out: Path, given: Given) -> None:
    """Write the identity of the run; UserError for a folder that holds a different one."""
    told = check_folder(given)
    tell_writer(out)
    write_checked(out / PLAN, told)


def check_folder(given: Given) -> bytes:
    """The content of `align.json`; UserError where the folder holds another run, or something else."""
    out = given.options.out.absolute()
    plan = out / PLAN
    told = orjson.dumps(given.identity, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    if plan.is_file():
        known, now = _read(plan), orjson.loads(told)
        if changed_files(out, PLAN) or known is None:
            raise DataError(
                "the file has changed since it was written: restore it, or name another folder", path=str(plan)
            )
        if different := [name for name in now if now[name] != known.get(name)]:
            raise UserError(
                f"{out} holds an alignment with other {', '.join(different)}: give this one another --out, or remove"
                " the folder to start again"
            )
    elif {path.name.removesuffix(".part") for path in out.glob("*")} - {PLAN, CHECKSUMS}:  # a full disk leaves these
        raise UserError(f"{out}: holds something else: name a new folder, or empty it")
    return told


def _set_damaged_aside(out: Path) -> None:
    """Rename files of an earlier call that have changed since they were written, with a warning: they are made again
    from the others, and nothing is asked twice.
    """
    for path in sorted(path for name in (SAMPLES, MEASURES, ASKED, SECONDS, REPORT) for path in out.rglob(name)):
        for problem in changed_files(path.parent, path.name).values() if path.is_file() else ():
            move(path, damaged(path))
            told = DataError(f"{problem}: it is moved to {damaged(path).name}, and made again", path=str(path))
            _log.warning("%s", told)


def _read(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is none."""
    try:
        value = orjson.loads(path.read_bytes()) if path.is_file() else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Alignment:
    """One run: its states (the start and one after each round) and their models."""

    def __init__(self, given: Given, out: Path, tell: Tell) -> None:
        self.given, self.out, self.tell = given, out, tell
        self.device = str(given.settings.get("device", "auto"))
        self._plan = identity_of(out / PLAN)

    def check_in_place(self) -> None:
        """RunError where the folder was removed, moved or replaced since the run began."""
        check_in_place(self.out / PLAN, self._plan)

    def run(self) -> dict[str, Any]:
        options = self.given.options
        start = self._measured("start", self.given.policy, None)
        reports = [self._reported("start", {"round": 0, "model": self.given.policy}, start, None)]
        good, before, stopped = self.given.policy, start, ""
        for number in range(1, options.rounds + 1):
            name = f"round-{number}"
            told, stopped = self._round(name, number, good)
            if stopped:
                reports.append(self._reported(name, {**told, "stopped": stopped}, None, start))
                break
            model = str(self.out / name / "model")
            now = self._measured(name, model, self.out / "start" / HELD)
            stopped = reason_to_stop(now, before, start, options.most_kl)
            reports.append(self._reported(name, {**told, "model": model, "stopped": stopped}, now, start))
            if stopped:
                break
            good, before = model, now
        return self._whole(reports, good, stopped, before, start)

    def _round(self, name: str, number: int, model: str) -> tuple[dict[str, Any], str]:
        """Sample, judge and train; returns what was done, and why the alignment stops before training, if it does."""
        options, folder = self.given.options, self.out / name
        with self._timed(name, "sample"):
            items = self._sampled(self.given.prompts, name, options.samples, model, folder / SAMPLES)
        with self._timed(name, "judge"):
            self.tell(f"{name}: judging {len(items):,} x {options.samples} replies")
            found = make_pairs(self.given.judge, items, folder, options.schedule, options.margin, self.given.allowed)
        if lost := len(self.given.prompts) - len(items):
            dropped = {**found.dropped, "the policy did not answer": lost}
            found = found._replace(prompts=len(self.given.prompts), dropped=dropped)
        told: dict[str, Any] = {"round": number, **found._asdict(), "samples": _about_samples(items)}
        if stopped := too_few_pairs(found.pairs, found.prompts, found.dropped):
            return told, stopped
        with self._timed(name, "train"):
            if not (folder / "model" / "config.json").is_file():
                self.tell(f"{name}: training on {found.pairs:,} pairs")
                train_round(self.given, model, folder)
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
            shutil.rmtree(folder / "shards", ignore_errors=True)
        return told, ""

    def _sampled(self, prompts: list[Item], name: str, count: int, model: str, file: Path) -> list[Item]:
        options, opened = self.given.options, list[Engine]()

        def policy() -> Engine:
            opened.append(_engine(model, self.device))
            return opened[0]

        def watch(done: int, total: int) -> None:
            self.check_in_place()
            if opened:
                self.tell(f"{name}: {done:,} of {total:,} prompts answered")

        sampling = Sampling(options.temperature, options.top_p, options.max_tokens, options.seed)
        frames = int(self.given.settings.get("frames", 8))
        try:
            found = sampled(prompts, Draw(name, count, sampling, frames), policy, file, watch)
            if lost := len(prompts) - len(found):
                self.tell(f"{name}: {lost:,} prompts were not answered: {file.with_name(FAILED)} says why")
            return found
        finally:
            for engine in opened:
                close_engine(engine)
            gc.collect()

    def _measured(self, name: str, model: str, start: Path | None) -> Measured:
        folder = self.out / name / HELD
        if all((folder / each).is_file() for each in (MEASURES, ASKED)):
            return read_measured(folder)
        with self._timed(name, "measure"):
            items = self._sampled(self.given.held, f"{name}/held-out", 1, model, folder / SAMPLES)
            answered = {item.id for item in items}
            self.tell(f"{name}: measuring {len(items):,} held-out replies")
            found, asked = measure(
                items, folder, self.given.judge, self.given.second, start, (model, self.given.policy),
                compare=self.given.options.schedule != "pointwise", device=self.device, allowed=self.given.allowed,
                frames=int(self.given.settings.get("frames", 8)),
                unanswered=[item.id for item in self.given.held if item.id not in answered],
            )  # fmt: skip
        write_checked(folder / ASKED, orjson.dumps(asked))
        return found

    def _reported(
        self, name: str, told: dict[str, Any], now: Measured | None, start: Measured | None
    ) -> dict[str, Any]:
        """Write and return the report of a state, or return the existing one."""
        path = self.out / name / REPORT
        known = _read(path)
        if known is not None and known.get("round") == told["round"]:
            return known
        found = {**told, "held_out": estimates(now, start) if now is not None else {}}
        found["asked_held_out"] = _read(self.out / name / HELD / ASKED) or {}
        found |= {"judge_is_policy": self.given.own_judge, "seconds": _read(self.out / name / SECONDS) or {}}
        found |= told_at(time.time())
        write_checked(path, orjson.dumps(found, option=orjson.OPT_INDENT_2))
        for line in _lines(name, found):
            self.tell(line)
        return found

    def _whole(
        self, reports: list[dict[str, Any]], good: str, stopped: str, last: Measured, start: Measured
    ) -> dict[str, Any]:
        options = self.given.options
        name, about = held_out_measure(start)
        found = {
            "policy": options.policy,
            "judge": options.judge,
            "judge_is_policy": self.given.own_judge,
            "overlap_with_held_out": self.given.overlap,
            "measured_by": about,
            "rounds": reports,
            "model": good,
            "stopped": stopped,
            "change": change.to_dict() if (change := last.change(name, start)) is not None else None,
        }
        write_checked(self.out / REPORT, orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return found

    @contextmanager
    def _timed(self, name: str, step: str) -> Iterator[None]:
        self.check_in_place()
        wall, cpu = time.monotonic(), _cpu_seconds()
        yield
        self.check_in_place()
        known = _read(self.out / name / SECONDS) or {}
        before = known.get(step, {"wall": 0.0, "cpu": 0.0})
        spent = {"wall": time.monotonic() - wall, "cpu": _cpu_seconds() - cpu}
        known[step] = {unit: before[unit] + each for unit, each in spent.items()}
        write_checked(self.out / name / SECONDS, orjson.dumps(known))


def _cpu_seconds() -> float:
    """Those of this process and of the processes that it has waited for, such as launched training."""
    return sum(os.times()[:4])


def _engine(model: str, device: str) -> "LocalEngine":
    from dikast.engines.local.engine import LocalEngine

    return LocalEngine(model.removeprefix("hf:"), device=device, window=4096)


def _about_samples(items: list[Item]) -> dict[str, Any]:
    """Counts of replies: all, empty, cut off, unreadable, and prompts whose replies are partly or all the same."""
    texts = [[text_of(response) for response in item.responses] for item in items]
    said = [text for each in texts for text in each]
    return {
        "replies": len(said),
        "empty": sum(not text.strip() for text in said),
        "cut": sum(sum(item.meta["cut"]) for item in items),
        "unreadable": sum(sum(n > 0 for n in item.meta.get("unreadable", ())) for item in items),
        "repeated": len(said) - sum(len(set(each)) for each in texts),
        "all_the_same": sum(len(set(each)) == 1 for each in texts),
        "words": sum(len(text.split()) for text in said) / len(said),
    }


def _lines(name: str, report: dict[str, Any]) -> Iterator[str]:
    shown = []
    for key, each in report["held_out"].items():
        if key in ("reward", "gold", "second", "words", "kl", "wins") and each["value"] is not None:
            ends = "" if each["low"] is None else f" [{each['low']:.3f}, {each['high']:.3f}]"
            shown.append(f"{key} {each['value']:.3f}{ends}")
    if shown:
        yield f"{name}: {', '.join(shown)}"
    if report.get("stopped"):
        yield f"{name}: stopped: {report['stopped']}"
