"""Every verb that writes, killed at random moments: what was answered is kept, and it ends as an unbroken run."""

import random
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from runs import Nursery, lines, nursery, pairs, rows, write_jsonl

ASKING = ("--judge", "mock:oracle,r=0.8,latency=0.002", "--quiet")
SHEET = {
    "criteria": [{"name": "x", "criterion": "Is it short?", "weight": 2}, {"name": "y", "criterion": "Is it kind?"}]
}
MOVING = re.compile(rb'"(seconds|crc|asked|answered_before|summary\.json)": ?("[0-9a-f]+"|[-\d.e]+|\[[^\]]*\])')
# append-only: what a kill leaves of them is never less after the next run
_KEPT = ("verdicts.jsonl", "[0-9]-*.jsonl")
_UNLIKE = ("checksums.json", "curves.svg", "state.json", "README.md")  # these tell of seconds
_TIMES = re.compile(rb"[\d.,]+ \w+ of answering, [\d.,]+ \w+ each")  # in pages
_RATES = re.compile(rb'"(tokens|learnt|examples)_per_second": ?[-\d.e]+')


def verb(name: str, folder: Path, out: Path) -> Sequence[object]:
    """The command line of a verb that writes to `out`; everything it reads lies in `folder`."""
    rubric = ("--rubric", "helpfulness")
    graded: dict[str, Sequence[object]] = {
        "grade": ("grade", folder / "items.jsonl", *ASKING, *rubric, "--out", out),
        "samples": ("grade", folder / "items.jsonl", *ASKING, *rubric, "-n", 2, "--temperature", 1, "--out", out),
        "sheet": ("grade", folder / "sheets.jsonl", *ASKING, "--out", out),
        "panel": ("grade", folder / "items.jsonl", *ASKING, "--judge", "mock:random", *rubric, "--out", out),
        "compare": ("compare", folder / "pairs.jsonl", *ASKING, *rubric, "--out", out),
        "replay": ("replay", folder / "run", "--out", out),
        "audit": ("audit", folder / "run", "--draws", 2000),
        "report": ("report", folder / "run", "-o", out / "r.html", "-o", out / "r.json", "--draws", 300),
        "world": ("world", "make", "-n", 40, "--seed", 3, "--out", out),
        "probe": ("probe", *ASKING, "--items", folder / "items.jsonl", *rubric, "--calls", 150, "--out", out),
        "build": ("corpus", "build", folder / "recipe.yaml", "--quiet", "--out", out),
        "train": ("train", "sft", "--config", out / "train.yaml"),
        "convert": ("corpus", "convert", folder / "items.jsonl", out / "items.csv", "--to", "dikast"),
        "export csv": ("export", folder / "run", out / "rows.csv"),
        "export parquet": ("export", folder / "run", out / "rows.parquet"),
        "export hf": ("export", folder / "run", f"hf:{out}"),
        "export inspect": ("export", folder / "run", f"inspect:{out / 'log.json'}"),
        "export lm-eval": ("export", folder / "run", f"lm-eval:{out}"),
        "teach": ("world", "teach", "-n", 40, "--seed", 3, "--out", out),
        "talk": ("world", "teach", "-n", 40, "--seed", 3, "--talk", "--out", out),
        "new": ("train", "new", "--config", folder / "look.yaml", "--most", 40, "--out", out),
        "look": ("train", "look", "--config", out / "train.yaml"),
        "release": ("train", "release", folder / "looked" / "model", "--out", out),
        "demo": ("demo", "-n", 20, "--pairs", 4, "--out", out),
    }
    return graded[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("given")
    write_jsonl(made / "items.jsonl", rows(60))
    write_jsonl(made / "pairs.jsonl", pairs(30))
    write_jsonl(made / "sheets.jsonl", rows(30, rubric=SHEET))
    recipe = "{recipe: feedback, teacher: 'world:text', rubrics: 6, near: false, splits: {a: .7, b: .3}, parquet: 50}"
    (made / "recipe.yaml").write_text(recipe)
    return made


def configured(folder: Path, out: Path) -> None:
    """A training configuration in the folder that it trains into: eight steps of a tiny model with checkpoints."""
    pytest.importorskip("peft")
    import tiny_models

    if not (folder / "tiny").exists():
        tiny_models.build("llama", folder / "tiny")
    data = {"items": [str(folder / "items.jsonl")], "rubric": "helpfulness", "formats": ["score-only"]}
    config = {
        "init": str(folder / "tiny"), "data": [data], "out": ".", "steps": 8, "batch_size": 2, "save_every": 1,
        "keep": 2, "warmup": 0, "log_every": 1, "device": "cpu", "seed": 3,
    }  # fmt: skip
    for each in (out, Path(f"{out}-unbroken")):
        each.mkdir()
        (each / "train.yaml").write_bytes(orjson.dumps(config))


def taught(folder: Path, out: Path, children: Nursery, name: str) -> None:
    """What the verbs of a judge from scratch need: lessons, the judge laid out, and trained in a folder of its own."""
    pytest.importorskip("peft")
    lessons, untrained, trained = folder / "lessons", folder / "untrained", folder / "looked"
    config = {
        "init": str(untrained), "data": [{"talk": [str(lessons / "talk-*.jsonl")]}], "out": ".", "steps": 6,
        "batch_size": 4, "warmup": 0, "log_every": 1, "device": "cpu", "seed": 3,
    }  # fmt: skip
    for each in (folder, *((out, Path(f"{out}-unbroken")) if name == "look" else ())):
        each.mkdir(exist_ok=True)
        (each / ("look.yaml" if each == folder else "train.yaml")).write_bytes(orjson.dumps(config))
    if not lessons.exists():
        assert children.run(("world", "teach", "-n", 30, "--seed", 5, "--talk", "--out", lessons)) == 0
    if name != "new" and not untrained.exists():
        assert children.run(verb("new", folder, untrained)) == 0
    if name == "release" and not trained.exists():
        trained.mkdir()
        (trained / "train.yaml").write_bytes(orjson.dumps(config))
        assert children.run(verb("look", folder, trained)) == 0


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


def content(out: Path) -> dict[str, Any]:
    """The files of a folder, without what differs from run to run; lines of verdicts in the order of their keys."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name not in _UNLIKE:
            raw = MOVING.sub(b"", path.read_bytes().replace(b"out-unbroken", b"out"))
            if path.name == "train.jsonl":
                raw = _RATES.sub(b"", raw)
            if path.suffix == ".html":
                raw = _TIMES.sub(b"", raw)
            name = str(path.relative_to(out))
            found[name] = sorted(raw.splitlines()) if path.suffix in (".jsonl", ".json") else raw
    return found


def labels(out: Path) -> dict[str, Any]:
    """The label of every verdict of the runs in a folder, by its key."""
    return {each["key"]: each["label"] for path in out.rglob("verdicts.jsonl") for each in lines(path)}


def written(out: Path) -> dict[str, bytes]:
    """What was written of append-only files, up to the last line break, by their path."""
    found = {path: path.read_bytes() for name in _KEPT for path in out.rglob(name)}
    return {str(path): raw[: raw.rfind(b"\n") + 1] for path, raw in found.items()}


def kill_often(children: Nursery, arguments: Sequence[object], out: Path, kills: int, rng: random.Random) -> int:
    """Kill the verb `kills` times, each time checking that nothing written is lost; then run it to its end."""
    began = time.monotonic()
    assert children.run(verb_elsewhere(arguments, out)) == 0
    longest, killed, before = time.monotonic() - began, 0, dict[str, bytes]()
    for number in range(kills):
        killed += children.kill_after(arguments, rng.uniform(0, longest)) == -signal.SIGKILL
        now = written(out)
        for path, raw in before.items():
            assert now[path].startswith(raw), (number, path)
        before = now
    assert children.run(arguments) == 0
    for path, raw in before.items():
        assert written(out)[path].startswith(raw), path
    return killed


def verb_elsewhere(arguments: Sequence[object], out: Path) -> list[object]:
    """The same command, writing to another folder."""
    other = str(out) + "-unbroken"
    Path(other).mkdir(exist_ok=True)
    return [str(each).replace(str(out), other) for each in arguments]


@pytest.mark.slow
@pytest.mark.soak(40)
@pytest.mark.parametrize(
    "name",
    [
        "grade",
        "samples",
        "sheet",
        "panel",
        "compare",
        "replay",
        "audit",
        "report",
        "world",
        "convert",
        "probe",
        "build",
        "train",
        "export csv",
        "export parquet",
        "export hf",
        "export inspect",
        "export lm-eval",
        "teach",
        "talk",
        "new",
        "look",
        "release",
        "demo",
    ],
)
def test_kills_of_every_verb_that_writes(
    name: str, folder: Path, tmp_path: Path, children: Nursery, tries: int
) -> None:
    out = tmp_path / "out"
    if name in ("report", "convert", "export csv", "export parquet", "export inspect"):
        out.mkdir()
    if name in ("new", "look", "release"):
        taught(folder, out, children, name)
    if name == "train":
        configured(folder, out)
    if not (folder / "run").exists():
        assert children.run(verb("grade", folder, folder / "run")) == 0
    before = content(folder)
    if name == "replay":  # a replay goes to a folder without verdicts, so it is not resumed but made anew
        for number in range(tries):
            children.kill_after(verb(name, folder, tmp_path / str(number)), random.Random(number).uniform(0, 0.3))
        assert children.run(verb(name, folder, out)) == 0
        assert content(out)["verdicts.jsonl"] == before["run/verdicts.jsonl"]
    else:
        kill_often(children, verb(name, folder, out), out, tries, random.Random(7))
        if name != "audit":
            unbroken = Path(str(out) + "-unbroken")
            if name == "demo":  # a model's probabilities depend on the batch a question is in, and so on the kill
                assert content(out).keys() == content(unbroken).keys()
                assert labels(out) == labels(unbroken)
            else:
                assert content(out) == content(unbroken)
            assert not [path for path in out.parent.rglob("*") if "part" in path.name]
    assert content(folder) == before  # what was read is as it was
    for path in out.rglob("verdicts.jsonl"):
        assert len({each["key"] for each in lines(path)}) == len(lines(path))
    for path in out.rglob("summary.json"):
        assert orjson.loads(path.read_bytes())
