"""`dikast report`: what it writes, what it says when something is missing, and its gates."""

import json
import re
import shutil
import xml.etree.ElementTree as Xml
from pathlib import Path

import orjson
import pytest

import runs
from dikast.core.errors import UserError
from dikast.core.media import load_image
from dikast.core.records import read_items
from dikast.surface.report.gates import check
from surface.report.conftest import grade


def report(*arguments: object) -> tuple[int, str, str]:
    done = runs.dikast_here("report", *arguments, "--draws", 200)
    return done.returncode, done.stdout, done.stderr


def test_every_form_tells_the_same_numbers(graded: Path, tmp_path: Path) -> None:
    out = [tmp_path / f"report.{suffix}" for suffix in ("html", "md", "json", "xml")]
    code, said, told = report(graded, *(each for path in out for each in ("-o", path)))
    assert code == 0, told
    numbers = orjson.loads(out[2].read_bytes())["runs"][0]
    failed = numbers["audit"]["tables"]["failures"]["rows"][0]
    assert failed["status"] == "failed"
    assert failed["count"] == sum(entry["status"] != "ok" for entry in numbers["queue"]) > 0
    pearson = numbers["audit"]["tables"]["agreement"]["rows"][0]["value"]["value"]
    page, markdown = out[0].read_text(), out[1].read_text()
    assert f"Pearson correlation with gold is {pearson:.3f}" in page
    assert f"Pearson correlation with gold is {pearson:.3f}" in markdown.replace("\\", "")
    suite = Xml.fromstring(out[3].read_text())
    assert len(suite.findall(".//error")) == failed["count"]
    assert str(out[0]) in said


def test_flags_from_a_file(graded: Path, tmp_path: Path) -> None:
    """`--config` gives any flag; what is typed takes precedence, and all mistakes are told at once."""
    config, out = tmp_path / "report.yaml", tmp_path / "r.json"
    config.write_text(f"out: [{out}]\nqueue: 3\nlevel: 0.5\nfail-under: [pearson=2]\n")
    code, _, told = report(graded, "--config", config, "--level", 0.8)
    assert code == 4, told
    assert "NOT MET" in told
    numbers = orjson.loads(out.read_bytes())["runs"][0]
    assert len(numbers["queue"]) == 3
    assert numbers["audit"]["plan"]["resampling"]["level"] == 0.8
    config.write_text("queue: -1\nlevl: 0.5\nlevel: 1.5\n")
    code, _, told = report(graded, "--config", config)
    assert code == 2
    for line in ("report.yaml:1", "report.yaml:2: field 'levl': unknown key: did you mean 'level'?", "report.yaml:3"):
        assert line in told


def test_the_queue_begins_with_the_largest_gap(graded: Path, tmp_path: Path) -> None:
    report(graded, "-o", tmp_path / "r.json", "--queue", 20)
    queue = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]["queue"]
    gaps = [entry["gap"] for entry in queue if entry["gap"] is not None]
    assert gaps == sorted(gaps, reverse=True)
    assert report(graded, "-o", tmp_path / "queue.jsonl", "--queue", 20)[0] == 0
    items = list(read_items(tmp_path / "queue.jsonl"))
    assert [item.id for item in items] == list(dict.fromkeys(entry["item"] for entry in queue))
    assert load_image(items[0].images[0]).size == (200, 150)
    code, _, told = report(graded, "-o", tmp_path / "none.jsonl", "--redact")
    assert (code, "--redact leaves these out" in told) == (2, True), told
    assert not (tmp_path / "none.jsonl").exists()
    assert len(queue) == 20
    assert any(entry["status"] != "ok" for entry in queue)  # a quarter of a full queue is theirs
    gold = {row["item"]: row["gold"] for row in runs.lines(graded / "gold.jsonl")}
    score = {row["question"]["item"]: row["score"] for row in runs.lines(graded / "verdicts.jsonl")}
    for entry in queue:
        if entry["gap"] is not None:
            assert entry["gap"] == abs(score[entry["item"]] - gold[entry["item"]]) / 4
    widest = max(abs(score[i] - gold[i]) / 4 for i in gold if score[i] is not None)
    assert gaps[0] == widest


def test_pairs(compared: Path, tmp_path: Path) -> None:
    code, _, told = report(compared, "-o", tmp_path / "r.html", "-o", tmp_path / "r.json")
    assert code == 0, told
    page = (tmp_path / "r.html").read_text()
    assert "Same verdict in both orders" in page
    assert "A shown first" in page
    assert "First and second are the responses A and B, in whichever slot they stood." in page
    queue = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]["queue"]
    assert {entry["verdict"] for entry in queue} >= {"a / b"}


def test_runs_side_by_side_are_paired(graded: Path, tmp_path: Path) -> None:
    other = grade(tmp_path, "mock:oracle,r=.3")
    code, _, told = report(graded, other, "-o", tmp_path / "r.html", "-o", tmp_path / "r.md")
    assert code == 0, told
    page = (tmp_path / "r.html").read_text()
    assert "Side by side" in page
    assert "difference" in page
    assert f"{graded.parent.name}/run" in page  # both folders are called `run`: told apart by what is above them
    assert "Paired with" in (tmp_path / "r.md").read_text()


def test_redact_leaves_no_text(graded: Path, tmp_path: Path) -> None:
    assert "ends in" in html(graded, tmp_path)
    redacted = html(graded, tmp_path, "--redact")
    assert "ends in" not in redacted
    assert "Is 4 even" not in redacted
    assert "data:image" not in redacted
    assert "--redact" in redacted


def test_gates_set_the_exit_code(graded: Path, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "r.xml")
    assert report(graded, *out, "--fail-under", "pearson=.1", "--fail-over", "failed=.9")[0] == 0
    code, _, told = report(graded, *out, "--fail-under", "pearson.low=.99", "--fail-over", "failed=.9")
    assert code == 4
    assert "NOT MET: run: pearson.low is" in told
    assert len(Xml.fromstring((tmp_path / "r.xml").read_text()).findall(".//failure")) == 1
    code, _, told = report(graded, *out, "--fail-under", "pearsen=.1")
    assert code == 2
    assert "did you mean 'pearson'" in told
    code, _, told = report(graded, *out, "--fail-under", "pearson")
    assert code == 2
    assert "METRIC=VALUE" in told


def test_nothing_meets_a_gate_without_an_audit() -> None:
    assert not check(None, "run", "under", "pearson=0").met
    with pytest.raises(UserError, match="METRIC=VALUE"):
        check(None, "run", "under", "pearson=high")


@pytest.mark.parametrize("wrong", [["-o", "r.pdf"], ["--level", "2"], ["-o", "nowhere/r.html"]])
def test_usage(graded: Path, wrong: list[str]) -> None:
    assert report(graded, *wrong)[0] == 2


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    code, _, told = report(tmp_path, "-o", tmp_path / "r.html")
    assert code == 2
    assert "not a run folder" in told
    code, _, told = report(tmp_path / "gone", "-o", tmp_path / "r.html")
    assert code == 2
    assert "no such run folder" in told


def test_a_run_that_is_unfinished_or_of_another_version(graded: Path, tmp_path: Path) -> None:
    run = copied(graded, tmp_path)
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(lines[:30]) + lines[30][:40])  # torn where it was cut
    (run / "summary.json").unlink()
    lock = json.loads((run / "judge.lock.json").read_text())
    lock["versions"]["dikast"] = "9.9.9"
    (run / "judge.lock.json").write_text(json.dumps(lock))
    page = html(run, tmp_path)
    assert "unfinished: 30 of 60 questions" in page
    assert "summary.json is missing" in page
    assert "written by dikast 9.9.9" in page
    assert "Pearson correlation with gold is" in page


def test_an_empty_run(graded: Path, tmp_path: Path) -> None:
    run = copied(graded, tmp_path)
    (run / "verdicts.jsonl").write_bytes(b"")
    assert "verdicts.jsonl is empty, of which summary.json counts 60: restore it, or" in html(run, tmp_path)
    (run / "summary.json").unlink()
    page = html(run, tmp_path)
    assert "the run is empty" in page
    assert "no results for this judge yet" in page


def test_no_gold(tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "instruction": f"Is {k} even?", "response": "Yes."} for k in range(12)]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    run = tmp_path / "run"
    runs.dikast("grade", items, "--rubric", "helpfulness", "--judge", "mock:random", "--out", run)
    page = html(run, tmp_path)
    assert "no gold" in page
    assert "no audit" not in page
    assert "Least certain first" in page
    assert "there is no gold, so how often the verdicts are right is unknown" in page


def test_damaged_verdicts_are_told(graded: Path, tmp_path: Path) -> None:
    run = copied(graded, tmp_path)
    (run / "verdicts.jsonl").write_bytes(b'{"key": 1}\n' + (run / "verdicts.jsonl").read_bytes())
    page = html(run, tmp_path)
    assert "no audit:" in page
    assert "a damaged record" in page


def test_gold_that_cannot_be_used_is_an_error_not_a_page_without_gold(graded: Path, tmp_path: Path) -> None:
    items = [each["question"]["item"] for each in runs.lines(graded / "verdicts.jsonl")]
    runs.write_jsonl(tmp_path / "gold.jsonl", [{"item": item, "g": 100 * k} for k, item in enumerate(items)])
    asked = ("report", graded, "-o", tmp_path / "r.html", "--gold-file", tmp_path / "gold.jsonl")
    for more, told in (
        (("--gold", "g"), "scale"),
        (("--gold", "nowhere"), "nowhere"),
        (("--by", "nowhere"), "nowhere"),
    ):
        done = runs.dikast_here(*asked, *more) if "--gold" in more else runs.dikast_here(*asked[:4], *more)
        assert done.returncode == 2, (more, done.stderr)
        assert told in done.stderr
        assert not (tmp_path / "r.html").exists()


def test_moved_items_and_moved_pictures(tmp_path: Path) -> None:
    run = grade(tmp_path, "mock:oracle")
    (tmp_path / "noise.png").unlink()
    page = html(run, tmp_path)
    assert f"image not found: {tmp_path / 'noise.png'}" in page
    (tmp_path / "items.jsonl").rename(tmp_path / "moved.jsonl")
    page = html(run, tmp_path)
    assert "the items are no longer at" in page
    assert "Is 4 even?" not in page
    assert "Is 4 even?" in html(run, tmp_path, "--items", tmp_path / "moved.jsonl")


def test_columns_are_remembered(tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "prompt": f"Is {k} even?", "response": "Yes.", "gold": k % 5 + 1} for k in range(12)]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    run = tmp_path / "run"
    done = runs.dikast_here(
        "grade",
        items,
        "--judge",
        "mock:oracle",
        "--rubric",
        "helpfulness",
        "--out",
        run,
        "--map",
        "instruction=prompt",
    )
    assert done.returncode == 0, done.stderr
    assert "Is 4 even?" in html(run, tmp_path)


def html(run: Path, folder: Path, *more: object) -> str:
    code, _, told = report(run, "-o", folder / "report.html", *more)
    assert code == 0, told
    return (folder / "report.html").read_text()


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "run"))


def test_a_table_without_a_common_scale_has_no_largest_gaps(tmp_path: Path) -> None:
    """Scores of 10 to 50 beside gold of 1 to 5: all rows agree, and those of a 5 had the largest gap."""
    rows = [{"id": k, "score": 10 * (k % 5 + 1), "gold": k % 5 + 1, "response": f"r {k}"} for k in range(40)]
    path = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    asked = ("report", path, "--score", "score", "--gold", "gold", "-o", tmp_path / "r.json", "-o", tmp_path / "r.html")
    for scale, common in (("none", False), ("1-50", True)):
        done = runs.dikast_here(*asked, "--scale", scale, "--draws", 20)
        assert done.returncode == 0, done.stderr
        found = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]
        page = (tmp_path / "r.html").read_text()
        assert all((each["gap"] is not None) is common for each in found["queue"])
        assert ("Largest gaps first" in page) is common
        assert ("differ from gold or have no verdict" in page) is common
        assert ("In the order of the file" in page) is not common
        assert any(each.startswith("no gaps: scores and gold are not known") for each in found["missing"]) is not common


def test_a_run_on_several_scales_is_told_in_goodness(tmp_path: Path) -> None:
    # on each scale the judge says the worst and gold is the best, or both are the best
    kinds = [("1-5", 5, "1"), ("pass/fail", 1, "fail"), ("0-10", 10, "0")]
    items = []
    for k in range(30):
        scale, gold, _ = kinds[k % 3]
        rubric = {"name": "good", "criterion": "Good?", "scale": scale}
        items.append({"id": f"i{k}", "instruction": "?", "response": "x" * (k + 1), "rubric": rubric, "gold": gold})
    path, run = runs.write_jsonl(tmp_path / "items.jsonl", items), tmp_path / "run"
    assert runs.dikast_here("grade", path, "--judge", "mock:random,seed=1", "--out", run).returncode == 0
    code, _, told = report(run, "-o", tmp_path / "r.json", "-o", tmp_path / "r.html")
    assert code == 0, told
    found = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]
    by_item = {row["question"]["item"]: (row["question"], row["score"]) for row in runs.lines(run / "verdicts.jsonl")}
    for entry in found["queue"]:
        score, high = by_item[entry["item"]][1], kinds[int(entry["item"][1:]) % 3][1]
        low = 1 if high == 5 else 0
        assert entry["gap"] == pytest.approx(1 - (score - low) / (high - low))  # gold is the best
    assert found["labels"]["pass of pass/fail"]["gold"] == found["labels"]["5 of 1-5"]["gold"] == 10
    assert abs(found["length_slope"]["value"]) < 1  # of goodness
    page = (tmp_path / "r.html").read_text()
    assert "Mean error (bias): score minus gold, as goodness (0 to 1)" in page
    assert "by scale" in {name for name in found["audit"]["tables"]}


def test_labels_of_a_reversed_scale_are_counted_apart(tmp_path: Path) -> None:
    """5 of "how bad" is no 5 of "how good": they shared a bar, "5 of 1-5"."""
    items = []
    for k in range(12):
        rubric = {"name": f"r{k % 2}", "criterion": "How?", "scale": "1-5", "lower_is_better": k % 2 == 1}
        items.append({"id": f"i{k}", "instruction": "?", "response": "yes", "rubric": rubric, "gold": 5 - k % 2})
    path, run = runs.write_jsonl(tmp_path / "items.jsonl", items), tmp_path / "run"
    assert runs.dikast_here("grade", path, "--judge", "mock:oracle,r=1", "--out", run).returncode == 0
    assert report(run, "-o", tmp_path / "r.json", "-o", tmp_path / "r.html")[0] == 0
    labels = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]["labels"]
    six = {"judge": 6, "gold": 6}
    assert labels == {"5 of 1-5": six, "4 of 1-5, lower is better": six}
    assert "4 of 1-5, lower is better" in (tmp_path / "r.html").read_text()


def test_the_mean_error_is_known_where_gold_has_a_scale_of_its_own(tmp_path: Path) -> None:
    items = [{"id": f"i{k}", "instruction": "?", "response": "yes", "gold": k % 11} for k in range(44)]
    path, run = runs.write_jsonl(tmp_path / "items.jsonl", items), tmp_path / "run"
    judge = ("--judge", "mock:oracle,r=.7", "--rubric", "helpfulness", "--equate", "0-10", "--out", run)
    assert runs.dikast_here("grade", path, *judge).returncode == 0
    assert report(run, "-o", tmp_path / "r.md", "-o", tmp_path / "r.json")[0] == 0
    card = next(line for line in (tmp_path / "r.md").read_text().splitlines() if "Mean error" in line)
    audit = orjson.loads((tmp_path / "r.json").read_bytes())["runs"][0]["audit"]
    bias = next(row["value"] for row in audit["tables"]["agreement"]["rows"] if row["statistic"] == "bias")
    assert f"{bias['value']:+z.3f}" in card
    assert "unknown" not in card
    assert "discrimination undefined" not in card


def test_judges_of_a_panel_are_compared_with_the_first_of_them(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(20))
    judges = ("--judge", "mock:oracle,r=1", "--judge", "mock:oracle,r=.8")
    run, page = tmp_path / "panel", tmp_path / "page.html"
    done = runs.dikast_here("grade", items, *judges, "--rubric", "helpfulness", "--out", run, "--report", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text("utf-8")
    assert "2-mock-oracle-r--8 minus 1-mock-oracle-r-1" in text
    assert "minus panel" not in text
    board = text.partition("<figcaption>Judges</figcaption>")[2].partition("</table>")[0]
    assert all(f">{name}<" in board for name in ("panel of 2", "1-mock-oracle-r-1", "2-mock-oracle-r--8"))
    assert ">panel<" not in board  # the name of its folder
    assert "<title>Report: panel, 1-mock-oracle-r-1, 2-mock-oracle-r--8</title>" in text
    spent = [json.loads((each / "summary.json").read_text())["usage"]["tokens_in"] for each in run.iterdir()
             if each.is_dir()]  # fmt: skip
    costs = re.findall(r"<h3>Cost</h3>.*?([\d,]+) tokens in", text, re.S)
    assert [int(each.replace(",", "")) for each in costs] == [sum(spent), *sorted(spent)]


def test_a_replay_is_reported_as_the_run_that_it_is_of(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.of_systems(40, 1))
    judge = ("--judge", "mock:oracle,r=.9", "--rubric", "helpfulness", "--quiet")
    for words in (("compare", items, *judge, "--out", tmp_path / "run"),
                  ("replay", tmp_path / "run", "--out", tmp_path / "again")):  # fmt: skip
        assert runs.dikast_here(*words).returncode == 0
    told = []
    for name in ("run", "again"):
        done = runs.dikast_here("report", tmp_path / name, "-o", tmp_path / f"{name}.md", "--draws", 50)
        assert done.returncode == 0, done.stderr
        told.append((tmp_path / f"{name}.md").read_text().replace(f"Report: {name}", "").replace(f"### {name} ", ""))
    assert told[0] == told[1]
    assert "alpha wins" in told[0]


def test_a_folder_that_is_not_there_is_told_with_its_neighbour(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    command = ("grade", items, "--judge", "mock:constant", "--rubric", "helpfulness", "--out", tmp_path / "first")
    assert runs.dikast_here(*command).returncode == 0
    done = runs.dikast_here("export", tmp_path / "firts", tmp_path / "out.csv")
    assert done.returncode == 2
    assert f"there is no such folder; did you mean '{tmp_path / 'first'}'?" in done.stderr
