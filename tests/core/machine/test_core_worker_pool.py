"""Real workers, killed for real."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dikast.core.errors import DataError, RunError
from dikast.core.machine.worker_pool import worker_pool

SLOW_WORLD = [sys.executable, "-m", "dikast", "world", "make", "-n", "40000"]


def end_self(signal_number: int) -> None:
    os.kill(os.getpid(), signal_number)
    time.sleep(1)


def fill_memory(_: int) -> int:
    return len(bytearray(1 << 62))


def refuse(line: int) -> None:
    raise DataError("not a number", path="a.jsonl", line=line, field="x")


def threads(_: int) -> str:
    return os.environ["OMP_NUM_THREADS"]


@pytest.mark.parametrize(
    ("work", "told"),
    [(end_self, "a worker process ended before its work was done: .* fewer workers"), (fill_memory, "not enough mem")],
)
def test_a_worker_that_ends_early_is_told_with_a_cure(work: Callable[[int], None], told: str) -> None:
    with pytest.raises(RunError, match=told), worker_pool(2) as pool:
        list(pool.map(work, [signal.SIGKILL] * 3))


def test_workers_do_their_work_and_pass_mistakes_on() -> None:
    with worker_pool(2) as pool:
        assert list(pool.map(threads, range(3))) == ["1"] * 3
    with pytest.raises(DataError, match=r"a\.jsonl:3: field 'x': not a number") as raised, worker_pool(2) as pool:
        list(pool.map(refuse, [3, 4]))
    assert raised.value.line == 3


def test_shared_memory_that_is_full_is_told() -> None:
    """In a mount namespace with a /dev/shm of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # not where pytest may have its folders
        _with_full_shared_memory(folder)


def _with_full_shared_memory(folder: str) -> None:
    apart = ["unshare", "--mount", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a mount namespace cannot be made here")
    full = 'mount -t tmpfs -o size=64k none /dev/shm && ! head -c 99999 /dev/zero > /dev/shm/full && exec "$@"'
    make = [sys.executable, "-m", "dikast", "world", "make", "-n", "4", "--shard", "2", "--out", f"{folder}/w"]
    done = subprocess.run([*apart, "bash", "-c", full, "_", *make, "--workers", "2"], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "semaphores" in done.stderr
    assert "(No space left on device): make room in it, or give one worker" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run([*apart, "bash", "-c", full, "_", *make], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """Its worker processes (not the tracker that multiprocessing starts beside them), once there are two."""
    for _ in range(600):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        found = [int(each) for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
        if len(found) == 2:
            return found
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("no workers")


def begun(folder: Path) -> None:
    """Wait until workers have drawn something."""
    for _ in range(600):
        if len(list(folder.rglob("*.png"))) > 20:
            return
        time.sleep(0.05)
    raise AssertionError("nothing was drawn")


def are_gone(workers: list[int]) -> bool:
    for _ in range(200):
        if not any(Path(f"/proc/{each}").exists() for each in workers):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    command = [*SLOW_WORLD, "--workers", "2", "--out", str(tmp_path / "world")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        workers = workers_of(process)
        begun(tmp_path)
        if how is signal.SIGINT:  # as a terminal does
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        assert are_gone(workers)
        told = process.communicate()[1]
    assert "Traceback" not in told
    assert process.returncode == (130 if how is signal.SIGINT else -how)


def test_a_killed_worker_ends_the_verb_with_a_message(tmp_path: Path) -> None:
    command = [*SLOW_WORLD, "--workers", "2", "--out", str(tmp_path / "world")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        workers = workers_of(process)
        begun(tmp_path)
        os.kill(workers[0], signal.SIGKILL)
        told = process.communicate()[1]
    assert process.returncode == 1
    assert told.startswith("dikast: a worker process ended before its work was done")
    assert "Traceback" not in told
    assert are_gone(workers)
