"""Real published items, prompts as given, through the command line and a tiny model of a real class."""

import gzip
import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import tiny_models
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.prompts.format import format_from, load_format
from dikast.surface.cli import app
from runs import environment


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


@pytest.fixture(scope="module")
def own(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published prompt, learnt by the command line from 20 rows drawn at random."""
    out = tmp_path_factory.mktemp("formats") / "published.yaml"
    report = run_json(
        "format", "learn", recorded / "prometheus" / "vicuna_eval.json.gz", "--prompt", "instruction", "--name",
        "1=instruction", "--name", "2=response", "--name", "3=reference", "--name", "4=criterion",
        "--edge", "levels=field", "--out", out,
    )  # fmt: skip
    assert (len(report["rows_drawn"]), report["held_out"], report["misfits"]) == (20, 300, [])
    return out


def run_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = orjson.loads(result.stdout)
    return found


def parts(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a published prompt, by its headings alone."""
    _, instruction, response, reference, rubric, _ = re.split(r"\n{0,2}###[^\n]*\n?", row["instruction"])[1:]
    criterion, *levels = rubric.split("\n")
    return {
        "instruction": instruction, "response": response, "reference": reference,
        "rubric": {
            "name": "published", "criterion": criterion[1:-1], "scale": "1-5",
            "levels": {str(n): level.removeprefix(f"Score {n}: ") for n, level in enumerate(levels, 1)},
        },
    }  # fmt: skip


def vicuna_fields(recorded: Path, count: int) -> list[dict[str, Any]]:
    rows = published(recorded, "vicuna_eval.json.gz")[:count]
    return [{"id": str(i), **parts(row), "gold": row["gpt4_score"][0]} for i, row in enumerate(rows)]


def vicuna_pairs(recorded: Path, count: int) -> list[dict[str, Any]]:
    """Pairs of the four responses to a question, 6 a question."""
    questions: dict[str, list[dict[str, Any]]] = {}
    for row in published(recorded, "vicuna_eval.json.gz"):
        fields = parts(row)
        questions.setdefault(fields["instruction"], []).append(fields)
    found: list[dict[str, Any]] = []
    for responses in questions.values():
        for a, b in combinations(responses, 2):
            same = {key: a[key] for key in ("instruction", "reference", "rubric")}
            found.append({"id": str(len(found)), **same, "responses": [a["response"], b["response"]]})
    return found[:count]


def judged(verb: str, items: Path, model: Path, out: Path, *more: object) -> dict[str, Any]:
    return run(verb, items, "--judge", model, "--read", "only", "--min-mass", 0, "--out", out, *more)


def grade_and_compare(recorded: Path, model: Path, own: Path, folder: Path, count: int) -> None:
    """Grade items and compare pairs with the learnt format and with the built-in ones."""
    rows = published(recorded, "vicuna_eval.json.gz")[:count]
    items = written(folder / "items.jsonl", vicuna_fields(recorded, count))
    form = load_format(own)
    for item, row in zip(read_items(items), rows, strict=True):
        assert isinstance(item.rubric, Rubric)
        assert form.ask(item, item.rubric, (0,))[-1].text == row["instruction"]  # what the model is sent
    pairs = written(folder / "pairs.jsonl", vicuna_pairs(recorded, count))
    ways: dict[str, tuple[object, ...]] = {"own": ("--format", own), "built-in": ()}
    for name, more in ways.items():
        summary = judged("grade", items, model, folder / f"grade-{name}", *more)
        assert summary["status"] == {"ok": count}
        lock = orjson.loads((folder / f"grade-{name}" / "judge.lock.json").read_bytes())
        assert lock["format"]["hash"] == (form.hash if name == "own" else load_format("absolute").hash)
        how = ("--from-absolute", *more) if name == "own" else ()
        summary = judged("compare", pairs, model, folder / f"compare-{name}", *how)
        assert (summary["preferences"]["pairs"], summary["preferences"]["failed"]) == (count, {})


def test_three_vicuna_items_with_the_learnt_and_the_built_in_format(
    recorded: Path, mistral: Path, own: Path, tmp_path: Path
) -> None:
    grade_and_compare(recorded, mistral, own, tmp_path, 3)


@pytest.mark.slow
def test_twenty_vicuna_items_with_the_learnt_and_the_built_in_format(
    recorded: Path, mistral: Path, own: Path, tmp_path: Path
) -> None:
    grade_and_compare(recorded, mistral, own, tmp_path, 20)


@pytest.mark.slow
def test_a_released_judge_of_the_hub_is_asked_in_its_own_prompt_without_a_word(
    recorded: Path, mistral: Path, tmp_path: Path
) -> None:
    """`--judge hf:...` alone: the checkpoint lies in the Hub's cache, its published rows in a folder, no network."""
    repo = tmp_path / "hf" / "hub" / "models--prometheus-eval--prometheus-7b-v1.0"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("b" * 40)
    shutil.copytree(mistral, repo / "snapshots" / ("b" * 40))
    data = tmp_path / "data" / "prometheus-eval" / "prometheus-eval" / "eval" / "benchmark" / "data"
    data.mkdir(parents=True)
    for name in ("vicuna_eval.json.gz", "hhh_alignment_eval.json.gz"):
        (data / name).symlink_to(recorded / "prometheus" / name)
    items = written(tmp_path / "items.jsonl", vicuna_fields(recorded, 2))
    done = subprocess.run(
        [
            sys.executable, "-m", "dikast", "grade", str(items), "--judge", "hf:prometheus-eval/prometheus-7b-v1.0",
            "--read", "only", "--min-mass", "0", "--json", "--out", str(tmp_path / "run"),
        ],
        env=environment(
            HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="1", DIKAST_CATALOG_DATA=str(tmp_path / "data"),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        ),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "asked with prometheus's own prompt, from github.com/prometheus-eval/prometheus-eval" in done.stderr
    assert orjson.loads(done.stdout)["status"] == {"ok": 2}
    lock = orjson.loads((tmp_path / "run" / "judge.lock.json").read_bytes())
    assert lock["format"]["name"] == "prometheus-absolute"
    assert lock["format"]["hash"] == load_format(tmp_path / "cache/dikast/formats/prometheus-absolute.yaml").hash
    form = format_from(lock["format"], path="lock")
    for item, row in zip(read_items(items), published(recorded, "vicuna_eval.json.gz")[:2], strict=True):
        assert isinstance(item.rubric, Rubric)
        assert form.ask(item, item.rubric, (0,))[-1].text == row["instruction"]


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
