"""The images that a recipe names by folder, pattern, list or file, checked before anything is asked."""

import glob
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dikast.core.errors import DataError, UserError
from dikast.core.media import check_image
from dikast.core.part import REMOTE, Image
from dikast.core.records import read_records
from dikast.core.runs.run_files import write_whole
from dikast.corpus.dedup.image_dedup import NearDuplicateImages
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.teachers.picture_teacher import PictureTeacher

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_URL = ("data:", *REMOTE)
EXPLICIT, IMPLICIT = "explicit", "implicit"
_SHOWN = 5
_SHARD = 1000  # pictures in a folder


@dataclass(frozen=True, slots=True)
class Listed:
    """An image by `source`: a URL, or a path that can be opened. `text_rich`: whether it contains text.

    `relative`: it was named by a path relative to the recipe, so that both may be moved together.
    """

    source: str
    text_rich: bool = False
    relative: bool = False


def listed(recipe: Recipe, name: str, *, text_rich: bool = False) -> list[Listed]:
    """The images that `name` denotes, sorted by name; a list keeps its own order.

    `name` is a folder (searched recursively), a pattern with `*`, an image file, a `.txt` with one path a line, or
    records with a column `image`. Paths in a list start at the list's folder. UserError if there is no image.
    """
    path = recipe.path(name)
    if path.is_dir():
        found = sorted(str(each) for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
    elif path.is_file():
        found = [str(path)] if path.suffix.lower() in SUFFIXES else [_from(path, each) for each in _entries(path)]
    else:
        found = sorted(each for each in glob.glob(str(path), recursive=True) if Path(each).is_file())
    if not found:
        raise UserError(
            f"images: nothing found at {path}: name a folder, a pattern such as photos/*.jpg, or a list of paths"
        )
    moves = not Path(name).expanduser().is_absolute()
    return [Listed(each, text_rich, moves and not _alone(path, each)) for each in found]


def _alone(path: Path, source: str) -> bool:
    """Whether an image's name does not depend on the recipe's folder: a URL, or an absolute path in a list."""
    return source.startswith(_URL) or (path.is_file() and path.parent not in Path(source).parents)


def _entries(path: Path) -> Iterator[str]:
    if path.suffix.lower() == ".txt":
        for line in path.read_text("utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.strip()
        return
    for row, at in read_records(path):
        image = row.get("image")
        if not isinstance(image, str) or not image:
            raise DataError("expected the path of an image in each row", path=str(path), line=at, field="image")
        yield image


def _from(path: Path, entry: str) -> str:
    return entry if entry.startswith(_URL) else str(path.parent / Path(entry).expanduser())


def readable(images: list[Listed], dropped: Counter[str], *, skip: bool, near: bool) -> list[Listed]:
    """The images that can be decoded, without duplicates (with `near`, near duplicates); `dropped` counts the others.

    DataError, naming the first ones, if images cannot be read and `skip` is false.
    """
    found, seen, alike, bad = [], set[str](), NearDuplicateImages(), []
    for image in images:
        part = Image(image.source)
        try:
            sha256 = check_image(part)
        except DataError as error:
            bad.append(str(error))
            continue
        if sha256 in seen:
            dropped["the same image twice"] += 1
        elif near and alike.add(part, image.source):
            dropped["near-duplicate image"] += 1
        else:
            seen.add(sha256)
            found.append(image)
    if bad and not skip:
        more = f"\n  and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        told = "\n".join(f"  {each}" for each in bad[:_SHOWN])
        raise DataError(
            f"{len(bad)} of {len(images)} images cannot be read: fix them or set 'skip_unreadable: true'\n{told}{more}"
        )
    if bad:
        dropped["image that cannot be read"] += len(bad)
    return found


def drawn(images: list[Listed], take: int, text_rich: float, seed: int) -> list[Listed]:
    """`take` of the images (0: all), drawn by seed, of which the share `text_rich` contains text.

    UserError if there are too few of a kind. With `text_rich` 0 the images are not distinguished.
    """
    rng = random.Random(f"{seed} images")
    sorts = {each: [image for image in images if image.text_rich is each] for each in (True, False)}
    shares = {True: text_rich, False: 1 - text_rich}
    if not text_rich:
        sorts, shares = {False: images}, {False: 1.0}
    most = min(int(len(sorts[each]) / part + 1e-9) for each, part in shares.items() if part)
    wanted = take or most
    rich = round(wanted * text_rich)
    counts = {True: rich, False: wanted - rich}
    for each, there in sorts.items():
        if counts[each] > len(there):
            what = "images" if not text_rich else "images with text" if each else "other images"
            raise UserError(
                f"take: {counts[each]} {what} are needed, {len(there)} can be read: take fewer, or add some"
            )
    chosen = {image for each, there in sorts.items() for image in rng.sample(there, counts[each])}
    return [image for image in images if image in chosen]


def beside(image: Listed, folder: Path) -> str:
    """An image's path relative to `folder`; URLs and absolute paths unchanged."""
    return os.path.relpath(image.source, folder) if image.relative else image.source


def sensitive_of(n: int, part: float, seed: int) -> list[str]:
    """For each of `n` entries `explicit`, `implicit` or ""; the share `part` is drawn, both kinds alternating."""
    told = [""] * n
    for i, number in enumerate(random.Random(f"{seed} sensitive").sample(range(n), round(part * n))):
        told[number] = (EXPLICIT, IMPLICIT)[i % 2]
    return told


def write_picture(teacher: PictureTeacher, number: int, folder: Path, name: str = "") -> str:
    """The path of a world's picture in `folder`; it is drawn if it is missing or damaged.

    `name` distinguishes the pictures of several worlds.
    """
    path = f"images/{name and f'{name}-'}{number // _SHARD:05d}/{number:07d}.png"
    target = folder / path
    if not _is_whole(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, teacher.picture(number), sync=False)
    return path


def _is_whole(path: Path) -> bool:
    """Whether a PNG exists and is undamaged, by the checksum of each of its chunks."""
    from PIL import Image as Pictures

    try:
        with Pictures.open(path, formats=("PNG",)) as opened:
            opened.verify()
    except (OSError, SyntaxError, ValueError):
        return False
    return True
