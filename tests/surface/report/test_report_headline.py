"""The first screen and what every surface says of pairs: joint verdicts, no `nan`, nothing unknown that is known."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import runs

SUFFIXES = ("html", "md", "json", "xml")


def report(run: Path, out: Path, *more: object) -> dict[str, str]:
    """Every form of the report, by its suffix."""
    files = [out / f"report.{suffix}" for suffix in SUFFIXES]
    done = runs.dikast_here("report", run, *(each for file in files for each in ("-o", file)), "--draws", 50, *more)
    assert done.returncode == 0, done.stderr
    return {file.suffix[1:]: file.read_text() for file in files}


def compare(folder: Path, judge: str, items: list[dict[str, Any]], *more: object) -> Path:
    file = runs.write_jsonl(folder / "items.jsonl", items)
    done = runs.dikast_here(
        "compare", file, "--judge", judge, "--rubric", "helpfulness", "--out", folder / "run", *more
    )
    assert done.returncode in (0, 3), done.stderr
    return folder / "run"


def table(numbers: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = numbers["audit"]["tables"][name]["rows"]
    return rows


def test_a_judge_that_always_takes_the_first_slot(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:first-slot", runs.pairs(60))
    forms = report(run, tmp_path)
    numbers = orjson.loads(forms["json"])["runs"][0]
    said = {label: each["judge"] for label, each in numbers["labels"].items()}
    assert said == {"a": 0, "b": 0, "tie": 0, "disagree": 60}
    assert runs.summary(run)["preferences"]["choices"] == said
    assert runs.summary(run)["preferences"]["criteria"] == {"helpfulness": {"disagree": 60}}
    assert runs.summary(run)["criteria"] == {}
    assert runs.summary(run)["orders"] == {"helpfulness": {"a first": {"a": 60}, "b first": {"b": 60}}}
    sides = {row["side"]: row["share"]["value"] for row in table(numbers, "preferences")}
    assert sides == {"first wins": 0, "tie": 0, "disagree": 1, "second wins": 0, "first less second": 0}
    for form in ("html", "md", "xml", "json"):
        text = forms[form].replace("\\", "")
        assert "position decides: first slot both times in 100.0% [94.0%, 100.0%] of 60 pairs" in text, form
    assert "Joint verdicts of both orders" in forms["html"]
    assert "judge disagree: 100.0% (60)" in forms["html"]
    assert {entry["joint"] for entry in numbers["queue"]} == {"disagree"}
    assert {entry["gap"] for entry in numbers["queue"]} == {0.5}
    assert "disagree (a / b)" in forms["md"]
    gate = ("--fail-under", "accuracy (all)=.01")  # of the joint verdict, not of the order shown
    assert runs.dikast_here("report", run, "-o", tmp_path / "r.md", *gate, "--draws", 20).returncode == 4


def test_labels_of_the_report_are_the_joint_verdicts_of_the_run(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:oracle,r=.7,nats=2", runs.pairs(90))
    numbers = orjson.loads(report(run, tmp_path)["json"])["runs"][0]
    choices = runs.summary(run)["preferences"]["choices"]
    assert {label: each["judge"] for label, each in numbers["labels"].items()} == choices
    assert choices["disagree"] > 30
    gold = [{"a": row["gold"][0], "b": row["gold"][1]} for row in runs.pairs(90)]
    better = sum(each["a"] > each["b"] for each in gold), sum(each["a"] < each["b"] for each in gold)
    assert (numbers["labels"]["a"]["gold"], numbers["labels"]["b"]["gold"]) == better


def test_several_samples_of_a_pair_are_one_joint_verdict(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:oracle,r=.5", runs.pairs(20), "-n", 3, "--temperature", 1)
    numbers = orjson.loads(report(run, tmp_path)["json"])["runs"][0]
    choices = runs.summary(run)["preferences"]["choices"]
    assert sum(choices.values()) == 20
    assert {label: each["judge"] for label, each in numbers["labels"].items()} == choices


def test_a_position_bias_that_decides_little_is_told_by_its_share(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:oracle,r=.9,nats=.3", runs.pairs(60))
    sentence = orjson.loads(report(run, tmp_path)["json"])["runs"][0]["headline"]
    assert "position decides" not in sentence
    assert re.search(r"the orders disagree in [\d.]+% \[[\d.]+%, [\d.]+%\] of 60 pairs", sentence)


def test_one_order_says_that_position_cannot_be_told(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:first-slot", runs.pairs(20), "--one-order")
    forms = report(run, tmp_path)
    assert "position bias cannot be separated from a preference for a response" in forms["md"]
    assert "each pair was asked in one order only" in forms["html"]
    notes = orjson.loads(forms["json"])["runs"][0]["audit"]["tables"]["preferences"]["notes"]
    assert any(note.startswith("one order of each pair") for note in notes)
    assert runs.summary(run)["preferences"]["one_order"] is True


def test_what_is_of_one_order_says_so_in_its_name(tmp_path: Path) -> None:
    items = [{**row, "one": "x", "two": "y"} for row in runs.pairs(40)]
    run = compare(tmp_path, "mock:first-slot", items, "--one-order")
    gate = ("--fail-over", "accuracy (all)=1")
    forms = report(run, tmp_path, *gate)
    numbers = orjson.loads(forms["json"])
    page = numbers["runs"][0]
    for name in ("accuracy", "classes", "beside", "confusion", "preferences", "by criterion"):
        if name in page["audit"]["tables"]:
            assert page["audit"]["tables"][name]["title"].endswith(", in one order"), name
    told = [note for note in page["audit"]["tables"]["preferences"]["notes"] if "power .8" in note]
    assert "in this one order" in told[0]
    assert page["labels_of"] == "Verdicts in one order of each pair"
    assert page["labels_of"] in forms["html"]
    assert {entry["joint"] for entry in page["queue"]} == {""}
    assert "accuracy in one order with gold is" in page["headline"]
    assert numbers["gates"][0]["full"] == "accuracy/accuracy (all)/as shown, in one order"
    assert "a (one order)" in forms["html"]
    assert runs.dikast_here(
        "report", run, "-o", tmp_path / "r.xml", "--fail-under", "accuracy (all)=1", "--draws", 20
    ).returncode == 4  # fmt: skip
    assert "accuracy (all) (accuracy/accuracy (all)/as shown, in one order) is" in (tmp_path / "r.xml").read_text()
    board = runs.dikast_here("audit", run, "--first", "=x", "--second", "=y", "--draws", 20, "--json")
    tables = orjson.loads(board.stdout)["tables"]
    for name in ("ranking", "players", "ranking checks"):
        assert tables[name]["title"].endswith(", in one order"), name
    assert any(note.startswith("one order of each pair") for note in tables["ranking"]["notes"])


def test_calibration_of_pairs_is_known(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:oracle,r=.7,nats=1", runs.pairs(60))
    forms = report(run, tmp_path)
    numbers = orjson.loads(forms["json"])["runs"][0]
    rows = {row["probabilities"]: row for row in table(numbers, "calibration")}
    assert set(rows) == {"as read", "temperature"}  # choices have no order: nothing ordinal
    assert "MAE of expected" not in rows["as read"]
    split = sum(each["judge"] for label, each in numbers["labels"].items() if label == "disagree")
    assert 0 < split < 60
    assert rows["as read"]["ECE"]["n"] == 60 - split
    orders: dict[str, list[dict[str, float]]] = {}
    labels: dict[str, set[str]] = {}
    for verdict in runs.lines(run / "verdicts.jsonl"):
        orders.setdefault(verdict["question"]["item"], []).append(verdict["distribution"])
        labels.setdefault(verdict["question"]["item"], set()).add(verdict["label"])
    mean = {item: {k: (one[k] + two[k]) / 2 for k in one} for item, (one, two) in orders.items()}
    agreed = {item: min(said) for item, said in labels.items() if len(said) == 1}  # a disagreement is no label
    sure = np.mean([mean[item][label] for item, label in agreed.items()])
    assert rows["as read"]["confidence"]["value"] == pytest.approx(sure)
    assert rows["as read"]["Brier"]["n"] == 60
    card = next(line for line in forms["md"].splitlines() if line.startswith("| Calibration"))
    assert f"{rows['as read']['ECE']['value']:.3f}" in card
    assert "unknown" not in card


def test_calibration_without_enough_rows_is_still_told(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(12))
    runs.dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", tmp_path / "run")
    numbers = orjson.loads(report(tmp_path / "run", tmp_path)["json"])["runs"][0]
    calibration = numbers["audit"]["tables"]["calibration"]
    assert [row["probabilities"] for row in calibration["rows"]] == ["as read"]
    assert any("recalibration takes 50" in note for note in calibration["notes"])


def test_the_better_of_two_bad_judges_is_not_green(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "pairs.jsonl", runs.pairs(60))
    for judge in ("random", "first-slot"):
        done = runs.dikast_here(
            "compare", items, "--judge", f"mock:{judge}", "--rubric", "helpfulness", "--out", tmp_path / judge
        )
        assert done.returncode == 0, done.stderr
    html = report(tmp_path / "random", tmp_path, tmp_path / "first-slot")["html"]
    told = html[html.index("random agrees better with gold than first-slot: ") :]
    assert "By itself, random: Do not use: " in told


def test_two_judges_have_their_names_and_every_agreement_its_interval(tmp_path: Path) -> None:
    names = {"mock:oracle,r=.9": "first", "mock:oracle,r=.2": "second", "mock:first-slot": "third"}
    for kind, verb, judges in (("rows", "grade", list(names)[:2]), ("pairs", "compare", list(names)[::2])):
        items = runs.write_jsonl(tmp_path / f"{kind}.jsonl", getattr(runs, kind)(60))
        folders = [tmp_path / f"{verb}-{names[judge]}" for judge in judges]
        for judge, folder in zip(judges, folders, strict=True):
            done = runs.dikast_here(verb, items, "--judge", judge, "--rubric", "helpfulness", "--out", folder)
            assert done.returncode == 0, done.stderr
        told = [runs.summary(folder)["judge"] for folder in folders]
        forms = report(folders[0], tmp_path, folders[1])
        rival = orjson.loads(forms["json"])["runs"][1]["audit"]["tables"]["rival"]
        assert list(rival["rows"][0]) == ["statistic", told[1], told[0], "difference"]
        assert any(f"only {told[1]} " in note and f"only {told[0]} " in note for note in rival["notes"])
        better, worse = (folder.name for folder in folders)
        assert f"{better} agrees better with gold than {worse}: " in forms["html"]
        assert "agrees better with gold than" in forms["md"]
        beside = next(line for line in forms["md"].splitlines() if line.startswith("| Agreement with gold"))
        assert len(re.findall(r"\\\[[-\d.]+, [-\d.]+\\\]", beside)) >= 2
        if verb == "compare":  # the second run is joint too: its disagreements earn nothing
            row = {each["statistic"]: each for each in rival["rows"]}["accuracy (all)"]
            assert row[told[1]]["value"] == 0


def test_the_same_judge_twice_is_told_apart_by_folder(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(20))
    for seed in (0, 1):
        runs.dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--seed", seed, "--out",
                         tmp_path / f"seed-{seed}")  # fmt: skip
    numbers = orjson.loads(report(tmp_path / "seed-0", tmp_path, tmp_path / "seed-1")["json"])
    columns = list(numbers["runs"][1]["audit"]["tables"]["rival"]["rows"][0])
    judge = runs.summary(tmp_path / "seed-0")["judge"]
    assert columns[1:3] == [f"{judge} (seed-1)", f"{judge} (seed-0)"]


def degenerate() -> dict[str, tuple[str, str, list[dict[str, Any]]]]:
    """Runs about which hardly anything can be said: name -> verb, judge, items."""
    without = [{name: value for name, value in row.items() if name != "gold"} for row in runs.rows(6)]
    return {
        "all failed": ("grade", "mock:oracle,failing=1", runs.rows(6)),
        "one": ("grade", "mock:oracle", runs.rows(1)),
        "constant": ("grade", "mock:constant,label=3", runs.rows(12)),
        "one gold": ("grade", "mock:random", runs.rows(12, gold=3)),
        "no gold": ("grade", "mock:random", without),
        "all pairs failed": ("compare", "mock:oracle,failing=1", runs.pairs(6)),
        "one pair": ("compare", "mock:oracle", runs.pairs(1)),
        "always tie": ("compare", "mock:constant,label=tie", runs.pairs(12)),
    }


@pytest.mark.parametrize("name", degenerate())
def test_no_surface_says_nan(name: str, tmp_path: Path) -> None:
    verb, judge, items = degenerate()[name]
    file = runs.write_jsonl(tmp_path / "items.jsonl", items)
    done = runs.dikast_here(verb, file, "--judge", judge, "--rubric", "helpfulness", "--out", tmp_path / "run")
    assert done.returncode in (0, 3), done.stderr
    texts = {"summary": done.stdout, **report(tmp_path / "run", tmp_path, "--fail-under", "failed=0")}
    audited = runs.dikast_here("audit", tmp_path / "run", "--draws", 50)
    texts |= {"audit": audited.stdout, "audit --json": json.dumps(runs.summary(tmp_path / "run"))}
    for surface, text in texts.items():
        text = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
        found = re.search(r"[^\n]{0,60}(?<![\w-])[+-]?(nan|NaN|inf)(?!\w)[^\n]{0,60}", text)
        assert found is None, (surface, found)


def test_a_share_of_no_verdicts_is_undefined_and_not_unknown(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:oracle,failing=1", runs.pairs(4), "--max-failures", "100%")
    forms = report(run, tmp_path)
    card = next(line for line in forms["md"].splitlines() if line.startswith("| Marker"))
    assert "unknown" not in card
    assert "undefined" in card
    assert "there is no verdict" in card
    assert runs.summary(run)["preferences"]["choices"] == {"a": 0, "b": 0, "tie": 0, "disagree": 0}
    again = runs.dikast_here(
        "compare", tmp_path / "items.jsonl", "--judge", "mock:oracle,failing=1", "--rubric", "helpfulness",
        "--out", run, "--max-failures", "100%",
    )  # fmt: skip
    assert "pairs       4: none has a verdict" in again.stdout
    assert "4 got no verdict" in again.stdout


def test_what_has_no_interval_says_why(tmp_path: Path) -> None:
    run = compare(tmp_path, "mock:first-slot", runs.pairs(6))
    forms = report(run, tmp_path)
    assert "every pair alike" in forms["html"]
    one = compare(tmp_path, "mock:first-slot", runs.pairs(1))
    assert "The only pair got a verdict" in report(one, tmp_path)["md"]
