"""A run folder that was changed behind its back: found at opening, told with file and line, repaired without a loss."""

import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import RunError
from dikast.core.runs.run_files import write_checked
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Request
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from runs import dikast, dikast_here, environment, files_in, flips, lines, pairs, rows, write_jsonl

CLOCK = """
import os, sys, time
now, offset = time.time, int(os.environ["OFFSET"])
time.time = lambda: now() + offset
print("clock", offset, file=sys.stderr)
"""
OLD = Path(__file__).parent / "before_checksums"


@pytest.mark.parametrize(
    ("verb", "items", "more"),
    [("grade", "items.jsonl", ("--samples", "2", "--temperature", "0.7")), ("compare", "pairs.jsonl", ())],
)
def test_folders_of_before_checksums_go_on_without_a_call(
    tmp_path: Path, verb: str, items: str, more: tuple[str, ...]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(OLD / f"{verb}d".replace("eed", "ed"), run)
    before = (run / "verdicts.jsonl").read_bytes()
    asking = (OLD / items, "--judge", "mock:oracle,r=.8", "--rubric", "helpfulness", *more)
    assert dikast_here("audit", run).returncode == 0
    done = dikast_here(verb, *asking, "--out", run, "--json")
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout)["asked"] == 0
    assert (run / "verdicts.jsonl").read_bytes() == before
    assert dikast_here("doctor", run).returncode == 0
    fresh = tmp_path / "fresh"
    assert dikast_here(verb, *asking, "--out", fresh).returncode == 0
    for old, new in zip(lines(run / "verdicts.jsonl"), lines(fresh / "verdicts.jsonl"), strict=True):
        del new["crc"], new["usage"], old["usage"], new["attempts"], old["attempts"]  # of these the seconds differ
        assert new == old


@pytest.fixture
def graded(tmp_path: Path) -> tuple[Path, Path]:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(6)), tmp_path / "run"
    grade(items, run)
    return items, run


def grade(items: Path, run: Path) -> int:
    done = dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run, "--json")
    assert done.returncode == 0, done.stderr
    return int(orjson.loads(done.stdout)["asked"])


def test_lines_written_again_by_another_program_are_not_asked_again(graded: tuple[Path, Path]) -> None:
    items, run = graded
    values = lines(run / "verdicts.jsonl")
    (run / "verdicts.jsonl").write_text("".join(json.dumps(value, sort_keys=True) + "\n" for value in values))
    assert grade(items, run) == 0
    assert dikast_here("doctor", run).returncode == 0


@pytest.mark.parametrize("name", [b'"engine"', b'"identity"'])
def test_a_lock_that_does_not_say_who_judged_is_written_again(graded: tuple[Path, Path], name: bytes) -> None:
    items, run = graded
    lock = run / "judge.lock.json"
    whole = lock.read_bytes()
    assert name in whole
    lock.write_bytes(whole.replace(name, name[:2] + b"o" + name[3:]))
    assert grade(items, run) == 0
    assert lock.read_bytes() == whole


def test_every_line_twice_counts_once(graded: tuple[Path, Path]) -> None:
    items, run = graded
    before = dikast_here("audit", run, "--json").stdout
    path = run / "verdicts.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert dikast_here("audit", run, "--json").stdout == before
    assert grade(items, run) == 0
    assert orjson.loads((run / "summary.json").read_bytes())["status"]["ok"] == 6


def test_a_changed_line_stops_every_verb_until_it_is_repaired(graded: tuple[Path, Path]) -> None:
    items, run = graded
    path = run / "verdicts.jsonl"
    whole = path.read_bytes()
    second = whole.split(b"\n")[1]
    path.write_bytes(whole.replace(second, second.replace(b"Verdict: ", b"Verdict; ")))
    for verb in (
        ("audit", run),
        ("replay", run),
        ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run),
    ):
        done = dikast_here(*verb)
        assert done.returncode == 2
        assert "verdicts.jsonl:2: a damaged record" in done.stderr
        assert "dikast doctor RUN --repair" in done.stderr
    told = dikast_here("doctor", run)
    assert told.returncode == 1
    assert "verdicts.jsonl:2" in told.stdout
    assert dikast_here("doctor", run, "--repair").returncode == 0
    assert grade(items, run) == 1
    kept = [value | {"attempts": 0, "usage": 0, "crc": 0} for value in lines(path)]
    due = [orjson.loads(line) | {"attempts": 0, "usage": 0, "crc": 0} for line in whole.splitlines()]
    assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, due))


def test_changed_gold_is_found_by_an_audit_and_written_anew_by_the_run(graded: tuple[Path, Path]) -> None:
    items, run = graded
    before = dikast_here("audit", run, "--json").stdout
    path = run / "gold.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"gold":1', b'"gold":3', 1))
    done = dikast_here("audit", run)
    assert done.returncode == 2
    assert "gold.jsonl: the file has changed since it was written" in done.stderr
    assert grade(items, run) == 0
    assert dikast_here("audit", run, "--json").stdout == before


def test_a_lock_of_a_newer_version_is_told(graded: tuple[Path, Path]) -> None:
    items, run = graded
    lock = orjson.loads((run / "judge.lock.json").read_bytes())
    (run / "judge.lock.json").write_bytes(orjson.dumps(lock | {"schema": 99}))
    (run / "checksums.json").unlink()
    for verb in ("replay", run), ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run):
        done = dikast_here(*verb)
        assert done.returncode == 2
        assert re.search(r"judge.lock.json(:\d+)?: field 'schema': the run folder has version 99", done.stderr)


def test_a_run_of_a_newer_dikast_with_the_same_folder_is_read_and_told_of(
    graded: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    items, run = graded
    lock = run / "judge.lock.json"
    own = version("dikast")
    write_checked(lock, lock.read_bytes().replace(f'"dikast": "{own}"'.encode(), b'"dikast": "99.1"'))
    listed = dikast_here("doctor", run)
    assert listed.returncode == 1
    assert re.search(
        r"judge.lock.json:\d+: field 'versions.dikast': Dikast 99.1 wrote this run.*\n.*update Dikast", listed.stdout
    )
    copy = Path(shutil.copytree(run, run.with_name("copy")))
    for verb in ("audit", copy), ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run):
        done = dikast_here(*verb)
        assert done.returncode == 0
        assert re.search(r"judge.lock.json:\d+: field 'versions.dikast': Dikast 99.1 .* update Dikast", caplog.text)
        caplog.clear()
    assert dikast_here("doctor", run).returncode == 0  # the run is this version's now


@pytest.mark.parametrize("name", ["gold.jsonl", "rubrics.jsonl", "keys.txt", "judge.lock.json", "summary.json"])
def test_a_damaged_file_is_told_before_a_run_writes_it_anew(
    graded: tuple[Path, Path], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    items, run = graded
    before = (run / name).read_bytes()
    (run / name).write_bytes(before[:-2] + b" \n")
    asking = ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run, "--json")
    done = (dikast if name == "gold.jsonl" else dikast_here)(*asking)
    assert done.returncode == 0
    assert orjson.loads(done.stdout)["asked"] == 0
    assert (
        f"{run / name}: the file has changed since it was written (checksum): it is written again"
        in done.stderr + caplog.text
    )
    assert dikast_here("doctor", run).returncode == 0
    assert name == "summary.json" or (run / name).read_bytes() == before


def test_checksums_that_are_gone_are_told_and_recorded_anew(
    graded: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    items, run = graded
    before = orjson.loads((run / "checksums.json").read_bytes())
    (run / "checksums.json").unlink()
    listed = dikast_here("doctor", run)
    assert listed.returncode == 1
    assert "checksums.json: the file is missing, although it was written" in listed.stdout
    assert "or `dikast doctor FOLDER --repair`" in listed.stdout
    copy = Path(shutil.copytree(run, run.with_name("copy")))
    for verb in ("audit", copy), ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run):
        done = dikast_here(*verb)
        assert done.returncode == 0
        assert "checksums.json: the file is missing, although it was written" in caplog.text
        caplog.clear()
    assert dikast_here("doctor", run).returncode == 0
    assert dikast_here("doctor", copy, "--repair").returncode == 0
    found = orjson.loads((copy / "checksums.json").read_bytes())
    assert {name: sums[0] for name, sums in found.items()} == {name: sums[0] for name, sums in before.items()}


def test_notes_that_are_damaged_are_moved_aside(graded: tuple[Path, Path]) -> None:
    items, run = graded
    write_checked(run / "notes.json", b'{"mock:oracle":["a note"]}\n')
    (run / "notes.json").write_bytes(b'{"mock:oracle":["a vote"]}\n')
    grade(items, run)
    assert (run / "notes.damaged.json").read_bytes() == b'{"mock:oracle":["a vote"]}\n'
    assert dikast_here("doctor", run).returncode == 0


class _Leaving:
    """An engine during whose third answer somebody does something to the folder."""

    name = "leaving"

    def __init__(self, do: Any) -> None:
        self._engine, self._do, self.asked = open_engine("mock:oracle"), do, 0
        self.reads_gold = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for completion in self._engine.stream(requests):
            self.asked += 1
            if self.asked == 3:
                self._do()
            yield completion


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_folder_that_disappears_ends_the_run_at_once(tmp_path: Path, how: str) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(400)), tmp_path / "run"

    def do() -> None:
        if how == "removed":
            shutil.rmtree(run)
        else:
            run.rename(tmp_path / "elsewhere")
        if how == "replaced":
            run.mkdir()
            (run / "verdicts.jsonl").touch()

    engine = _Leaving(do)
    with pytest.raises(RunError, match="removed or replaced while it was being written"):
        grade_file(Judge(engine, "helpfulness"), Source(str(items)), run)
    assert engine.asked < 100  # what was on its way already, not all 400
    if how == "moved":
        assert len(lines(tmp_path / "elsewhere" / "verdicts.jsonl")) == 2


def test_verdicts_do_not_depend_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(4))
    found, jumps = [], itertools.cycle((1e9, -1e9, 1e11))
    clocks = {"now": time.time, "past": lambda: -1e9, "future": lambda: 1e11, "jumps": lambda: next(jumps)}
    for name, clock in clocks.items():
        monkeypatch.setattr(time, "time", clock)
        grade(items, tmp_path / name)
        values = lines(tmp_path / name / "verdicts.jsonl")
        found.append([{k: v for k, v in value.items() if k not in ("usage", "attempts", "crc")} for value in values])
    assert all(each == found[0] for each in found)


def test_two_machines_whose_clocks_are_hours_apart_share_a_folder(tmp_path: Path) -> None:
    """One grades half of the items, the other, three hours behind, all: the run is that of one machine."""
    (tmp_path / "sitecustomize.py").write_text(CLOCK, "utf-8")
    half, items = (write_jsonl(tmp_path / f"{n}.jsonl", rows(n)) for n in (3, 6))
    run = tmp_path / "run"

    def machine(given: Path, out: Path, offset: int) -> Any:
        asking = ("grade", given, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", out, "--json")
        path = f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"
        done = dikast(*asking, PYTHONPATH=path, OFFSET=str(offset))
        assert done.returncode == 0, done.stderr
        assert f"clock {offset}" in done.stderr
        stamp = time.time() + offset
        for each in out.iterdir():  # what that machine's file system would say
            os.utime(each, (stamp, stamp))
        return orjson.loads(done.stdout)["asked"]

    asked = [machine(half, run, 5400), machine(items, run, -5400), machine(items, run, 5400)]
    assert asked == [3, 3, 0]
    grade(items, tmp_path / "one")
    assert audited(run) == audited(tmp_path / "one")
    assert dikast_here("doctor", run).returncode == 0


def test_links_to_files_elsewhere_are_not_written_through(graded: tuple[Path, Path], tmp_path: Path) -> None:
    items, run = graded
    asking = ("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out")
    for name in ("verdicts.jsonl", "summary.json", "summary.json.part", "judge.lock.json"):
        copy, outside = tmp_path / f"copy-{name}", tmp_path / f"outside-{name}"
        shutil.copytree(run, copy)
        (copy / name).unlink(missing_ok=True)
        outside.write_text("root:x:0:0:a line without its end", "utf-8")
        (copy / name).symlink_to(outside)
        done = dikast_here(*asking, copy)
        assert done.returncode == 2
        assert f"{copy / name}: is a link to a file outside of this folder" in done.stderr
        for verb in (("audit", copy), ("report", copy, "-o", tmp_path / "r.html", "--draws", 20), ("doctor", copy)):
            done = dikast_here(*verb)
            assert "root:x" not in done.stdout + done.stderr
        assert "root:x" not in (tmp_path / "r.html").read_text("utf-8")
        if name == "verdicts.jsonl":
            assert dikast_here("doctor", copy, "--repair").returncode == 2
        assert outside.read_text("utf-8") == "root:x:0:0:a line without its end"
    inside = tmp_path / "inside"
    shutil.copytree(run, inside)
    (inside / "verdicts.jsonl").rename(inside / "kept.jsonl")
    (inside / "verdicts.jsonl").symlink_to("kept.jsonl")
    assert dikast_here(*asking, inside).returncode == 0


def audited(run: Path) -> Any:
    done = dikast_here("audit", run, "--json")
    return done.returncode, orjson.loads(done.stdout)["tables"] if done.returncode == 0 else done.stderr


@pytest.mark.soak(1000)
@pytest.mark.parametrize("verb", ["grade", pytest.param("compare", marks=pytest.mark.slow)])
def test_flipped_bits_never_change_a_verdict_silently(tmp_path: Path, verb: str, tries: int) -> None:
    """Each is found by the audit, or harmless: the audit's tables are those of the clean run; and running the same
    command again (after `doctor --repair` where a line is damaged) gives the clean run's tables.
    """
    items = write_jsonl(tmp_path / "items.jsonl", rows(4) if verb == "grade" else pairs(3))
    run = tmp_path / "run"
    drawn = ("--samples", "2", "--temperature", "0.7")
    asking = (verb, items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", run, *drawn)
    assert dikast_here(*asking).returncode == 0
    clean, kept = audited(run), files_in(run)
    assert clean[0] == 0
    found = 0
    for number, path in enumerate(flips(run, kept, tries // 2, seed=11)):
        told = audited(run)
        assert told == clean or told[0] == 2, (number, path, told)
        found += told != clean
        sick = dikast_here("doctor", run).returncode
        assert sick or told == clean, (number, path)
        if sick:
            dikast_here("doctor", run, "--repair")
        done = dikast_here(*asking)
        assert done.returncode == 0, (number, path, done.stderr)
        assert audited(run) == clean, (number, path)
        assert dikast_here("doctor", run).returncode == 0, (number, path)
    assert found > tries // 6


def test_a_verdict_written_before_is_written_as_before(graded: tuple[Path, Path]) -> None:
    """The checksum is the last member; a reader that ignores unknown members reads what it always read."""
    _, run = graded
    for value in lines(run / "verdicts.jsonl"):
        assert list(value)[-1] == "crc"
        assert set(value) - {"crc"} <= set(Verdict.__dataclass_fields__)


def test_doctor_misses_verdicts_that_the_summary_counts(graded: tuple[Path, Path]) -> None:
    items, out = graded
    whole = (out / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    for kept in (len(whole) - 1, 0):
        (out / "verdicts.jsonl").write_bytes(b"".join(whole[:kept]))
        done = dikast("doctor", out)
        assert done.returncode == 1
        gone = len(whole) - kept
        told = f"{gone} verdict{'s' * (gone > 1)} that summary.json counts {'are' if gone > 1 else 'is'} not in it"
        assert told in done.stdout + done.stderr
    grade(items, out)
    assert dikast("doctor", out).returncode == 0


def test_doctor_needs_a_run(tmp_path: Path) -> None:
    for arguments in ((tmp_path,), (tmp_path / "none",), ("--repair",)):
        done = dikast_here("doctor", *arguments)
        assert done.returncode == 2, done.stderr


def test_doctor_counts_and_names_what_it_checked_in_a_folder_of_runs(graded: tuple[Path, Path]) -> None:
    _, run = graded
    both = run.with_name("both")
    for name in ("a", "b/c"):
        shutil.copytree(run, both / name)
    n = len(orjson.loads((run / "checksums.json").read_bytes()))
    done = dikast_here("doctor", both)
    assert done.stdout.splitlines() == [
        f"folder: 12 lines and {2 * n} files with a checksum, in 2 runs",
        f"  a/: run, 6 lines and {n} files", f"  b/c/: run, 6 lines and {n} files", "nothing to repair",
    ]  # fmt: skip
    parts = orjson.loads(dikast_here("doctor", both, "--json").stdout)["parts"]
    assert [(each["path"], each["kind"], each["lines"], each["files"]) for each in parts] == [
        ("a/", "run", 6, n), ("b/c/", "run", 6, n),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["gold.jsonl", "rubrics.jsonl", "sheets.jsonl", "summary.json", "keys.txt"])
def test_a_folder_in_the_place_of_a_file_is_told(graded: tuple[Path, Path], name: str) -> None:
    _, run = graded
    (run / name).unlink()
    (run / name).mkdir()
    done = dikast_here("doctor", run)
    assert done.returncode == 1
    assert f"{name}: this is not a file any more: remove it" in done.stdout
    assert dikast_here("report", run, "-o", run / "r.html", "--draws", 20).returncode == 0
