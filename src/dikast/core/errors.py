"""Everything that Dikast raises on purpose.

DikastError
├── UserError            wrong usage or input; the command line prints it without a traceback and exits with 2
│   ├── DataError        a record, named by path, line and field
│   └── MissingExtra     an optional package, with the `pip install` line that brings it
├── RunError             the run could not continue (disk full, folder in use); what was written is intact; exit 1
└── EngineError          a model could not answer; `retryable` says whether asking again may help
"""

import errno
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any


class DikastError(Exception):
    """Any error that Dikast raises on purpose; its subclasses say whose fault it is."""


class UserError(DikastError):
    """A mistake that the user can fix; the message says what, where and how."""


class DataError(UserError):
    """A record that cannot be used. `path`, `line` (1-based) and `field` say where, as far as known."""

    def __init__(self, message: str, *, path: str = "", line: int | None = None, field: str = "") -> None:
        self.path, self.line, self.field = path, line, field
        where = path + (f":{line}" if line is not None else "")
        parts = [part for part in (where, f"field {field!r}" if field else "") if part]
        super().__init__(": ".join([*parts, message]))


def told_once(errors: Sequence[UserError]) -> list[str]:
    """A line for each mistake; those of several records that differ in the line alone are one, which names the rest."""
    kinds: dict[str, list[UserError]] = {}
    for error in errors:
        line = getattr(error, "line", None)
        kinds.setdefault(str(error).replace(f":{line}", ":", 1) if line is not None else str(error), []).append(error)
    told = []
    for first, *rest in kinds.values():
        at = [str(getattr(each, "line", None)) for each in rest]
        told.append(
            f"{first} (also on line{'s' * (len(at) > 1)} {', '.join(at)})" if "None" not in at and at else str(first)
        )
    return told


class MissingExtra(UserError):
    """An optional dependency is not installed."""


class RunError(DikastError):
    """A run had to stop for a reason outside its input; everything already written is kept."""


class TooManyMissing(RunError):
    """More verdicts are missing than was allowed; the command line ends with exit code 3."""


class EngineError(DikastError):
    """A model or server gave no usable completion. `kind` is a short stable word for counting, such as `timeout`.

    `sent` is false for a request that was held back, since what was sent before it had failed. `respelt` says that the
    cure is another spec, so that the same command would fail again.
    """

    def __init__(
        self, message: str, *, kind: str, retryable: bool = False, sent: bool = True, respelt: bool = False
    ) -> None:
        self.kind, self.retryable, self.sent, self.respelt = kind, retryable, sent, respelt
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the keywords, as errors travel between processes."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "retryable": self.retryable,
            "sent": self.sent,
            "respelt": self.respelt,
        }
        return partial(EngineError, **told), (str(self),)


_MACHINE = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN,
}  # fmt: skip
_DATABASE = {5, 8, 10, 13, 14}  # of SQLite: busy, read-only, input or output, full, cannot be opened


def is_machine_error(error: OSError) -> bool:
    """Whether the cause is the machine (no space, descriptors or memory, a failing disk), not the file."""
    return error.errno in _MACHINE


def machine_error(error: OSError) -> RunError:
    """The same for the user: what failed, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    cure = {errno.EMFILE: " (raise the limit with `ulimit -n`)", errno.ENOSPC: " (make room)"}.get(error.errno or 0, "")
    why = f"{where}{error.strerror or error}{cure}"  # numpy gives no details
    return RunError(f"{why}; what was written before is kept: fix this and run the same command again")


@contextmanager
def database_at(path: Path) -> Iterator[None]:
    """RunError where SQLite cannot read or write the database at `path` because of the machine: no space, a failing or
    read-only disk, another process that holds it. Its other errors pass.
    """
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DATABASE:
            raise
        raise RunError(
            f"{path}: cannot be read or written ({error}); what was written before is kept: fix this and run the same"
            " command again"
        ) from error


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is installed, but something it needs is not; that message is the useful one
        raise MissingExtra(f"this needs the package {module!r}: pip install 'dikast[{extra}]'") from error
