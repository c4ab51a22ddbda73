"""Notes of an engine on the questions of a run, kept in its folder before their verdicts, since a run may be killed."""

from collections.abc import Mapping
from pathlib import Path

import orjson

from dikast.core.errors import is_machine_error
from dikast.core.runs.run_files import NOTES, write_checked
from dikast.engines.base import Engine
from dikast.engines.wrapper import found_in, notes_in_words


class EngineNotes:
    """The notes of one judge on a run's folder: those of earlier calls, and what is new.

    An engine counts over its whole life and may have served other runs before; only what it adds from now on is new.
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._path, self._engine = folder / NOTES, engine
        self._before: Mapping[str, int] = dict(getattr(engine, "notes", {}))
        self._earlier = self.told = notes_of(folder).get(engine.name, [])

    def keep(self) -> None:
        """Write the engine's new notes."""
        told = list(dict.fromkeys((*self._earlier, *notes_in_words(self._engine, self._before))))
        if told != self.told:
            self.told = told
            value = {**notes_of(self._path.parent), self._engine.name: self.told}
            write_checked(self._path, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


def work_of(engine: Engine, before: Mapping[str, int] | None = None) -> dict[str, int]:
    """The work of an engine that computes shared tokens once, minus the work done `before`.

    Tokens and pictures asked and computed; `peak_bytes` are the most bytes of keys and values held at once.
    """
    found: Mapping[str, int] = found_in(engine, "work", {})
    return {name: n - (before or {}).get(name, 0) * (name != "peak_bytes") for name, n in found.items()}


def work_in_all(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """The work of a run's rounds together: sums, and the larger of `peak_bytes`."""
    names = dict.fromkeys((*before, *more))
    return {
        name: (max if name == "peak_bytes" else int.__add__)(before.get(name, 0), more.get(name, 0)) for name in names
    }


def notes_of(folder: Path) -> dict[str, list[str]]:
    """The notes in a run's folder by the name of the judge; none where the file is missing or damaged."""
    try:
        value = orjson.loads((folder / NOTES).read_bytes())
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_machine_error(error):
            raise
        return {}
    return value if isinstance(value, dict) else {}
