"""The main workflow on new items: make them, grade them with the bundled judge, compare pairs, audit, report."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import orjson

from dikast.core.errors import UserError, require
from dikast.core.output_folder import one_writer
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

if TYPE_CHECKING:
    from dikast.audit.rendering import Audit

_DOMAINS = ("scenes",)  # what scout grades best


@dataclass(frozen=True, slots=True)
class Demo:
    """The results of a demo: its folder, the audits of grades and of pairs, and commands to try next."""

    folder: Path
    graded: "Audit"
    compared: "Audit"
    next: tuple[str, ...]


def demo(out: str | Path, *, seed: int = 7, n: int = 120, pairs: int = 60, tell: Callable[[str], None]) -> Demo:
    """Grade `n` new items and compare `pairs` new pairs with `scout`, and audit them.

    Everything is kept under `out`: `items` and `pairs` (worlds), `graded` and `compared` (run folders), `report.html`.
    The same seed gives the same verdicts. tell: called with a line for each step. UserError if `out` contains other
    files, and with the cure where the extra `hf` is not installed.
    """
    if n < 20 or pairs < 4:
        raise UserError(f"-n must be at least 20 and --pairs at least 4, got {n} and {pairs}")
    torch = require("torch", "hf")
    require("transformers", "hf")
    from dikast.audit.audit import audit_file
    from dikast.audit.plan import AuditPlan
    from dikast.judging.judge import Judge
    from dikast.judging.judge_file import compare_file, grade_file
    from dikast.judging.run_plan import Source
    from dikast.surface.report.report_file import write_report
    from dikast.surface.report.report_options import Asked

    folder = Path(out)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not _is_demo(folder)):
        raise UserError(f"{folder} contains other files: name a new folder with --out")
    Settings(seed=seed)  # raises for an invalid seed
    with one_writer(folder, "writing a demo"):
        tell(f"generating {n} new items and {pairs} new pairs (seed {seed})")
        items = write_samples(_samples(n, 1, seed), folder / "items", {"demo": "items", "seed": seed, "n": n}).files[0]
        twos = write_samples(
            _samples(pairs, 2, seed), folder / "pairs", {"demo": "pairs", "seed": seed, "n": pairs}
        ).files[0]
        with _one_thread(torch):
            judge = Judge("scout")
            tell(f"grading {n} responses")
            grade_file(judge, Source(str(items)), folder / "graded")
            tell(f"comparing {pairs} pairs, each in both orders")
            compare_file(judge, Source(str(twos)), folder / "compared")
        runs = [folder / "graded", folder / "compared"]
        write_report(
            runs, [folder / "report.html"], Asked(AuditPlan(file=folder)), title="Demo: scout on newly generated items"
        )
    audits = [audit_file(AuditPlan(file=folder / name)) for name in ("graded", "compared")]
    return Demo(folder, audits[0], audits[1], _next(folder, items))


def _is_demo(folder: Path) -> bool:
    world = folder / "items" / "world.json"
    try:
        return "demo" in orjson.loads(world.read_bytes())
    except (OSError, ValueError):
        return False


@contextmanager
def _one_thread(torch: ModuleType) -> Iterator[None]:
    """Run torch with one thread: for a model as small as `scout`, more threads only cost time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _samples(n: int, responses: int, seed: int) -> Iterator[Sample]:
    """Even shares of the domains, all on the scale 1-5, so that one table covers all."""
    for i, domain in enumerate(_DOMAINS):
        settings = Settings(domain=domain, split="fresh", seed=seed, responses=responses, scales=("1-5",))
        yield from make(settings, n // len(_DOMAINS) + (i < n % len(_DOMAINS)))


def _next(folder: Path, items: Path) -> tuple[str, ...]:
    return (
        shlex.join(["dikast", "world", "peek", str(items.parent), "--out", str(folder / "sheet")]),
        shlex.join(["dikast", "replay", str(folder / "graded")]),
        shlex.join(["dikast", "grade", str(items), "--judge", "mock:oracle,r=.8", "--out", f"{folder}-mock"]),
    )
