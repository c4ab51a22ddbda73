"""Small runs for the tests of the report: graded, compared, with failures, with pictures."""

from pathlib import Path

import pytest
from PIL import Image

import runs


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 graded items with gold, one in ten without a verdict, each with a picture."""
    return grade(tmp_path_factory.mktemp("graded"), "mock:oracle,r=.8,failing=.1")


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 pairs judged in both orders by a judge that likes the first slot."""
    folder = tmp_path_factory.mktemp("compared")
    items = runs.write_jsonl(folder / "pairs.jsonl", runs.pairs(40))
    done = runs.dikast_here(
        "compare", items, "--judge", "mock:oracle,nats=2", "--rubric", "helpfulness", "--out", folder / "run"
    )
    assert done.returncode == 0, done.stderr
    return folder / "run"


def grade(folder: Path, judge: str, n: int = 60) -> Path:
    """Grade n items into FOLDER/run."""
    Image.effect_noise((200, 150), 40).convert("RGB").save(folder / "noise.png")
    items = runs.write_jsonl(folder / "items.jsonl", runs.rows(n, image="noise.png"))
    done = runs.dikast_here("grade", items, "--judge", judge, "--rubric", "helpfulness", "--out", folder / "run")
    assert done.returncode in (0, 3), done.stderr
    return folder / "run"
