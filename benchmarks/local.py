"""`python -m benchmarks.local`: grading with scout on one core, its keys and values in blocks or as transformers keeps
them, by turns in one process; medians of CPU seconds a response, and whether both say the same.
"""

import argparse
import tempfile
import time
from statistics import median
from unittest.mock import patch

import torch

from benchmarks.figures import Figure, table
from dikast.core.records.items import read_items
from dikast.engines.local.growable_cache import growable_cache
from dikast.judging.judge import Judge
from dikast.worlds.make import Maker
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

ROUNDS = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--n", type=int, default=96, help="responses in a round")
    parser.add_argument("--batch-size", type=int, default=96)
    given = parser.parse_args()
    torch.set_num_threads(1)
    judge = Judge(f"scout,batch_size={given.batch_size},window={max(given.n, given.batch_size)}")
    maker = Maker(Settings(domain="scenes", split="fresh", seed=920))
    caches = {"in blocks": growable_cache, "as transformers": lambda model: None}
    spent: dict[str, list[float]] = {name: [] for name in caches}
    said: dict[str, list[float | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = write_samples([maker.sample(i) for i in range(given.n)], folder, {"bench": 1}).files[0]
        items = list(read_items(str(file)))
        list(judge.grade_many(items))
        for _ in range(ROUNDS):
            for name, cache in caches.items():
                with patch("dikast.engines.local.generating.growable_cache", cache):
                    since = time.process_time()
                    found = {v.question.item: v.expected for v in judge.grade_many(items)}
                spent[name].append((time.process_time() - since) / given.n)
                said[name] = [found[item.id] for item in items]
    medians = {name: median(times) for name, times in spent.items()}
    same = said["in blocks"] == said["as transformers"]
    lines = [Figure(f"a response, keys and values {name}", value, "s") for name, value in medians.items()]
    lines.append(Figure("of the time", medians["in blocks"] / medians["as transformers"], note=f"same scores: {same}"))
    print(table(lines))


if __name__ == "__main__":
    main()
