"""The command line as people type it: exit codes, what goes where, flags together and wrong."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pillow

from dikast.core.errors import DataError
from dikast.core.records.items import read_items
from dikast.judging.judge import Judge
from runs import dikast as dikast_process
from runs import dikast_here as dikast
from runs import environment, lines, pairs, rows, summary, write_jsonl

GRADE = ("--judge", "mock:oracle,r=1", "--rubric", "helpfulness")


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "items.jsonl", rows(12))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "pairs.jsonl", pairs(10))


def only_json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(text)
    return value


def test_grade_says_what_it_found(items: Path, tmp_path: Path) -> None:
    done = dikast_process("grade", items, *GRADE, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert "verdicts    12 (12 asked now)" in done.stdout
    assert "no verdict  0.00% [0.00%, 24.25%]" in done.stdout  # 0 of 12, Wilson
    assert "helpfulness: mean 2.750 " in done.stdout  # gold 1..5, 1..5, 1, 2
    assert done.stderr.strip().startswith("12 of 12 verdicts, ")
    again = dikast_process("grade", items, *GRADE, "--out", tmp_path / "run", "--quiet")
    assert "12 (0 asked now)" in again.stdout
    assert again.stderr == ""


def test_json_is_all_that_goes_to_stdout(items: Path, two: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    graded = dikast_process("grade", items, *GRADE, "--out", run, "--json")
    assert only_json(graded.stdout) == summary(run)
    assert "12 of 12" in graded.stderr
    plan = only_json(dikast("grade", items, *GRADE, "--out", run, "--json", "--dry-run").stdout)
    assert (plan["plan"]["answered"], plan["plan"]["missing"]) == (12, 0)
    compared = only_json(dikast("compare", two, *GRADE, "--out", tmp_path / "b", "--json").stdout)
    assert compared["preferences"]["pairs"] == 10
    assert only_json(dikast("replay", run, "--json").stdout)["replay"]["changed"] == 0
    formats = orjson.loads(dikast("format", "list", "--json").stdout)
    assert {"absolute", "pairwise"} <= {each["name"] for each in formats}


def test_a_dry_run_writes_nothing(items: Path, tmp_path: Path) -> None:
    done = dikast("grade", items, *GRADE, "--dry-run", "--max-tokens", "100", cwd=tmp_path)
    assert done.returncode == 0
    assert "12 items, 12 questions" in done.stdout
    assert "0 answered, 12 to ask" in done.stdout
    assert "at most 1,200 tokens out" in done.stdout
    assert set(tmp_path.iterdir()) == {items}


def test_a_dry_run_names_what_cannot_be_asked(tmp_path: Path) -> None:
    given = [*rows(2), {"id": "x", "response": "y", "image": "nowhere.png"}, {"id": "y", "instruction": "q"}]
    bad, good = write_jsonl(tmp_path / "bad.jsonl", given), write_jsonl(tmp_path / "good.jsonl", rows(3))
    wrong = (f"{bad}:3: image {tmp_path}/nowhere.png does not exist", f"{bad}:4: field 'response': item '")
    for files in ((bad,), (good, bad)):
        planned = dikast("grade", *files, *GRADE, "--dry-run")
        assert planned.returncode == 3  # as of the run
        assert dikast("grade", *files, *GRADE, "--dry-run", "--max-failures", "2").returncode == 0
        told = planned.stdout
        assert "2 of them cannot be asked and would get the status bad_item:\n" in told
        done = dikast("grade", *files, *GRADE, "--max-failures", "100%", "--out", tmp_path / f"run-{len(files)}")
        assert done.returncode == 0, done.stderr
        for each in wrong:
            assert f"\n  {each}" in told
            assert f"1 x bad_item: {each}" in done.stdout
    many = write_jsonl(
        tmp_path / "many.jsonl", [{"instruction": f"q{i}", "response": "a" * (i == 0)} for i in range(40)]
    )
    told = dikast("grade", many, *GRADE, "--dry-run").stdout
    assert "39 of them cannot be asked and would get the status bad_item, the first:\n" in told
    assert told.count(f"  {many}:") == 20
    done = dikast("grade", many, *GRADE, "--max-failures", "100%", "--out", tmp_path / "many")
    assert "39 x such as bad_item: " in done.stdout


def test_a_budget_ends_the_asking_and_the_next_run_goes_on(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = dikast("grade", items, *GRADE, "--out", out, "--budget", "calls=5", "--json")
    assert done.returncode == 3
    assert only_json(done.stdout)["status"] == {"ok": 5, "engine_error": 7}
    again = dikast("grade", items, *GRADE, "--out", out, "--json")
    assert again.returncode == 0
    assert (only_json(again.stdout)["asked"], only_json(again.stdout)["status"]) == (7, {"ok": 12})
    wrong = dikast("grade", items, *GRADE, "--out", out, "--budget", "calls=5,coins=3")
    assert wrong.returncode == 2
    assert "calls=N, tokens=N or money=N" in wrong.stderr


def test_a_dry_run_tells_the_cost_where_a_price_is_known(
    items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("judge-1: {in: 2.0, cached: 1.0, out: 8.0}\n")
    spec = f"http://127.0.0.1:9/v1#judge-1,prices={prices}"
    done = dikast("grade", items, "--judge", spec, "--rubric", "helpfulness", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    plan = only_json(done.stdout)["plan"]
    assert plan["cost"] == pytest.approx((plan["tokens_in"] * 2 + plan["tokens_out"] * 8) / 1e6)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-anything-0123456789")
    reasons = ("--judge", "openai:gpt-5-mini,url=http://127.0.0.1:9/v1", "--price", "2,8", "--budget", "tokens=20000")
    for format in ("absolute", "score-only"):  # a model that reasons writes also where labels would be scored
        asked = ("grade", items, *reasons, "--rubric", "helpfulness", "--format", format, "--dry-run")
        plan = only_json(dikast(*asked, "--json").stdout)["plan"]
        assert (plan["tokens_out"], plan["thinking"]) == (12 * (1024 + 25_000), 25_000)
        assert plan["cost"] == pytest.approx((plan["tokens_in"] * 2 + plan["tokens_out"] * 8) / 1e6)
        told = dikast(*asked).stdout
        assert "at most 312,288 tokens out (including 25,000 a question for reasoning), at most 2.5" in told


def test_limit_counts_items(items: Path, tmp_path: Path) -> None:
    assert "5 (5 asked now)" in dikast("grade", items, *GRADE, "--out", tmp_path / "run", "--limit", 5).stdout
    assert "12 (7 asked now)" in dikast("grade", items, *GRADE, "--out", tmp_path / "run").stdout
    assert "5 (0 asked now)" in dikast("grade", items, *GRADE, "--out", tmp_path / "run", "--limit", 5).stdout


def test_items_from_standard_input(items: Path, tmp_path: Path) -> None:
    Pillow.new("RGB", (32, 32)).save(tmp_path / "it.png")
    raw = orjson.dumps({"id": "x", "instruction": "?", "response": "!", "image": "it.png", "gold": 2}) + b"\n"
    done = dikast("grade", "-", *GRADE, "--out", "run", given=raw + items.read_bytes(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path / "run")["status"] == {"ok": 13}  # the image was found beside the working folder
    packed = dikast("grade", "-", *GRADE, "--out", "run", given=gzip.compress(items.read_bytes()), cwd=tmp_path)
    assert "12 (0 asked now)" in packed.stdout
    wrong = dikast("grade", "-", *GRADE, "--out", "run", given='{"id":"a","response":"b"}\n{', cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("dikast: -:2: ")


@pytest.mark.parametrize("allowed", ["0", "3", "30%"])
def test_failures_above_the_limit_are_exit_3(items: Path, tmp_path: Path, allowed: str) -> None:
    command = (
        "grade",
        items,
        "--judge",
        "mock:random,refused=0.3",
        "--rubric",
        "helpfulness",
        "--out",
        tmp_path / "run",
    )
    done = dikast(*command, "--max-failures", allowed)
    found = summary(tmp_path / "run")
    failed = found["verdicts"] - found["status"]["ok"]
    assert failed > 0
    most = {"0": 0, "3": 3, "30%": 3.6}[allowed]
    assert done.returncode == (3 if failed > most else 0)
    assert "x such as refused: " in done.stdout


@pytest.mark.parametrize("text", ["many", "-1", "nan", "inf%", ""])
def test_what_max_failures_is_not(items: Path, tmp_path: Path, text: str) -> None:
    done = dikast("grade", items, *GRADE, "--out", tmp_path / "run", f"--max-failures={text}")
    assert done.returncode == 2
    assert "write a count (10) or a share (5%)" in done.stderr


def test_all_mistakes_in_items_at_once(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(
        '{"id":"a","response":"x"}\n{"id":"a","response":"y"}\n{"id":3,"respons":"x"}\nnot json\n'
        '{"id":"b","responses":"x"}\n'
    )
    done = dikast("grade", bad, *GRADE, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "4 records cannot be used; nothing was asked" in done.stderr
    for line, told in ((2, "is on line 1 already"), (3, "did you mean 'response'?"), (4, "JSON"), (5, "a list")):
        assert any(f"bad.jsonl:{line}: " in each and told in each for each in done.stderr.splitlines()), told
    assert not (tmp_path / "run" / "keys.txt").exists()


def test_many_mistakes_in_items_stop_at_twenty(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("x\n" * 5000)
    done = dikast("grade", bad, *GRADE, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "20+ records cannot be used" in done.stderr
    told = done.stderr.splitlines()
    assert len(told) == 2
    assert told[1].startswith(f"  {bad}:1: ")
    assert told[1].endswith(f"(also on lines {', '.join(map(str, range(2, 21)))})")


def test_all_mistakes_in_flags_at_once(items: Path, tmp_path: Path) -> None:
    done = dikast(
        "compare", items, "--judge", "mock:oracl", "--judge", "mock:oracle,r=two", "--rubric", "helpfullness",
        "--map", "response", "--max-failures", "few", "--format", "pairwize", "--read", "some", "-n", "3",
        "--equal", "fair", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    for told in (
        "did you mean 'oracle'?", "option 'r': expected a number, got 'two'",
        "helpfullness: there is no such rubric file",
        "--map 'response': write FIELD=COLUMN", "--max-failures 'few'", "did you mean 'pairwise'?",
        "--read: expected 'auto', 'only' or 'never', got 'some'",
        "at temperature 0 are all the same", "--equal 'fair' is not a rule; tie: ", "--out FOLDER",
    ):  # fmt: skip
        assert told in done.stderr, told
    assert set(tmp_path.iterdir()) == {items}


def test_usage_is_exit_2(items: Path, tmp_path: Path) -> None:
    for wrong in (
        ("grade",), ("grade", items), ("grade", items, "--judge"), ("grade", items, *GRADE, "--nope"), ("nope",),
        ("grade", items, *GRADE, "--limit", "0"), ("grade", items, *GRADE, "--min-mass", "2"),
        ("compare", items, *GRADE, "--out", "x", "--one-order", "--from-absolute"),
        ("compare", items, *GRADE, "--out", "x", "--equal", "expected"),
        ("replay", tmp_path), ("format", "show", "nope"), ("grade", "nowhere.jsonl", *GRADE, "--out", "x"),
        ("grade", "items.docx", *GRADE, "--out", "x"), ("grade", items, "--judge", "mock:constant", "--out", "x"),
        ("compare", items, *GRADE, "--out", "x", "--from-absolute", "--equal", "resample"),
        ("grade", items, *GRADE, "--out", ""), ("grade", items, *GRADE, "--out", "."),
    ):  # fmt: skip
        done = dikast(*wrong, cwd=tmp_path)
        assert done.returncode == 2, wrong
        assert done.stderr.strip(), wrong
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout == "", wrong


def test_a_pipe_that_can_be_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        done = dikast("grade", path, *GRADE, "--out", tmp_path / "run")
        assert done.returncode == 2
        assert "is not a regular file, and items are read twice: pipe them in and use -" in done.stderr


def test_a_file_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    assert dikast("grade", "nowhere.jsonl", *GRADE, "--out", tmp_path / "run").returncode == 2
    assert not (tmp_path / "run").exists()


def test_a_configuration_is_flags(items: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("judge: 'mock:oracle,r=1'\nrubric: helpfulness\nlimit: 4\nout: run\nquiet: true\nmax_tokens: 9\n")
    done = dikast("grade", items, "--config", config, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 (4 asked now)" in done.stdout
    assert done.stderr == ""
    lock = orjson.loads((tmp_path / "run" / "judge.lock.json").read_bytes())
    assert lock["identity"]["settings"]["sampling"]["max_tokens"] == 9
    over = dikast("grade", items, "--config", config, "--limit", 6, cwd=tmp_path)  # the command line wins
    assert "6 (2 asked now)" in over.stdout
    panel = tmp_path / "panel.yaml"
    panel.write_text("judge: [mock:constant, mock:random]\nrubric: helpfulness\nout: panel\n")
    assert "panel of 2" in dikast("grade", items, "--config", panel, cwd=tmp_path).stdout


def test_near_misses_in_a_configuration(items: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("judg: mock:constant\nrubrik: helpfulness\nxyz: 1\n")
    done = dikast("grade", items, "--config", config)
    assert done.returncode == 2
    assert "run.yaml:1: field 'judg': unknown key: did you mean 'judge'?" in done.stderr
    assert "run.yaml:2: field 'rubrik': unknown key: did you mean 'rubric'?" in done.stderr
    assert "run.yaml:3: field 'xyz': unknown key: known: " in done.stderr
    config.write_text("limit: many\njudge: mock:constant\n")
    wrong = dikast("grade", items, "--config", config, "--dry-run", "--rubric", "helpfulness")
    assert wrong.returncode == 2
    assert "run.yaml:1: field 'limit': expected a whole number, got 'many'" in wrong.stderr
    config.write_text("limit: 0\njudge: mock:constant\nsamples: many\ntop_p: 2\nread: some\nmap: 3\n")
    wrong = dikast("grade", items, "--config", config, "--dry-run", "--rubric", "helpfulness")
    for told in (
        "run.yaml:1: field 'limit': expected a whole number of at least 1, got 0",
        "run.yaml:3: field 'samples': expected a whole number, got 'many'",
        "run.yaml:4: field 'top_p': expected a number from 0.0 to 1.0, got 2",
        "run.yaml:5: field 'read': expected 'auto', 'only' or 'never', got 'some'",
        "run.yaml:6: field 'map': expected a list of text, got 3",
    ):
        assert told in wrong.stderr, told
    config.write_text("- judge\n")
    assert "a configuration is a mapping" in dikast("grade", items, "--config", config).stderr
    assert dikast("grade", items, "--config", tmp_path / "none.yaml").returncode == 2


def test_columns_of_other_names(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("nr,prompt,answer,right\nq1,Name a prime.,7,4\nq2,Name another.,9,1\n")
    maps = [
        each for pair in ("id=nr", "instruction=prompt", "response=answer", "gold=right") for each in ("--map", pair)
    ]
    done = dikast("grade", table, *GRADE, *maps, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = {each["question"]["item"]: each["score"] for each in lines(tmp_path / "run" / "verdicts.jsonl")}
    assert found == {"q1": 4.0, "q2": 1.0}
    wrong = dikast("grade", table, *GRADE, "--map", "respons=answer", "--out", tmp_path / "run")
    assert wrong.returncode == 2
    assert "did you mean 'response'?" in wrong.stderr
    wrong = dikast("grade", table, *GRADE, "--map", "response=answr", "--out", tmp_path / "run")
    assert "did you mean 'answer'?" in wrong.stderr


def test_another_scale(items: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text("criterion: Is it good?\nname: good\n")
    command = (
        "grade",
        items,
        "--judge",
        "mock:random,seed=2",
        "--out",
        tmp_path / "run",
        "--rubric",
        plain,
        "--equate",
        "1-5",
    )
    assert dikast(*command, "--scale", "pass/fail").returncode == 0
    assert set(summary(tmp_path / "run")["criteria"]["good"]["labels"]) == {"fail", "pass"}
    assert "12 (12 asked now)" in dikast(*command, "--scale", "A-C").stdout
    wrong = dikast(*command, "--scale", "5-1")
    assert wrong.returncode == 2
    assert "runs backwards" in wrong.stderr
    lost = dikast("grade", items, "--judge", "mock:random", "--scale", "1-9", "--out", tmp_path / "run")
    assert "--scale replaces the scale of --rubric; give a rubric" in lost.stderr


def test_a_panel_has_a_folder_for_each_judge(items: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ("grade", items, "--rubric", "helpfulness", "--out", run, "--judge", "mock:oracle,r=1")
    done = dikast(*command, "--judge", "mock:constant", "--json")
    assert done.returncode == 0, done.stderr
    told = only_json(done.stdout)
    assert told["kind"] == "panel"
    assert told["judges"] == ["mock:oracle,r=1", "mock:constant"]
    assert told["questions"] == told["answered_by_all"] == len(lines(run / "panel.jsonl")) == 12
    # gold 1..5 in turn against a constant 3: spreads 2, 1, 0, 1, 2, 2, 1, 0, 1, 2, 2, 1
    assert told["mean_spread"]["value"] == pytest.approx(15 / 12)
    assert told["unanimous"]["value"] == pytest.approx(2 / 12)
    assert sorted(each.name for each in run.iterdir() if each.is_dir()) == ["1-mock-oracle-r-1", "2-mock-constant"]
    assert told["runs"]["mock:constant"]["verdicts"] == 12
    again = dikast(*command, "--judge", "mock:constant")
    assert "panel of 2" in again.stdout
    assert again.stdout.count("(0 asked now)") == 2
    plans = only_json(dikast(*command, "--judge", "mock:random", "--dry-run", "--json").stdout)["plans"]
    assert {spec: each["plan"]["missing"] for spec, each in plans.items()} == {"mock:oracle,r=1": 0, "mock:random": 12}
    assert "== mock:random" in dikast(*command, "--judge", "mock:random", "--dry-run").stdout
    wrong = dikast("grade", "-", "--rubric", "helpfulness", "--judge", "mock:constant", "--judge", "mock:random",
                   "--out", run)  # fmt: skip
    assert wrong.returncode == 2
    assert "give it a file, not standard input" in wrong.stderr


def test_a_panel_that_compares_is_joined_by_its_preferences(two: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = dikast("compare", two, "--judge", "mock:oracle,r=1,accuracy=1", "--judge", "mock:first-slot", "--rubric",
                  "helpfulness", "--out", run)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "of the 10 questions all answered" in done.stdout
    assert "mean spread" not in done.stdout
    ours = {each["item"]: each["choice"] for each in lines(run / "1-mock-oracle-r-1-accuracy-1" / "preferences.jsonl")}
    assert {each["item"]: tuple(each["labels"]) for each in lines(run / "panel.jsonl")} == {
        item: (choice, "disagree") for item, choice in ours.items()
    }
    assert set(ours.values()) == {"a", "b", "tie"}
    assert summary(run)["unanimous"]["value"] == 0  # a judge whose orders disagree agrees with nobody, ties included


def test_another_kind_of_run_in_the_folder_leaves_nothing_stale(two: Path, items: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dikast("compare", two, *GRADE, "--out", run).returncode == 0
    assert (run / "preferences.jsonl").exists()
    assert dikast("grade", items, *GRADE, "--out", run).returncode == 0
    assert not (run / "preferences.jsonl").exists()
    assert summary(run)["verdicts"] == 12
    assert "10: " in dikast("compare", two, *GRADE, "--out", run).stdout
    assert summary(run)["asked"] == 0


def test_compare_in_both_orders(two: Path, tmp_path: Path) -> None:
    done = dikast("compare", two, "--judge", "mock:first-slot", "--rubric", "helpfulness", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "pairs       10: disagree 10" in done.stdout
    assert "orders agree 0.00%" in done.stdout
    assert "favoured by" in done.stdout
    one = dikast("compare", two, "--judge", "mock:first-slot", "--rubric", "helpfulness", "--one-order", "--out",
                 tmp_path / "run")  # fmt: skip
    assert "pairs       10, in one order: a 10" in one.stdout
    assert "helpfulness:" not in one.stdout  # counts of one criterion are those of the pairs
    assert "position bias cannot be separated from a preference" in one.stdout
    assert "orders agree" not in one.stdout


@pytest.mark.parametrize("rule", ["tie", "expected", "resample"])
def test_compare_from_absolute(two: Path, tmp_path: Path, rule: str) -> None:
    command = ("compare", two, "--judge", "mock:oracle,r=0.6", "--rubric", "helpfulness", "--from-absolute")
    warm = ("--temperature", "1") if rule == "resample" else ()
    done = dikast(*command, "--equal", rule, *warm, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    told = only_json(done.stdout)
    assert (told["kind"], told["equal"], told["preferences"]["pairs"]) == ("from-absolute", rule, 10)
    scores: dict[str, dict[int, float]] = {}
    for each in lines(tmp_path / "run" / "verdicts.jsonl"):
        if each["question"]["sample"] == 0:
            scores.setdefault(each["question"]["item"], {})[each["question"]["responses"][0]] = each["score"]
    equal = sum(each[0] == each[1] for each in scores.values())
    assert equal > 0, "the rule had nothing to do"
    choices = told["preferences"]["choices"]
    assert choices["tie"] == equal if rule == "tie" else choices["tie"] < equal
    for each in lines(tmp_path / "run" / "preferences.jsonl"):
        a, b = scores[each["item"]][0], scores[each["item"]][1]
        assert a == b or each["choice"] == ("a" if a > b else "b")
    three = write_jsonl(tmp_path / "three.jsonl", [{"id": "x", "responses": ["1", "2", "3"], "gold": [1, 2, 3]}])
    wrong = dikast("compare", three, *command[2:], "--out", tmp_path / "run")
    assert wrong.returncode == 2
    assert "three.jsonl:1: field 'responses': comparing by scores takes two responses" in wrong.stderr
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text("criteria: [{criterion: Good}, {criterion: Brief}]\n")
    wrong = dikast("compare", two, "--judge", "mock:random", "--rubric", sheet, "--from-absolute", "--dry-run")
    assert "pairs.jsonl:1: field 'rubric': comparing by scores takes one criterion" in wrong.stderr


def test_replay_with_another_format(items: Path, tmp_path: Path) -> None:
    dikast("grade", items, *GRADE, "--out", tmp_path / "run", "--read", "never")
    done = dikast("replay", tmp_path / "run", "--format", "verbatim", "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert "replayed    12 verdicts, 12 changed" in done.stdout
    assert "no verdict  100.00%" in done.stdout
    assert "12 changed" not in dikast("replay", tmp_path / "run").stdout


def test_samples_and_sheets_are_shown(items: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text("criteria:\n  - {name: good, criterion: 'Good?'}\n  - {name: brief, criterion: 'Brief?'}\n")
    done = dikast("grade", items, "--judge", "mock:random", "--rubric", sheet, "-n", 2, "--temperature", 1, "--out",
                  tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "verdicts    48 (48 asked now)" in done.stdout
    assert "samples of each response joined: 24" in done.stdout
    assert "0 worst and 1 best; 0 without a total" in done.stdout
    assert len(lines(tmp_path / "run" / "totals.jsonl")) == 12


def test_help_and_version() -> None:
    for verb in ((), ("grade",), ("compare",), ("replay",), ("format",), ("doctor",)):
        done = dikast(*verb, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout
    assert dikast("--version").stdout.startswith("dikast 0.")
    assert dikast().returncode == 2


def test_formats_say_how_replies_are_read() -> None:
    from dikast.prompts.dialects import DIALECTS

    listed = dikast("format", "list", "--dialects").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(DIALECTS)
    assert f"dialect json: {DIALECTS['json'].about}" in dikast("format", "show", "json-absolute").stdout


def test_format_show() -> None:
    done = dikast("format", "show", "pairwise", "--rubric", "honesty")
    assert done.returncode == 0
    assert "<another response>" in done.stdout
    assert done.stdout.rstrip().endswith("Verdict: A | Verdict: B | Verdict: tie")


def test_a_reader_that_goes_away(items: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dikast", "format", "show", "absolute"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) in (0, 1)
    assert b"Traceback" not in told
    assert b"Exception ignored" not in told


def on_five(tmp_path: Path, column: str = "gold") -> Path:
    """100 items with gold on 1-5, where the rubric says pass or fail."""
    given = [{**{k: v for k, v in row.items() if k != "gold"}, column: row["gold"]} for row in rows(100)]
    return write_jsonl(tmp_path / f"{column}.jsonl", given)


@pytest.mark.parametrize("verb", ["grade", "compare"])
def test_gold_off_the_rubrics_scale_stops_before_a_call(verb: str, tmp_path: Path) -> None:
    log, run = tmp_path / "log", tmp_path / "run"
    items = on_five(tmp_path) if verb == "grade" else write_jsonl(tmp_path / "pairs.jsonl", pairs(100))
    command = (verb, items, "--judge", f"mock:constant,log={log}", "--rubric", "correctness", "--out", run)
    done = dikast(*command)
    assert done.returncode == 2
    assert "off pass/fail (0 to 1) of the rubric 'correctness', and gold goes from 1 to 5" in done.stderr
    assert "--scale 1-5 puts the rubric on it; --equate 1-5 says" in done.stderr
    assert not log.exists() or log.read_bytes() == b""
    assert dikast(*command, "--dry-run").returncode == 2
    assert dikast(*command, "--scale", "1-5").returncode == 0
    assert dikast(*command, "--equate", "1-4").returncode == 2
    assert dikast(*command, "--equate", "1-5").returncode == 0


def test_gold_of_a_mapped_column_is_named_gold_too(tmp_path: Path) -> None:
    items = on_five(tmp_path, "people")
    command = ("grade", items, "--judge", "mock:constant", "--rubric", "correctness", "--out", tmp_path / "run")
    assert dikast(*command).returncode == 0  # a column of another name is metadata
    guessed = ("grade", on_five(tmp_path, "human_score"), *command[2:])
    told = "'human_score' was guessed to be gold but does not lie on the scale (80 of 100 values; "
    for done in (dikast(*guessed), dikast(*guessed, "--dry-run")):
        assert done.returncode == 0
        assert told in done.stdout
    done = dikast(*command, "--map", "gold=people")
    assert done.returncode == 2
    assert "gold goes from 1 to 5" in done.stderr


def test_guessed_gold_off_the_scale_stops_a_judge_that_reads_gold(tmp_path: Path) -> None:
    items, run = on_five(tmp_path, "human_score"), tmp_path / "run"
    command = ("grade", items, "--rubric", "correctness", "--out", run, "--judge")
    done = dikast(*command, "mock:oracle")  # before: it read the fifth that lies on the scale, and failed on the rest
    assert done.returncode == 2
    assert "80 of 100 values are off" in done.stderr
    assert "--equate 1-5" in done.stderr
    assert not (run / "verdicts.jsonl").exists()
    assert dikast(*command, "mock:oracle", "--equate", "1-5").returncode == 0
    loaded = list(read_items(items))
    assert loaded[0].gold_from == "human_score"
    with pytest.raises(DataError, match="gold does not lie on its scale"):
        list(Judge("mock:oracle", rubric="correctness").grade_many(loaded))
    assert len(list(Judge("mock:oracle,r=0", rubric="correctness").grade_many(loaded))) == 100


def test_equate_keeps_gold_as_given_with_its_scale_and_goodness_and_asks_nothing_anew(tmp_path: Path) -> None:
    items, run = on_five(tmp_path), tmp_path / "run"
    plain = write_jsonl(tmp_path / "plain.jsonl", rows(100, gold=None))
    judge = ("--judge", "mock:constant", "--rubric", "correctness", "--out", run)
    assert dikast("grade", plain, *judge).returncode == 0
    again = dikast("grade", items, *judge, "--equate", "1-5")
    assert "100 (0 asked now)" in again.stdout
    gold = lines(run / "gold.jsonl")
    # the first five are 1..5 in turn; on 1-5 that is 0, 1/4, 1/2, 3/4 and 1 of the way to the best
    assert [each["gold"] for each in gold[:5]] == [1, 2, 3, 4, 5]
    assert [each["goodness"]["correctness"] for each in gold[:5]] == [0, 0.25, 0.5, 0.75, 1]
    assert {each["scale"] for each in gold} == {"1-5"}
    assert orjson.loads((run / "judge.lock.json").read_bytes())["equate"] == "1-5"


def test_a_mock_that_reads_gold_reads_it_on_the_rubrics_scale(tmp_path: Path) -> None:
    run = tmp_path / "run"
    judge = ("--judge", "mock:oracle,r=1", "--rubric", "correctness", "--out", run)
    done = dikast("grade", on_five(tmp_path), *judge, "--equate", "1-5")
    assert done.returncode == 0, done.stdout
    labels = {each["question"]["item"]: each["label"] for each in lines(run / "verdicts.jsonl")}
    assert (labels["i0"], labels["i1"], labels["i3"], labels["i4"]) == ("fail", "fail", "pass", "pass")
