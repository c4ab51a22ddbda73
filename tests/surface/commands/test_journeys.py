"""What a new user comes with, each by one command on fresh files without `--map`; API models are servers on loopback.

| journey | test |
|---|---|
| 1. CSV with own names, an API model | `test_a_csv_with_its_own_names_and_an_api_model` |
| 2. pairs of two models | `test_pairs_of_two_models_say_who_wins` |
| 3. five models, one file each | `test_five_models_one_file_each` |
| 4. a folder of images with captions | `test_a_folder_of_images_and_captions` |
| 5. last year's CSV, a page | `test_a_page_of_last_years_judgments` |
| 6. pytest and a gate | `surface/test_tutorials.py`, docs/tutorials/gate.md |
| 7. a notebook with a data frame | `surface/test_tutorials.py`, docs/tutorials/notebook.md |
| 8. 100 rows cancelled and resumed | `test_a_hundred_rows_cancelled_and_resumed` |
| 9. `hf://` | `core/records/test_core_sources.py`, `test_data_sets_of_the_hub` |
| 10. a rubric in words, then a file | `test_a_rubric_in_words_and_then_a_file` |
| 11. a panel of three judges | `test_a_panel_is_one_table_and_one_page` |
| 12. export, edit, audit | `test_export_edit_and_audit` |
"""

import csv
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pillow

import dikast as package
from dikast.audit.results import HeadToHead
from dikast.core.errors import UserError
from dikast.core.records.several_files import answers_of_models
from dikast.core.records.sources import forget
from dikast.testing.faults import FaultServer
from runs import dikast, dikast_here, environment, lines, summary, write_jsonl

JUDGE = ("--judge", "mock:oracle,r=1", "--rubric", "helpfulness")
QUALITY = {"alpha": 5, "beta": 4, "gamma": 3, "delta": 2, "epsilon": 1}


def verdict(body: Mapping[str, Any]) -> str:
    """What the server thinks of an answer: as good as the model that signs it, one less for every third prompt."""
    text = str(body["messages"])
    name = next(name for name in QUALITY if f"{name} says" in text)
    number = int(re.findall(r"says (\d+)", text)[-1])
    return f"It was read.\nVerdict: {max(1, QUALITY[name] - (number % 3 == 0))}"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(verdict, model="judge") as opened:
        yield opened


def answers(folder: Path, n: int = 12) -> list[Path]:
    folder.mkdir()
    return [
        write_jsonl(
            folder / f"{name}.jsonl",
            [{"prompt": f"What is {i}?", "answer": f"{name} says {i}"} for i in range(n)],
        )
        for name in QUALITY
    ]


def test_five_models_one_file_each(server: FaultServer, tmp_path: Path) -> None:
    answers(tmp_path / "answers")
    files = " ".join(f"answers/{name}.jsonl" for name in sorted(QUALITY))  # what a shell makes of answers/*.jsonl
    command = f"grade {files} --judge {server.spec} --rubric helpfulness --out runs/five"
    done = dikast(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "5 files: columns prompt -> instruction, answer -> response" in done.stderr
    board = done.stdout[done.stdout.index("system ") :].splitlines()
    assert [line.split()[0] for line in board[1:6]] == list(QUALITY)
    means = {name: 4.667 - place for place, name in enumerate(QUALITY)} | {"epsilon": 1.0}
    for line, (name, mean) in zip(board[1:6], means.items(), strict=True):
        assert re.match(rf"{name} +{mean:.3f}( \[.+\])? +\S.* 12$", line), line
    assert board[6] == "alpha minus beta, on the same 12 prompts: +1.000"
    found = package.audit(package.Run(tmp_path / "runs/five"))["leaderboard"]
    # gamma beats delta and epsilon on all prompts, and loses to alpha and beta
    assert found.estimate("gamma", "win rate").value == pytest.approx(0.5)
    # delta is 2 or 1, epsilon 1: equal on every third prompt
    assert found.estimate("delta", "win rate").value == pytest.approx((8 + 0.5 * 4) / 48)
    again = dikast_here(*command.split(), cwd=tmp_path)
    assert again.returncode == 0
    assert summary(tmp_path / "runs/five")["asked"] == 0


def test_a_folder_of_answers_to_the_same_prompts_is_a_file_for_each_model(tmp_path: Path) -> None:
    files, flags = answers(tmp_path / "answers", 6), ("--judge", "mock:constant", "--rubric", "helpfulness", "--out")
    done = dikast("grade", tmp_path / "answers", *flags, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "answers: 5 files with the same prompts: each is taken as the answers of the model" in done.stderr
    assert "alpha and beta score alike on the same 6 prompts" in done.stdout
    parts = tmp_path / "parts"
    parts.mkdir()
    for path in files:  # one data set in parts: no two share a prompt
        write_jsonl(parts / path.name, [{**row, "prompt": f"{path.name} {row['prompt']}"} for row in lines(path)])
    for folder, shared in ((parts, False), (tmp_path / "answers", True)):
        assert bool(answers_of_models(str(folder), {})) is shared
    done = dikast_here("grade", parts, *flags, tmp_path / "parted")
    assert (done.returncode, "alpha" in done.stdout) == (0, False)
    for path in files:
        path.replace(parts / path.name)
    forget()
    done = dikast_here("grade", parts, *flags, tmp_path / "parted")  # begun as one source
    assert (done.returncode, "alpha" in done.stdout) == (0, False)
    named = write_jsonl(parts / "alpha.jsonl", [{**row, "model": "gpt"} for row in lines(parts / "alpha.jsonl")])
    assert (named.exists(), answers_of_models(str(parts), {})) == (True, [])


def test_systems_of_columns_are_ranked_as_those_of_files(tmp_path: Path) -> None:
    files = answers(tmp_path / "answers", 6)
    named = [{**row, "model": f"{path.stem}-v2"} for path in files for row in lines(path)]
    joined = write_jsonl(tmp_path / "all.jsonl", named)
    page = tmp_path / "page.html"
    done = dikast_here("grade", joined, "--judge", "mock:constant", "--rubric", "helpfulness",
                       "--out", tmp_path / "run", "--report", page)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "alpha-v2 and beta-v2 score alike on the same 6 prompts" in done.stdout
    assert "5 systems by mean score" in page.read_text("utf-8")
    assert "<figcaption>Leaderboard</figcaption>" in page.read_text("utf-8")
    both = dikast_here("grade", *files, joined, "--judge", "mock:constant", "--rubric", "helpfulness",
                       "--out", tmp_path / "both", "--limit", "2")  # fmt: skip
    assert both.returncode == 0, both.stderr
    assert summary(tmp_path / "both")["questions"] == 12
    assert "alpha-v2" in both.stdout


def test_files_that_share_ids_and_names_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_jsonl(tmp_path / folder / "out.jsonl", [{"id": "q1", "question": "Why?", "answer": f"{folder} said"}])
    run = package.grade([tmp_path / "a/out.jsonl", tmp_path / "b/out.jsonl"], "mock:constant", "helpfulness",
                        out=tmp_path / "run")  # fmt: skip
    assert [each.question.item for each in run] == ["a/out/q1", "b/out/q1"]
    assert [row[0] for row in package.audit(run)["leaderboard"].rows] == ["a/out", "b/out"]
    with pytest.raises(UserError, match="given twice"):
        package.grade([tmp_path / "a/out.jsonl"] * 2, "mock:constant", "helpfulness")


def test_mistakes_in_one_of_several_files_name_it_and_leave_no_folder(tmp_path: Path) -> None:
    good, bad = answers(tmp_path / "answers", 3)[:2]
    bad.write_text(bad.read_text("utf-8") + '{"prompt": "x", "answer": 7}\n', "utf-8")
    done = dikast_here("grade", good, bad, *JUDGE, "--out", tmp_path / "runs/x")
    assert done.returncode == 2
    assert f"{bad}:4" in done.stderr
    assert not (tmp_path / "runs").exists()
    write_jsonl(bad, [{"prompt": "What is 0?", "answer": "b", "gold": 9}])
    done = dikast_here("grade", good, bad, *JUDGE, "--out", tmp_path / "runs/x")
    assert done.returncode == 2
    assert f"{bad}:1" in done.stderr, done.stderr
    assert not (tmp_path / "runs").exists()
    write_jsonl(bad, [{"prompt": "What is 0?", "txt": "b"}])
    done = dikast_here("grade", good, bad, *JUDGE, "--out", tmp_path / "runs/x")
    assert f"{bad}: no column is recognised as the response" in done.stderr
    done = dikast_here("grade", good, "-", *JUDGE, "--out", tmp_path / "runs/x")
    assert "standard input (-) cannot be read beside files" in done.stderr


def old(path: Path, header: str = "id,question,answer,judge_score,human_score,model", n: int = 20) -> Path:
    """Last year's judgments: the judge is one too high on every fourth, and silent on the last."""
    rows = [
        f"r{i},What is {i}?,It is {i}.,{'' if i == n - 1 else i % 4 + 1 + (i % 4 == 3)},{i % 4 + 1},{'xy'[i % 2]}"
        for i in range(n)
    ]
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


def test_a_page_of_last_years_judgments(tmp_path: Path) -> None:
    table = old(tmp_path / "old.csv")
    done = dikast("report", "old.csv", "--out", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text("utf-8")
    # 19 verdicts, 4 of them (3, 7, 11, 15) one too high
    assert re.search(
        r"5\.0% \[\S+%, \S+%\] of 20 questions got no verdict; Pearson correlation with gold is 0\.9", page
    )
    assert "judge_score -&gt; the judge&#39;s score, human_score -&gt; gold" in page
    assert "What is 3?" in page
    assert "2 systems by mean score" in page
    numbers = tmp_path / "page.json"
    assert dikast_here("report", table, "--out", numbers).returncode == 0
    run = orjson.loads(numbers.read_bytes())["runs"][0]
    agreement = run["audit"]["results"]["agreement"]["statistics"]
    assert agreement["exact"]["value"]["value"] == pytest.approx(15 / 19)
    assert agreement["bias"]["value"]["value"] == pytest.approx(4 / 19)
    assert run["labels"]["4"] == {"judge": 0, "gold": 5}
    assert [each["item"] for each in run["queue"]][:4] == ["r3", "r7", "r11", "r15"]
    assert run["queue"][0]["gap"] == 0.25
    assert run["queue"][-1]["status"] == "missing"
    told = dikast_here("audit", table)
    assert told.returncode == 0
    assert "old.csv: columns judge_score -> the judge's score, human_score -> gold" in told.stderr
    redacted = dikast_here("report", table, "--out", tmp_path / "bare.html", "--redact")
    assert redacted.returncode == 0
    assert "What is 3?" not in (tmp_path / "bare.html").read_text("utf-8")


def test_a_page_of_choices_that_somebody_recorded(tmp_path: Path) -> None:
    rows = ["q,a says,b says,gpt,llama,model_a,a", "r,a says,b says,gpt,llama,model_b,a", "s,a,b,gpt,llama,tie,tie"] * 4
    table = tmp_path / "arena.csv"
    table.write_text("\n".join(["prompt,response_a,response_b,model_a,model_b,judge_winner,winner", *rows]), "utf-8")
    done = dikast_here("report", table, "--out", tmp_path / "page.md", "--out", tmp_path / "page.json")
    assert done.returncode == 0, done.stderr
    run = orjson.loads((tmp_path / "page.json").read_bytes())["runs"][0]
    assert run["kind"] == "pairwise"
    assert run["labels"] == {"a": {"judge": 4, "gold": 8}, "b": {"judge": 4, "gold": 0}, "tie": {"judge": 4, "gold": 4}}
    assert run["audit"]["results"]["accuracy"]["rules"]["all"]["value"] == pytest.approx(8 / 12)
    assert run["queue"][0]["gap"] == 1.0
    assert "Win rates (a tie is half a win, each pair in one order only): " in (tmp_path / "page.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("id,question,answer,judge_score,llm_score,model", "'judge_score' and 'llm_score' could both be the judge's"),
        ("id,question,answer,points,human_score,model", "name it with --score points"),
        ("id,question,answer,points,mark,model", "name it with --score points, and people's with --gold COLUMN"),
    ],
)  # fmt: skip
def test_judgments_that_are_not_clear_are_asked_for(header: str, told: str, tmp_path: Path) -> None:
    table = old(tmp_path / "old.csv", header)
    for verb in (("report", table, "--out", tmp_path / "page.html"), ("audit", table)):
        done = dikast_here(*verb)
        assert done.returncode == 2
        assert told in done.stderr, done.stderr
        assert header.replace(",", ", ") in done.stderr
    assert not (tmp_path / "page.html").exists()
    named = dikast_here("report", table, "--out", tmp_path / "page.html", "--score", header.split(",")[3],
                        "--gold", header.split(",")[4], "--scale", "1-5")  # fmt: skip
    assert named.returncode == 0, named.stderr


def test_a_panel_is_one_table_and_one_page(tmp_path: Path) -> None:
    table = old(tmp_path / "old.csv", "id,question,answer,x,human_score,model")
    judges = "--judge mock:oracle --judge mock:oracle,seed=3,r=0.5 --judge mock:constant,refused=0.5"
    graded = dikast_here("grade", table, *judges.split(), "--rubric", "helpfulness", "--out", tmp_path / "panel",
                         "--max-failures", "100%")  # fmt: skip
    assert graded.returncode == 0, graded.stderr
    assert graded.stdout.index("panel of 3: ") < graded.stdout.index("1-mock-oracle: ")
    done = dikast_here("audit", tmp_path / "panel", "--draws", 20)
    assert done.returncode == 0, done.stderr
    assert "3 judges and their joint verdict" in done.stdout
    found = package.audit(tmp_path / "panel", draws=20)
    rows = [str(row[0]) for row in found["panel"].rows]
    assert rows == ["1 mock:oracle", "2 mock:oracle,seed=3,r=0.5", "3 mock:constant,refused=0.5", "panel of 3"]
    for number, run in enumerate(package.Run(tmp_path / "panel").runs):
        own = package.audit(run, draws=20)
        assert found["panel"].estimate(rows[number], "mae") == own["agreement"].estimate("mae")
        assert found["panel"].estimate(rows[number], "no verdict") == own["failures"].estimate("failed", "share")
    gold = {each["item"]: each["gold"] for each in lines(tmp_path / "panel/1-mock-oracle/gold.jsonl")}
    joint = [each for each in lines(tmp_path / "panel/panel.jsonl") if each["mean"] is not None]
    mae = sum(abs(each["mean"] - gold[each["item"]]) for each in joint) / len(joint)
    assert found["panel"].estimate("panel of 3", "mae").value == pytest.approx(mae)
    assert found["judge pairs"]["judge 1 - judge 2"]["n"] == 20
    page = tmp_path / "page.html"
    assert dikast_here("report", tmp_path / "panel", "--out", page, "--draws", 20).returncode == 0
    assert "3 judges and their joint verdict" in page.read_text("utf-8")
    assert page.read_text("utf-8").count('class="run"') == 4
    assert page.read_text("utf-8").count("<dt>Judged</dt><dd><b>old.csv</b>") == 5  # all, the panel, each judge


def test_a_panel_that_compares(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "answer_a": f"a {i}", "answer_b": f"b {i}", "model_a": "x", "model_b": "y",
             "winner": "ab"[i % 2]} for i in range(10)]  # fmt: skip
    table = write_jsonl(tmp_path / "pairs.jsonl", rows)
    judges = "--judge mock:oracle,r=1 --judge mock:oracle,r=1,seed=2 --judge mock:first-slot"
    done = dikast_here("compare", table, *judges.split(), "--rubric", "helpfulness", "--out", tmp_path / "panel")
    assert done.returncode == 0, done.stderr
    found = package.audit(tmp_path / "panel", draws=20)
    said = [each["majority"] for each in lines(tmp_path / "panel/panel.jsonl")]
    right = [a == b for a, b in zip(said, "ab" * 5, strict=True) if a is not None]
    assert found["panel"].estimate("panel of 3", "accuracy").value == pytest.approx(sum(right) / len(right))
    assert found["panel"].estimate("panel of 3", "no verdict").value == 1 - len(right) / 10
    assert found["panel"].estimate("3 mock:first-slot", "same in both orders").value == 0.0
    assert found["players"]["x"]["games"] == len(right)
    assert [row[0] for row in found["failures"].rows] == ["failed", "ok", "no_majority"]
    # each judge against each other, on the pairs where the orders of both agree; the third's never do, so it has no row
    votes = [each["labels"] for each in lines(tmp_path / "panel/panel.jsonl")]
    both = [one == two for one, two, _ in votes if "disagree" not in (one, two)]
    among = found["judge pairs"]["judge 1 - judge 2"]
    assert among["n"] == len(both)
    equal = found["judge pairs"].estimate("judge 1 - judge 2", "exact")
    assert equal.value == pytest.approx(sum(both) / len(both))
    assert [row[0] for row in found["judge pairs"].rows] == ["judge 1 - judge 2"]
    met = found.result(HeadToHead)
    assert met is not None
    won = [{"a": 1.0, "b": 0.0, "tie": 0.5}[each] for each in said if each is not None]
    assert (x_y := met.of("x", "y")) is not None
    assert x_y.rate.value == pytest.approx(sum(won) / len(won))
    assert "one order" not in str(found.to_dict()["tables"])
    assert "as shown" not in str(found.to_dict()["tables"])
    end = next(line for line in done.stdout.splitlines() if line.startswith("panel of 3: "))
    assert "order" not in end
    two = dikast_here("compare", table, "--judge", "mock:oracle,r=1", "--judge", "mock:first-slot", "--rubric",
                      "helpfulness", "--out", tmp_path / "two", "--max-failures", "100%")  # fmt: skip
    assert two.returncode == 0, two.stderr
    alone = package.audit(tmp_path / "two", draws=20)
    assert "judge pairs" not in alone
    assert "no agreement among the judges: 1 of 2 have verdicts, and it takes two" in alone.notes
    files = [tmp_path / "page.md", tmp_path / "page.html"]
    assert dikast_here("report", tmp_path / "panel", "-o", files[0], "-o", files[1], "--draws", 20).returncode == 0
    page = files[1].read_text("utf-8")
    assert "Judge against judge: share of the same choice" in page
    cell = f"{100 * sum(won) / len(won):.0f}%<small>"
    assert cell in page.partition("<summary>Head to head</summary>")[2].partition("</table>")[0]
    own = (tmp_path / "page.md").read_text("utf-8").partition("\n### panel of 3 (")[2].partition("\n### ")[0]
    assert "| Same verdict in both orders | unknown | see each judge |" in own
    assert "order" not in own.partition("\n\n|")[0]
    for judge in (tmp_path / "panel").glob("[123]-*"):  # as after --one-order: what the panel says is of one order too
        told = orjson.loads((judge / "summary.json").read_bytes())
        told["preferences"]["one_order"] = True
        (judge / "summary.json").write_bytes(orjson.dumps(told))
        (judge / "checksums.json").unlink()
    assert "as shown" in str(package.audit(tmp_path / "panel", draws=20)["accuracy"].columns)


def own(path: Path, n: int = 12) -> Path:
    """A table of answers with names of its own, and a human column that the server agrees with."""
    said = [(name, i) for i in range(n // 2) for name in ("alpha", "delta")]
    rows = [f"What is {i}?,{name} says {i},{max(1, QUALITY[name] - (i % 3 == 0))}" for name, i in said]
    path.write_text("\n".join(["question,answer,human_score", *rows]) + "\n", "utf-8")
    return path


def test_a_csv_with_its_own_names_and_an_api_model(server: FaultServer, tmp_path: Path) -> None:
    own(tmp_path / "mine.csv")
    command = f"grade mine.csv --judge {server.spec} --rubric helpfulness --out run --report page.html"
    done = dikast_here(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "All 12 questions got a verdict; Pearson correlation with gold is 1.000" in done.stdout
    assert "What is 3?" in (tmp_path / "page.html").read_text("utf-8")


def test_pairs_of_two_models_say_who_wins(tmp_path: Path) -> None:
    rows = [f"q{i},good {i},bad {i},gpt,llama,{'ab'[i % 4 == 0]}" for i in range(40)]
    (tmp_path / "arena.csv").write_text("\n".join(["prompt,answer_a,answer_b,model_a,model_b,winner", *rows]), "utf-8")
    command = "compare arena.csv --judge mock:oracle,r=1 --rubric helpfulness --out run --report page.html"
    done = dikast_here(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = re.search(r"win rates \(a tie is half a win\): gpt (0\.\d+) \[0\.\d+, 0\.\d+\] \(n = 40\)", done.stdout)
    assert told is not None, done.stdout
    page = (tmp_path / "page.html").read_text("utf-8")
    assert f"Win rates (a tie is half a win): gpt {told[1]}" in page
    one = dikast_here(*command.replace("--out run", "--out one --one-order").split(), cwd=tmp_path)
    assert one.returncode == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "each pair was asked in one order" in page
    assert "had no verdict in one order" not in page + one.stdout


def test_a_folder_of_images_and_captions(server: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in ("alpha", "beta"):
        Pillow.new("RGB", (32, 32), "red").save(tmp_path / "pictures" / f"{name}.png")
        (tmp_path / "pictures" / f"{name}.txt").write_text(f"{name} says 1", "utf-8")
    command = f"grade pictures --judge {server.spec} --rubric image-faithfulness --out run"
    done = dikast_here(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = {each["question"]["item"]: each["score"] for each in lines(tmp_path / "run/verdicts.jsonl")}
    assert said == {"alpha.png": 5.0, "beta.png": 4.0}


def test_a_hundred_rows_cancelled_and_resumed(tmp_path: Path) -> None:
    table = own(tmp_path / "mine.csv", 100)
    with FaultServer(verdict, model="judge", latency=0.4, most_in_flight=4) as slow:
        command = ["grade", str(table), "--judge", f"{slow.spec},concurrency=4", "--rubric", "helpfulness"]
        command += ["--out", str(tmp_path / "run")]
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # jobs in the background ignore it otherwise
        begun = subprocess.Popen([sys.executable, "-m", "dikast", *command], env=environment(), preexec_fn=heard,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        kept = tmp_path / "run" / "verdicts.jsonl"
        deadline = time.monotonic() + 120
        while (not kept.exists() or kept.read_bytes().count(b"\n") < 4) and time.monotonic() < deadline:
            time.sleep(0.02)
        begun.send_signal(signal.SIGINT)
        _, said = begun.communicate(timeout=120)
        assert begun.returncode == 130, said
        assert b"run the same command again to resume" in said
        before = kept.read_bytes().count(b"\n")
        assert 4 <= before < 100
        slow.latency = 0.0
        again = dikast_here(*command)
    assert again.returncode == 0, again.stderr
    assert (summary(tmp_path / "run")["answered_before"], summary(tmp_path / "run")["asked"]) == (before, 100 - before)


def test_a_rubric_in_words_and_then_a_file(tmp_path: Path) -> None:
    own(tmp_path / "mine.csv")
    words = ["grade", "mine.csv", "--judge", "mock:oracle", "--rubric", "Is the answer polite?", "--out", "words"]
    assert dikast_here(*words, cwd=tmp_path).returncode == 0
    assert dikast_here("rubric", "new", "polite.yaml", cwd=tmp_path).returncode == 0
    filed = ["grade", "mine.csv", "--judge", "mock:oracle", "--rubric", "polite.yaml", "--out", "filed"]
    done = dikast_here(*filed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path / "filed")["status"] == {"ok": 12}


def test_export_edit_and_audit(tmp_path: Path) -> None:
    own(tmp_path / "mine.csv")
    run = ["grade", "mine.csv", "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", "run"]
    assert dikast_here(*run, cwd=tmp_path).returncode == 0
    assert dikast_here("export", "run", "out.csv", cwd=tmp_path).returncode == 0
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["people"] = f"{float(row['score']):g}"  # people agree with every verdict
    with (tmp_path / "back.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = dikast_here("audit", "run", "--gold-file", "back.csv", "--gold", "people", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    exact = orjson.loads(done.stdout)["results"]["agreement"]["statistics"]["exact"]["value"]
    assert (exact["value"], exact["n"]) == (1.0, 12)
    page = dikast_here("report", "back.csv", "--out", "page.html", cwd=tmp_path)  # the edited table alone is enough
    assert page.returncode == 0, page.stderr
    assert "people -&gt; gold" in (tmp_path / "page.html").read_text("utf-8")
    for row in rows:
        del row["people"]
        row["gold"] = f"{float(row['score']):g}"  # and so does gold, edited beside the column it was read from
    assert any(row["human_score"] != row["gold"] for row in rows)
    with (tmp_path / "edited.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for flags in ((), ("--gold", "gold")):
        done = dikast_here("audit", "edited.csv", *flags, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = orjson.loads(done.stdout)
        assert found["results"]["agreement"]["statistics"]["exact"]["value"]["value"] == 1.0
        assert (found["plan"]["score"], found["plan"]["gold"]) == ("score", ["gold"])


def test_an_export_of_pairs_is_audited_like_its_run(tmp_path: Path) -> None:
    pairs = [(f"question {i}", f"answer {i}", "x" * i, "ab"[i % 2]) for i in range(1, 9)]
    lines = ["question,response_1,response_2,winner", *map(",".join, pairs)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines), "utf-8")
    run = ["compare", "pairs.csv", "--judge", "mock:random", "--rubric", "helpfulness", "--out", "run"]
    assert dikast_here(*run, cwd=tmp_path).returncode == 0
    assert dikast_here("export", "run", "out.csv", cwd=tmp_path).returncode == 0
    of_run, of_table = (dikast_here("audit", name, "--json", cwd=tmp_path) for name in ("run", "out.csv"))
    assert of_table.returncode == 0, of_table.stderr
    assert "label_shown -> the judge's choice, gold -> gold" in of_table.stderr
    accuracy = [orjson.loads(each.stdout)["results"]["accuracy"] for each in (of_run, of_table)]
    assert accuracy[0] == accuracy[1]


def test_a_column_that_names_the_engine_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,judge,points,human_score\n1,gpt,4,5\n2,gpt,2,2\n3,claude,1,1\n", "utf-8")
    done = dikast_here("audit", "a.csv", cwd=tmp_path)
    assert (done.returncode, "name it with --score points" in done.stderr) == (2, True), done.stderr
    (tmp_path / "a.csv").write_text("id,judge,human\n1,safe,safe\n2,unsafe,safe\n3,safe,safe\n", "utf-8")
    done = dikast_here("audit", "a.csv", "--scale", "unsafe<safe", cwd=tmp_path)
    assert "columns judge -> the judge's score" in done.stderr, done.stderr


def test_the_labels_of_an_exported_run_are_not_peoples(tmp_path: Path) -> None:
    table = own(tmp_path / "mine.csv")
    table.write_text(table.read_text("utf-8").replace("human_score", "other"), "utf-8")
    run = ["grade", "mine.csv", "--judge", "mock:constant", "--rubric", "helpfulness", "--out", "run"]
    assert dikast_here(*run, cwd=tmp_path).returncode == 0
    assert dikast_here("export", "run", "out.csv", cwd=tmp_path).returncode == 0
    done = dikast_here("audit", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gold" not in done.stderr
    assert "Agreement" not in done.stdout


def test_every_journey_of_the_table_is_there() -> None:
    here = Path(__file__)
    told = [line.split("|")[1:3] for line in (__doc__ or "").splitlines() if re.match(r"\| \d", line)]
    assert [int(journey.split(".")[0]) for journey, _ in told] == list(range(1, 13))
    for _, where in told:
        for name in re.findall(r"`([^`]+)`", where):
            if name.endswith(".py"):
                assert (here.parents[2] / name).is_file(), name
            else:
                assert any(f"def {name}(" in file.read_text("utf-8") for file in here.parents[2].rglob("test_*.py")), (
                    name
                )
        for page in re.findall(r"docs/\S+\.md", where):
            assert (here.parents[3] / page).is_file(), page
