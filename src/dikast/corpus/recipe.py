"""What every recipe says, and how a recipe's options are declared."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint

LOW, HIGH = "low", "high"


def count(default: int, least: int = 1) -> Any:
    """A key that is a whole number from `least`."""
    return field(default=default, metadata={LOW: least})


def share(default: float, most: float = 1) -> Any:
    """A key that is a number in 0..`most`."""
    return field(default=default, metadata={LOW: 0, HIGH: most})


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build: the keys that all recipes have, and `options`, those of one recipe, flat beside them in YAML.

    `seed` decides what is drawn. `tries`: replies asked for until one can be read. `stop_after_rejects`: the share of
    rejected replies, 0..1, above which a stage stops. `language`: written in, "" for the teacher's choice.
    `temperature` and `max_tokens` of each reply. `tolerance`: how far a response's length may be from what is due, as a
    share. `near` drops near duplicates; `against` are benchmark files whose texts are dropped. `folder` is where
    relative paths start.
    """

    recipe: str
    teacher: str
    seed: int = 0
    near: bool = True
    against: tuple[str, ...] = ()
    tolerance: float = share(0.5)
    tries: int = count(3)
    stop_after_rejects: float = share(0.5)
    language: str = ""
    temperature: float = share(0.7, most=2)
    max_tokens: int = count(2048)
    options: Any = None
    folder: str = ""

    @property
    def world(self) -> str:
        """The world that teaches, "" for an engine."""
        return self.teacher.removeprefix("world:") if self.teacher.startswith("world:") else ""

    @property
    def told(self) -> dict[str, Any]:
        """Every key with its value, flat as in the file; without where the file lies."""
        values = asdict(self)
        del values["folder"]
        return values | (values.pop("options") or {})

    @property
    def hash(self) -> str:
        """Fingerprint of everything but where the file lies."""
        return fingerprint(self.told)

    def path(self, name: str) -> Path:
        """A path of the recipe, from its own folder."""
        return Path(self.folder, name).expanduser()
