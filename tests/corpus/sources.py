"""Inputs of recipes: small files of seeds and graded answers, and pictures."""

from pathlib import Path

import numpy as np
import orjson
from PIL import Image as Pillow

LEVELS = {
    "1": "None of it is there.",
    "2": "A little is there.",
    "3": "Half of it is there.",
    "4": "Most is there.",
    "5": "All of it.",
}


def seeds(folder: Path) -> None:
    """`seeds.yaml`: one rubric."""
    rubric = {"criterion": "Does the answer name its sources?", "levels": LEVELS}
    (folder / "seeds.yaml").write_bytes(orjson.dumps([rubric]))


def graded(folder: Path, questions: int = 24) -> None:
    """`graded.jsonl`: five graded answers to each question, with feedback that states the score."""
    rows = [
        {
            "id": f"{i}-{score}", "instruction": f"What is {i}?", "response": f"It is {i}, or {score}.",
            "rubric": {"name": "r", "criterion": "Is it right?", "scale": "1-5", "levels": LEVELS},
            "gold": {"score": score, "feedback": f"This is worth {score}."},
        }
        for i in range(questions)
        for score in range(1, 6)
    ]  # fmt: skip
    (folder / "graded.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))


def photos(folder: Path, n: int = 12) -> None:
    """`photos/`: images of noise; `asked.jsonl`: a question about each."""
    (folder / "photos").mkdir()
    for i in range(n):
        noise = np.random.default_rng(i).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Pillow.fromarray(noise).save(folder / "photos" / f"{i}.png")
    rows = [{"id": str(i), "image": f"photos/{i}.png", "instruction": f"What is thing {i}?"} for i in range(n)]
    (folder / "asked.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
