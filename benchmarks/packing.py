"""`python -m benchmarks.packing`: what a training step takes with padded, packed and shared rows, on one core.

A random Llama model of 34 million parameters learns from judge-like examples by the batches, layout and loss of
`dikast train`: batches of 8, forward and backward. Three sets of 20 examples: `mixed` (58 to 600 tokens), `graded` (4
tasks of 600 tokens with 5 responses of 120 and a reply of 40 tokens each), and `pairs` (10 prompts of 400 tokens with 2
responses of 150: the loss of DPO, its reference taken as equal). All layouts of a set are timed by turns in one
process, in CPU seconds; tokens are those of the examples without padding, ratios are of medians. Gradients are summed
over the set, in float32. All layouts compute logits before targets alone.

    python -m benchmarks.packing --write
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.prefix import VOCABULARY, build, written
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.loading import Loaded
from dikast.training.data.batches import BatchPlan, micro_batches
from dikast.training.data.collate import Pack, collate, summed_loss, units_of
from dikast.training.data.encode import Encoded
from dikast.training.data.shards import Shards, ShardWriter
from dikast.training.dpo import logprobs_of_replies, preference_losses
from dikast.training.packed_attention import use_packed_attention
from dikast.training.preferences import PreferenceConfig

MARKS = ("<!-- packing -->", "<!-- /packing -->")
PAGE = Path(__file__).parents[1] / "docs" / "training.md"
EXAMPLES, BATCH, MOST = 20, 8, 8 * 1024
ROUNDS = 5
Gradients = list[torch.Tensor]


@dataclass(frozen=True)
class Layout:
    """How rows of a step are laid out."""

    name: str
    pack: Pack = "none"
    grouped: bool = False


PADDED, GROUPED = Layout("padded, random order"), Layout("padded, `group_by_length`", grouped=True)
ROWS, TREES = Layout("`pack: rows`", "rows"), Layout("`pack: trees`", "trees")


@dataclass(frozen=True)
class Row:
    """One set in one layout: tokens, CPU seconds (median), how many times faster than `than`, and the bar."""

    data: str
    layout: str
    tokens: int
    computed: int
    seconds: float
    ratio: float | None
    than: str
    bar: float | None
    difference: float  # of gradients, as a share of their norm, from those of padded rows

    @property
    def cells(self) -> list[str]:
        """The row as text."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x {self.than}"
        bar = "" if self.bar is None else f"{self.bar:g}x: {'met' if self.met else 'missed'}"
        padding = max(0.0, 1 - self.tokens / self.computed)
        return [
            self.data, self.layout, f"{self.tokens:,}", f"{self.computed:,}", f"{padding:.0%}", f"{self.seconds:.1f} s",
            f"{self.tokens / self.seconds:,.0f}", ratio, bar, f"{self.difference:.0e}",
        ]  # fmt: skip

    @property
    def met(self) -> bool:
        """Whether the bar is met, or there is none."""
        return (self.bar is None or (self.ratio or 0.0) >= self.bar) and self.difference <= 1e-5


HEADER = (
    "data", "layout", "tokens", "computed", "padding", "CPU", "tokens a CPU second", "faster", "goal",
    "difference of gradients",
)  # fmt: skip


def made(folder: Path, data: str) -> Shards:
    """The examples of a set as shards."""
    rng = np.random.default_rng(21)
    writer = ShardWriter(folder / data, 0)

    def text(tokens: int) -> list[int]:
        found: list[int] = rng.integers(3, VOCABULARY, int(tokens)).tolist()
        return found

    def add(n: int, task: int, prompt: list[int], reply: int) -> None:
        ids = [*prompt, *text(reply), 0]
        writer.add(f"{n}", "benchmark", Encoded(ids, len(prompt), (len(ids) - 2, len(ids) - 1)), opening=task)

    n = 0
    while n < EXAMPLES:
        if data == "mixed":
            add(n, n, text(np.clip(rng.lognormal(5.4, 0.75), 50, 550)), int(rng.integers(8, 50)))
            n += 1
            continue
        task = text(600 if data == "graded" else 400)
        for _ in range(5 if data == "graded" else 2):
            prompt, reply = ([*task, *text(120)], 40) if data == "graded" else (task, 150)
            add(n, n // (5 if data == "graded" else 2), prompt, reply)
            n += 1
    writer.flush()
    return Shards.open(folder / data)


def passes(shards: Shards, loaded: Loaded, layout: Layout, *, pairs: bool) -> Iterator[tuple[int, ...]]:
    """The examples of each forward pass of an epoch."""
    siblings = np.arange(len(shards)) // 2 if pairs else shards.siblings if layout.pack == "trees" else None
    plan = BatchPlan(shards.lengths, batch_size=BATCH, seed=0, grouped=layout.grouped, siblings=siblings)
    for number in range(plan.per_epoch):
        units = units_of(plan.step(number), shards, loaded, layout.pack)
        if pairs and layout.pack != "trees":  # both responses of a pair stay together
            yield tuple(k for numbers in plan.step(number) for k in numbers)
            continue
        for run in micro_batches(units, MOST, packed=layout.pack != "none"):
            yield tuple(k for unit in run for k in unit.numbers)


def epoch(shards: Shards, loaded: Loaded, layout: Layout, *, pairs: bool) -> int:
    """Forward and backward over a set; gradients are summed. The tokens computed, padding included."""
    computed = 0
    settings = PreferenceConfig(out="", data=(), beta=0.1)
    for numbers in passes(shards, loaded, layout, pairs=pairs):
        batch = collate(shards, numbers, loaded, pack=layout.pack)
        computed += batch.size[1]
        if pairs:
            ratios = logprobs_of_replies(loaded.model, batch, loaded).view(-1, 2)
            loss = preference_losses(ratios - ratios.detach(), ratios[:, 0], settings).sum()
        else:
            loss = summed_loss(loaded.model(**batch.inputs, use_cache=False).logits, batch)
        loss.backward()  # type: ignore[no-untyped-call]
    return computed


def measure(data: str, layouts: Sequence[Layout], shards: Shards, loaded: Loaded, rounds: int) -> dict[str, Any]:
    """Tokens computed, median seconds and gradients of each layout."""
    found: dict[str, Any] = {layout.name: [0, [], []] for layout in layouts}
    for number in range(rounds):
        for layout in layouts:
            since = time.process_time()
            computed = epoch(shards, loaded, layout, pairs=data == "pairs")
            found[layout.name][0] = computed
            found[layout.name][1].append(time.process_time() - since)
            if number == 0:
                found[layout.name][2] = [p.grad.clone() for p in loaded.model.parameters() if p.grad is not None]
            loaded.model.zero_grad(set_to_none=True)
    return found


def difference(one: Gradients, other: Gradients) -> float:
    """The norm of the difference of two gradients as a share of the norm of the first."""
    apart = sum(float((a - b).double().square().sum()) for a, b in zip(one, other, strict=True))
    return float((apart / sum(float(a.double().square().sum()) for a in one)) ** 0.5)


SETS: dict[str, tuple[list[Layout], list[tuple[Layout, Layout, float]]]] = {
    "mixed": ([PADDED, GROUPED, ROWS], [(ROWS, PADDED, 2.5), (ROWS, GROUPED, 1.35)]),
    "graded": ([PADDED, ROWS, TREES], [(TREES, ROWS, 2.3)]),
    "pairs": ([PADDED, ROWS, TREES], [(TREES, ROWS, 1.5)]),
}


def rows_of(data: str, folder: Path, loaded: Loaded, rounds: int) -> list[Row]:
    """All that is measured of one set; a layout with two bars has two rows."""
    layouts, bars = SETS[data]
    shards = made(folder, data)
    found = measure(data, layouts, shards, loaded, rounds)
    tokens = int(shards.lengths.sum())
    rows = []
    for layout in layouts:
        computed, times, gradients = found[layout.name]
        apart = difference(found[layouts[0].name][2], gradients)
        mine: list[tuple[float | None, str, float | None]] = [
            (median(found[other.name][1]) / median(times), other.name, bar) for one, other, bar in bars if one is layout
        ]
        rows += [
            Row(data, layout.name, tokens, computed, median(times), ratio, than, bar, apart)
            for ratio, than, bar in mine or [(None, "", None)]
        ]
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write; the exit code is 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--data", choices=sorted(SETS), nargs="+", default=list(SETS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="rows as JSON lines")
    parser.add_argument("--write", action="store_true", help="write the table into docs/training.md")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    rows: list[Row] = []
    show: Callable[[Row], str] = lambda row: json.dumps(asdict(row)) if given.json else " | ".join(row.cells)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        loaded = LocalEngine(str(build(Path(folder) / "model")), device="cpu")._loaded
        loaded.model.requires_grad_(True)
        use_packed_attention(loaded.model)
        for data in given.data:
            for row in rows_of(data, Path(folder), loaded, given.rounds):
                rows.append(row)
                print(show(row), flush=True)
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), table(rows), MARKS), "utf-8")
    raise SystemExit(not all(row.met for row in rows))


if __name__ == "__main__":
    main()
