"""Benches of a test's own: rows and a description beside them, and the scorecard of a judge."""

import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from dikast.surface.cli import app


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def cards(folder: Path, *more: object) -> dict[str, Any]:
    done = run("report", folder, "--draws", 20, "--json", *more)
    assert done.exit_code == 0, (done.output, done.exception)
    return {each["bench"]: each for each in json.loads(done.stdout)}


def own(path: Path, rows: list[dict[str, Any]], **keys: Any) -> Path:
    """A bench of the user's, with its rows beside it."""
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    value = {
        "name": "mine", "title": "Mine", "about": "rows of a test", "state": "schema only", "licence": "-",
        "source": {"hub": "org/mine", "files": {"rows.jsonl": ""}}, "citation": "-", **keys,
    }  # fmt: skip
    (path / "mine.yaml").write_text(yaml.safe_dump(value))
    return path / "mine.yaml"


def judge_own(bench: Path, judge: str, out: Path, *more: object, code: int = 0) -> dict[str, Any]:
    done = run("run", bench, "--judge", judge, "--data", bench.parent, "--out", out, "-q", *more)
    assert done.exit_code == code, (done.output, done.exception)
    return dict(cards(out)["mine"])


def figure(card: dict[str, Any], name: str = "") -> dict[str, Any]:
    told = (*card["official"], *card["pooled"])
    return next(dict(each["value"]) for each in told if name in ("", each["metric"]))
