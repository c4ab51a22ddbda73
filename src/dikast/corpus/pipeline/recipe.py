"""The keys that all recipes share, and how a recipe's own options are declared."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from dikast.core.canonical import fingerprint
from dikast.core.checking import MOST_COUNT, MOST_SEED, option
from dikast.core.former_names import under_former_names
from dikast.engines.base import Engine
from dikast.engines.key_use import check_key_use
from dikast.engines.spec import open_engine

LAST = "last"
ADDED = "added"  # a key that earlier versions did not have: its default is what they did


def count(default: int, least: int = 1, *, last: bool = False) -> Any:
    """A key that is a whole number from `least` to `MOST_COUNT`; `last`: it affects only how the items are written."""
    return option(default, least=least, most=MOST_COUNT, more={LAST: last})


def share(default: float, most: float = 1, *, last: bool = False) -> Any:
    """A key that is a number from 0 to `most`; `last` as in `count`."""
    return option(default, least=0, most=most, more={LAST: last})


def added(default: Any) -> Any:
    """A key that earlier versions did not have; while it has its default, their folders are resumed."""
    return option(default, more={ADDED: True})


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build: the keys that all recipes share, and `options`, those of one recipe, at the same level in YAML.

    `seed` determines all draws. `tries`: the most replies asked for until one can be read. `stop_after_rejects`: the
    share of rejected replies, 0 to 1, above which a stage stops; it may change between runs into one folder.
    `language`: of the texts, "" for the teacher's choice. `temperature` and `max_tokens` of each reply. `tolerance`:
    how far, as a share, a response's length may be from the requested one. `near` drops near duplicates; `against` are
    benchmark files whose texts are dropped. Relative paths start at `folder`.

    Keys for writing the finished items, and others that may change between runs into one folder: `family_share` and
    `topic_share` are the largest shares of the rows that one seed family and one topic may have; `length_r` is the
    largest absolute correlation of words and score (1 sets no bound). `splits` maps names to shares; rubrics whose
    criteria share `apart` of their word trigrams go to the same split. `parquet`: rows of a shard, 0 for none;
    `parquet_images`: bytes (embedded) or path.

    `allow_keys`: which keys the engines may send to servers that they do not belong to, each as NAME@HOST. No file can
    set it.
    """

    recipe: str
    teacher: str
    seed: int = option(0, least=-MOST_SEED, most=MOST_SEED)
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
    allow_keys: tuple[str, ...] = option((), internal=True)

    @property
    def world(self) -> str:
        """The world that is the teacher, "" for an engine."""
        return self.teacher.removeprefix("world:") if self.teacher.startswith("world:") else ""

    @property
    def told(self) -> dict[str, Any]:
        """Every key that affects what is asked, with its value, flat as in the file; without the file's location."""
        values = asdict(self)
        for name in ("folder", "allow_keys", *(each.name for each in fields(self) if each.metadata.get(LAST))):
            del values[name]
        own = {each.name for each in fields(self.options) if _untold(self.options, each)} if self.options else set()
        values |= {key: each for key, each in (values.pop("options") or {}).items() if key not in own}
        return {key: under_former_names(each) if isinstance(each, dict) else each for key, each in values.items()}

    @property
    def hash(self) -> str:
        """Fingerprint of every key that affects what is asked."""
        return fingerprint(self.told)

    def engine(self, spec: str) -> Engine:
        """The engine that the recipe names by `spec`; UserError where it would send a key that is not its own."""
        check_key_use(spec, self.allow_keys)
        return open_engine(spec)

    def path(self, name: str) -> Path:
        """A path named in the recipe, resolved from the recipe's folder."""
        return Path(self.folder, name).expanduser()


def _untold(options: Any, each: Any) -> bool:
    unset = each.metadata.get(ADDED) and getattr(options, each.name) == each.default
    return bool(each.metadata.get(LAST) or unset)
