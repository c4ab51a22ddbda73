"""Preparing shards from the configuration's files: in parallel over slices, once for the same data and model."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, RunError, UserError
from dikast.core.machine.worker_pool import worker_pool
from dikast.core.media import image_sha256, resolved
from dikast.core.message import Span
from dikast.core.output_folder import one_writer
from dikast.core.part import Image
from dikast.core.records import write_file
from dikast.core.runs import run_files as sums
from dikast.engines.local.loading import Loaded
from dikast.engines.local.source import file_sha256
from dikast.training.config import Config, as_before
from dikast.training.data.encode import encode, end_of_reply
from dikast.training.data.examples import Example, ExampleRow, files_of, rows_of_file
from dikast.training.data.media_references import is_local, relative_root
from dikast.training.data.shards import Shards, ShardWriter
from dikast.training.preferences import asker_of
from dikast.training.processes import SingleProcess

VERSION = 3  # of the files; 2 held the tensors of media
_KEY = 2  # part of a folder's name, so that examples without media are still found
_SLICE = 4096  # rows that one process prepares in one go
_log = logging.getLogger(__name__)


class Unit(NamedTuple):
    """Files of one source, in one of its repetitions, whose rows are taken in order."""

    source: int
    round: int
    files: tuple[str, ...]
    limit: int


class Slice(NamedTuple):
    """A unit of work: `rows` rows of a unit from `start` on (from 0), that one process turns into shards `number`."""

    number: int
    of: int
    unit: Unit
    start: int
    rows: int


def units_of(config: Config) -> list[Unit]:
    """One unit for each file, but one for a whole source with a limit."""
    found = []
    for number, data in enumerate(config.data):
        files = files_of(config, data.items or data.talk)
        for round in range(data.repeat):
            if data.limit:
                found.append(Unit(number, round, tuple(files), data.limit))
            else:
                found.extend(Unit(number, round, (file,), 0) for file in files)
    return found


def data_hash(config: Config) -> str:
    """Fingerprint of the data: the content of every file, format and rubric, and the settings that use them.

    Images and videos are in separate files, which `Shards.shown` covers.
    """
    files = [[file_sha256(Path(file)) for file in files_of(config, data.items or data.talk)] for data in config.data]
    made = [{k: v for k, v in as_before(asdict(data)).items() if k not in ("items", "talk")} for data in config.data]
    augment = as_before(asdict(config.augment))
    return fingerprint([files, made, asker_of(config).about(), augment, config.seed, config.frames])


def prepare_shards(config: Config, loaded: Loaded, about: Any, data: str, team: SingleProcess) -> Shards:
    """The shards of this data for this model, made if they do not exist yet.

    They are made again if an image or video that they show has changed; of a deleted one `Shards.check_files` tells,
    before it is used. about: the properties of the model that determine tokens and images, as JSON values; data: the
    `data_hash`. DataError, in every process, at the first record that cannot be used, and nothing is left behind. The
    main process makes them while the others wait.
    """
    known = [_KEY, data, about, config.max_tokens, config.label_loss_weight != 1]
    key = fingerprint([*known, "others"] if config.label_smoothing else known)
    folder = config.path(config.shards or str(Path(config.out) / "shards")) / key
    team.from_main(lambda: _prepare(config, loaded, folder))
    shards = Shards.open(folder, loaded.processor.vision, root=config.root, threads=config.workers)
    if not len(shards):
        raise UserError("the data gives no examples")
    return shards


def _prepare(config: Config, loaded: Loaded, folder: Path) -> None:
    """Make the shards in their folder, unless they are there; finished slices of an interrupted call are kept."""
    made = (folder / "done.json").is_file() and _whole(folder) and _as_shown(config, folder)
    if made:
        found = Shards.open(folder)
        if found.name_media and (config.pack == "none" or found.tell_siblings):
            return
        if not found.name_media:
            _log.warning(
                "%s: an earlier version stored pictures here as the model takes them: the examples are prepared anew, "
                "with references to the files of the pictures, and what was stored is removed", folder,
            )  # fmt: skip
    apart = folder.parent.resolve() != config.path(config.out).resolve()  # `out` is locked already
    with one_writer(folder.parent, "preparing examples") if apart else nullcontext():
        if (folder / "done.json").is_file() or not _as_shown(config, folder):
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            examples = _make(config, loaded, folder)
            sums.record_all(folder)
        except RunError:  # a worker was killed, which says nothing of what the others finished
            raise
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        sums.write_checked(folder / "done.json", orjson.dumps({"examples": examples, "version": VERSION}))


def _whole(folder: Path) -> bool:
    """Whether prepared examples are undamaged; damaged ones are made again."""
    try:
        return not sums.changed_files(folder)
    except DataError:
        return False


def _make(config: Config, loaded: Loaded, folder: Path) -> int:
    """Prepare every slice that is not yet prepared; the number of all examples."""
    slices = _slices(config)
    due = [each for each in slices if _slice_made(folder, each) is None]
    kept = {f"{each.number:05d}" for each in slices if each not in due}
    for path in (*folder.glob("shard-*"), *folder.glob("shown-*")):  # of an interrupted slice, or of an interrupted end
        if path.is_file():
            path.unlink()
        elif path.name.split("-")[1] not in kept:
            shutil.rmtree(path)
    if config.workers == 1 or len(due) <= 1:
        reader = _Reader(config)
        for each in due:
            _prepare_slice(config, loaded, folder, each, reader.rows(each))
    else:
        with worker_pool(min(config.workers, len(due))) as pool:
            list(pool.map(partial(_work, config, folder), due))
    shown: dict[int, dict[tuple[Any, ...], str]] = {}
    examples = 0
    for each in slices:
        made = _slice_made(folder, each) or {}
        examples += made["examples"]
        shown.setdefault(each.of, {}).update((tuple(key), value) for *key, value in made["shown"])
    for number, files in shown.items():
        rows = [[*key, value] for key, value in files.items()]
        (folder / f"shown-{number:05d}.json").write_bytes(orjson.dumps(rows))
    for each in slices:
        _record(folder, each).unlink()
    return examples


def _slices(config: Config) -> list[Slice]:
    found: list[Slice] = []
    for of, unit in enumerate(units_of(config)):
        count = 0 if unit.limit else sum(1 for _ in _rows(config, unit))
        for start in range(0, max(count, 1), _SLICE):
            found.append(Slice(len(found), of, unit, start, unit.limit or _SLICE))
    return found


def _record(folder: Path, each: Slice) -> Path:
    """The file that tells that a slice is prepared."""
    return folder / f"slice-{each.number:05d}.json"


def _slice_made(folder: Path, each: Slice) -> dict[str, Any] | None:
    """What was recorded of a slice as it was finished; None if it was not."""
    try:
        told = orjson.loads(_record(folder, each).read_bytes())
    except (OSError, ValueError):
        return None
    return told if told["slice"] == [each.start, each.rows] and told.get("version") == VERSION else None


class _Reader:
    """Reads slices that come in their order: each unit once, however many slices of it there are."""

    def __init__(self, config: Config) -> None:
        self._config, self._of, self._at = config, -1, 0
        self._rows: Iterator[ExampleRow] = iter(())

    def rows(self, each: Slice) -> Iterator[ExampleRow]:
        """The rows of a slice, which are taken before those of the next."""
        if each.of != self._of:
            self._rows, self._of, self._at = _rows(self._config, each.unit), each.of, 0
        skipped, self._at = each.start - self._at, each.start + each.rows
        return islice(self._rows, skipped, skipped + each.rows)


_opened: list[tuple[Loaded, _Reader]] = []  # of this worker: a model without weights, opened once, and its reader


def _work(config: Config, folder: Path, job: Slice) -> None:
    import torch

    from dikast.training.models.model import open_blank

    if not _opened:
        torch.set_num_threads(1)
        _opened.append((open_blank(config), _Reader(config)))
    loaded, reader = _opened[0]
    _prepare_slice(config, loaded, folder, job, reader.rows(job))


def _prepare_slice(config: Config, loaded: Loaded, folder: Path, job: Slice, rows: Iterator[ExampleRow]) -> None:
    asker, end = asker_of(config), end_of_reply(loaded)
    writer, count = ShardWriter(folder, job.number, root=config.root), 0
    find, smooth = config.label_loss_weight != 1, config.label_smoothing > 0
    shown: dict[tuple[str, str, int | None], str] = {}
    for row in rows:
        for example in asker.examples(row):
            encoded = encode(example, loaded, end=end, most=config.max_tokens, find_label=find, find_others=smooth)
            writer.add(example.id, example.origin, encoded, opening=_opening(example))
            for image in _files_shown(example):
                shown[image.source, relative_root(image, config.root), image.frame] = image_sha256(image)
            count += 1
    writer.flush()
    told = {"slice": [job.start, job.rows], "examples": count, "shown": [[*key, sha] for key, sha in shown.items()]}
    write_file(_record(folder, job), orjson.dumps({**told, "version": VERSION}))


def _opening(example: Example) -> int:
    """63 bits that tell what is asked up to the first response."""
    parts: list[Any] = []
    for message in example.opening:
        parts.append(message.role)
        for part in message.parts:
            shown = (part,) if isinstance(part, Image) else () if isinstance(part, Span) else part.frames
            parts.append(part.text if isinstance(part, Span) else [image_sha256(image) for image in shown])
    return int(fingerprint(parts)[:15], 16)


def _files_shown(example: Example) -> Iterator[Image]:
    """The images and frames of an example that are local files."""
    for message in example.messages:
        yield from (image for image in message.images if is_local(image))


def _as_shown(config: Config, folder: Path) -> bool:
    """Whether the media files that the shards show are unchanged, as far as they still exist."""
    told = [orjson.loads(file.read_bytes()) for file in sorted(folder.glob("shown-*.json"))]
    told += [orjson.loads(file.read_bytes())["shown"] for file in folder.glob("slice-*.json")]
    for rows in told:
        for source, root, frame, sha256 in rows:
            image = Image(source, os.path.join(config.root, root), frame)
            try:
                if os.path.exists(resolved(image)) and image_sha256(image) != sha256:
                    return False
            except DataError:  # the file exists but is no longer an image
                return False
    return True


def _rows(config: Config, unit: Unit) -> Iterator[ExampleRow]:
    for file in unit.files:
        data = config.data[unit.source]
        images = str(config.path(data.images)) if data.images else ""
        for record, target in rows_of_file(file, talk=bool(data.talk), images=images):
            yield ExampleRow(unit.source, unit.round, record, target)
