"""Best of N: sixteen replies of each seed's start to held-out prompts, graded by each judge, nothing trained."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.align_figures import Rows, best_of, golds_of
from dikast.alignment.policy_samples import Draw, sampled
from dikast.alignment.round_pairs import grades_of
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.engines.base import Engine, Sampling, close_engine
from dikast.engines.local.engine import LocalEngine
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file

REPLIES = 16
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16)
# What chooses: the judges of the arms, and `scout` forced to a grade before it has looked at each claim.
CHOOSERS: dict[str, Callable[[], Judge]] = {
    "gold": partial(Judge, "mock:oracle,r=1"),
    "scout": partial(Judge, "scout"),
    "scout, no claims": partial(Judge, "scout", read="only", min_mass=0.0),
    "length": partial(Judge, "mock:prefers-long,r=0,per_doubling=2,length_at=80"),
    "random": partial(Judge, "mock:random"),
}


def drawn(policy: Path, held: Path, prompts: int, max_tokens: int, seed: int, folder: Path) -> None:
    """Draw and grade what is not there yet."""
    file = folder / "samples.jsonl"
    replies(
        policy,
        list(read_items(str(held)))[:prompts],
        Draw("best-of", REPLIES, Sampling(0.7, 0.9, max_tokens, seed)),
        file,
    )
    for name, judge in CHOOSERS.items():
        graded, made = folder / name.replace(", ", "-").replace(" ", "-"), judge()
        if not (graded / "summary.json").is_file():
            grade_file(made, file, graded)
        close_engine(made.engine)


def replies(policy: Path, prompts: Sequence[Item], draw: Draw, file: Path) -> None:
    """Draw a policy's replies to prompts, where they are not there yet."""
    opened = list[Engine]()

    def engine() -> Engine:
        opened.append(LocalEngine(str(policy), device="cpu", window=4096))
        return opened[0]

    try:
        sampled(prompts, draw, engine, file, lambda done, total: None)
    finally:
        for each in opened:
            close_engine(each)


def curves(folders: Sequence[Path]) -> Mapping[str, Callable[[int], Rows]]:
    """For each chooser the gold of its best of N, by prompt, over all seeds."""
    return {name: partial(curve, folders, partial(_grades, name)) for name in CHOOSERS}


def curve(folders: Sequence[Path], rewards: Callable[[Path], Mapping[str, Sequence[float | None]]], n: int) -> Rows:
    """The gold of the best of `n`, by prompt, over all seeds. rewards: by prompt, those of a folder's replies."""
    found = Rows([], [])
    for folder in folders:
        graded = rewards(folder)
        for item in read_items(str(folder / "samples.jsonl")):
            values = graded.get(item.id, [])
            if len(values) == REPLIES and None not in values:
                found.ids.append(item.id)
                found.values.append(best_of([value or 0.0 for value in values], golds_of(item), n))
    return found


def _grades(name: str, folder: Path) -> Mapping[str, Sequence[float | None]]:
    return grades_of(folder / name.replace(", ", "-").replace(" ", "-"))
