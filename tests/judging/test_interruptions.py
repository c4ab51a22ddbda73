"""Torn lines, interrupts, two processes on one folder, and disks that are full or refuse."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dikast.core.errors import DataError, EngineError, RunError
from dikast.core.runs.current_verdicts import answered, current_records
from dikast.engines.base import Request
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.ledger import Ledger
from dikast.judging.run_plan import Source
from runs import dikast, environment, lines, rows, summary, write_jsonl
from scripted import Scripted

SLOW = "mock:oracle,latency=0.02"


def grade_here(items: Path, out: Path, engine: str = "mock:oracle") -> int:
    """Grade in this process; how many were asked."""
    asked: int = grade_file(Judge(engine, "helpfulness"), Source(str(items)), out)["asked"]
    return asked


def test_a_last_line_torn_anywhere_is_repaired(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(3)), tmp_path / "run"
    grade_here(items, run)
    path = run / "verdicts.jsonl"
    finished = path.read_bytes()
    start = finished[:-1].rfind(b"\n") + 1
    for cut in range(start, len(finished) - 1):
        path.write_bytes(finished[:cut])
        with Ledger(run) as ledger:
            assert ledger.repaired == cut - start
        assert path.read_bytes() == finished[:start]
        assert len(answered(run)) == 2
    for cut in (start, start + 1, (start + len(finished)) // 2, len(finished) - 2):
        path.write_bytes(finished[:cut])
        assert len(list(current_records(run))) == 2  # a reader sees what is whole, and fixes nothing
        assert path.stat().st_size == cut
        assert grade_here(items, run) == 1
        assert path.read_bytes() == finished
    for last in (finished[:-1], finished[:-1] + b"J"):  # the answer is whole, only its line break is not
        path.write_bytes(last)
        assert grade_here(items, run) == 0
        assert path.read_bytes() == finished


def test_a_torn_line_longer_than_a_block_is_repaired(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(2)), tmp_path / "run"
    grade_here(items, run)
    path = run / "verdicts.jsonl"
    finished = path.read_bytes()
    path.write_bytes(finished + b'{"key":"' + b"0" * (3 << 20))
    assert grade_here(items, run) == 0
    assert path.read_bytes() == finished


@pytest.mark.parametrize(
    "damage",
    [b"\n", b"not json\n", b"[]\n", b'{"key":"short","status":"ok"}\n', b'{"status":"ok"}\n'],
    ids=["empty", "words", "list", "short", "keyless"],
)
def test_a_damaged_line_in_the_middle_is_told_before_anything_is_asked(tmp_path: Path, damage: bytes) -> None:
    items, run, log = write_jsonl(tmp_path / "items.jsonl", rows(4)), tmp_path / "run", tmp_path / "log"
    grade_here(items, run)
    path = run / "verdicts.jsonl"
    found = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*found[:2], damage, *found[2:3]]))
    with pytest.raises(DataError, match=r"verdicts\.jsonl:3: a damaged record .*dikast doctor RUN --repair"):
        grade_here(items, run, f"mock:oracle,log={log}")
    assert not log.exists()
    path.write_bytes(b"".join(found[:3]))  # the folder is free again, also in this process
    assert grade_here(items, run) == 1


def test_control_c_keeps_everything(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(300)), tmp_path / "run"
    command = ["grade", items, "--rubric", "helpfulness", "--judge", SLOW, "--out", run]
    process = subprocess.Popen(
        [sys.executable, "-m", "dikast", *map(str, command)], env=environment(), stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # what runs tests may ignore it
    )  # fmt: skip
    wait_for(lambda: (run / "verdicts.jsonl").exists() and (run / "verdicts.jsonl").stat().st_size > 4000)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"every answer so far is kept" in told
    assert b"Traceback" not in told
    kept = (run / "verdicts.jsonl").read_bytes()
    count = len(lines(run / "verdicts.jsonl"))
    assert 0 < count < 300
    assert grade_here(items, run) == 300 - count
    assert (run / "verdicts.jsonl").read_bytes().startswith(kept)


def test_an_engine_that_dies_loses_nothing(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(9)), tmp_path / "run"

    def say(request: Request) -> str:
        if request.about["item"] == "i5":
            raise EngineError("the device is gone", kind="device")
        return "Verdict: 3"

    source = Source(str(items))
    with pytest.raises(EngineError, match="the device is gone"):
        grade_file(Judge(Scripted(say), "helpfulness"), source, run)
    assert len(lines(run / "verdicts.jsonl")) == 5
    whole = grade_file(Judge(Scripted(lambda _: "Verdict: 3"), "helpfulness"), source, run)
    assert (whole["asked"], whole["verdicts"]) == (4, 9)


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(5)), tmp_path / "run"
    command = ("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", run)
    with Ledger(run):
        done = dikast(*command)
        assert done.returncode == 1
        assert "another process is writing to this run; wait for it or choose another --out" in done.stderr
        assert dikast(*command, "--dry-run").returncode == 0  # looking is allowed
        with pytest.raises(RunError, match="another process"):
            Ledger(run)
    assert dikast(*command).returncode == 0


def test_a_dry_run_mends_and_writes_nothing(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(5)), tmp_path / "run"
    grade_here(items, run)
    path = run / "verdicts.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    before = {each.name: each.read_bytes() for each in run.iterdir()}
    plan = grade_file(Judge("mock:oracle", "helpfulness"), Source(str(items)), run, dry_run=True)["plan"]
    assert (plan["answered"], plan["missing"]) == (4, 1)
    assert {each.name: each.read_bytes() for each in run.iterdir()} == before
    assert set(tmp_path.iterdir()) == {items, run}


@pytest.mark.parametrize("limit", [300, 2_000, 20_000, 33 * 60 + 5])
def test_a_file_that_may_not_grow(tmp_path: Path, limit: int) -> None:
    """RLIMIT_FSIZE stops writes as a full disk does: in the middle of the plan, or of a verdict."""
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(60)), tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "dikast", "grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle",
         "--out", run, "--quiet"],
        env=environment(), capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
    )  # fmt: skip
    check_full_and_resume(done.returncode, done.stderr, items, run)
    if limit == 20_000:
        assert "Everything answered before is kept; make room and run the same command again" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, text=True, check=False
    ) if shutil.which("mount") else None  # fmt: skip
    if made is None or made.returncode != 0:
        pytest.skip(f"cannot mount a small tmpfs here: {made.stderr.strip() if made else 'no mount'}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(400)), small_disk / "run"
    command = ("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", run)
    done = dikast(*command)
    assert "no space is left" in done.stderr
    count = len(lines(run / "verdicts.jsonl"))
    assert count > 50
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    again = dikast(*command)  # still full: the same answer, nothing harmed
    assert again.returncode == 1
    assert len(lines(run / "verdicts.jsonl")) == count
    check_full_and_resume(done.returncode, done.stderr, items, moved)


def test_a_disk_that_is_full_while_the_plan_is_written(small_disk: Path, tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(20)), small_disk / "run"
    command = ("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", run)
    assert dikast(*command, "--limit", "5").returncode == 0
    before = {each.name: each.read_bytes() for each in run.iterdir()}
    with (small_disk / "other").open("wb", buffering=0) as other:
        while other.write(b"x" * 4096) == 4096 and shutil.disk_usage(small_disk).free:
            pass
    done = dikast(*command)
    assert done.returncode == 1
    assert "cannot write the plan (No space left on device)" in done.stderr
    assert {each.name: each.read_bytes() for each in run.iterdir()} == before
    (small_disk / "other").unlink()
    assert dikast(*command).returncode == 0
    assert summary(run)["asked"] == 15


@pytest.mark.parametrize("pipe", [False, True])
def test_a_device_or_a_pipe_in_the_place_of_the_verdicts(tmp_path: Path, *, pipe: bool) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(5)), tmp_path / "run"
    run.mkdir()
    if pipe:
        os.mkfifo(run / "verdicts.jsonl")
    else:
        (run / "verdicts.jsonl").symlink_to("/dev/full")
    done = dikast("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", run)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert (
        f"{run}/verdicts.jsonl: a pipe or a device in the place of a file, which is not read: remove it" in done.stderr
    )


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(5))
    for out in (items, items / "run", "/proc/run", "/dev/null/run"):
        done = dikast("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", out)
        assert done.returncode == (2 if out == items else 1), out
        told = "is a file: name a folder for the run" if out == items else "cannot write here"
        assert f"{out}: {told}" in done.stderr
        assert out == items or "choose another --out" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_unwritable_folder(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(5)), tmp_path / "run"
    run.mkdir(mode=0o555)
    done = dikast("grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle", "--out", run)
    assert done.returncode == 1
    assert f"{run}: cannot write here (Permission denied); choose another --out" in done.stderr


def check_full_and_resume(code: int, told: str, items: Path, run: Path) -> None:
    """The run ended with 1 and a message; what it wrote is whole, and another run goes on from there."""
    assert code == 1
    assert "Traceback" not in told
    assert told.splitlines()[-1].startswith("dikast: ")
    assert "kept" in told
    assert not list(run.glob("*.part"))
    path = run / "verdicts.jsonl"
    before = path.read_bytes()
    count = len(lines(path))
    n = len(lines(items))
    assert grade_here(items, run) == n - count
    assert path.read_bytes().startswith(before)
    assert summary(run)["verdicts"] == len({each["key"] for each in lines(path)}) == n


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(6000):
        if happened():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen within 30 s")
