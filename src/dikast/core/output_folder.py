"""Output folders: one process writes at a time, no link leads out, and disk errors are reported without a traceback."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dikast.core.errors import RunError, UserError

_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)


@contextmanager
def one_writer(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder, made where it is not there, for this process; `doing` says for what, such as `training`.

    RunError where another process holds it, and where it cannot be written; UserError where a file in it is a link to
    one elsewhere. The kernel holds the lock, so that a killed process leaves none behind. A folder that stays empty is
    removed again.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{folder}: is a file, or lies in one: name a folder") from None
    except OSError as error:
        raise RunError(f"{folder}: cannot write here ({error.strerror}); choose another folder") from error
    held = False
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.path.samestat(os.fstat(handle), os.stat(folder))  # else its last holder has just removed it
        except OSError as error:
            if error.errno in _NO_LOCKS:
                why = f"the file system cannot lock folders ({error.strerror}); choose one on another"
                raise RunError(f"{folder}: {why}") from error
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
