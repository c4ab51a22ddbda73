"""What all stages of an experiment have in common, and the items: drawn or read, changed.

Arms that need the same stage share it; each is resumable. A stage is named by the fingerprint of everything that
determines it, and its folder by that name, so a finished stage is not repeated and an interrupted one is resumed. The
work is that of the ordinary functions: `write_world`, `write_lessons`, `sft`, `grade_file`.
"""

import dataclasses
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.checking import fit
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.output_folder import one_writer
from dikast.core.part import Text
from dikast.core.records import write_items
from dikast.core.records.items import read_items
from dikast.core.records.writing import rebased
from dikast.core.runs.run_files import changed_files, checksum, record, write_checked
from dikast.lab.experiment import Items
from dikast.lab.item_changes import attack_on, changed, rng_of
from dikast.lab.painting import with_sentence
from dikast.worlds.settings import QUOTED, Settings

AGAIN = "remove the file, and run the experiment again: what is done is not done again"
ITEMS = "items.jsonl"
COST = "cost.json"
_SHOWN = 12  # digits of a name
_LATER = ("different_rubrics", "blank", "in_picture", "words", "claim_wise", "criterion")  # of items and their changes


@dataclass(frozen=True, slots=True)
class ItemsStage:
    """Items in a folder: drawn or read, changed."""

    told: Items
    seed: int
    root: str

    @property
    def name(self) -> str:
        """The name by everything that determines the items."""
        file = Path(self.root) / self.told.items
        told = {**as_before(self.told), "formats": 0, "repeat": 0}
        drawn = (self._settings().generator,) if self.told.world.get("version") == 4 else ()
        written = (QUOTED,) if self.told.quote else ()
        return named(told, self.seed, checksum(file) if self.told.items else "", *drawn, *written)

    def folder(self, out: Path) -> Path:
        """Their folder."""
        return out / "items" / self.name

    def done(self, out: Path) -> bool:
        """Whether the items are there; DataError where they are not those that were written."""
        return items_are_in(self.folder(out))

    def run(self, out: Path) -> None:
        """Write `items.jsonl`, unless it is there."""
        if self.done(out):
            return
        folder = self.folder(out)
        with timed(folder, "making items") as cost:
            source = self._source(folder)
            items = [rebased(item, str(folder)) for item in read_items(str(source))]
            items = changed(self._reworded(items[: self.told.n or None]), self.told.change, self.seed)
            cost["items"] = keep_items(folder, [self._painted(item, folder) for item in items])

    def _painted(self, item: Item, folder: Path) -> Item:
        change, rng = self.told.change, rng_of(self.seed, "attack", item)
        if not change.in_picture or rng.random() >= change.attack:
            return item
        return with_sentence(item, attack_on(item, change, rng), folder / "painted")

    def _reworded(self, items: list[Item]) -> list[Item]:
        """With references in other sentences than those of the responses, where that is asked for."""
        if self.told.change.reference != "paraphrased":
            return items
        from dikast.worlds.make import make
        from dikast.worlds.truths import in_other_words

        if not self.told.world or self.told.lessons:
            raise UserError("reference: 'paraphrased' is made of items that a world draws, and not of lessons")
        samples = make(self._settings(), self.told.n)
        return [
            replace(item, reference=(Text(in_other_words(sample)),))
            for item, sample in zip(items, samples, strict=True)
        ]

    def _settings(self) -> Settings:
        settings: Settings = fit(Settings, {"seed": self.seed, **self.told.world}, _refuse)
        return settings

    def _source(self, folder: Path) -> Path:
        from dikast.worlds.teach import write_lessons
        from dikast.worlds.write import write_world

        told = self.told
        if told.items:
            return Path(self.root) / told.items
        settings = self._settings()
        if told.lessons:
            made = partial(write_lessons, reference=told.reference, padding=told.padding, quote=told.quote)
            rubrics = told.different_rubrics
            return made(settings, told.n, folder / "world", rubrics=rubrics, shard=told.n).files[0]
        return write_world(settings, told.n, folder / "world", shard=told.n).files[0]


def _refuse(message: str, *at: object) -> None:
    raise UserError(f"{'.'.join(map(str, at))}: {message}")


def items_are_in(folder: Path) -> bool:
    """Whether a stage has written its items; DataError where they are not those that were written."""
    if not (folder / COST).is_file() or not (folder / ITEMS).exists():
        return False
    for told in changed_files(folder, ITEMS).values():
        raise DataError(f"{told}: {AGAIN}", path=str(folder / ITEMS))
    return True


def keep_items(folder: Path, items: Iterable[Item]) -> int:
    """Write the items of a stage, with the checksum that all who read them check; how many there are."""
    count = write_items(folder / ITEMS, items)
    record(folder, {ITEMS: checksum(folder / ITEMS)})
    return count


@contextmanager
def timed(folder: Path, doing: str) -> Iterator[dict[str, Any]]:
    """Write what a stage cost once it is done; nobody else writes into its folder meanwhile."""
    cost: dict[str, Any] = {}
    began = time.process_time()
    with one_writer(folder, doing):
        yield cost
        write_checked(folder / COST, orjson.dumps({**cost, "cpu_seconds": time.process_time() - began}))


def as_before(told: Items) -> dict[str, Any]:
    """The settings of items, without those that came later where nothing is set, so that folders stay the same; also
    without who teaches, which is not the items'.
    """

    def kept(settings: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name not in _LATER or value}

    found = kept(dataclasses.asdict(told))
    found.pop("taught_by", None)
    found.pop("keep", None)
    return {**found, "change": kept(found["change"])}


def named(*parts: Any) -> str:
    """The name of a stage that these parts determine."""
    return fingerprint(parts)[:_SHOWN]
