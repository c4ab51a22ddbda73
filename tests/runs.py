"""Runs for tests: files of items, the command line in a process of its own, and processes that are killed."""

import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import IO, Any

import orjson
import pytest

_NURSERY = """
import json, os, sys
import numpy, dikast.engines.mock, dikast.judging.panel, dikast.judging.judge_file, dikast.surface.progress
from typer.main import get_command
from dikast.surface.cli import app, main
for name, lazy in get_command(app).verbs.items():
    lazy.build(name)
for name in sys.argv[1:]:
    __import__(name)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv = ["dikast", *json.loads(line)]
        code = 70
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
        finally:
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """The rows as a JSONL file."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def rows(n: int, **more: Any) -> list[dict[str, Any]]:
    """n items with one response and gold."""
    return [
        {"id": f"i{k}", "instruction": f"Is {k} even?", "response": f"{k} ends in {k % 10}.", "gold": k % 5 + 1, **more}
        for k in range(n)
    ]


def pairs(n: int) -> list[dict[str, Any]]:
    """n items with two responses and gold."""
    return [
        {"id": f"p{k}", "instruction": f"Is {k} even?", "responses": [f"It is {k}.", f"Look at {k % 10}."],
         "gold": [k % 5 + 1, k % 3 + 2]}
        for k in range(n)
    ]  # fmt: skip


def of_systems(n: int, apart: float, *, names: tuple[str, ...] = ("alpha", "beta")) -> list[dict[str, Any]]:
    """Pairs of responses of systems, each better than the next by `apart` levels of gold."""
    draw, rows = random.Random(4), list[dict[str, Any]]()
    for k in range(n):
        a, b = draw.sample(names, 2)
        gold = [max(1, min(5, round(draw.gauss(3 - apart * names.index(each), 1)))) for each in (a, b)]
        long = [" and so on" * draw.randint(1, 9) for _ in range(2)]
        texts = {"response_a": f"{a} {k}{long[0]}", "response_b": f"{b} {k}{long[1]}", "model_a": a, "model_b": b}
        rows.append({"id": f"p{k}", "instruction": f"Is {k} even?", **texts, "gold": gold})
    return rows


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file that is whole."""
    raw = path.read_bytes()
    assert not raw or raw.endswith(b"\n")
    return [orjson.loads(line) for line in raw.splitlines()]


def summary(run: Path) -> dict[str, Any]:
    """What `summary.json` holds."""
    value: dict[str, Any] = orjson.loads((run / "summary.json").read_bytes())
    return value


def environment(**more: str) -> dict[str, str]:
    """The environment of a child process that imports this tree."""
    import dikast

    source = str(Path(dikast.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def dikast(
    *arguments: object, given: str | bytes = "", cwd: Path | None = None, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own, `given` on its standard input, `more` in its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "dikast", *map(str, arguments)],
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        cwd=cwd,
        env=environment(**{"COLUMNS": "200", **more}),
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def dikast_here(
    *arguments: object, given: str | bytes = "", cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """As `dikast`, in this process: forty times as fast, and as true for all that is not about processes."""
    from dikast.surface.cli import main

    code: Any = 0
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    before = Path.cwd(), sys.argv, sys.stdin, os.environ.get("COLUMNS")
    raw = given.encode() if isinstance(given, str) else given
    try:
        os.chdir(cwd or before[0])
        os.environ["COLUMNS"] = "200"
        sys.argv, sys.stdin = ["dikast", *map(str, arguments)], io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw)))
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        os.chdir(before[0])
        sys.argv, sys.stdin = before[1:3]
        os.environ.pop("COLUMNS")
        if before[3] is not None:
            os.environ["COLUMNS"] = before[3]
    told = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess([], code, *told)


def files_in(folder: Path) -> dict[Path, bytes]:
    """The content of every file in a folder and those in it."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def flips(folder: Path, clean: Mapping[Path, bytes], n: int, seed: int) -> Iterator[Path]:
    """`n` single flipped bits, each in a clean folder: in a file drawn evenly, at a bit drawn evenly."""
    rng = random.Random(seed)
    files = sorted(path for path, data in clean.items() if data)
    for _ in range(n):
        for path in files_in(folder).keys() - clean.keys():
            path.unlink()
        for each in sorted(folder.rglob("*"), reverse=True):
            if each.is_dir() and not any(each.iterdir()):
                each.rmdir()
        for path, data in clean.items():
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        path = rng.choice(files)
        raw = bytearray(clean[path])
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        yield path


class Nursery:
    """Forks processes that have everything imported and run the command line at once, so that kills hit the work."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[bytes]) -> None:
        self._process, self._errors = process, errors

    def said(self) -> str:
        """What was written to standard error since the last call."""
        self._errors.seek(0)
        told = self._errors.read().decode()
        self._errors.truncate(0)
        return told

    def run(self, arguments: Sequence[object]) -> int:
        """Run to the end; the exit code."""
        self._start(arguments)
        return self._code()

    def kill_after(self, arguments: Sequence[object], seconds: float) -> int:
        """SIGKILL a run that many seconds after its start; its exit code, -9 when the kill came in time."""
        pid = self._start(arguments)
        time.sleep(seconds)
        return self._killed(pid)

    def kill_when(self, arguments: Sequence[object], log: Path, asks: int, seconds: float) -> int:
        """SIGKILL a run that many seconds after it has asked `asks` more questions than `log` held; as above."""
        due = _count(log) + asks
        pid = self._start(arguments)
        while _count(log) < due and _lives(pid):
            time.sleep(0.0005)
        time.sleep(seconds)
        return self._killed(pid)

    def _start(self, arguments: Sequence[object]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(each) for each in arguments]) + "\n")
        self._process.stdin.flush()
        return self._code()

    def _code(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def _killed(self, pid: int) -> int:
        with suppress(ProcessLookupError):  # it may have ended already
            os.kill(pid, signal.SIGKILL)
        return self._code()


def _count(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def nursery(*modules: str, **more: str) -> Iterator[Nursery]:
    """A `Nursery` that ends with the block; `modules` are imported too, with `more` in the environment."""
    errors = tempfile.TemporaryFile("ab+")  # noqa: SIM115 - closed below
    process = subprocess.Popen(
        [sys.executable, "-c", _NURSERY, *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment(COLUMNS="200", **more),
        text=True,
    )
    try:
        yield Nursery(process, errors)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
        errors.close()


@contextmanager
def small_disk(folder: Path, megabytes: int = 64) -> Iterator[Path]:
    """A file system of so many MB at `folder`; skips the test where none can be mounted."""
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    line = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    mounted = subprocess.run(line, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fill a file system up to `leave` bytes; returns the file that does."""
    path = disk / "filling"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(65536)):
            pass
    assert shutil.disk_usage(disk).free < 65536
    os.truncate(path, path.stat().st_size - leave)
    return path


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit on the size of files; what exceeds it fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
