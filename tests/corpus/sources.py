"""What recipes start from: small files of seeds and of graded answers."""

from pathlib import Path

import orjson

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
    """`graded.jsonl`: five graded answers to each question, whose feedback says what they are worth."""
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
