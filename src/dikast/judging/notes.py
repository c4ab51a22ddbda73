"""What an engine says of the questions of a run, kept in its folder as soon as it is said: a run may be killed."""

from pathlib import Path

import orjson

from dikast.engines.base import Engine
from dikast.judging.ledger import write_whole

NOTES = "notes.json"


class Notes:
    """The notes of one run: those of earlier calls on its folder that still hold answers, and what is new.

    An engine counts over its whole life and may have served other runs before; only what it adds from now on is new.
    """

    def __init__(self, folder: Path, engine: Engine, *, fresh: bool) -> None:
        self._path, self._engine, self._before = folder / NOTES, engine, dict(_counts(engine))
        if fresh:
            self._path.unlink(missing_ok=True)
        self.told: list[str] = orjson.loads(self._path.read_bytes()) if self._path.is_file() else []

    def keep(self) -> None:
        """Write down what the engine has said since."""
        new = [
            note
            for note, count in _counts(self._engine).items()
            if count > self._before.get(note, 0) and note not in self.told
        ]
        if new:
            self.told += new
            write_whole(self._path, orjson.dumps(self.told, option=orjson.OPT_INDENT_2) + b"\n")


def _counts(engine: Engine) -> dict[str, int]:
    found: dict[str, int] = getattr(engine, "notes", {})
    return found
