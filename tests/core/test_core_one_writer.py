"""Output folders have one writer; a killed one leaves no lock; what the disk refuses is told."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dikast
from dikast.core.errors import RunError, UserError
from dikast.core.output_folder import one_writer, refuse_links
from dikast.core.records import write_file
from dikast.core.runs.run_files import write_whole
from dikast.corpus.pipeline.journal import Journal
from dikast.judging.ledger import Ledger

HOLD = """
import sys, time
from pathlib import Path
from dikast.core.output_folder import one_writer, refuse_links
with one_writer(Path(sys.argv[1]), "building"):
    (Path(sys.argv[1]) / "kept").write_text("x")
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_until_the_first_is_gone_even_by_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(RunError, match="another process is building here; wait for it"),
            one_writer(folder, "building"),
        ):
            pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with one_writer(folder, "building"):
        assert (folder / "kept").read_text() == "x"


def test_a_folder_that_stays_empty_goes_and_one_with_files_stays(tmp_path: Path) -> None:
    with one_writer(tmp_path / "a", "building"):
        pass
    assert not (tmp_path / "a").exists()
    with pytest.raises(UserError, match="b is wrong"), one_writer(tmp_path / "a", "building"):
        raise UserError("b is wrong")
    assert not (tmp_path / "a").exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    for path in (tmp_path / "out", tmp_path / "out" / "more"):
        with pytest.raises(UserError, match="is a file, or lies in one: name a folder"), one_writer(path, "building"):
            pass


def test_what_the_disk_refuses_names_the_file_and_the_cure(tmp_path: Path) -> None:
    told = pytest.raises(
        RunError, match=r"items.jsonl: cannot be read or written \(No space left on device\); what was"
    )
    with told, one_writer(tmp_path / "out", "building"):
        raise OSError(28, "No space left on device", str(tmp_path / "out" / "items.jsonl"))


def test_a_folder_that_is_gone_and_the_part_of_a_next_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=r"a.json cannot be written: No such file or directory; what was .* is kept"):
        write_whole(tmp_path / "gone" / "a.json", b"1")
    real, part = os.replace, tmp_path / "a.json.part"

    def replaced(old: str, new: str) -> None:
        real(old, new)
        part.write_bytes(b"another writer's")

    monkeypatch.setattr(os, "replace", replaced)
    write_whole(tmp_path / "a.json", b"1")
    assert part.read_bytes() == b"another writer's"


def test_a_refused_writer_does_not_remove_the_folder_of_the_one_that_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with one_writer(folder, "training"):
        for _ in range(2):
            with pytest.raises(RunError, match="another process is training here"), one_writer(folder, "training"):
                pass
            assert folder.is_dir()
    assert not folder.exists()


def test_a_file_system_that_cannot_lock_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    told = pytest.raises(
        RunError, match=r"the file system cannot lock files \(No locks available\); choose a folder on"
    )
    with told, one_writer(tmp_path / "out", "building"):
        pass
    for opened in (lambda: Ledger(tmp_path / "run"), lambda: Journal(tmp_path / "build" / "1-x.jsonl")):
        with pytest.raises(RunError, match=r"(run|1-x\.jsonl): the file system cannot lock files"):
            opened()
    write_file(tmp_path / "one.txt", b"whole")  # files appear whole by renaming; no lock is needed for that
    assert [each.read_bytes() for each in tmp_path.glob("one.txt*")] == [b"whole"]


def test_there_is_one_lock() -> None:
    package = Path(dikast.__file__).parent
    assert [path.name for path in package.rglob("*.py") if "fcntl" in path.read_text("utf-8")] == ["output_folder.py"]


def test_links_that_lead_out_are_named_and_those_inside_and_to_folders_are_not(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (folder / "a").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "x").write_text("x")
    (folder / "kept").write_text("x")
    (folder / "a" / "inside").symlink_to("../kept")
    (folder / "b").symlink_to(elsewhere)  # checkpoints may lie on another disk
    (folder / "loop").symlink_to("loop")
    refuse_links(folder)
    (tmp_path / "same").symlink_to(folder)
    refuse_links(tmp_path / "same")  # the folder itself by way of a link
    for target in ("../../elsewhere/x", "../../out-2", "/etc/passwd"):  # the second is not there, and begins alike
        link = folder / "a" / "out"
        link.symlink_to(target)
        with pytest.raises(UserError, match=r"out/a/out: is a link to a file outside of this folder"):
            refuse_links(folder)
        link.unlink()
