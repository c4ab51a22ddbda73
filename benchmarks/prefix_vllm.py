"""`.vllm/bin/python -m benchmarks.prefix_vllm`: round robins in vLLM with its prefix cache, and by `hf:`.

The model and the requests are those of `benchmarks.prefix`; the two engines take turns in one process, in CPU seconds
over all of its threads; vLLM's cache is emptied before each turn. Ratios are of medians. `make .vllm/ready` makes the
environment.
"""

import argparse
import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figure, table

SETTINGS = {
    "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}  # fmt: skip
ENGINE = '{"enforce_eager":true,"block_size":32,"max_num_seqs":32}'
GOALS = {("labels", 600): 1.0, ("labels", 3000): 1.3, ("replies", 600): 0.9}  # times as fast as vLLM


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; the exit code is 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prefix_vllm", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--parts", nargs="+", default=["labels", "replies"], choices=("labels", "replies"))
    given = parser.parse_args(argv)
    os.environ.update(SETTINGS)  # before torch and vLLM are imported
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    import torch

    from benchmarks.prefix import build, requests, spent
    from dikast.engines.spec import open_engine

    torch.set_num_threads(1)
    lines: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = str(build(Path(name)))
        vllm: Any = open_engine(f"vllm:{folder}", dtype=given.dtype, window=64, context=4096, engine=ENGINE)
        engines = {"hf": open_engine(folder, device="cpu", dtype=given.dtype), "vllm": vllm}

        def answer(engine: str, asked: Any) -> None:
            assert all(done.error is None for done in engines[engine].stream(asked))

        for (kind, prefix), goal in GOALS.items():
            if kind not in given.parts:
                continue
            asked = requests(prefix, 5, reply=kind == "replies")
            times: dict[str, list[float]] = {each: [] for each in engines}
            for _ in range(given.rounds + 1):  # the first warms both up
                vllm._model.reset_prefix_cache()
                for engine, found in times.items():
                    found.append(spent(functools.partial(answer, engine, asked)))
            one, other = (median(found[1:]) for found in times.values())
            what = f"{kind}, prefix {prefix:,}, {given.dtype}: CPU of hf over that of vLLM"
            lines.append(Figure(what, one / other, "", 1 / goal, f"{one:.2f} s, {other:.2f} s"))
            print(lines[-1], flush=True)
        vllm.close()
    print(table(lines))
    raise SystemExit(not all(line.met for line in lines))


if __name__ == "__main__":
    main()
