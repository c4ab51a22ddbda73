"""`dikast format learn` as typed: what it prints, writes and refuses."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.prompts.format import load_format
from dikast.surface.cli import app
from runs import write_jsonl

ABC = ("ash", "bay", "fir", "oak", "yew", "elm", "box", "rue", "sage", "thyme", "mint", "dill")


def rendered(count: int, *, head: str = "Mark it with [RESULT].") -> list[dict[str, Any]]:
    """Rows that hold a prompt and nothing else; no word stands in all questions, or in all answers."""
    found = []
    rng = random.Random(2)
    for _ in range(count):
        question, answer = (" ".join(rng.sample(ABC, rng.randint(2, 5))) + rng.choice(("", ".", "?")) for _ in "qa")
        found.append({"prompt": f"# Work\n{head}\n\n# Question\n{question}\n\n# Answer\n{answer}\n\n# Mark\n"})
    return found


def learn(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["format", "learn", *map(str, arguments)], catch_exceptions=False)


def test_a_format_is_written_and_used_by_its_file(tmp_path: Path) -> None:
    rows, out = write_jsonl(tmp_path / "rows.jsonl", rendered(30)), tmp_path / "own.yaml"
    with pytest.raises(UserError, match="name them: --name 1=instruction --name 2=response \\(or --accept-names\\)"):
        learn(rows, "--prompt", "prompt", "--out", out)
    assert not out.exists()
    result = learn(rows, "--prompt", "prompt", "--name", "1=instruction", "--name", "2=response", "--out", out)
    assert result.exit_code == 0
    assert "slots, found by headings: instruction, response\n" in result.stdout
    assert "learnt from 20 prompts of 20 rows, seed 0\nheld out: 10 prompts, 0 of them differ\n" in result.stdout
    assert load_format(out).hash in result.stdout
    graded = CliRunner().invoke(
        app,
        ["grade", str(write_jsonl(tmp_path / "i.jsonl", [{"id": "1", "instruction": "q", "response": "a", "gold": 3}])),
         "--judge", "mock:oracle", "--rubric", "helpfulness", "--format", str(out), "--out", str(tmp_path / "run"),
         "--quiet"],
    )  # fmt: skip
    assert graded.exit_code == 0, graded.output
    assert orjson.loads((tmp_path / "run" / "judge.lock.json").read_bytes())["format"]["exact"] is True


def test_prompts_that_differ_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    rows = write_jsonl(tmp_path / "rows.jsonl", rendered(30))
    more = write_jsonl(tmp_path / "more.jsonl", [*rendered(2), *rendered(1, head="Mark it, [RESULT].")])
    flags = ("--prompt", "prompt", "--accept-names", "--out", tmp_path / "own.yaml", "--also", f"{more}#prompt")
    result = learn(rows, *flags)
    assert result.exit_code == 4
    assert "held out: 13 prompts, 1 of them differ\n  row 3: the prompt differs at character 14:" in result.stdout
    assert not (tmp_path / "own.yaml").exists()
    result = learn(rows, *flags, "--max-misfits", 1, "--json")
    assert result.exit_code == 0
    assert orjson.loads(result.stdout)["misfits"][0]["row"] == 3
    assert (tmp_path / "own.report.json").exists()


def test_only_the_rows_that_where_keeps(tmp_path: Path) -> None:
    rows = [{**row, "kind": "one"} for row in rendered(20)] + [
        {"prompt": f"Other {i}", "kind": "two"} for i in range(9)
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    flags = ("--prompt", "prompt", "--accept-names", "--json")
    found = orjson.loads(learn(path, *flags, "--where", "kind=one").stdout)
    assert (found["prompts_drawn"] + found["held_out"], found["misfits"]) == (20, [])
    with pytest.raises(UserError, match="no row is left: fix --where"):
        learn(path, *flags, "--where", "kind=three")


def test_the_released_judges_are_listed() -> None:
    result = CliRunner().invoke(app, ["format", "list", "--released"])
    assert "prometheus-eval/prometheus-7b-v2.0" in result.stdout
    listed = orjson.loads(CliRunner().invoke(app, ["format", "list", "--released", "--json"]).stdout)
    assert {each["name"] for each in listed} >= {"prometheus", "prometheus-2", "prometheus-vision", "llava-critic"}
