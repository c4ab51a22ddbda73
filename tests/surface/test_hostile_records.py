"""Run folders whose files hold what no run writes, without checksums: every verb that reads them ends with a message.

Each field of each record of each file is replaced by values of other types, removed, and joined by one that is unknown.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from dikast.core.errors import DikastError
from dikast.surface.cli import app
from runs import pairs, rows, write_jsonl

WRONG: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2**53, 2**63, 2**64 - 1, 1.5, 1e300, "", "x", "1", "\0", "../../etc", [], [1], ["a"], [[]],
    [None], {}, {"a": 1}, {"1": -1}, {"x": "y"}, [{}],
)  # fmt: skip
GONE = object()
SHEET = {
    "name": "two",
    "criteria": [
        {"name": name, "criterion": f"Is it {name}?", "levels": {str(n): f"{n} of 5" for n in range(1, 6)}}
        for name in ("short", "kind")
    ],
}
RUNS = ("graded", "sampled", "compared", "panel")
VERBS = ("audit", "export", "report", "doctor", "replay")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs without checksums, as versions before them wrote runs."""
    made = tmp_path_factory.mktemp("made")
    meta = {"meta": {"lang": "en", "system": "x"}}
    one, two = write_jsonl(made / "one.jsonl", rows(3, **meta)), write_jsonl(made / "two.jsonl", pairs(3))
    sheet = made / "sheet.json"
    sheet.write_bytes(orjson.dumps(SHEET))
    judge = ("--judge", "mock:random", "--judge", "mock:oracle")
    for name, line in {
        "graded": ("grade", one, *judge[:2], "--rubric", "helpfulness"),
        "sampled": ("grade", one, *judge[:2], "--rubric", sheet, "--samples", "2", "--temperature", "1"),
        "compared": ("compare", two, *judge[:2], "--rubric", "helpfulness"),
        "panel": ("grade", one, *judge, "--rubric", "helpfulness"),
    }.items():
        done = CliRunner().invoke(app, [*map(str, line), "--out", str(made / name), "-q"])
        assert done.exit_code == 0, done.output
    for path in made.rglob("checksums.json"):
        path.unlink()
    for path in made.rglob("verdicts.jsonl"):
        records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        path.write_bytes(b"".join(orjson.dumps({k: v for k, v in r.items() if k != "crc"}) + b"\n" for r in records))
    return made


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, its root included."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*at, key))


def changed(value: Any, at: tuple[Any, ...], to: Any) -> Any:
    if not at:
        return to
    copied = orjson.loads(orjson.dumps(value))
    holder = copied
    for key in at[:-1]:
        holder = holder[key]
    if to is GONE:
        del holder[at[-1]]
    else:
        holder[at[-1]] = to
    return copied


def cases(made: Path) -> Iterator[tuple[Path, int, tuple[Any, ...], Any]]:
    """Each file, its line (0: the whole file is one value), the place in it, and what stands there."""
    for run in RUNS:
        for path in sorted((made / run).rglob("*.json*")):
            lines = path.suffix == ".jsonl"
            raw = path.read_bytes()
            if not raw.strip():
                continue
            value = orjson.loads(raw.splitlines()[0] if lines else raw)
            for at in places(value):
                for to in (*WRONG, GONE) if at else WRONG:
                    yield path, int(lines), at, to


def verb_line(verb: str, run: Path, out: Path) -> list[str]:
    return {
        "audit": ["audit", str(run), "--draws", "20"],
        "export": ["export", str(run), str(out / "rows.csv")],
        "report": ["report", str(run), "-o", str(out / "report.html")],
        "doctor": ["doctor", str(run)],
        "replay": ["replay", str(run), "--out", str(out / "again")],
    }[verb]


def ends_with_a_message(line: list[str]) -> str:
    """ "" for a run of the command line that ends as it should, else what came of it."""
    done = CliRunner().invoke(app, line)
    if done.exception is None or isinstance(done.exception, SystemExit | DikastError):
        return ""
    import traceback

    trace = traceback.extract_tb(done.exc_info[2] if done.exc_info else None)
    own = [each for each in trace if "dikast" in each.filename]
    return f"{done.exception!r} at {own[-1].filename}:{own[-1].lineno}"


@pytest.mark.soak(20_000)
def test_no_record_gives_a_traceback(folders: Path, tmp_path: Path, tries: int) -> None:
    every: dict[Path, list[tuple[int, tuple[Any, ...], Any]]] = {}
    for path, *case in cases(folders):
        every.setdefault(path, []).append((case[0], case[1], case[2]))
    drawn = random.Random(0)
    found: dict[str, tuple[Any, ...]] = {}
    for number in range(tries):
        path = drawn.choice(list(every))  # a lock has many fields, a line of totals few
        lines, at, to = drawn.choice(every[path])
        run = path.relative_to(folders).parts[0]
        work = tmp_path / "work"
        shutil.copytree(folders / run, work)
        broken = work / path.relative_to(folders / run)
        raw = path.read_bytes().splitlines()
        if lines:
            raw[0] = orjson.dumps(changed(orjson.loads(raw[0]), at, to))
            broken.write_bytes(b"".join(line + b"\n" for line in raw))
        else:
            broken.write_bytes(orjson.dumps(changed(orjson.loads(path.read_bytes()), at, to)))
        verb = drawn.choice(VERBS)
        subject = work if run != "panel" or verb in ("export",) else next(work.glob("1-*"))
        if told := ends_with_a_message(verb_line(verb, subject, tmp_path)):
            found.setdefault(told, (number, verb, str(path.relative_to(folders)), at, to))
        shutil.rmtree(work)
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
    assert not found, "\n".join(f"{told}: try {where}" for told, where in found.items())
