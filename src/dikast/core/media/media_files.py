"""Images and videos: located, checked, fingerprinted and decoded, each at most once while it is in use.

What a judge sees of an image file: the first frame, turned upright by its EXIF orientation, in 8-bit RGB. Transparency
lies on white; 16-bit greys are scaled to 8 bits; CMYK and palettes are converted as Pillow does, colour profiles are
not applied.
"""

import base64
import hashlib
import io
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from dikast.core.errors import DataError, DikastError, UserError, is_machine_error, machine_error
from dikast.core.machine.bounded import Bounded
from dikast.core.media.data_urls import from_data_url
from dikast.core.media.decoding import check_size, decode
from dikast.core.media.fetch import shown_url
from dikast.core.media.stores import fetched
from dikast.core.media.video import DEFAULT_FRAMES, Sampled, frames, sample
from dikast.core.part import REMOTE, STORES, Image, Video

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_FILE_BYTES = 256 * 2**20
MOST_FETCHED_BYTES = 64 * 2**20
FETCH_TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """A decoded image. `picture` is shared between callers: copy it before changing it. `size` is (width, height)."""

    picture: "Picture"
    sha256: str

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, after turning."""
        return self.picture.size


def load_image(image: Image) -> LoadedImage:
    """The picture as 8-bit RGB with the SHA-256 of the file's bytes; DataError says what is wrong and what to do."""
    known = _known_hash(image)
    if known is not None and (loaded := _pictures.get(known)) is not None:
        return loaded
    return _load(_read(image), image) if image.frame is None else _load_frame(image, image.frame)


def load_images(images: Sequence[Image]) -> list[LoadedImage]:
    """Each as `load_image` has it; frames of one video are decoded in one pass."""
    found, videos = dict[Image, LoadedImage](), dict[tuple[str, str], set[int]]()
    for image in images:
        if image.frame is not None and _pictures.get(image_sha256(image)) is None:
            videos.setdefault((image.source, image.root), set()).add(image.frame)
    for (source, root), numbers in videos.items():
        ordered = sorted(numbers)
        frame = Image(source, root, ordered[0])
        sha256 = video_sha256(Video(source=source, root=root))
        for number, picture in zip(ordered, frames(_video_file(frame), ordered, _name(frame)), strict=True):
            found[Image(source, root, number)] = _kept(picture, _frame_sha256(sha256, number), _name(frame))
    return [found.get(image) or load_image(image) for image in images]


def image_of_picture(picture: "Picture") -> Image:
    """A PIL image as `Image.of` has it, as a PNG; plain RGB is remembered, so that it is not decoded again."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    raw = buffer.getvalue()
    source, sha256 = f"data:image/png;base64,{base64.b64encode(raw).decode()}", hashlib.sha256(raw).hexdigest()
    _inline.put(source, _Inline(sha256, len(source)))
    if picture.mode == "RGB" and not {"transparency", "exif"} & picture.info.keys():
        _keep_picture(picture.copy(), sha256, picture.size)
    return Image(source)


def _keep_picture(picture: "Picture", sha256: str, size: tuple[int, int]) -> None:
    with suppress(DataError):  # images of other sizes are refused when they are used
        check_size(*size, "")
        _checked.put(sha256, True)
        _pictures.put(sha256, LoadedImage(picture, sha256))


def _load_frame(image: Image, number: int) -> LoadedImage:
    sha256 = image_sha256(image)
    if (loaded := _pictures.get(sha256)) is not None:
        return loaded
    (picture,) = frames(_video_file(image), [number], _name(image))
    return _kept(picture, sha256, _name(image))


def _kept(picture: "Picture", sha256: str, name: str) -> LoadedImage:
    check_size(*picture.size, name)
    loaded = LoadedImage(picture, sha256)
    _checked.put(sha256, True)
    _pictures.put(sha256, loaded)
    return loaded


def sample_video(video: Video, n: int = DEFAULT_FRAMES) -> Video:
    """A video file with its sampled frames and their seconds; a clip that is given by its frames, as it is.

    Takes `video.count` frames, or `n` where it names no number, evenly (`core.media.video` says how). The frames are
    images that name the file and the frame's number in it. DataError says what is wrong with the file and what to do.
    """
    if not video.source:
        return video
    whole = Image(video.source, video.root, 0)
    sha256, count = video_sha256(video), video.count or n
    found = _sampled.get((sha256, count))
    if found is None:
        found, pictures = sample(_video_file(whole), count, _name(whole))
        for number, picture in zip(found.indices, pictures, strict=True):
            _kept(picture, _frame_sha256(sha256, number), _name(whole))
        _sampled.put((sha256, count), found)
    return replace(video, frames=tuple(replace(whole, frame=i) for i in found.indices), seconds=found.seconds)


def video_sha256(video: Video) -> str:
    """SHA-256 of a video file's bytes, in hexadecimal; remembered as that of an image."""
    whole = Image(video.source, video.root)
    return _known_hash(whole) or _hashed(replace(whole, frame=0))


def _frame_sha256(video_sha256: str, number: int) -> str:
    return hashlib.sha256(f"{video_sha256} frame {number}".encode()).hexdigest()


def _video_file(image: Image) -> str | bytes:
    """The path of a video, or its content where it is no file."""
    return _read(image).raw if _is_url(image.source) else _stamp(image).path


def _hashed(image: Image) -> str:
    """The hash of a video file, which may be larger than memory."""
    if _is_url(image.source):
        return _read(image).sha256
    key = _stamp(image)
    if not key.size:
        raise DataError(f"{_name(image)} is empty (0 bytes): put the video there, or fix the path")
    try:
        with open(key.path, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(image, error) from None
    if key.settled:
        _hashes.put(key, sha256)
    return sha256


def _load(file: "_File", image: Image) -> LoadedImage:
    with _decoding[int(file.sha256[:2], 16)]:  # threads that ask for one picture at the same time
        loaded = _pictures.get(file.sha256)
        return loaded or _kept(decode(file.raw, _name(image)), file.sha256, _name(image))


def check_image(image: Image) -> str:
    """The SHA-256 of an image that `load_image` can load, else its DataError. Images found good are remembered."""
    known = _known_hash(image)
    if known is not None and _checked.get(known):
        return known
    if image.frame is not None:
        return load_image(image).sha256
    file = _read(image)
    return file.sha256 if _checked.get(file.sha256) else _load(file, image).sha256


def image_sha256(image: Image) -> str:
    """SHA-256 of the image file's bytes, in hexadecimal, without decoding them.

    A file is read again only when its size or time of change differ; a URL is fetched once while it is remembered. For
    a frame of a video it identifies the video's bytes and the frame's number.
    """
    if image.frame is not None:
        whole = replace(image, frame=None)
        return _frame_sha256(_known_hash(whole) or _hashed(image), image.frame)
    known = _known_hash(image)
    return known if known is not None else _read(image).sha256


def image_file(image: Image) -> bytes:
    """The bytes of the image file as they are, not decoded; DataError if they cannot be had. A frame comes as a PNG."""
    if image.frame is None:
        return _read(image).raw
    buffer = io.BytesIO()
    load_image(image).picture.save(buffer, "PNG")
    return buffer.getvalue()


def resolved(image: Image) -> str:
    """The location of the image: a URL unchanged, a path joined to the folder that it is relative to."""
    if _is_url(image.source):
        return image.source
    return os.path.join(image.root, os.path.expanduser(image.source))


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What identifies a changed file without reading it."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def settled(self) -> bool:
        """Whether a later change would show: clocks of file systems have steps of up to two seconds."""
        return time.time_ns() - max(self.mtime_ns, self.ctime_ns) > 2_000_000_000


_hashes: Bounded[_Stamp | str, str] = Bounded(100_000, lambda _: 1)  # by file stamp or URL
_checked: Bounded[str, bool] = Bounded(100_000, lambda _: 1)  # by SHA-256
_pictures: Bounded[str, LoadedImage] = Bounded(192 * 2**20, lambda each: 4 * each.size[0] * each.size[1])
_decoding = [Lock() for _ in range(256)]  # by the beginning of the SHA-256
_fetched: Bounded[str, bytes] = Bounded(MOST_FETCHED_BYTES, len)  # by URL
_sampled: Bounded[tuple[str, int], Sampled] = Bounded(1_000_000, lambda each: len(each.indices))  # by SHA-256, number
_inline: Bounded[str, "_Inline"] = Bounded(MOST_FETCHED_BYTES, lambda each: each.size)  # by data URL


@dataclass(frozen=True, slots=True)
class MediaRules:
    """What media of items may name. `root` confines paths to a folder, symbolic links resolved; "" allows any path.

    `private_urls` allows URLs of private, loopback and link-local addresses. `as_given`: messages name media as
    the item does, and no folder of this machine, since a server's clients read them.
    """

    root: str = ""
    private_urls: bool = False
    as_given: bool = False


_rules = MediaRules()


@contextmanager
def media_rules(
    *, root: str | os.PathLike[str] | None = None, private_urls: bool | None = None, as_given: bool | None = None
) -> Iterator[MediaRules]:
    """Apply rules to all media of this process, in all threads, within the block; those before hold again after it.

    Rules that are None do not change; the rules in force are returned. UserError for a root that is no folder.
    """
    global _rules
    before = rules = _rules
    if root is not None:
        if root and not os.path.isdir(root):
            raise UserError(f"media root {root}: there is no such folder; name the folder that holds the items' media")
        rules = replace(rules, root=os.path.realpath(root) if root else "")
    private = rules.private_urls if private_urls is None else private_urls
    _rules = rules = replace(rules, private_urls=private, as_given=rules.as_given if as_given is None else as_given)
    try:
        yield rules
    finally:
        _rules = before


def forget() -> None:
    """Empty every cache of this module (for tests, and for long-lived processes whose URLs change)."""
    for cache in (_hashes, _checked, _pictures, _fetched, _sampled, _inline):
        cache.clear()


def _is_url(source: str) -> bool:
    return source.startswith(("data:", *REMOTE))


def _name(image: Image) -> str:
    where = image.source if _rules.as_given else resolved(image)
    where = shown_url(image.source) if image.source.startswith(REMOTE) else where
    return f"{_kind(image)} {where if len(where) <= 200 else where[:60] + '...'}"


def _kind(image: Image) -> str:
    return "image" if image.frame is None else "video"


def _known_hash(image: Image) -> str | None:
    if image.frame is not None:
        whole = _known_hash(replace(image, frame=None))
        return None if whole is None else _frame_sha256(whole, image.frame)
    if image.source.startswith("data:"):
        known = _inline.get(image.source)
        return None if known is None else known.sha256
    return _hashes.get(image.source if _is_url(image.source) else _stamp(image))


class _Inline(NamedTuple):
    """What is remembered of a data URL: the hash of what it holds, and its length."""

    sha256: str
    size: int


class _File(NamedTuple):
    raw: bytes
    sha256: str


def _read(image: Image) -> _File:
    """The bytes of the image file, and their hash, which is remembered."""
    if (source := image.source).startswith("data:"):
        inside = from_data_url(source, _name(image))
        known = _inline.get(source) or _Inline(hashlib.sha256(inside).hexdigest(), len(source))
        _inline.put(source, known)
        return _File(inside, known.sha256)
    key: _Stamp | str
    if _is_url(source):
        key, raw = source, _fetched.get(source)
        if raw is None:
            if source.startswith(STORES) and _rules.root:  # it would be read with the login of whoever runs this
                raise _outside(image)
            raw = fetched(source, MOST_FETCHED_BYTES, FETCH_TIMEOUT, kind=_kind(image), private=_rules.private_urls)
            _fetched.put(source, raw)
    else:
        key = _stamp(image)
        if key.size > MOST_FILE_BYTES:
            raise DataError(f"{_name(image)} has {key.size:,} bytes, more than {MOST_FILE_BYTES:,}: give a smaller one")
        try:
            with open(key.path, "rb") as stream:
                raw = stream.read(key.size + 1)  # a larger number would be allocated, not just allowed
        except OSError as error:
            raise _unreadable(image, error) from None
    if not raw:
        raise DataError(f"{_name(image)} is empty (0 bytes): put the {_kind(image)} there, or fix the path")
    file = _File(raw, hashlib.sha256(raw).hexdigest())
    if isinstance(key, str) or key.settled:
        _hashes.put(key, file.sha256)
    return file


def _unreadable(image: Image, error: OSError | ValueError) -> DikastError:
    """An error of the item, which is permanent; or of the machine, after which the next run asks about the
    item again.
    """
    if isinstance(error, OSError) and is_machine_error(error):
        return machine_error(error)
    return DataError(f"{_name(image)} cannot be read: {error.strerror if isinstance(error, OSError) else error}")


def _stamp(image: Image) -> _Stamp:
    path = resolved(image)
    if not inside_root(path):
        raise _outside(image)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise DataError(_missing(image, path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(image, error) from None
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{_name(image)} is a folder: name one {_kind(image)} file in it")
    if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for ever
        raise DataError(f"{_name(image)} is not a regular file: name a file with the {_kind(image)}")
    return _Stamp(os.path.abspath(path), found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _outside(image: Image) -> DataError:
    root = "folder that may be read" if _rules.as_given else f"media root {_rules.root}"
    return DataError(f"{_name(image)} lies outside the {root}: put it there, or name another root")


def confine(path: str | os.PathLike[str]) -> None:
    """DataError for a file, found in a folder, that is a link leading out of the media root, if there is one."""
    path = os.fspath(path)
    if os.path.islink(path) and not inside_root(path):
        cure = "put the file itself there, or name another root"
        raise DataError(f"is a link that leads outside the media root {_rules.root}: {cure}", path=path)


def inside_root(path: str) -> bool:
    """Whether a path, its links resolved, lies in the media root; true for all paths if there is none."""
    root = _rules.root
    try:
        return not root or os.path.commonpath((root, os.path.realpath(path))) == root
    except ValueError:  # a NUL in the path, or another drive of Windows
        return False


def _missing(image: Image, path: str) -> str:
    relative = not os.path.isabs(os.path.expanduser(image.source)) and not _rules.as_given
    start = f"relative paths start at {os.path.abspath(image.root or '.')}"
    if "://" in image.source:
        cure = "paths and addresses of http, https, s3, gs and az are; write the path, or download the file"
        return f"{_kind(image)} {shown_url(image.source)!r:.200} is an address that is not read: {cure}"
    cure = f"{start}; fix the path or move the file" if relative else "fix the path"
    return f"{_name(image) if _rules.as_given else f'{_kind(image)} {os.path.abspath(path)}'} does not exist: {cure}"
