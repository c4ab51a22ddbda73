"""Run folders whose files hold what no run writes, without checksums: every verb that reads them ends with a message.

Each field of each record of each file is replaced by values of other types, removed, and joined by one that is unknown;
then several in a record by values drawn at random, lines by other JSON and bytes. A refusal names file, line and cure.
"""

import html
import json
import os
import random
import re
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dikast.core.errors import DikastError
from dikast.surface.cli import app
from dikast.surface.viewer.run_index import RunIndex
from dikast.surface.viewer.viewer_pages import ViewerPages
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
VERBS = ("audit", "export", "report", "doctor", "replay", "prefs", "merge-runs")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs without checksums, as versions before them wrote runs."""
    made = tmp_path_factory.mktemp("made")
    meta = {"meta": {"lang": "en", "system": "x"}}
    one, two = write_jsonl(made / "one.jsonl", rows(3, **meta)), write_jsonl(made / "two.jsonl", pairs(3))
    write_jsonl(made / "later.jsonl", [{**each, "id": f"later-{each['id']}"} for each in rows(2, **meta)])
    sheet = made / "sheet.json"
    sheet.write_bytes(orjson.dumps(SHEET))
    judge = ("--judge", "mock:random", "--judge", "mock:oracle")
    for name, line in {
        "graded": ("grade", one, *judge[:2], "--rubric", "helpfulness"),
        "sampled": ("grade", one, *judge[:2], "--rubric", sheet, "--samples", "2", "--temperature", "1"),
        "compared": ("compare", two, *judge[:2], "--rubric", "helpfulness"),
        "panel": ("grade", one, *judge, "--rubric", "helpfulness"),
        "later": ("grade", made / "later.jsonl", *judge[:2], "--rubric", "helpfulness"),
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
        "prefs": ["prefs", str(run), "--format", "trl", "--out", str(out / "pairs.jsonl")],
        "merge-runs": ["merge-runs", str(run), str(run.parent.parent / "later"), "--out", str(out / "again")],
    }[verb]


def ended(line: list[str]) -> tuple[int, str, str]:
    """The exit code of a command line, what it said, and where another exception than ours came from."""
    done = CliRunner().invoke(app, line)
    error = done.exception
    if error is None or isinstance(error, SystemExit):
        return done.exit_code, done.output, ""
    if isinstance(error, DikastError):
        return done.exit_code, f"{done.output}\n{error}", ""
    own = [each for each in traceback.extract_tb(error.__traceback__) if "dikast" in each.filename]
    return done.exit_code, done.output, f"{error!r} at {own[-1].filename}:{own[-1].lineno}"


@pytest.mark.parametrize("damage", [b"{", b'{"judge": 3}', GONE])
def test_a_damaged_lock_and_summary_are_told_with_file_and_cure(folders: Path, tmp_path: Path, damage: Any) -> None:
    def told(verb: str, run: str, name: str) -> tuple[int, str]:
        work = tmp_path / "copies" / f"{verb}-{name}"
        shutil.copytree(folders / run, work)
        (work / name).unlink()
        if damage is not GONE:
            (work / name).write_bytes(damage)
        code, said, traced = ended(verb_line(verb, work, tmp_path))
        assert not traced
        return code, " ".join(said.split())

    shutil.copytree(folders / "later", tmp_path / "later")
    lock, again = "judge.lock.json", "run the command that made it again"
    code, said = told("prefs", "compared", lock)
    assert code
    assert lock in said
    assert ("--items FILE" if damage is GONE else again) in said
    for verb in ("export", "report"):
        code, said = told(verb, "graded", lock)
        page = tmp_path / "report.html"
        said += page.read_text("utf-8") if verb == "report" else ""
        assert code == 0
        assert damage is GONE or (lock in said and again in said)
    code, said = told("merge-runs", "graded", "summary.json")
    assert code
    assert "summary.json" in said
    assert ("run its command again" if damage is GONE else again) in said


@pytest.mark.parametrize("verb", ["replay", "merge-runs", "export", "report"])
def test_a_lock_that_is_nested_without_end_is_told_as_damaged(folders: Path, tmp_path: Path, verb: str) -> None:
    """JSON of many levels can be read, and not written again."""
    shutil.copytree(folders / "later", tmp_path / "later")
    work = tmp_path / "work"
    shutil.copytree(folders / "graded", work)
    lock = work / "judge.lock.json"
    deep = orjson.loads(lock.read_bytes()) | {"versions": "deep"}
    lock.write_bytes(orjson.dumps(deep).replace(b'"deep"', b"[" * 300 + b"]" * 300))
    code, said, traced = ended(verb_line(verb, work, tmp_path))
    assert not traced
    told = " ".join(said.split()) + ((tmp_path / "report.html").read_text("utf-8") if verb == "report" else "")
    assert "judge.lock.json" in told
    assert "run the command that made it again" in told
    assert (code == 0) is (verb in ("export", "report"))


def test_a_damaged_file_that_a_server_keeps_is_told_with_a_cure_that_works(folders: Path, tmp_path: Path) -> None:
    for damage in (b"", b"{\n", b"\xff\n"):
        served = tmp_path / "copies" / f"served-{damage.hex()}"
        shutil.copytree(folders / "graded", served)
        for path in served.iterdir():
            if path.name not in ("verdicts.jsonl", "rubrics.jsonl"):
                path.unlink()
        (served / "rubrics.jsonl").write_bytes(damage)
        if not damage:
            (served / "rubrics.jsonl").unlink()
        for verb in ("export", "prefs", "replay", "audit", "report"):
            code, said, traced = ended(verb_line(verb, served, tmp_path))
            said = " ".join(said.split())
            assert not traced
            assert code == 0 or "restore a copy of it" in said or "`dikast grade ITEMS --out FOLDER`" in said, verb
            assert "run the command that made it again" not in said


@pytest.mark.slow
@pytest.mark.soak(20_000)
def test_no_record_gives_a_traceback(folders: Path, tmp_path: Path, tries: int) -> None:
    shutil.copytree(folders / "later", tmp_path / "later")
    every: dict[Path, list[tuple[int, tuple[Any, ...], Any]]] = {}
    for path, *case in cases(folders):
        every.setdefault(path, []).append((case[0], case[1], case[2]))
    drawn = random.Random(0)
    found: dict[str, tuple[Any, ...]] = {}
    for number in range(tries):
        path = drawn.choice(list(every))  # a lock has many fields, a line of totals few
        lines, at, to = drawn.choice(every[path])
        run = path.relative_to(folders).parts[0]
        work = tmp_path / "copies" / "work"
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
        if told := ended(verb_line(verb, subject, tmp_path))[2]:
            found.setdefault(told, (number, verb, str(path.relative_to(folders)), at, to))
        shutil.rmtree(work)
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
    assert not found, "\n".join(f"{told}: try {where}" for told, where in found.items())


DRAWN_VERBS = ("audit", "report", "export", "replay", "doctor", "repair", "resume", "view")
FORMS = ("rows.csv", "rows.jsonl", "rows.parquet", "hf:hf", "inspect:log.json", "lm-eval:lm", "parts:parts")
NAMES = ("key", "item", "label", "score", "status", "criterion", "a", "1", "x" * 300, "\u202e", "")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(width=64)
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.sampled_from(
        ("ok", "engine_error", "absolute", "tie", "1", "5", "../../x", "\0", "\ud800", "=1+1", "9" * 5000)
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner),
    max_leaves=8,
)
WHOLE = VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60).map(
    lambda raw: raw.replace(b"\n", b"")
)
CURE = re.compile(
    r"run the (same command|command that made it) again|doctor \S+ --repair|--items FILE|update Dikast|use --format"
)
GOLD_OFF_ITS_SCALE = "does not lie on the scale"  # a value that gold can have: told of all values, with its own cures


@st.composite
def hostile(draw: st.DrawFn, run: Path) -> tuple[Path, int, bytes]:
    """A file of a run, the number of a line (0: the whole file), and what stands there."""
    path = draw(st.sampled_from(sorted(path for path in run.rglob("*.json*") if path.read_bytes().strip())))
    raw = path.read_bytes()
    rows = raw.splitlines() if path.suffix == ".jsonl" else [raw]
    at = draw(st.integers(0, len(rows) - 1))
    number = at + 1 if path.suffix == ".jsonl" else 0
    if draw(st.integers(0, 4)) == 0:
        return path, number, draw(WHOLE)
    value = orjson.loads(rows[at])
    for _ in range(draw(st.integers(1, 3))):
        spots = list(places(value))[1:]
        if not spots:
            break
        spot, to = draw(st.sampled_from(spots)), draw(VALUES | st.just(GONE))
        value = plainly(value, spot, to)
    return path, number, json.dumps(value).encode()


def plainly(value: Any, at: tuple[Any, ...], to: Any) -> Any:
    """The value with another at that place; numbers and texts that only Python can write are allowed."""
    if not at:
        return to
    head, *rest = at
    if isinstance(value, dict):
        inner = plainly(value[head], tuple(rest), to)
        return {key: inner if key == head else each for key, each in value.items() if key != head or inner is not GONE}
    inner = plainly(value[head], tuple(rest), to)
    return [inner if i == head else each for i, each in enumerate(value) if i != head or inner is not GONE]


def line_of(verb: str, form: str, run: Path, made: Path, out: Path) -> list[str]:
    if verb == "export":
        kind, colon, name = form.rpartition(":")
        return ["export", str(run), f"{kind}{colon}{out / name}"]
    if verb == "report":
        return [
            "report",
            str(run),
            *(part for name in ("r.html", "r.json", "r.md") for part in ("-o", str(out / name))),
        ]
    if verb == "repair":
        return ["doctor", str(run), "--repair"]
    if verb == "resume":
        name = run.name
        judges = ("mock:random", "mock:oracle") if name == "panel" else ("mock:random",)
        sheet = name == "sampled"
        pairs = name == "compared"
        return [
            "compare" if pairs else "grade", str(made / ("two.jsonl" if pairs else "one.jsonl")),
            *(part for each in judges for part in ("--judge", each)),
            "--rubric", str(made / "sheet.json") if sheet else "helpfulness",
            *(("--samples", "2", "--temperature", "1") if sheet else ()), "--out", str(run), "-q",
        ]  # fmt: skip
    return verb_line(verb, run, out)


def viewed(root: Path, run: str) -> tuple[int, str, str]:
    """Every kind of page about a run, as `ended`; the code is 2 where it is shown as damaged, with the reason."""

    def page(render: Callable[[Mapping[str, str]], str], **query: str) -> str:
        try:
            return render(query)
        except DikastError as error:
            return pages.problem(str(error))

    try:
        index = RunIndex(root)
        pages = ViewerPages(index)
        index.look()
        for path in index.behind():
            index.read(path)
        page(pages.runs)
        page(pages.run, of=run)
        for (anchor,) in index.select("select anchor from row limit 3", ()):
            page(pages.item, run=run, at=anchor, beside="sound")
        with suppress(DikastError):
            pages.compare({}, [run, "sound"])
        why = " ".join(each.why for each in index.runs() if each.state == "damaged")
        return 2 * bool(why), html.unescape(why), ""
    except Exception as error:
        own = [each for each in traceback.extract_tb(error.__traceback__) if "dikast" in each.filename]
        return 70, "", f"{error!r} at {own[-1].filename}:{own[-1].lineno}"


@pytest.mark.slow
@pytest.mark.soak(5_000)
def test_whatever_a_record_holds_every_verb_ends_and_says_where_and_what_to_do(
    folders: Path, tmp_path: Path, tries: int
) -> None:
    @seed(0)
    @settings(
        max_examples=tries, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(RUNS))
        path, number, raw = data.draw(hostile(folders / run))
        verb, form = data.draw(st.sampled_from(DRAWN_VERBS)), data.draw(st.sampled_from(FORMS))
        work, out = tmp_path / "runs" / run, tmp_path / "out"
        for each in (work.parent, out):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(folders / run, work)
        out.mkdir()
        broken = work / path.relative_to(folders / run)
        lines = broken.read_bytes().splitlines()
        broken.write_bytes(b"\n".join([*lines[: number - 1], raw, *lines[number:]]) + b"\n" if number else raw)
        subject = next(work.glob("1-*")) if run == "panel" and verb in ("audit", "report", "replay") else work
        if verb == "view":
            shutil.copytree(folders / run, work.parent / "sound")
            code, said, fault = viewed(work.parent, run)
        else:
            code, said, fault = ended(line_of(verb, form, subject, folders, out))
        case = (verb, form, str(broken), number, raw, said[-1500:])
        assert not fault, (fault, *case)
        if verb in ("doctor", "repair") or code in (0, 3):
            return
        assert code in (1, 2), case
        where = f"{broken.name}:{number}" if number else broken.name
        if GOLD_OFF_ITS_SCALE not in said:
            assert where in said.replace("\n", ""), case
            assert CURE.search(" ".join(said.split())), case

    holds()


@contextmanager
def waiting(seconds: int) -> Iterator[None]:
    """Fail where what is inside takes longer: whoever opens a pipe that nobody writes to waits for ever."""

    def late(*_: object) -> None:
        raise AssertionError(f"still waiting after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


SPECIAL = ("verdicts.jsonl", "judge.lock.json", "summary.json", "rubrics.jsonl", "gold.jsonl", "keys.txt",
           "checksums.json", "item_notes.jsonl", "totals.jsonl", "preferences.jsonl")  # fmt: skip
READERS = ("audit", "export", "report", "doctor", "repair", "replay", "prefs", "merge-runs", "resume", "view")


@pytest.mark.soak(len(SPECIAL) * len(READERS))
def test_a_pipe_or_a_device_in_a_run_folder_is_told_and_not_read(folders: Path, tmp_path: Path, tries: int) -> None:
    shutil.copytree(folders / "later", tmp_path / "later")
    pairs = [(name, verb) for name in SPECIAL for verb in READERS]
    random.Random(1).shuffle(pairs)
    always = [("verdicts.jsonl", "audit"), ("judge.lock.json", "view"), ("checksums.json", "doctor")]
    for number, (name, verb) in enumerate((always + pairs)[: max(tries, len(always) + 3)]):
        run = tmp_path / "copies" / "graded"
        shutil.copytree(folders / "graded", run)
        (run / name).unlink(missing_ok=True)
        (tmp_path / "out").mkdir()
        if number % 2:
            (run / name).symlink_to("/dev/zero")
        else:
            os.mkfifo(run / name)
        with waiting(20):
            if verb == "view":
                index = RunIndex(run.parent)
                assert "damaged" in ViewerPages(index).runs({})
                assert "a pipe or a device" in index.runs()[0].why, name
            else:
                code, said, fault = ended(line_of(verb, "rows.csv", run, folders, tmp_path / "out"))
                assert not fault, (name, verb, fault)
                assert code in (1, 2), (name, verb, code, said)
                assert name in said.replace("\n", ""), (name, verb, said)
        shutil.rmtree(run.parent)
        shutil.rmtree(tmp_path / "out")
