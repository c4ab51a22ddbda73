"""Notes of people on the items of a run: lines of `item_notes.jsonl` in its folder, which move with it.

A line is never changed. Taking a note back adds a line that names it.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

from dikast.core.canonical import fingerprint
from dikast.core.errors import RunError, UserError
from dikast.core.output_folder import lock, refuse_links
from dikast.core.runs.lines import open_record, seal_record
from dikast.core.runs.run_files import refuse_special

FILE = "item_notes.jsonl"
LONGEST = 4000  # characters
_TRIES = 50  # to wait for the file, while another process writes a line


class Note(NamedTuple):
    """A note: its id, the item, what was written, and when, in seconds since 1970."""

    id: str
    item: str
    text: str
    at: float


def notes_in(folder: Path) -> tuple[list[Note], int]:
    """The notes of a run in the order they were written, without those taken back; how many lines are damaged."""
    found, damaged = dict[str, Note](), 0
    refuse_special(folder)
    try:
        raw = (folder / FILE).read_bytes()
    except FileNotFoundError:
        return [], 0
    for line in raw.split(b"\n")[:-1]:
        try:
            record = open_record(line + b"\n")
            note = Note(str(record["id"]), str(record["item"]), str(record["text"]), float(record["at"]))
        except (ValueError, KeyError, TypeError):
            damaged += 1
            continue
        if note.text:
            found[note.id] = note
        else:
            found.pop(note.id, None)
    return list(found.values()), damaged + (not raw.endswith(b"\n") and bool(raw))


def add_note(folder: Path, item: str, text: str) -> Note:
    """Write a note to disk, or nothing where the same words stand on the item already (a form that was sent twice).

    UserError for one that is empty or too long, RunError if writing fails.
    """
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST:
        raise UserError(f"a note has from 1 to {LONGEST:,} characters, this one has {len(text):,}")
    at = time.time()
    note = Note(fingerprint([item, text, time.time_ns(), os.getpid()])[:16], item, text, at)
    _append(folder, note)
    return note


def take_back(folder: Path, note: str) -> None:
    """Take a note back; its line stays in the file. UserError where there is none such."""
    found = next((each for each in notes_in(folder)[0] if each.id == note), None)
    if found is None:
        raise UserError("this note no longer exists")
    _append(folder, Note(found.id, found.item, "", time.time()))


def _append(folder: Path, note: Note) -> None:
    path = folder / FILE
    try:
        refuse_links(folder)
        with path.open("a+b") as file:
            for _ in range(_TRIES):
                if lock(file, path):
                    break
                time.sleep(0.02)
            else:
                raise RunError(f"{path}: another process is writing here; try again")
            if note.text and any((each.item, each.text) == (note.item, note.text) for each in notes_in(folder)[0]):
                return
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
                if torn:
                    file.write(b"\n")
            file.write(seal_record(note._asdict()))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"{path}: the note cannot be written ({error.strerror or error}); nothing was changed") from None
