"""The published `vicuna_eval` items through live servers, graded and compared from the command line."""

import gzip
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from dikast.surface.cli import app
from engines.http_servers import system_one

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]
ITEMS, QUESTIONS = 40, 7  # 40 responses to grade; 7 questions with 6 pairs each to compare, in both orders
HEADINGS = (
    "The instruction to evaluate", "Response to evaluate", "Reference Answer (Score 5)", "Score Rubrics", "Feedback",
)  # fmt: skip


@pytest.fixture(scope="module")
def items(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files to grade (320 responses) and to compare (80 questions with four responses each: 480 pairs)."""
    rows = orjson.loads(gzip.decompress((recorded / "prometheus" / "vicuna_eval.json.gz").read_bytes()))
    graded = [_item(i, row) for i, row in enumerate(rows)]
    by_question = defaultdict(list)
    for item in graded:
        by_question[item["instruction"]].append(item)
    compared = [
        {**same[0], "id": f"q{i}", "responses": [each["response"] for each in same], "response": None, "gold": None}
        for i, same in enumerate(by_question.values())
    ]
    assert len(graded) == 320
    assert {len(each["responses"]) for each in compared} == {4}
    folder = tmp_path_factory.mktemp("vicuna")
    return {"grade": _written(folder / "grade.jsonl", graded), "compare": _written(folder / "compare.jsonl", compared)}


def _item(i: int, row: dict[str, Any]) -> dict[str, Any]:
    """The fields between the headings of a published prompt, its own rubric, and what GPT-4 gave it."""
    marks = "|".join(re.escape(f"###{heading}:") for heading in HEADINGS)
    _, instruction, response, reference, rubric, _ = (each.strip() for each in re.split(marks, row["instruction"]))
    levels = dict(re.findall(r"^Score (\d): (.*)$", rubric, re.M))
    criterion = rubric.splitlines()[0].strip("[]")
    return {
        "id": str(i), "instruction": instruction, "response": response, "reference": reference,
        "gold": row["gpt4_score"][0],
        "rubric": {"name": f"r{i // 4}", "criterion": criterion, "scale": "1-5", "levels": levels},
    }  # fmt: skip


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    kept = [{key: value for key, value in row.items() if value is not None} for row in rows]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in kept))
    return path


def run(verb: str, items: dict[str, Path], spec: str, out: Path, *more: object) -> dict[str, Any]:
    """The summary of a run, which ended with exit code 0, or 3 where verdicts are missing; it is run again to go on."""
    limit = ITEMS if verb == "grade" else QUESTIONS
    command = [verb, items[verb], "--judge", spec, "--out", out, "--limit", limit, "--json", "--quiet", *more]
    result = CliRunner().invoke(app, list(map(str, command)), catch_exceptions=False)
    assert result.exit_code in (0, 3), result.output
    summary: dict[str, Any] = orjson.loads(result.stdout)
    assert summary["items"] == limit
    assert summary["verdicts"] == (ITEMS if verb == "grade" else QUESTIONS * 6 * 2)
    assert not summary["status"].get("engine_error"), summary["failures"]
    return summary


def test_vllm_reads_verdicts(vllm_text: str, items: dict[str, Path], tmp_path: Path) -> None:
    """With many alternatives told, whatever a model without training thinks of the labels can be read."""
    spec = f'{vllm_text},top_logprobs=100,continues=yes,timeout=300,extra={{"max_tokens":1}}'
    graded = run("grade", items, spec, tmp_path / "graded", "--read", "only", "--min-mass", 0)
    assert graded["status"]["ok"] >= 0.8 * ITEMS, "a label beyond the alternatives told is unknown, and no verdict"
    assert graded["usage"]["tokens_in"] > ITEMS * 500
    assert graded["usage"]["tokens_cached"] > 0, "four responses to one question share what stands before them"
    again = run("grade", items, spec, tmp_path / "graded", "--read", "only", "--min-mass", 0)
    assert again["asked"] == 0
    compared = run("compare", items, spec, tmp_path / "compared", "--read", "only", "--min-mass", 0)
    assert compared["preferences"]["pairs"] == QUESTIONS * 6


def test_vllm_writes_and_a_failure_is_no_score(vllm_text: str, items: dict[str, Path], tmp_path: Path) -> None:
    """In the built-in format's own way: prose first, which a model without training never ends with a verdict."""
    spec = f"{vllm_text},timeout=300"
    graded = run("grade", items, spec, tmp_path / "graded", "--max-tokens", 24, "--max-failures", "100%")
    assert graded["status"].get("ok", 0) + sum(graded["status"].get(s, 0) for s in ("truncated", "unparsed")) == ITEMS
    assert graded["usage"]["tokens_out"] >= 24
    for line in (tmp_path / "graded" / "verdicts.jsonl").read_bytes().splitlines():
        verdict = orjson.loads(line)
        assert (verdict["score"] is None) == (verdict["status"] != "ok")


def test_transformers_serve_answers_in_text(transformers_text: str, items: dict[str, Path], tmp_path: Path) -> None:
    spec = f"{transformers_text},timeout=300"
    flags = ("--max-tokens", 8, "--max-failures", "100%")
    graded = run("grade", items, spec, tmp_path / "graded", *flags)
    assert graded["usage"]["tokens_out"] > ITEMS
    compared = run("compare", items, spec, tmp_path / "compared", *flags)
    assert compared["preferences"]["pairs"] == QUESTIONS * 6


def test_transformers_serve_decides(transformers_text: str, items: dict[str, Path], tmp_path: Path) -> None:
    spec = f"{system_one(transformers_text)},timeout=300"
    graded = run("grade", items, spec, tmp_path / "graded", "--format", "score-only")
    assert graded["status"] == {"ok": ITEMS}
    compared = run("compare", items, spec, tmp_path / "compared", "--format", "choice-only")
    assert compared["preferences"]["failed"] == {}
    assert compared["preferences"]["position_bias_nats"]["n"] == QUESTIONS * 6
