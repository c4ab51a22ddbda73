"""What every recipe says, and how a recipe's options are declared."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from dikast.core.aliases import under_former_names
from dikast.core.canonical import fingerprint
from dikast.core.checking import option

LAST = "last"


def count(default: int, least: int = 1, *, last: bool = False) -> Any:
    """A key that is a whole number from `least`; `last`: of the writing, so that changing it asks nothing anew."""
    return option(default, least=least, more={LAST: last})


def share(default: float, most: float = 1, *, last: bool = False) -> Any:
    """A key that is a number in 0..`most`."""
    return option(default, least=0, most=most, more={LAST: last})


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build: the keys that all recipes have, and `options`, those of one recipe, flat beside them in YAML.

    `seed` decides what is drawn. `tries`: replies asked for until one can be read. `stop_after_rejects`: the share of
    rejected replies, 0..1, above which a stage stops. `language`: written in, "" for the teacher's choice.
    `temperature` and `max_tokens` of each reply. `tolerance`: how far a response's length may be from what is due, as a
    share. `near` drops near duplicates; `against` are benchmark files whose texts are dropped. `folder` is where
    relative paths start.

    How the finished items are written, which may be changed between runs into one folder: `family_share` and
    `topic_share` are the most that one seed family, and one topic, may have of the rows; `length_r` the largest
    correlation of words and score, as an absolute value (1 sets no bound). `splits` maps names to shares; rubrics that
    share `apart` of the runs of three words of their criterion stay on one side. `parquet`: rows a shard, 0 for none;
    `parquet_images`: bytes (inside) or path.
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
    family_share: float = share(1, last=True)
    topic_share: float = share(1, last=True)
    length_r: float = share(1, last=True)
    splits: dict[str, float] = field(default_factory=dict, metadata={LAST: True})
    apart: float = option(0.6, above=0, most=1, more={LAST: True})  # with 0 all rubrics would stay together
    parquet: int = count(0, least=0, last=True)
    parquet_images: Literal["bytes", "path"] = field(default="bytes", metadata={LAST: True})
    options: Any = option(None, internal=True)
    folder: str = option("", internal=True)

    @property
    def world(self) -> str:
        """The world that teaches, "" for an engine."""
        return self.teacher.removeprefix("world:") if self.teacher.startswith("world:") else ""

    @property
    def told(self) -> dict[str, Any]:
        """Every key that decides what is asked, with its value, flat as in the file; without where the file lies."""
        values = asdict(self)
        for name in ("folder", *(each.name for each in fields(self) if each.metadata.get(LAST))):
            del values[name]
        values |= values.pop("options") or {}
        return {key: under_former_names(each) if isinstance(each, dict) else each for key, each in values.items()}

    @property
    def hash(self) -> str:
        """Fingerprint of what is asked."""
        return fingerprint(self.told)

    def path(self, name: str) -> Path:
        """A path of the recipe, from its own folder."""
        return Path(self.folder, name).expanduser()
