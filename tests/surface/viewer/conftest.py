"""A folder of small runs for the tests of the viewer: whole, half-written, damaged, compared, of hostile items."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import runs
from dikast.testing.hostile import HOSTILE
from surface.viewer.viewing_here import Viewed


def grade(items: Path, out: Path, judge: str, *more: str) -> Path:
    """Grade items into a run folder."""
    done = runs.dikast_here("grade", items, "--judge", judge, "--rubric", "helpfulness", "--out", out, *more)
    assert done.returncode in (0, 3), done.stderr
    return out


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs in one folder; `hostile` is of items whose every text tries to run or to restyle something."""
    root = tmp_path_factory.mktemp("viewed")
    items = runs.write_jsonl(root / "items.jsonl", runs.rows(30))
    first = grade(items, root / "march" / "first", "mock:oracle,r=.8,failing=.2")
    grade(items, root / "march" / "second", "mock:oracle,r=.8,seed=5")
    pairs = runs.write_jsonl(root / "pairs.jsonl", runs.pairs(10))
    done = runs.dikast_here("compare", pairs, "--judge", "mock:oracle,nats=2", "--rubric", "helpfulness", "--out",
                            root / "pairs")  # fmt: skip
    assert done.returncode == 0, done.stderr
    half = Path(shutil.copytree(first, root / "half"))
    (half / "summary.json").unlink()
    whole = (half / "verdicts.jsonl").read_bytes()
    (half / "verdicts.jsonl").write_bytes(whole[: len(whole) // 2])
    damaged = Path(shutil.copytree(first, root / "damaged"))
    flipped = bytearray((damaged / "verdicts.jsonl").read_bytes())
    flipped[3000] ^= 1
    (damaged / "verdicts.jsonl").write_bytes(flipped)
    rows = [
        {"id": f"{k} {text}", "instruction": text, "response": text, "context": text}
        for k, text in enumerate(each.replace("\x00", "") for each in HOSTILE)
    ]
    grade(runs.write_jsonl(root / "hostile.jsonl", rows), root / "hostile", "mock:oracle,failing=.2")
    return root


@pytest.fixture(scope="session")
def viewed(folder: Path) -> Iterator[Viewed]:
    """The folder, shown."""
    found = Viewed(folder)
    yield found
    assert found.stop() == 0
