"""The texts and pictures of the items that a report shows, read from where the run read them, and their prompts."""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, DikastError
from dikast.core.item import Item
from dikast.core.media import load_image, resolved, sample_video
from dikast.core.media.video import DEFAULT_FRAMES, even
from dikast.core.message import Message, Span
from dikast.core.part import REMOTE, Content, Image, Text, Video, text_of
from dikast.core.records import Arrangement, scan_items
from dikast.core.records.sources import is_address, is_data
from dikast.core.rubric import Rubric
from dikast.core.runs.as_judged import as_changed
from dikast.core.runs.judge_lock import names_version
from dikast.core.text import counted
from dikast.judging.run_plan import lacking_parts
from dikast.judging.task import Shape, tasks_of
from dikast.prompts.format import Format, format_from
from dikast.prompts.render import only_shows

SIDE, LARGE = 320, 640  # pixels of a thumbnail's longer side; the first ones are larger
SHARP = 128  # pictures no larger than this are kept as they are
LONGEST = 6000  # characters of a text on the page
_OTHER = "not shown: rendered again it is another prompt, since the item, its pictures or the format have changed"
_LEFT_OUT = [  # what a run may have been asked without
    parts for n in range(4) for parts in combinations(("reference", "rubric", "media"), n)
]
_WEB = "not shown: it has pictures on the web, which a page does not fetch"
_FULL = "the images of this report have reached their size limit"
_COMPUTES = "not shown: the template of its format computes, and a page runs nothing that a folder brings"
MOST_PICTURES = 5_000_000  # bytes of picture data in one report
MOST_FRAMES = 8  # of one clip that are shown


@dataclass(frozen=True, slots=True)
class Thumb:
    """A picture small enough for the page, or the text shown in its place."""

    url: str = ""
    instead: str = ""
    small: bool = False  # drawn larger than it is, without smoothing


@dataclass(slots=True)
class Contents:
    """Items by id, the length of responses in characters, and a note where the items could not be read.

    `changed`: those of which it turned out that they are no longer what was judged; `cure` says what to do then.
    """

    items: dict[str, Item] = field(default_factory=dict)
    note: str = ""
    cure: str = ""
    changed: set[str] = field(default_factory=set)

    @property
    def told(self) -> str:
        """What is said of texts that are not there, "" where there is nothing to say."""
        return self.note or (as_changed(len(self.changed), self.cure) if self.changed else "")

    def different(self, rows: Iterable[tuple[str, tuple[int, ...]]]) -> int:
        """How many different things were judged in rows, each an item and the places of its responses; 0 where some
        texts are not known.
        """
        found = set[int]()
        for name, places in rows:
            item = self.items.get(name)
            if item is None or not all(0 <= each < len(item.responses) for each in places):
                return 0
            found.add(as_judged(item, places))
        return len(found)

    def length(self, item: str, response: int) -> int:
        """Characters of a response, 0 where it is not known or not text."""
        known = self.items.get(item)
        if known is None or not 0 <= response < len(known.responses):
            return 0
        return len(text_of(known.responses[response]))


def as_judged(item: Item, responses: Sequence[int]) -> int:
    """A hash of what is judged, whatever its name and its gold: equal for copies."""
    return hash((item.instruction, tuple(item.responses[each] for each in responses), item.context, item.reference))


@dataclass(frozen=True, slots=True)
class JudgedItems:
    """The items of a run, at `path`, where it read them or where they are now, in their order; records that cannot be
    read are passed over.

    names: with which table of column names they are read. cure: what to do where they are not there, or are others.
    unread: why they cannot be read, "" where they can.
    """

    path: str
    columns: Mapping[str, str]
    names: int
    cure: str
    unread: str

    @classmethod
    def of(cls, folder: Path, lock: Mapping[str, Any], path: str = "", *, cure: str) -> "JudgedItems":
        """Those of the run in `folder`; `path` is where they are now, "" for where the run read them. An address that
        only the lock names is not asked.
        """
        given, path = bool(path), path or str(lock.get("items") or "")
        unread = ""
        if not lock and not path:
            unread = f"it is not known where the items are: {cure}"
        elif not path or path == "-":
            unread = "the run read its items from standard input: ids and verdicts are shown, no texts"
        elif is_address(path) and not given:
            unread = f"the items were read from {path}: no texts are shown; {cure}"
        elif not is_address(path) and not is_data(path):
            unread = f"the items are no longer at {path}: ids and verdicts are shown, no texts; {cure}"
        return cls(path, lock.get("columns") or {}, names_version(folder), cure, unread)

    def __iter__(self) -> Iterator[Item]:
        if self.unread:
            return iter(())
        scanned = scan_items(self.path, self.columns, Arrangement(self.names))
        return (item for item in scanned if not isinstance(item, DataError))

    def contents(self, wanted: Iterable[str]) -> Contents:
        """Those whose id is wanted."""
        left, found = set(wanted), Contents(note=self.unread, cure=self.cure)
        for item in self:
            if item.id in left:
                found.items[item.id] = item
                left.discard(item.id)
                if not left:
                    break
        if left and not self.unread:
            found.note = f"{len(left):,} of the judged items are no longer in {self.path}"
        return found


class Thumbs:
    """Makes thumbnails as data URLs until the report's share of bytes is used up; each picture is made once."""

    def __init__(self, most: int = MOST_PICTURES, lock: Mapping[str, Any] | None = None) -> None:
        self._left = self._most = most
        self._frames = _sampled_by(lock or {})
        self._made: dict[str, Thumb] = {}

    def renew(self) -> None:
        """Begin another page, with all of its share."""
        self._left = self._most
        self._made.clear()

    def of(self, content: Content) -> list[Thumb]:
        """One for each picture and each sampled frame of a clip; of more than MOST_FRAMES as many, evenly."""
        found: list[Thumb] = []
        for part in content:
            if not isinstance(part, Text):
                found += [self._one(part)] if isinstance(part, Image) else self._clip(part)
        return found

    def _clip(self, clip: Video) -> list[Thumb]:
        name = Image(clip.source, clip.root).name
        if is_address(clip.source):
            return [Thumb(instead=f"clip on the web: {name}")]
        if clip.source and self._left <= self._most // 100:  # not worth decoding a clip
            return [Thumb(instead=f"clip left out: {_FULL}")]
        try:
            frames = sample_video(clip, self._frames).frames
        except (DataError, OSError) as error:
            return [Thumb(instead=f"clip not shown: {error}")]
        shown = even(len(frames), MOST_FRAMES)
        found = [self._one(frames[k]) for k in shown]
        if more := len(frames) - len(shown):
            found.append(Thumb(instead=f"and {more:,} more frames of the clip"))
        return found

    def _one(self, image: Image) -> Thumb:
        if image.source.startswith(REMOTE):
            return Thumb(instead=f"image on the web: {image.name}")
        try:
            loaded = load_image(image)
        except (DataError, OSError):
            return Thumb(instead=f"image not found: {resolved(image) if len(image.source) < 500 else image.name}")
        if (made := self._made.get(loaded.sha256)) is None:
            made = self._made[loaded.sha256] = self._make(loaded.picture)
        elif made.url:
            self._left -= len(made.url)  # it is written again wherever it is shown
        return made

    def _make(self, picture: "object") -> Thumb:
        from PIL.Image import Image as Picture

        assert isinstance(picture, Picture)
        small = max(picture.size) <= SHARP
        drawn = picture.copy()
        buffer = io.BytesIO()
        if small:
            drawn.save(buffer, "PNG")
        else:
            side = LARGE if self._left > self._most / 2 else SIDE  # the first pictures have detail to zoom into
            drawn.thumbnail((side, side))
            drawn.save(buffer, "JPEG", quality=80)
        if self._left < len(buffer.getvalue()) * 4 // 3:
            return Thumb(instead=f"left out: {_FULL}")
        mime = "png" if small else "jpeg"
        url = f"data:image/{mime};base64,{base64.b64encode(buffer.getvalue()).decode()}"
        self._left -= len(url)
        return Thumb(url, small=small)


def _sampled_by(lock: Mapping[str, Any]) -> int:
    """How many frames a run sampled of a clip whose item names no number."""
    try:
        return max(1, int(lock["identity"]["settings"]["frames"]))
    except (KeyError, TypeError, ValueError):  # no lock, or one of another version
        return DEFAULT_FRAMES


def clipped(text: str) -> str:
    """At most LONGEST characters, and how many were left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} characters left out)"


class ExactPrompts:
    """Renders prompts with the format of a lock. What is rendered was sent: the key of the question, which covers
    format, rubric and item with its media, has to be the one that the verdict has.
    """

    def __init__(self, lock: Mapping[str, Any]) -> None:
        self._format: Format | None = None
        self._asked = [(parts, reads_gold) for parts in _LEFT_OUT for reads_gold in (False, True)]
        try:
            self._format = format_from(lock["format"], path="judge.lock.json")
        except (DikastError, KeyError, TypeError, ValueError, AttributeError):  # no lock, or one of another version
            return
        self._computes = not (only_shows(self._format.system) and only_shows(self._format.user))

    def of(self, item: Item, verdict: Mapping[str, Any], rubric: Rubric) -> str:
        """The messages of the first attempt, an image as `[image]`, a clip with the frames of it that were sent; the
        reason where they are not known.
        """
        if self._format is None:
            return ""
        if self._computes:
            return _COMPUTES
        if any(is_address(image.source) for image in item.images) or any(is_address(v.source) for v in item.videos):
            return _WEB
        asked = tuple(verdict["question"].get("responses") or [0])
        sample = int(verdict["question"].get("sample") or 0)
        judge, format = (str((verdict.get("hashes") or {}).get(name)) for name in ("judge", "format"))
        if format != self._format.hash:
            return _OTHER
        shape: Shape = "each" if len(asked) == 1 else "both-orders"
        samples = range(sample, sample + 1)
        try:
            for way in self._asked:
                left_out, reads_gold = way
                part = lacking_parts(item, left_out)
                for task in tasks_of(
                    part, rubric, judge=judge, format=format, shape=shape, samples=samples, reads_gold=reads_gold
                ):
                    if task.key == verdict["key"]:
                        self._asked = [way, *(each for each in self._asked if each != way)]  # the next ones are alike
                        clips = iter(verdict.get("clips") or ())
                        return "\n\n".join(_told(each, clips) for each in self._format.ask(part, task.rubric, asked))
        except DikastError as error:
            return f"not shown: {error}"
        return _OTHER


def _told(message: Message, clips: Iterator[Mapping[str, Any]]) -> str:
    """A message as text; `clips` are the frames of its video files, in their order."""
    parts = []
    for each in message.parts:
        if isinstance(each, Video):
            shown = next(clips, {}) if each.source else {}
            indices, seconds = shown.get("indices") or each.frames, shown.get("seconds") or each.seconds
            parts.append(_clip_told(len(indices), seconds))
        else:
            parts.append(each.text if isinstance(each, Span) else "[image]")
    return f"{message.role}:\n{''.join(parts)}"


def _clip_told(n: int, seconds: Sequence[float]) -> str:
    if not n:
        return "[clip]"
    at = [f"{each:.2f}".rstrip("0").rstrip(".") for each in seconds]
    if len(at) > MOST_FRAMES:
        at = [*at[: MOST_FRAMES - 1], "…", at[-1]]
    when = f", at {', '.join(at)} s" if at else ""
    return f"[clip: {counted(n, 'frame')}{when}]"
