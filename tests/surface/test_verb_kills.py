"""Every verb that writes, killed at random moments: what was answered is kept, and it ends as an unbroken run.

`DIKAST_SOAK=full pytest -s -m "soak and slow" tests/surface/test_verb_kills.py` prints a line for each verb: how often
it was killed, how many answers were on the disk then, and how many of them were kept, lost or there twice at the end.
`dikast serve`, `annotate` (its server), `view` and `align` are killed in the tests of their rooms.
"""

import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from runs import Nursery, fill, lines, nursery, pairs, rows, small_disk, write_jsonl

ASKING = ("--judge", "mock:oracle,r=0.8,latency=0.002", "--quiet")
SHEET = {
    "criteria": [{"name": "x", "criterion": "Is it short?", "weight": 2}, {"name": "y", "criterion": "Is it kind?"}]
}
MOVING = re.compile(rb'"(seconds|crc|asked|answered_before|summary\.json)": ?("[0-9a-f]+"|[-\d.e]+|\[[^\]]*\])')
_MOMENT = re.compile(rb',\s*"last_verdict": ?"[^"]*"')  # not there where the run was killed after its last verdict
# append-only: what a kill leaves of them is never less after the next run
_KEPT = ("verdicts.jsonl", "[0-9]-*.jsonl")
# these tell of seconds, or hold secret words that are drawn anew
_UNLIKE = ("checksums.json", "curves.svg", "state.json", "README.md", "links.json", "labels.sqlite", "cost.json",
           "labels.sqlite-shm", "labels.sqlite-wal")  # fmt: skip
_MADE = ("corpus/absolute/items.jsonl", "judge/model/model.safetensors", "graded.jsonl")
_TRAINING = ("train", "new", "look", "release", "demo", "make-judge", "dpo", "merge")
_ANEW = ("doctor", "replay", "merge-runs")  # what these write of verdicts is made anew from files that are whole
_FILES = ("report", "convert", "export csv", "export parquet", "export inspect", "prefs", "verl", "card", "learn",
          "bench new", "bench report", "lab report", "rubric", "peek")  # verbs that write single files  # fmt: skip
_NAMES = (
    "grade", "samples", "sheet", "panel", "compare", "replay", "audit", "report", "world", "convert", "probe", "build",
    "train", "export csv", "export parquet", "export hf", "export inspect", "export lm-eval", "teach", "talk", "new",
    "look", "release", "demo", "rank", "bench", "prefs", "verl", "card", "learn", "annotate", "make-judge", "dpo",
    "merge", "merge-runs", "prove", "doctor", "lab", "lab report", "bench new", "bench report", "rubric", "peek",
)  # fmt: skip
_FULL = (
    "grade", "replay", "report", "world", "convert", "probe", "build", "train", "rank", "bench", "prefs", "verl",
    "card", "annotate", "make-judge", "merge-runs", "lab", "lab report", "bench new", "bench report",
)  # fmt: skip
_LAB = {
    "claim": "An oracle is better than a draw.", "source": "none", "seeds": [1], "arms": {"one": {}, "two": {"judge":
    "mock:random"}}, "base": {"judge": "mock:oracle,r=0.8", "held": {"own": {"items": "ruled.jsonl", "n": 20}}},
    "effects": {"gain": {"figure": "spearman", "held": "own", "arm": "one", "against": "two"}},
    "holds": {"gain": {"above": 0.1}}, "fails": {"gain": {"below": 0.05}},
}  # fmt: skip
_TIMES = re.compile(rb"[\d.,]+ \w+ of answering, [\d.,]+ \w+ each")  # in pages
_RATES = re.compile(rb'"((tokens|learnt|examples)_per_second|waiting)": ?[-\d.e]+')


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
        "rank": ("rank", folder / "several.jsonl", *ASKING, *rubric, "--schedule", "full", "--out", out),
        "bench": ("bench", "run", folder / "bench.yaml", "--judge", "mock:random,latency=0.002", "--quiet",
                  "--data", folder, "--out", out),
        "prefs": ("prefs", folder / "compared", "--format", "trl", "--out", out / "pairs.jsonl"),
        "verl": ("prefs", folder / "compared", "--format", "verl", "--out", out / "pairs.parquet"),
        "card": ("corpus", "card", folder / "items.jsonl", "--out", out / "card.md"),
        "learn": ("format", "learn", folder / "rows.jsonl", "--prompt", "prompt", "--accept-names", "--out",
                  out / "learnt.yaml"),
        "annotate": ("annotate", folder / "items.jsonl", *rubric, "--raters", 3, "--export", "--out", out),
        "make-judge": ("make-judge", folder / "judge.yaml", "--out", out),
        "dpo": ("train", "dpo", "--config", out / "dpo.yaml"),
        "merge": ("train", "merge", folder / "policy", folder / "policy", "--out", out),
        "merge-runs": ("merge-runs", folder / "run", folder / "later", "--out", out),
        "prove": ("prove", *ASKING, "--calls", 200, "--size", 48, "--out", out),
        "doctor": ("doctor", out, "--repair"),
        "lab": ("lab", "run", folder / "lab.yaml", "--quiet", "--out", out),
        "lab report": ("lab", "report", folder / "lab", "-o", out / "l.md", "-o", out / "l.html", "-o", out / "l.json"),
        "bench new": ("bench", "new", out / "new.yaml", "--hub", "org/mine", "--file", "items.jsonl", "--data", folder),
        "bench report": ("bench", "report", folder / "benched", "--draws", 300, "-o", out / "b.html", "-o",
                         out / "b.csv"),
        "rubric": ("rubric", "new", out / "rubric.yaml", "--criterion", "Is it polite?"),
        "peek": ("world", "peek", folder / "world", "--out", out / "peek"),
    }  # fmt: skip
    return graded[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("given")
    write_jsonl(made / "items.jsonl", rows(60))
    write_jsonl(made / "pairs.jsonl", pairs(30))
    write_jsonl(made / "sheets.jsonl", rows(30, rubric=SHEET))
    recipe = "{recipe: feedback, teacher: 'world:text', rubrics: 6, near: false, splits: {a: .7, b: .3}, parquet: 50}"
    (made / "recipe.yaml").write_text(recipe)
    write_jsonl(
        made / "several.jsonl",
        [{**each, "responses": [*each["responses"], "Odd."], "gold": [*each["gold"], 1]} for each in pairs(12)],
    )
    bench = {
        "name": "mine", "title": "Mine", "about": "rows", "state": "schema only", "kind": "scores", "licence": "-",
        "source": {"hub": "org/mine", "files": {"items.jsonl": ""}}, "official": {"metric": "mean score"},
        "fields": {"id": "id", "instruction": "instruction", "response": "response"}, "citation": "-",
    }  # fmt: skip
    (made / "bench.yaml").write_bytes(orjson.dumps(bench))
    words = ("oak", "elm", "ash", "fir", "yew", "bay", "box", "rue")
    prompts = [
        f"## Task\nEnd with [RESULT]\n## Question\n{words[k % 8]} {k * 7}\n## Answer\n{words[k * 3 % 8]} {k}\n## End"
        for k in range(24)
    ]
    write_jsonl(made / "rows.jsonl", [{"prompt": each} for each in prompts])
    return made


def modelled(folder: Path, out: Path, name: str) -> None:
    """What the verbs that learn from pairs or make a judge need, beside a tiny model."""
    pytest.importorskip("peft")
    import tiny_models

    if not (folder / "policy").exists():
        tiny_models.build("llama", folder / "policy")
        preferred = [{**each, "gold": {"preference": "b"}} for each in pairs(6)]
        write_jsonl(folder / "preferred.jsonl", preferred)
        (folder / "absolute.yaml").write_text("{recipe: feedback, teacher: 'world:text', rubrics: 2, instructions: 1}")
        train = {"init": "policy", "steps": 3, "batch_size": 2, "learning_rate": 1e-3, "device": "cpu",
                 "save_every": 1, "max_tokens": 2000}  # fmt: skip
        write_jsonl(folder / "examined.jsonl", rows(2, rubric="helpfulness"))
        told = {"corpus": [{"recipe": "absolute.yaml"}], "held": {"items": "examined.jsonl"}, "train": train}
        (folder / "judge.yaml").write_bytes(orjson.dumps(told))
    config = {
        "model": str(folder / "policy"), "data": [{"items": [str(folder / "preferred.jsonl")]}], "out": ".",
        "steps": 4, "batch_size": 2, "save_every": 1, "log_every": 1, "device": "cpu", "beta": 0.1,
    }  # fmt: skip
    for each in (out, Path(f"{out}-unbroken")) if name == "dpo" else ():
        each.mkdir()
        (each / "dpo.yaml").write_bytes(orjson.dumps(config))


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
def light() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture(scope="module")
def heavy() -> Iterator[Nursery]:
    with nursery("torch", "transformers", "dikast.training.sft", "dikast.training.dpo") as made:
        yield made


@pytest.fixture
def children(request: pytest.FixtureRequest, name: str) -> Nursery:
    """Processes that have imported what the verb needs, so that kills hit its work."""
    made: Nursery = request.getfixturevalue("heavy" if name in _TRAINING else "light")
    return made


def content(out: Path) -> dict[str, Any]:
    """The files of a folder, without what differs from run to run; lines of verdicts in the order of their keys."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name not in _UNLIKE:
            raw = _MOMENT.sub(b"", MOVING.sub(b"", path.read_bytes().replace(b"out-unbroken", b"out")))
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


@dataclass
class Kept:
    """What kills of a verb did: how many there were, and what became of the answers on the disk before them."""

    kills: int = 0
    answered: int = 0
    kept: int = 0
    doubled: int = 0

    def count(self, before: Sequence[bytes], ended: Sequence[bytes]) -> None:
        """Count the answers before the kills of one run, and those that it has at its end."""
        there = set(ended)
        self.answered += len(before)
        self.kept += sum(each in there for each in before)
        keys = [orjson.loads(each).get("key", each) for each in ended]
        self.doubled += len(keys) - len(set(keys))


def kill_often(
    children: Nursery, arguments: Sequence[object], out: Path, kills: int, rng: random.Random, same: Callable[[], None]
) -> Kept:
    """Kill the verb until that were `kills` kills, each time checking that nothing written is lost; then let it end.

    A run that ends before its kill has to be `same` as an unbroken one, and another begins in its place.
    """
    start, found, tries, anew = out.with_name("start"), Kept(), 0, arguments[0] in _ANEW
    if out.exists():
        shutil.copytree(out, start)
    began = time.monotonic()
    assert children.run(verb_elsewhere(arguments, out)) == 0
    longest, before = time.monotonic() - began, dict[str, bytes]()
    while True:
        tries += 1
        assert tries < 30 * kills + 30, "most runs ended before their kill"
        last = found.kills >= kills
        code = children.run(arguments) if last else children.kill_after(arguments, rng.uniform(0, longest))
        assert code in ((0,) if last else (0, -signal.SIGKILL)), code
        now = written(out)
        for path, raw in before.items():
            assert anew or now[path].startswith(raw), (found.kills, path)
        if code:
            found.kills, before = found.kills + 1, now
            continue
        ended = {**now, **{str(path): path.read_bytes() for path in out.glob("*.damaged.jsonl")}}  # moved aside
        found.count(*([line for raw in each.values() for line in raw.splitlines()] for each in (before, ended)))
        same()
        if last:
            return found
        longest *= 0.9
        shutil.rmtree(out)
        if start.exists():
            shutil.copytree(start, out)
        before = {}


def verb_elsewhere(arguments: Sequence[object], out: Path) -> list[object]:
    """The same command, writing to another folder."""
    other = str(out) + "-unbroken"
    Path(other).mkdir(exist_ok=True)
    return [str(each).replace(str(out), other) for each in arguments]


def prepare(name: str, folder: Path, out: Path, children: Nursery) -> None:
    """What the verb reads, and its output folder where it has to be there."""
    if name in _FILES:
        out.mkdir()
    if name in ("make-judge", "dpo", "merge"):
        modelled(folder, out, name)
    if name in ("new", "look", "release"):
        taught(folder, out, children, name)
    if name == "train":
        configured(folder, out)
    (folder / "lab.yaml").write_bytes(orjson.dumps(_LAB))
    write_jsonl(folder / "ruled.jsonl", rows(20, rubric="helpfulness"))
    write_jsonl(folder / "later.jsonl", [{**each, "id": f"later-{each['id']}"} for each in rows(60)])
    needed = {"prefs": "compare", "verl": "compare", "lab report": "lab", "bench report": "bench", "peek": "world"}
    place = {"compare": "compared", "bench": "benched"}
    other = needed.get(name, "grade")
    made = folder / ("run" if other == "grade" else place.get(other, other))
    if not made.exists():
        assert children.run(verb(other, folder, made)) == 0
    if name == "merge-runs" and not (folder / "later").exists():
        asking = ("grade", folder / "later.jsonl", *ASKING, "--rubric", "helpfulness", "--out", folder / "later")
        assert children.run(asking) == 0
    if not (folder / "run").exists():
        assert children.run(verb("grade", folder, folder / "run")) == 0
    if name == "doctor":  # a run with damaged lines
        for each in (out, Path(f"{out}-unbroken")):
            shutil.copytree(folder / "run", each)
            raw = (each / "verdicts.jsonl").read_bytes()
            (each / "verdicts.jsonl").write_bytes(raw.replace(b"i17", b"i71").replace(b"i30", b"i03"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("name", _FULL)
def test_a_full_disk_ends_every_verb_with_a_message(
    name: str, folder: Path, tmp_path: Path, disk: Path, children: Nursery
) -> None:
    out = disk / "out"
    prepare(name, folder, out, children)
    line = verb(name, folder, out)
    for leave in (0, 4_096):
        filling = fill(disk, leave)
        children.said()
        code, said = children.run(line), children.said()
        filling.unlink()
        assert code in (1, 2) or (leave and code == 0), (leave, code, said)
        assert code == 0 or re.search(r"o space|GB are free|cannot be written|is full", said), (leave, said)
        assert "Traceback" not in said, said
        if name == "bench new" and code == 0:  # it is there, and is checked when it is named again
            return
    assert children.run(line) == 0, children.said()
    assert not list(disk.rglob("*.part*"))


@pytest.mark.slow
@pytest.mark.soak(40)
@pytest.mark.parametrize("name", _NAMES)
def test_kills_of_every_verb_that_writes(
    name: str, folder: Path, tmp_path: Path, children: Nursery, tries: int
) -> None:
    out = tmp_path / "out"
    prepare(name, folder, out, children)
    before = content(folder)

    def same() -> None:
        unbroken = Path(str(out) + "-unbroken")
        if name == "demo":  # a model's probabilities depend on the batch a question is in, and so on the kill
            assert content(out).keys() == content(unbroken).keys()
            assert labels(out) == labels(unbroken)
        elif name != "audit":
            one, other = content(out), content(unbroken)
            if name == "make-judge":  # hashes in the others hold the name of `out`
                one, other = ({path: each[path] for path in _MADE} for each in (one, other))
            assert one == other
        assert not [path for path in tmp_path.rglob("*") if "part" in path.name]
        for path in out.rglob("verdicts.jsonl"):
            assert len({each["key"] for each in lines(path)}) == len(lines(path))
        for path in out.rglob("summary.json"):
            assert orjson.loads(path.read_bytes())

    kept = kill_often(children, verb(name, folder, out), out, tries, random.Random(7), same)
    assert content(folder) == before  # what was read is as it was
    kills, answered, there, doubled = astuple(kept)
    told = (
        f"{name}: {kills} kills, {answered} answered before, {there} kept, {answered - there} lost, {doubled} doubled"
    )
    print(told)  # noqa: T201  for the docs
    assert there == answered
    assert doubled == 0
