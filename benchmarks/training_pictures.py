"""Pictures of a training run: `python -m benchmarks.training_pictures [--rows 96 --workers 1 2]`.

Photographs of 640 x 480 pixels (JPEG), one a row, are prepared and learnt from by models with the published processors
(LLaVA-1.5: 336 pixels; LLaVA-OneVision: tiles of 384) and tiny weights, so that the steps are short and what they wait
for shows. Printed: bytes of prepared examples for 1,000 rows, beside those of the files of the pictures; the time to
prepare a row; rows learnt a second, and the share of the time that steps wait for pictures, in a first pass over them.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.gpu_models import ROOT, _write_processor

NAMES = {"llava": "llava", "onevision": "llava_onevision"}


def photograph(path: Path, seed: int) -> None:
    """Write a JPEG with detail at several scales."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    whole = np.zeros((480, 640, 3))
    for size in (4, 16, 64, 240):
        part = Image.fromarray(rng.integers(0, 256, (size * 3 // 4, size, 3), dtype=np.uint8)).resize((640, 480))
        whole += np.asarray(part) / 4
    Image.fromarray(whole.astype(np.uint8)).save(path, quality=90)


def model_folder(name: str, folder: Path) -> Path:
    """A tiny model that takes pictures as the published one does."""
    sys.path.insert(0, str(ROOT / "tests"))
    import tiny_models

    tiny_models.build(NAMES[name], folder)
    (folder / "model.safetensors").unlink()
    shape: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    edge = 384 if name == "onevision" else 336
    shape["vision_config"]["image_size"] = edge
    shape["text_config"]["max_position_embeddings"] = 16_384
    if name == "onevision":
        shape["image_grid_pinpoints"] = [[edge * i, edge * j] for i in range(1, 7) for j in range(1, 7)]
    (folder / "config.json").write_text(json.dumps(shape), "utf-8")
    _write_processor(name, folder)
    return folder


def bytes_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_pictures", description=__doc__)
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    from dikast.training.config import load_config
    from dikast.training.data.prepare import data_hash, prepare_shards
    from dikast.training.log import read_log
    from dikast.training.models.model import about, open_model
    from dikast.training.processes import SingleProcess
    from dikast.training.sft import sft

    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        (folder / "pictures").mkdir()
        rows = []
        for n in range(given.rows):
            photograph(folder / "pictures" / f"{n}.jpg", n)
            rows.append(
                {
                    "id": f"{n}",
                    "instruction": "What is here?",
                    "image": f"pictures/{n}.jpg",
                    "target": "It is a colour.",
                }
            )
        (folder / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        thousand = bytes_of(folder / "pictures") / given.rows * 1000
        print(f"files of 1,000 pictures: {thousand / 1e6:,.1f} MB")
        print(
            "| model | workers | prepared, 1,000 rows | prepare a row | rows a second | waiting |\n"
            "|---|---|---|---|---|---|"
        )
        for name in NAMES:
            model_folder(name, folder / name)
            for workers in given.workers:
                settings = {
                    "init": name, "out": f"run-{name}-{workers}", "shards": f"shards-{name}",
                    "data": [{"talk": "talk.jsonl"}], "batch_size": 8, "max_tokens": 16_000,
                    "max_tokens_per_micro_batch": 8_000, "learning_rate": 1e-4, "warmup": 0, "log_every": 1_000,
                    "device": "cpu", "workers": workers,
                }  # fmt: skip
                path = folder / f"{name}-{workers}.yaml"
                path.write_text(yaml.safe_dump(settings), "utf-8")
                config = load_config(path)
                loaded = open_model(config)
                began = time.monotonic()
                prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())
                spent = (time.monotonic() - began) / given.rows
                prepared = f"{spent * 1e3:.0f} ms" if workers == given.workers[0] else ""
                sft(path)
                line = read_log(folder / f"run-{name}-{workers}" / "train.jsonl")[-1]
                size = bytes_of(folder / f"shards-{name}") / given.rows * 1000
                print(
                    f"| {name} | {workers} | {size / 1e6:,.1f} MB | {prepared} | {line['examples_per_second']:.1f} | "
                    f"{line['waiting']:.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
