"""Where a run comes from, as its lock, the card of its judge and the locks of data sets say: data, training, judge."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.audit.tables.run_rows import has_gold
from dikast.core.errors import DataError, UserError
from dikast.core.records.sources import is_address, is_data
from dikast.core.text import parse_located
from dikast.surface.viewer.run_index import Listed

_ABOVE = 4  # folders above one in which a path that it names is looked for
_FACTS = ("trained from", "trained", "examples", "steps", "data", "run", "time")  # of a model's card
_MOST_BYTES = 1 << 20
_OF_BUILDS = {"build.json": "data set built by a recipe", "world.json": "data set of a world, with exact gold"}


class Step(NamedTuple):
    """One step on the way to a run: what it is, its name, and what is known of it."""

    what: str
    name: str
    facts: tuple[tuple[str, str], ...]


def found_above(folder: Path, told: str) -> Path | None:
    """A path that a file in `folder` names: as it stands, beside that file, or from a folder above; None without it."""
    if told in ("", "-") or is_address(told):
        return None
    above = list(folder.resolve().parents)[:_ABOVE]
    places = [Path(told), folder / Path(told).name, *(each / told for each in above)]
    return next((each for each in places if is_data(each)), None)


def lineage(folder: Path, run: Listed, lock: Mapping[str, Any]) -> list[Step]:
    """The steps from data and training to a run and its audit, the earliest first."""
    steps: list[Step] = []
    judge = found_above(folder, run.judge)
    card = _card(judge) if judge is not None and judge.is_dir() else None
    if judge is not None and card is not None:
        facts, config = card
        for each in _trained_on(config):
            steps += _data(judge, each, "training data")
        steps.append(Step("training", judge.parent.name if judge.name == "model" else judge.name, facts))
    engine = (lock.get("identity") or {}).get("engine")
    known = engine if isinstance(engine, Mapping) else {}
    told = tuple((name, str(known[name])) for name in ("model", "revision", "weights", "server") if known.get(name))
    steps.append(Step("judge", run.judge or "unknown", told))
    steps += _data(folder, str(lock.get("items") or ""), "items")
    versions = lock.get("versions")
    made = (("Dikast", str(versions["dikast"])),) if isinstance(versions, Mapping) and "dikast" in versions else ()
    steps.append(Step("run", run.path, (("identity", str(lock.get("hash") or "unknown")), *made)))
    steps.append(Step("audit", _audit(folder, run), ()))
    return steps


def _audit(folder: Path, run: Listed) -> str:
    try:
        gold = has_gold(folder)
    except UserError:
        gold = False
    command = shlex.join(["dikast", "audit", str(folder)])
    return command if gold else f"{command} --gold-file LABELS (the run has no gold)"


def _data(folder: Path, told: str, what: str) -> Iterator[Step]:
    """The file of items that is named, and what built it."""
    path = found_above(folder, told)
    for above in () if path is None else (path.parent, path.parent.parent):
        for name, kind in _OF_BUILDS.items():
            lock = _json(above / name)
            if lock is not None:
                yield Step(kind, above.name, tuple(_leaves(lock)))
                yield Step(what, told, ())
                return
    yield Step(what, told or "unknown", () if path is not None else (("file", "no longer there"),))


def _leaves(lock: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a data set's lock fits a line: its own plain values, and those of its recipe."""
    recipe = lock.get("recipe")
    for name, value in {**lock, **(recipe if isinstance(recipe, Mapping) else {})}.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            yield str(name), str(value)[:200]


def _card(folder: Path) -> tuple[tuple[tuple[str, str], ...], Mapping[str, Any]] | None:
    """The facts and the configuration on a model's card; None for a model without one that `train` wrote."""
    path = folder / "README.md"
    if not is_data(path) or path.stat().st_size > _MOST_BYTES:
        return None
    text = path.read_text("utf-8", "replace")
    rows = dict(re.findall(r"^\| ([^|\n]+) \| ([^|\n]+) \|$", text, re.MULTILINE))
    block = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    facts = tuple((name, rows[name].replace("`", "")) for name in _FACTS if name in rows)
    if not facts:
        return None
    try:
        config = parse_located(block[1], str(path)).value if block else {}
    except DataError:
        config = {}
    return facts, config if isinstance(config, Mapping) else {}


def _trained_on(config: Mapping[str, Any]) -> Iterator[str]:
    """The files of items that a configuration names."""
    data = config.get("data")
    for source in data if isinstance(data, list) else ():
        for name in ("items", "talk", "pairs"):
            files = source.get(name) if isinstance(source, Mapping) else None
            yield from map(str, files if isinstance(files, list) else ())


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = orjson.loads(path.read_bytes()) if path.stat().st_size <= _MOST_BYTES else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
