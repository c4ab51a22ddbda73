"""Memory of each process in a sharded training run: `python -m benchmarks.rank_memory [--ranks 2 4 8]`.

A Llama of 300 million weights in float32 is trained for two steps and saved by processes on the CPU, sharded by FSDP2.
The peak is that of pages of the process's own (anonymous and shared ones, read from /proc 50 times a second), less what
a process has that imports the same and joins the same group; pages of files that are mapped are not counted, and freed
blocks of 1 MiB and more go back to the system at once, as glibc would keep those of up to 32 MiB. The bound
is (weights + gradients + moments) / processes + one layer + activations, as `dikast train plan` counts them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

SHAPE = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 18, "num_attention_heads": 16,
    "num_key_value_heads": 16,
}  # fmt: skip
ROWS, MB = 32, 2**20
_OWN = re.compile(r"Rss(?:Anon|Shmem):\s+(\d+) kB")


def own_memory() -> int:
    """Bytes of pages that are this process's own."""
    return sum(int(found) * 1024 for found in _OWN.findall(Path("/proc/self/status").read_text()))


class Peak:
    """The highest memory of this process since it was made."""

    def __init__(self) -> None:
        self.bytes, self._ended = 0, threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.bytes = max(self.bytes, own_memory())

    def end(self) -> int:
        """Stop; the peak."""
        self._ended.set()
        return max(self.bytes, own_memory())


def work(path: Path, what: str) -> None:
    """One process: `train`, or `empty`, which imports and joins alone. Appends its peak to a file beside `path`."""
    peak = Peak()

    import dikast.training.models.model
    import dikast.training.sft
    from dikast.training.config import load_config
    from dikast.training.processes import Distributed

    config = load_config(path)
    if what == "train":
        dikast.training.sft.sft(config)
    else:
        Distributed(config).wait()
        time.sleep(1)
    rank = os.environ.get("RANK", "0")
    path.with_name(f"{what}-{rank}.json").write_text(json.dumps(peak.end()))


def launched(config: Path, what: str, ranks: int) -> list[int]:
    """The peaks of all processes of one launch."""
    told = yaml.safe_load(resources.files("dikast.training").joinpath("recipes", "fsdp2.yaml").read_text("utf-8"))
    told.update(num_processes=ranks, use_cpu=True, mixed_precision="no", main_process_port=0)
    (config.parent / "accelerate.yaml").write_text(yaml.safe_dump(told), "utf-8")
    launcher = ["-m", "accelerate.commands.launch", "--config_file", str(config.parent / "accelerate.yaml")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
                   "MALLOC_MMAP_THRESHOLD_": str(2**20)}  # fmt: skip
    arguments = ["-m", "benchmarks.rank_memory", "--work", what, "--config", str(config)]
    subprocess.run([sys.executable, *launcher, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    return [json.loads(config.with_name(f"{what}-{rank}.json").read_text()) for rank in range(ranks)]


def configured(folder: Path, ranks: int) -> Path:
    """The model, its rows and the configuration for so many processes."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    import tiny_models

    if not (folder / "model").exists():
        tiny_models.build("llama", folder / "model", **SHAPE)
        rows = [{"id": f"r{i}", "instruction": f"Say {i}.", "target": "It is good."} for i in range(ROWS)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told: dict[str, Any] = {
        "model": str(folder / "model"), "out": f"run-{ranks}", "data": [{"talk": "rows.jsonl"}], "steps": 2,
        "batch_size": ranks, "max_tokens_per_micro_batch": 64, "warmup": 0, "device": "cpu", "keep": 1,
    }  # fmt: skip
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--config", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.config, given.work)
        return
    from dikast.training.config import load_config
    from dikast.training.planning.step_cost import Work
    from dikast.training.planning.training_plan import plan, shape_of

    print("| processes | weights, gradients, moments | one layer | activations | bound | peak of each | share |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="dikast-ranks-") as name:
        for ranks in given.ranks:
            path = configured(Path(name), ranks)
            config = load_config(path)
            made = plan(config, shape_of(config), Work(1, 64, 8, 0), cards=ranks)
            fixed = sum(made.memory[each] for each in ("weights", "gradients", "optimizer"))
            passing = made.memory["activations"] + made.memory["logits"]
            bound = fixed + made.counts.layer + passing
            empty = max(launched(path, "empty", ranks))
            peaks = [each - empty for each in launched(path, "train", ranks)]
            told = ", ".join(f"{each / MB:,.0f}" for each in peaks)
            print(f"| {ranks} | {fixed / MB:,.0f} MB | {made.counts.layer / MB:,.0f} MB | {passing / MB:,.0f} MB |"
                  f" {bound / MB:,.0f} MB | {told} MB | {max(peaks) / bound:.2f} |", flush=True)  # fmt: skip
            print(
                f"<!-- empty {empty / MB:,.0f} MB; the plan counts {made.total / MB:,.0f} MB for a card -->", flush=True
            )


if __name__ == "__main__":
    main()
