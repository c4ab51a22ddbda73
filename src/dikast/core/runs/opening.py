"""Warnings when a run folder is opened that is usable, but not as it was written."""

import logging
from functools import cache
from pathlib import Path

from dikast.core.errors import DataError
from dikast.core.output_folder import move
from dikast.core.runs.judge_lock import check_version, newer
from dikast.core.runs.lines import is_sealed
from dikast.core.runs.run_files import CHECKSUMS, NOTES, VERDICTS, changed_files, forget_missing, remove
from dikast.core.text import in_shell

_log = logging.getLogger(__name__)
UNCHECKED = "the file is missing, although it was written: files it covers are read unchecked"


def tell_reader(folder: Path) -> None:
    """Warn, once in this process, where a newer version wrote the run, and where its checksums are gone.

    DataError where it wrote it in a form that this version may misread.
    """
    check_version(folder)
    if (found := newer(folder)) is not None:
        _warn(str(found))
    if checksums_are_gone(folder):
        cure = f"run the command that made it again, or `dikast doctor {in_shell(folder)} --repair`"
        _warn(f"{folder / CHECKSUMS}: {UNCHECKED}; {cure}")


@cache
def _warn(message: str) -> None:
    _log.warning("%s", message)


def tell_writer(folder: Path) -> None:
    """As `tell_reader`, and say which files have changed since they were written; they are written again.

    Damaged notes of the engine cannot be, so they are moved to `notes.damaged.json`.
    """
    tell_reader(folder)
    for name, problem in changed_files(folder).items():
        if name == NOTES and (folder / NOTES).is_file():
            move(folder / NOTES, folder / "notes.damaged.json")
            remove(folder / NOTES)
            problem += "; it is moved to notes.damaged.json"
        _log.warning("%s", DataError(f"{problem}: it is written again", path=str(folder / name)))
    forget_missing(folder)


def checksums_are_gone(folder: Path, lines: str = VERDICTS) -> bool:
    """Whether a folder has no checksums although a version that keeps them wrote it, as its lines show."""
    path = folder / lines
    if (folder / CHECKSUMS).exists() or not path.is_file():
        return False
    with path.open("rb") as file:
        return any(is_sealed(line) for line in file)
