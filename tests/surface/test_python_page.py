"""The pages on Python, rankings, rewards and serving: every snippet does what it shows."""

import doctest
import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer.main

from dikast.surface.cli import app
from runs import dikast_here, write_jsonl

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "python.md"
JUDGE = re.compile(r"hf:ORG/\w+")


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8").replace("\n```\n", "\n\n")  # the end of a block is no output
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner().run(test, out=told.append)
    assert not done.failed, "".join(told)
    assert PAGE.read_text("utf-8").count("```pycon") >= 20


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page, with a mock judge in place of a model."""
    found = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [JUDGE.sub("mock:random", each) for each in found]


def test_the_commands_on_rankings_and_pairs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers = [{"instruction": f"Q{i}?", "responses": [f"A{i}.", f"Another {i}.", f"No {i}."]} for i in range(4)]
    write_jsonl(tmp_path / "answers.jsonl", answers)
    said = {"grade": ["grade", "answers.jsonl", "--judge", "mock:random", "--rubric", "helpfulness"]}
    assert dikast_here(*said["grade"], "--out", "runs/first").returncode == 0
    ran = []
    for command in "".join(blocks("ranking.md", "bash") + blocks("rewards.md", "bash")).splitlines():
        program, verb, *arguments = shlex.split(command)
        done = dikast_here(verb, *arguments)
        assert (program, done.returncode) == ("dikast", 0), done.stderr
        ran.append(verb)
    assert ran == ["rank", "rank", "prefs"]
    assert (tmp_path / "pairs.jsonl").stat().st_size > 0
    assert len((tmp_path / "runs" / "full" / "rankings.jsonl").read_text("utf-8").splitlines()) == 4


def test_the_snippets_on_rewards_give_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, replies = ["Name a prime.", "Name an even number."], ["7", "8"]
    swift = ModuleType("swift.rewards")
    swift.orms = {}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", swift)
    asked: list[Any] = []

    def trainer(*, reward_funcs: Sequence[Any], **_: object) -> None:
        asked.extend(each(prompts=prompts, completions=replies, completion_ids=[[1], [2]]) for each in reward_funcs)

    names: dict[str, Any] = {"GRPOTrainer": trainer, "model": None, "config": None, "rows": None}
    for block in blocks("rewards.md", "python"):
        exec(compile(block, "docs/rewards.md", "exec"), names)
    ((first, second),) = asked
    queries = [f"<|im_start|>user\n{p}<|im_end|>\n{r}" for p, r in zip(prompts, replies, strict=True)]
    starts = [each.removesuffix(r) for each, r in zip(queries, replies, strict=True)]
    assert names["reward_func"](queries, starts)["rewards"].tolist() == pytest.approx([first, second])
    assert swift.orms["judge"]()(replies, prompt=prompts) == [first, second]
    scored = names["compute_score"]("mine", "7", None, {"question": prompts[0]})
    assert scored == {"score": first, "no_verdict": 0.0}
    best = names["best"]
    assert (best.response, best.missing) == (["9", "7", "A prime is 7."][best.index], 0)


def test_the_command_that_serves_is_one_and_its_request_an_item() -> None:
    serve, curl = "".join(blocks("serving.md", "bash")).splitlines()
    program, verb, *arguments = shlex.split(serve)
    command: Any = typer.main.get_command(app).verbs[verb].build(verb)  # type: ignore[attr-defined]
    made = SimpleNamespace(**command.make_context(verb, arguments).params)
    assert (program, made.port) == ("dikast", int(re.search(r"localhost:(\d+)/v1/score", curl)[1]))  # type: ignore[index]
    assert set(json.loads(shlex.split(curl)[-1])) == {"instruction", "response"}
