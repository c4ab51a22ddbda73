"""Real published items, prompts as given, through the command line and a tiny model of a real class."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import tiny_models
from dikast.surface.cli import app


@pytest.fixture(scope="module")
def mistral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of more positions: published prompts are long, rotary positions are free."""
    folder = tiny_models.build("mistral", tmp_path_factory.mktemp("models") / "mistral")
    config = orjson.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_bytes(orjson.dumps(config | {"max_position_embeddings": 8192}))
    return folder


def published(recorded: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = orjson.loads(gzip.decompress((recorded / "prometheus" / name).read_bytes()))
    return rows


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def run(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json", "--quiet"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    summary: dict[str, Any] = orjson.loads(result.stdout)
    return summary


def grade_vicuna(recorded: Path, model: Path, folder: Path, *more: object) -> dict[str, Any]:
    rows = published(recorded, "vicuna_eval.json.gz")
    items = written(
        folder / "vicuna.jsonl",
        [{"id": i, "instruction": row["instruction"], "gold": row["gpt4_score"][0]} for i, row in enumerate(rows)],
    )
    return run(
        "grade", items, "--judge", model, "--rubric", "helpfulness", "--format", "verbatim", "--read", "only",
        "--min-mass", 0, "--out", folder / "run", *more,
    )  # fmt: skip


def compare_hhh(recorded: Path, model: Path, folder: Path, *more: object) -> dict[str, Any]:
    rows = published(recorded, "hhh_alignment_eval.json.gz")
    pairs = written(
        folder / "hhh.jsonl",
        [
            {"id": i, "responses": [row["chosen_instruction"], row["rejected_instruction"]], "gold": "a"}
            for i, row in enumerate(rows)
        ],
    )
    return run(
        "compare", pairs, "--from-absolute", "--equal", "expected", "--judge", f"hf:{model}", "--rubric",
        "helpfulness", "--format", "verbatim", "--read", "only", "--min-mass", 0, "--out", folder / "run", *more,
    )  # fmt: skip


def test_some_vicuna_items_get_a_verdict_each(recorded: Path, mistral: Path, tmp_path: Path) -> None:
    summary = grade_vicuna(recorded, mistral, tmp_path, "--limit", 8)
    assert summary["status"] == {"ok": 8}
    assert summary["usage"]["tokens_in"] > 8 * 500  # the whole published prompt went in
    again = grade_vicuna(recorded, mistral, tmp_path, "--limit", 8)
    assert again["asked"] == 0
    verdict = orjson.loads((tmp_path / "run" / "verdicts.jsonl").read_bytes().splitlines()[0])
    assert sum(verdict["distribution"].values()) == pytest.approx(1)
    assert verdict["raw"] == ""  # read after the prompt, nothing generated
    assert verdict["marker"] == "forced"


def test_some_hhh_pairs_get_a_preference_each(recorded: Path, mistral: Path, tmp_path: Path) -> None:
    summary = compare_hhh(recorded, mistral, tmp_path, "--limit", 6)
    assert summary["preferences"]["pairs"] == 6
    assert summary["preferences"]["failed"] == {}


def test_generated_feedback_of_an_untrained_model_is_a_counted_failure(
    recorded: Path, mistral: Path, tmp_path: Path
) -> None:
    """Random weights never write the marker, so the token limit comes first: truncated, and never a number."""
    rows = published(recorded, "vicuna_eval.json.gz")[:2]
    items = written(tmp_path / "two.jsonl", [{"id": i, "instruction": r["instruction"]} for i, r in enumerate(rows)])
    result = CliRunner().invoke(
        app,
        [
            "grade", str(items), "--judge", str(mistral), "--rubric", "helpfulness", "--format", "verbatim",
            "--max-tokens", "4", "--out", str(tmp_path / "run"), "--json", "--quiet",
        ],
    )  # fmt: skip
    assert result.exit_code == 3
    summary = orjson.loads(result.stdout)
    assert summary["status"] == {"truncated": 2}
    assert summary["criteria"] == {}


@pytest.mark.slow
def test_all_320_vicuna_items(recorded: Path, mistral: Path, tmp_path: Path) -> None:
    assert grade_vicuna(recorded, mistral, tmp_path)["status"] == {"ok": 320}


@pytest.mark.slow
def test_all_221_hhh_pairs(recorded: Path, mistral: Path, tmp_path: Path) -> None:
    summary = compare_hhh(recorded, mistral, tmp_path)
    assert summary["preferences"]["pairs"] == 221
    assert summary["status"] == {"ok": 442}
