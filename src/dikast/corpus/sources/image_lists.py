"""The images that a recipe names: a folder, a pattern, a list, or one file, checked before anything is asked."""

import glob
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dikast.core.errors import DataError, UserError
from dikast.core.media import check_image
from dikast.core.part import Image
from dikast.core.records import read_records
from dikast.core.runs.run_files import write_whole
from dikast.corpus.dedup.image_dedup import NearDuplicateImages
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.teachers.picture_teacher import PictureTeacher

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_URL = ("data:", "http://", "https://")
EXPLICIT, IMPLICIT = "explicit", "implicit"
_SHOWN = 5
_SHARD = 1000  # pictures a folder


@dataclass(frozen=True, slots=True)
class Listed:
    """An image by `source`: a URL, or a path that can be opened. `text_rich`: whether it holds text.

    `relative` says that it was named by a path from the recipe, so that both may be moved together.
    """

    source: str
    text_rich: bool = False
    relative: bool = False


def listed(recipe: Recipe, name: str, *, text_rich: bool = False) -> list[Listed]:
    """The images that `name` stands for, in order of their names; a list keeps its own order.

    A folder with everything below it, a pattern with `*`, an image file, a `.txt` with one path a line, or records
    with a column `image`. Paths in a list start at the list's folder. UserError when there is none.
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
            f"images: nothing is found at {path}: name a folder, a pattern such as photos/*.jpg, or a list of paths"
        )
    moves = not Path(name).expanduser().is_absolute()
    return [Listed(each, text_rich, moves and not _alone(path, each)) for each in found]


def _alone(path: Path, source: str) -> bool:
    """Whether an image is named by itself: a URL, or an absolute path in a list."""
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
            raise DataError("a list of images has the path of one in each row", path=str(path), line=at, field="image")
        yield image


def _from(path: Path, entry: str) -> str:
    return entry if entry.startswith(_URL) else str(path.parent / Path(entry).expanduser())


def readable(images: list[Listed], dropped: Counter[str], *, skip: bool, near: bool) -> list[Listed]:
    """Those that can be decoded, each once by its content, or with `near` by its looks; others count in `dropped`.

    DataError naming the first that cannot be read, unless `skip`.
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
    """`take` of the images (0: as many as there are), drawn by seed, of which the share `text_rich` holds text.

    UserError when there are too few of a sort. With `text_rich` 0 all images count alike.
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
            raise UserError(f"take: {counts[each]} {what} are due, {len(there)} can be read: take fewer, or add some")
    chosen = {image for each, there in sorts.items() for image in rng.sample(there, counts[each])}
    return [image for image in images if image in chosen]


def beside(image: Listed, folder: Path) -> str:
    """An image's path from `folder`; URLs and absolute paths as they were given."""
    return os.path.relpath(image.source, folder) if image.relative else image.source


def sensitive_of(n: int, part: float, seed: int) -> list[str]:
    """For each of `n` things `explicit`, `implicit`, or "" for most; the share `part` is drawn, both sorts in turn."""
    told = [""] * n
    for i, number in enumerate(random.Random(f"{seed} sensitive").sample(range(n), round(part * n))):
        told[number] = (EXPLICIT, IMPLICIT)[i % 2]
    return told


def write_picture(teacher: PictureTeacher, number: int, folder: Path, name: str = "") -> str:
    """Where a world's picture is in `folder`, drawn if it is not there, or damaged.

    Pictures of several worlds differ in `name`.
    """
    path = f"images/{name and f'{name}-'}{number // _SHARD:05d}/{number:07d}.png"
    target = folder / path
    if not _is_whole(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, teacher.picture(number), sync=False)
    return path


def _is_whole(path: Path) -> bool:
    """Whether a PNG is there and as it was written: each of its chunks has a checksum."""
    from PIL import Image as Pictures

    try:
        with Pictures.open(path, formats=("PNG",)) as opened:
            opened.verify()
    except (OSError, SyntaxError, ValueError):
        return False
    return True
