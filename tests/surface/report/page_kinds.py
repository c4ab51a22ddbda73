"""One page of each kind that Dikast writes to a file, made by the command line from small runs."""

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import runs
from lab_experiments import written

_QUALITY = {"alpha": 4.2, "beta": 3.4, "gamma": 2.5}


def answers(n: int) -> list[dict[str, Any]]:
    """The answers of three systems to n questions, of different lengths, with gold."""
    draw = random.Random(6)
    return [
        {"id": f"{name}{k}", "instruction": f"Is {k} even?", "model": name,
         "response": f"{k} ends in {k % 10}. " * draw.randint(1, 6),
         "gold": max(1, min(5, round(draw.gauss(level, 1))))}
        for k in range(n) for name, level in _QUALITY.items()
    ]  # fmt: skip


def _done(*words: object) -> None:
    done = runs.dikast_here(*words)
    assert done.returncode in (0, 3), done.stderr


def _graded(folder: Path, *judges: str) -> Path:
    items = runs.write_jsonl(folder / "answers.jsonl", answers(40))
    each = [word for judge in judges for word in ("--judge", judge)]
    _done("grade", items, *each, "--rubric", "helpfulness", "--out", folder / "run", "-q")
    return folder / "run"


def _report(folder: Path, *sources: Path) -> Path:
    _done("report", *sources, "-o", folder / "page.html", "--draws", 100, "--queue", 4)
    return folder / "page.html"


def scores(folder: Path) -> Path:
    """Responses of three systems, with gold."""
    return _report(folder, _graded(folder, "mock:oracle,r=.9,failing=.02"))


def pairs(folder: Path) -> Path:
    """Pairs of three systems in both orders."""
    items = runs.write_jsonl(folder / "march.jsonl", runs.of_systems(80, 1, names=("alpha", "beta", "gamma")))
    _done("compare", items, "--judge", "mock:oracle,r=.9", "--rubric", "helpfulness", "--out", folder / "run", "-q")
    return _report(folder, folder / "run")


def several(folder: Path) -> Path:
    """Two judges of the same responses."""
    items = runs.write_jsonl(folder / "answers.jsonl", answers(40))
    for name, judge in (("first", "mock:oracle,r=.5"), ("second", "mock:oracle,r=.95,seed=4")):
        _done("grade", items, "--judge", judge, "--rubric", "helpfulness", "--out", folder / name, "-q")
    return _report(folder, folder / "first", folder / "second")


def panel(folder: Path) -> Path:
    """Three judges and their joint verdict."""
    judges = ("mock:oracle,r=.9", "mock:oracle,r=.7,seed=2", "mock:oracle,r=.5,seed=3")
    return _report(folder, _graded(folder, *judges))


def ranking(folder: Path) -> Path:
    """Four responses of each item, ordered by comparisons."""
    rows = [{"id": f"i{k}", "instruction": f"Say {k}.", "responses": [f"{k}, {j}." for j in range(4)],
             "gold": [(k + 2 * j) % 5 + 1 for j in range(4)]} for k in range(12)]  # fmt: skip
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    _done("rank", items, "--judge", "mock:oracle,r=.9", "--rubric", "helpfulness", "--schedule", "full", "--out",
          folder / "run", "-q")  # fmt: skip
    return _report(folder, folder / "run")


def somebodys_table(folder: Path) -> Path:
    """Last year's verdicts as CSV, with people's grades."""
    with (folder / "old.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["question", "answer", "model", "judge_score", "human_1", "human_2"])
        draw = random.Random(2)
        for row in answers(40):
            people = [max(1, min(5, row["gold"] + draw.choice((-1, 0, 0, 0, 1)))) for _ in range(3)]
            table.writerow([row["instruction"], row["response"], row["model"], *people])
    return _report(folder, folder / "old.csv")


def alignment(folder: Path) -> Path:
    """One round of an alignment, as its reports tell it."""

    def held(place: Path, gold: float, more: dict[str, Any]) -> dict[str, Any]:
        """A state of the alignment: its samples, what was measured of each, and its report."""
        (place / "held-out").mkdir(parents=True)
        rows = [{"id": f"p{k}", "instruction": f"What is {k}?", "response": f"It is {k}."} for k in range(24)]
        runs.write_jsonl(place / "held-out/samples.jsonl", rows)
        measures = [{"item": f"p{k}", "gold": gold, "reward": gold, "second": None} for k in range(24)]
        runs.write_jsonl(place / "held-out/measures.jsonl", measures)
        figure = {"value": gold, "low": gold - 0.08, "high": gold + 0.08, "n": 24}
        changed = {"value": gold - 0.4, "low": gold - 0.45, "high": gold - 0.35, "n": 24}
        change = {"change": changed} if more["round"] else {}
        told = {"held_out": {name: figure | change for name in ("reward", "gold", "words", "kl")}, **more}
        (place / "report.json").write_text(json.dumps(told))
        return told

    up = folder / "up"
    start = held(up / "start", 0.4, {"round": 0, "judge_is_policy": False})
    first = held(up / "round-1", 0.55, {"round": 1, "pairs": 80, "prompts": 100, "dropped": {"equal": 20},
                                        "calls": 500, "stopped": "", "judge_is_policy": False})  # fmt: skip
    (up / "align.json").write_text("{}")
    whole = {"policy": "small", "judge": "scout", "model": "up/round-1/model", "stopped": "", "rounds": [start, first]}
    (up / "report.json").write_text(json.dumps(whole))
    return _report(folder, up)


def bench(folder: Path) -> Path:
    """Scorecards of two judges on a bench of one's own."""
    rows = [{"pair_id": f"p{k}", "question": f"q{k}", "response_A": f"a {k}", "response_B": f"b {k}",
             "label": "A>B" if k % 3 else "B>A", "source": "uv"[k % 2], "response_model": "m"}
            for k in range(60)]  # fmt: skip
    runs.write_jsonl(folder / "rows.jsonl", rows)
    from importlib.resources import files

    catalogue = yaml.safe_load(files("dikast.benches").joinpath("catalogue/judgebench.yaml").read_text("utf-8"))
    kept = {name: catalogue[name] for name in ("kind", "fields", "gold", "groups", "official", "protocol")
            if name in catalogue}  # fmt: skip
    value = {"name": "mine", "title": "Mine", "about": "Pairs of a test", "state": "schema only", "licence": "-",
             "source": {"hub": "org/mine", "files": {"rows.jsonl": ""}}, "citation": "-", **kept}  # fmt: skip
    (folder / "mine.yaml").write_text(yaml.safe_dump(value))
    for judge in ("mock:oracle,r=.9", "mock:first-slot"):
        _done("bench", "run", folder / "mine.yaml", "--judge", judge, "--data", folder, "--out",
              folder / "benches" / judge[5:10], "-q")  # fmt: skip
    _done("report", folder / "benches/oracl", folder / "benches/first", "-o", folder / "page.html", "--draws", 100)
    return folder / "page.html"


def lab(folder: Path) -> Path:
    """What an experiment found."""
    _done("lab", "run", written(folder), "--out", folder / "lab", "-q")
    _done("lab", "report", folder / "lab", "-o", folder / "page.html")
    return folder / "page.html"


def proof(folder: Path) -> Path:
    """How a judge does on generated items whose gold is exact."""
    _done("prove", "--judge", "mock:oracle,r=.8", "--calls", 200, "--out", folder / "proof", "-q")
    return folder / "proof" / "prove.html"


def world(folder: Path) -> Path:
    """A contact sheet of a generated world: pictures, and responses under four rubrics each, with their gold."""
    made = folder / "a_world_whose_name_is_longer_than_a_phone_is_wide"
    _done("world", "make", "-n", 8, "--version", 4, "--size", 48, "--out", made)
    _done("world", "peek", made, "--out", folder / "sheet", "-n", 8)
    return folder / "sheet.html"


KINDS: dict[str, Callable[[Path], Path]] = {
    each.__name__: each
    for each in (scores, pairs, several, panel, ranking, somebodys_table, alignment, bench, lab, proof, world)
}
