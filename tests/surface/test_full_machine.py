"""Files that may not grow, too few open files: every verb ends with a message, loses nothing, and goes on when there is
room. Full disks are in `test_verb_kills`, which knows what each verb needs.
"""

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.surface import cli
from dikast.surface.report.queue import RowReader
from dikast.testing.faults import FaultServer
from runs import dikast_here, lines, rows, write_jsonl


def dikast(
    *arguments: object, files: int | None = None, held: int = 0, size: int | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: with at most so many open files, `held` of them from the start, or with
    files of at most so many bytes.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    limits = [(resource.RLIMIT_NOFILE, files), (resource.RLIMIT_FSIZE, size)]

    def limit() -> None:
        for which, most in limits:
            if most is not None:
                resource.setrlimit(which, (most, most))
        for _ in range(held):
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)

    return subprocess.run(
        [sys.executable, "-m", "dikast", *map(str, arguments)],
        env=environment, capture_output=True, text=True, cwd=cwd,
        preexec_fn=limit, close_fds=not held,
    )  # fmt: skip


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_trouble_of_the_machine_is_told_without_a_traceback(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise OSError(number, os.strerror(number), "out/a.json")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith(f"dikast: out/a.json: {os.strerror(number)}")
    assert told.endswith("what was written before is kept: fix this and run the same command again\n")


def test_a_run_that_is_removed_while_a_report_reads_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(30)), tmp_path / "run"
    made = dikast("grade", items, "--judge", "mock:random", "--rubric", "helpfulness", "--out", run, "-q")
    assert made.returncode == 0, made.stderr
    shown = RowReader.entries

    def removed(*given: Any, **more: Any) -> Any:
        shutil.rmtree(run)
        return shown(*given, **more)

    monkeypatch.setattr("dikast.core.runs.current_verdicts._SMALL", 0)  # of a small run everything is known by then
    monkeypatch.setattr(RowReader, "entries", removed)
    monkeypatch.setattr(sys, "argv", ["dikast", "report", str(run), "-o", str(tmp_path / "page.html")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert f"{run}/verdicts.jsonl: its folder was removed or moved meanwhile: put it back" in told
    assert not (tmp_path / "page.html").exists()


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "a.json")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(FileNotFoundError):
        cli.main()


@pytest.mark.parametrize(
    ("files", "n"),
    [
        (24, 60),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((14, 300), (24, 300), (40, 300), (64, 10_000))),
    ],
)
def test_too_few_open_files_lose_no_item(files: int, n: int, tmp_path: Path) -> None:
    """n pictures and 256 connections: what could not be opened is asked in the next run, and none is a bad item."""
    import PIL.Image

    for number in range(n):
        PIL.Image.new("RGB", (32, 32), (number % 256, 0, 0)).save(tmp_path / f"{number}.png")
    items = write_jsonl(tmp_path / "items.jsonl", [{**row, "image": f"{k}.png"} for k, row in enumerate(rows(n))])
    out = tmp_path / "run"
    with FaultServer() as server:
        spec = f"{server.spec},concurrency=256,backoff=0.01,retries=3"
        line = ("grade", items, "--judge", spec, "--rubric", "helpfulness", "--out", out, "--quiet")
        first = dikast(*line, files=files)
        assert "Traceback" not in first.stderr, first.stderr
        assert "damaged" not in first.stderr
        assert first.returncode in (0, 1, 3)
        if first.returncode == 1:
            assert "Too many open files" in first.stderr
        kept = lines(out / "verdicts.jsonl") if (out / "verdicts.jsonl").exists() else []
        assert {each["status"] for each in kept} <= {"ok", "engine_error"}
        last = dikast(*line)
    assert last.returncode == 0, last.stderr
    assert orjson.loads((out / "summary.json").read_bytes())["status"] == {"ok": n}
    assert lines(out / "verdicts.jsonl")[: len(kept)] == kept


@pytest.mark.slow
def test_ten_thousand_files_that_are_open_already_are_in_nobodys_way(tmp_path: Path) -> None:
    """Descriptors beyond 1,024 break programs that wait with select()."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 12_000:
        pytest.skip("this user may not open 12,000 files")
    items = write_jsonl(tmp_path / "items.jsonl", rows(300))
    with FaultServer() as server:
        spec = f"{server.spec},concurrency=64"
        line = ("grade", items, "--judge", spec, "--rubric", "helpfulness", "--out", tmp_path / "run", "--quiet")
        done = dikast(*line, files=12_000, held=10_000)
    assert done.returncode == 0, done.stderr
    assert orjson.loads((tmp_path / "run" / "summary.json").read_bytes())["status"] == {"ok": 300}


GRADE = ("--judge", "mock:oracle", "--rubric", "helpfulness", "--quiet")
SINGLE: dict[str, tuple[Sequence[str], Sequence[object]]] = {  # the files a verb writes, and its line
    "report": (
        ("r.html", "r.md", "r.json", "r.xml"),
        ("report", "run", "-o", "r.html", "-o", "r.md", "-o", "r.json", "-o", "r.xml", "--draws", 200),
    ),
    "learn": (
        ("own.yaml", "own.report.json"),
        ("format", "learn", "prompts.jsonl", "--prompt", "prompt", "--accept-names", "--out", "own.yaml"),
    ),
    "card": (("card.md", "card.svg"), ("corpus", "card", "items.jsonl", "-o", "card.md", "--exact")),
    "peek": (("sheet.html", "sheet.png"), ("world", "peek", "world", "--out", "sheet")),
}


@pytest.mark.parametrize("verb", SINGLE)
def test_a_single_file_that_cannot_be_written_whole_stays_as_it_was(verb: str, tmp_path: Path) -> None:
    names, line = SINGLE[verb]
    write_jsonl(tmp_path / "items.jsonl", rows(60))
    words, rng = ("ash", "bay", "fir", "oak", "yew", "elm", "box", "rue", "sage"), random.Random(2)
    texts = [[" ".join(rng.sample(words, rng.randint(2, 5))) for _ in "qa"] for _ in range(30)]
    prompts = [{"prompt": f"Mark it with [RESULT].\n\n# Question\n{q}\n\n# Answer\n{a}\n"} for q, a in texts]
    write_jsonl(tmp_path / "prompts.jsonl", prompts)
    assert dikast_here("grade", "items.jsonl", *GRADE, "--out", "run", cwd=tmp_path).returncode == 0
    assert dikast_here("world", "make", "-n", 4, "--out", "world", cwd=tmp_path).returncode == 0
    for name in names:
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o644)
    before = sorted(tmp_path.iterdir())
    full = dikast(*line, size=16, cwd=tmp_path)
    assert full.returncode == 1, (full.stdout, full.stderr)
    assert "cannot be written: File too large; what was there before is intact" in full.stderr
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * len(names)
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / names[0]).rename(tmp_path / "kept")
    (tmp_path / names[0]).symlink_to("kept")
    done = dikast(*line, cwd=tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (tmp_path / names[0]).is_symlink()  # followed, as everywhere a person names a file
    assert all((tmp_path / name).stat().st_size > 50 for name in names)
