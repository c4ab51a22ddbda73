"""Output files and folders: one process writes at a time, whole or not at all, no link leads out, and disk errors are
reported without a traceback.
"""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dikast.core.errors import RunError, UserError
from dikast.core.secrets import without_secrets

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")  # a path has one slash of `://` left; one letter is a drive


class CannotLock(RunError):
    """The file system cannot lock files."""


def lock(file: int | IO[bytes], path: str | Path) -> bool:
    """Hold an open file or folder for this process until it is closed; False where another process holds it.

    The kernel holds the lock, so that a killed process leaves none behind. CannotLock, which names `path`, where the
    file system has none.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        why = f"the file system cannot lock files ({error.strerror}); choose a folder on another"
        raise CannotLock(f"{path}: {why}") from error
    return True


def identity_of(file: int | str | Path) -> tuple[int, int] | None:
    """What tells an open file, or the one at a path, from another that takes its place; None where there is none."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_in_place(path: str | Path, identity: tuple[int, int] | None) -> None:
    """RunError where the file with this identity is no longer at `path`: it or its folder was removed or replaced."""
    if identity is None or identity_of(path) != identity:
        raise RunError(
            f"{path}: was removed, moved or replaced during the run, which stops here: put it back and run the same"
            " command again"
        )


def refuse_address(place: str | Path) -> None:
    """UserError for an address in the place of an output file or folder, which would be a folder called `https:`.

    Its login or token would be written down as the names of folders.
    """
    if _ADDRESS.match(str(place)):
        told = without_secrets(re.sub(":/+", "://", str(place), count=1))
        raise UserError(f"{told}: an address: name a file or a folder on this machine")


def make_folder(folder: Path) -> None:
    """Make an output folder where it is not there. UserError for an address."""
    refuse_address(folder)
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def one_writer(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder, made where it is not there, for this process; `doing` says for what, such as `training`.

    RunError where another process holds it, and where it cannot be written; UserError where a file in it is a link to
    one elsewhere. A folder that stays empty is removed again.
    """
    try:
        make_folder(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{folder}: is a file, or lies in one: name a folder") from None
    except OSError as error:
        raise RunError(f"{folder}: cannot write here ({error.strerror}); choose another folder") from error
    held = False
    try:
        with suppress(OSError):  # otherwise its last holder has just removed it
            held = lock(handle, folder) and os.path.samestat(os.fstat(handle), os.stat(folder))
        if not held:
            raise RunError(f"{folder}: another process is {doing} here; wait for it, or choose another folder")
        refuse_links(folder)
        yield
    except OSError as error:
        where = error.filename or folder
        why = error.strerror or f"no space left, or the device failed: {error}"  # numpy tells no more
        raise RunError(
            f"{where}: cannot be read or written ({why}); what was written before is kept: fix this and run the same"
            " command again"
        ) from error
    finally:
        if held:
            with suppress(OSError):
                folder.rmdir()
        os.close(handle)


def refuse_links(folder: Path) -> None:
    """UserError where a file in a folder that is about to be written is a link to one elsewhere, which would change.

    Links to folders are allowed and not followed here: checkpoints or pictures may lie on another disk.
    """
    inside = os.path.realpath(folder)
    for path in sorted(_linked_files(folder)) if folder.is_dir() else ():
        if os.path.commonpath([inside, os.path.realpath(path)]) != inside:
            raise UserError(
                f"{path}: is a link to a file outside of this folder, which would be written in its place: put the file"
                " itself here, or remove the link"
            )


def _linked_files(folder: str | Path) -> Iterator[str]:
    """The links in a folder and its subfolders that do not lead to folders; dangling ones too."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                if not os.path.isdir(entry.path):
                    yield entry.path
            elif entry.is_dir():
                yield from _linked_files(entry.path)


@contextmanager
def replacing(path: str, *, held: bool = False, sync: bool = True) -> Iterator[str]:
    """A temporary path in the same folder, which replaces `path` if the block ends without an error.

    held: this process is the only writer of the folder (`one_writer`), so that an unfinished file of an earlier one
    has the same name and is overwritten; a folder that is gone is a RunError. Without `sync` a crash of the machine may
    leave an empty file: use that for files that are made again if they are damaged.
    """
    refuse_address(path)
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise UserError(f"{path} is a folder: name a file in it")
    if not held and not os.path.isdir(os.path.dirname(target)):
        raise UserError(f"{path}: the folder {os.path.dirname(target)} does not exist: make it first")
    special = os.path.exists(path) and not os.path.isfile(path)  # a pipe or a device is written to directly
    temporary = path if special else f"{target}.part" if held else f"{target}.{os.getpid()}.part"
    part, replaced = None, False
    try:
        if not special:
            if not held:
                _remove_stale_parts(target)
            part = open(temporary, "wb")  # noqa: SIM115 - closed below
            with suppress(CannotLock):  # the lock only tells others that this part is still being written
                lock(part, temporary)
        yield temporary
        if not special:
            if sync:
                with open(temporary, "rb") as file:
                    os.fsync(file.fileno())
            move(temporary, target)
            replaced = True
    except OSError as error:
        kept = "what was written before is kept" if held else "what was there before is intact"
        raise RunError(f"{path} cannot be written: {error.strerror or error}; {kept}") from error
    finally:
        if part is not None:
            part.close()
            if not replaced:  # else the path may be another writer's by now
                with suppress(OSError):
                    os.unlink(temporary)


def move(made: str | Path, target: str | Path) -> None:
    """Rename a file or a folder on its file system; it takes the place of a file, or of an empty folder, at once."""
    os.replace(made, target)


def replace_folder(made: Path, target: Path) -> None:
    """Put a finished folder in the place of another, which is removed first."""
    shutil.rmtree(target, ignore_errors=True)
    move(made, target)


def refill_folder(made: Path, target: Path, *, first: str, keep: str) -> None:
    """Move the files of a finished folder, the one called `first` before others, into a folder that stays itself.

    It may be somebody's working directory or lie on another file system. Its other files are removed, except `keep`.
    """
    kept = {keep} | {path.name for path in made.iterdir()}
    for path in sorted(made.iterdir(), key=lambda path: path.name != first):
        shutil.move(path, target / path.name)
    for path in target.iterdir():
        if path.name not in kept:
            path.unlink()


def _remove_stale_parts(target: str) -> None:
    """Remove the unfinished files of this target whose writers were killed: those without a lock."""
    folder, name = os.path.split(target)
    for each in os.listdir(folder):
        if re.fullmatch(re.escape(name) + r"\.\d+\.part", each):
            with suppress(OSError, CannotLock), open(os.path.join(folder, each), "rb") as part:
                if lock(part, part.name):
                    os.unlink(part.name)
