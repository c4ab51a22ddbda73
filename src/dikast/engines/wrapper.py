"""The base of wrappers that do not change an engine's answers."""

from collections.abc import Mapping
from typing import Any

from dikast.engines.base import Closing, Engine, close_engine


class Wrapper(Closing):
    """Name, formats, notes, identity and versions of `engine`, which the wrapper does not change."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.name = engine, engine.name
        self.formats = getattr(engine, "formats", {})

    @property
    def notes(self) -> Mapping[str, int]:
        """The engine's own."""
        notes: Mapping[str, int] = getattr(self.engine, "notes", {})
        return notes

    def identity(self) -> Mapping[str, Any]:
        """The engine's own."""
        return self.engine.identity()

    def close(self) -> None:
        """Close the engine."""
        close_engine(self.engine)

    def versions(self) -> Mapping[str, str]:
        """The engine's own."""
        return self.engine.versions()


def notes_in_words(engine: object, before: Mapping[str, int] | None = None) -> list[str]:
    """What an engine's notes say that it had not said `before`; "{n}" in a note becomes how often, since then."""
    counts: Mapping[str, int] = getattr(engine, "notes", {})
    new = {note: n - (before or {}).get(note, 0) for note, n in counts.items()}
    return [note.replace("{n}", f"{n:,}") for note, n in new.items() if n > 0]


def found_in(engine: object, name: str, otherwise: Any) -> Any:
    """An attribute of the engine, or of the first one inside it that has it."""
    while engine is not None:
        if hasattr(type(engine), name) or name in getattr(engine, "__dict__", {}):
            return getattr(engine, name)
        engine = getattr(engine, "engine", None)
    return otherwise
