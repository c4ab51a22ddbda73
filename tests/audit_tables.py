"""Small files and look-ups shared by the tests of `dikast audit`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.core.records import write_records

Run = Callable[..., dict[str, Any]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    write_records(path, rows)
    return path


def scores(n: int = 40, seed: int = 0, **more: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, n)
    score = np.clip(gold + rng.integers(-1, 2, n), 1, 5)
    return [
        {"id": f"i{k}", "score": int(s), "gold": int(g), **more}
        for k, (s, g) in enumerate(zip(score, gold, strict=True))
    ]


def rows_of(found: dict[str, Any], name: str, key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in found["tables"][name]["rows"]}


def values(found: dict[str, Any], name: str = "agreement") -> dict[str, Any]:
    return {row["statistic"]: row["value"] for row in found["tables"][name]["rows"]}


def refused(run: Run, *arguments: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return str(caught.value)
