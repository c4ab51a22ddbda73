"""Worlds on disk: sharded records with their pictures beside them, independent of the number of workers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError
from dikast.core.item import item_to
from dikast.core.machine.worker_pool import worker_pool
from dikast.core.output_folder import one_writer
from dikast.core.records import write_records
from dikast.core.runs.run_files import write_whole
from dikast.worlds.drawing.raster import png
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings

_SUFFIXES = ("jsonl", "jsonl.gz", "parquet")


@dataclass(frozen=True, slots=True)
class Written:
    """The result of `write_world`: the record files in order, and the number of records."""

    files: tuple[Path, ...]
    items: int


def write_world(
    settings: Settings | Sequence[Settings],
    n: int,
    out: str | Path,
    *,
    workers: int = 1,
    shard: int = 10_000,
    suffix: str = "jsonl",
) -> Written:
    """Write items 0 to n - 1 to `out`: `items-00000.jsonl` ..., `images/`, and `world.json` with the settings.

    Of several settings they take turns, so that the first k records are the first item of each of k worlds. The same
    settings give the same files byte for byte (Parquet: the same rows), whatever `workers` is. UserError for settings
    that cannot be met, and for a folder that holds something else.
    """
    worlds = (settings,) if isinstance(settings, Settings) else tuple(settings)
    if n < 1:
        raise UserError(f"n: must be at least 1, got {n}")
    if workers < 1 or shard < 1:
        raise UserError(f"workers and shard: must be 1 or more, got {workers} and {shard}")
    if suffix not in _SUFFIXES:
        raise UserError(f"suffix: {suffix!r} is not one of {', '.join(_SUFFIXES)}")
    names = [world.domain for world in worlds]
    alike = all({**asdict(world), "domain": ""} == {**asdict(worlds[0]), "domain": ""} for world in worlds)
    if not worlds or len(set(names)) < len(names) or not alike:
        raise UserError(f"domain: name one or more different domains under the same settings, got {', '.join(names)}")
    for world in worlds:
        Maker(world).sample(0)  # settings that are too restrictive are reported before anything is written
    about = {**worlds[0].to_json(), "n": n, "shard": shard, "version": worlds[0].generator}
    with prepared(out, about if len(worlds) == 1 else {**about, "domain": names}) as folder:
        starts = range(0, n, shard)
        task = partial(_shard, worlds, folder, n, shard, suffix)
        if workers == 1 or len(starts) == 1:
            files = list(map(task, starts))
        else:
            with worker_pool(min(workers, len(starts))) as pool:
                files = list(pool.map(task, starts))
    return Written(tuple(files), n)


def write_samples(samples: Iterable[Sample], out: str | Path, about: dict[str, Any]) -> Written:
    """Write given samples to one file, in the same form as `write_world`."""
    with prepared(out, {"version": Settings().generator, **about}) as folder:
        path = folder / "items-00000.jsonl"
        return Written((path,), write_records(path, _records(samples, folder)))


@contextmanager
def prepared(out: str | Path, about: dict[str, Any]) -> Iterator[Path]:
    """The folder, made when missing, with `world.json` in it, and held for this process.

    UserError when it holds something else, RunError when another process writes there.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out: {folder} is a file; name a folder")
    told = orjson.dumps({"world": fingerprint(about), **about}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    note = folder / "world.json"
    with one_writer(folder, "writing a world"):
        part = note.with_name(note.name + ".part")
        part.unlink(missing_ok=True)  # left by a call that was killed
        if any(folder.iterdir()) and (not note.exists() or note.read_bytes() != told):
            raise UserError(f"out: {folder} holds something else; name a new folder, or empty it")
        write_whole(note, told)
        yield folder


def _shard(worlds: tuple[Settings, ...], folder: Path, n: int, shard: int, suffix: str, start: int) -> Path:
    makers = [Maker(settings) for settings in worlds]
    path = folder / f"items-{start // shard:05d}.{suffix}"
    samples = (makers[i % len(makers)].sample(i // len(makers)) for i in range(start, min(n, start + shard)))
    write_records(path, _records(samples, folder))
    return path


def _records(samples: Iterable[Sample], folder: Path) -> Iterator[dict[str, Any]]:
    before = ""
    for sample in samples:
        if not sample.shown or sample.shown != before:
            write_pictures(sample, folder)
        before = sample.shown
        yield item_to(sample.item())


def write_pictures(sample: Sample, folder: Path) -> None:
    """Write every picture of a sample to its path in the folder."""
    for path, picture in sample.files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(png(picture))
