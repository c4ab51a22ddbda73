"""From records to examples: the messages that are asked, and the target reply."""

import glob
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any

import numpy as np

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from
from dikast.core.media import load_image
from dikast.core.message import Message
from dikast.core.part import Content, Image, Text, Turn, Video
from dikast.core.records.files import folder_of
from dikast.core.records.items import read_items
from dikast.core.records.reading import read_records
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.verdict import Claim
from dikast.judging.settling import with_frames
from dikast.prompts.ask import as_given
from dikast.prompts.format import Format, load_format
from dikast.prompts.gold import Gold, gold_of
from dikast.prompts.target import Reply
from dikast.training.config import Augment, Config, Data
from dikast.training.data.rubric_augmentation import other_words

_OTHER = "\ue000"  # a response that is no other's
TALK_KEYS = ("id", "messages", "parts", "instruction", "image", "images", "target", "meta")


@dataclass(frozen=True, slots=True)
class Example:
    """The messages of a prompt and the target reply. `id` names the record and how the example was made of it."""

    id: str
    origin: str
    messages: tuple[Message, ...]
    reply: Reply
    prefilled: bool = False  # the label is scored right after the prompt, without generated text
    opening: tuple[Message, ...] = ()  # what of `messages` comes before the first response


def files_of(config: Config, patterns: tuple[str, ...]) -> list[str]:
    """The files that match the patterns, in order; UserError for a pattern without a match."""
    found: list[str] = []
    for pattern in patterns:
        path = str(config.path(pattern))
        files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not files:
            raise UserError(f"{pattern}: no file matches this pattern")
        found.extend(files)
    return found


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One record of a source, read but not yet made into examples."""

    source: int
    round: int
    record: Item
    target: str | None = None


def rows_of_file(file: str, *, talk: bool) -> Iterator[tuple[Item, str | None]]:
    """The records of a file of items, or of `talk` with its target; DataError for a record that cannot be used."""
    return _talk(file) if talk else _items(file)


def _items(file: str) -> Iterator[tuple[Item, None]]:
    first = ""
    for item in read_items(file):
        shape = "several responses" if len(item.responses) > 1 else "one response"
        if first and shape != first:
            raise DataError(
                f"this record has {shape}, those before it {first}: one file holds records of one kind; keep items to "
                "grade and pairs in files of their own, each its own source under 'data'",
                path=item.origin,
                field="responses",
            )
        first = shape
        yield item, None


def _talk(file: str) -> Iterator[tuple[Item, str]]:
    for value, line in read_records(file):
        unknown = sorted(value.keys() - set(TALK_KEYS))
        if unknown:
            raise DataError(
                f"unknown key {unknown[0]!r}: a row of talk may have {', '.join(TALK_KEYS)}",
                field=unknown[0],
                path=file,
                line=line,
            )
        target = value.get("target")
        if not isinstance(target, str) or not target.strip():
            raise DataError(
                "a row of talk needs a target: give 'target' some text",
                field="target",
                path=file,
                line=line,
            )
        asked = [value[key] for key in ("messages", "parts", "instruction") if value.get(key) is not None]
        if len(asked) > 1:
            raise DataError("give one of 'messages', 'parts' and 'instruction'", path=file, line=line)
        given: dict[str, Any] = {key: value[key] for key in ("id", "image", "images", "meta") if key in value}
        given["instruction"] = asked[0] if asked else None
        item = item_from(given, path=file, line=line, root=folder_of(file))
        yield item, target


class Asker:
    """Makes examples from rows with the formats, rubrics and augmentation of one configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._formats = [[load_format(named_format(config, name)) for name in data.formats] for data in config.data]
        self._rubrics = [_rubric(config, data) for data in config.data]

    def about(self) -> list[Any]:
        """Fingerprints of the formats and the rubrics of each source."""
        formats = [[form.hash for form in source] for source in self._formats]
        return [formats, [None if rubric is None else rubric.hash for rubric in self._rubrics]]

    def examples(self, row: ExampleRow) -> Iterator[Example]:
        """The examples of one row. DataError, naming record and cure, if no prompt or target can be made of it."""
        item = row.record
        try:  # frames of video files are sampled as the judge samples them
            item = with_frames(item, tuple(range(len(item.responses))), self._config.frames)
        except DataError as error:
            raise DataError(str(error), path=item.origin) from error
        if row.target is not None:
            messages = as_given(item, ())
            yield Example(item.id, item.origin, messages, Reply(row.target, ""), opening=messages)
            return
        data, augment = self._config.data[row.source], self._config.augment
        rng = draws(self._config.seed, row.source, row.round, item.id)
        asked = 0
        formats = self._formats[row.source]
        fitting = [form for form in formats if _shown(form, item)]
        if not fitting:
            raise DataError(
                f"item {item.id!r} has {len(item.responses)} response(s), which no format here can ask about: "
                f"{', '.join(form.name for form in formats)}",
                path=item.origin,
            )
        if data.one_format:
            fitting = [fitting[int(rng.integers(len(fitting)))]]
        for form in fitting:
            for rubric in self._rubrics_of(item, row.source):
                for responses in _orders(_shown(form, item), augment, rng):
                    yield self._one(form, item, rubric, responses, rng)
                    asked += 1
                    if augment.blank and rng.random() < augment.blank and (blank := _blanked(item)) is not None:
                        made = self._blank(form, blank, rubric, responses)
                        if made is not None:
                            yield made

    def _one(
        self, form: Format, item: Item, rubric: Rubric, responses: tuple[int, ...], rng: np.random.Generator
    ) -> Example:
        augment = self._config.augment
        gold = gold_of(item, rubric, responses)
        if item.reference and rng.random() < augment.drop_reference:
            item = replace(item, reference=None)
        if rubric.levels and rng.random() < augment.permute_levels:
            order = rng.permutation(len(rubric.levels))
            rubric = replace(rubric, levels=tuple(rubric.levels[i] for i in order))
        if augment.other_words and rng.random() < augment.other_words:
            rubric = other_words(rubric, rng)
        return _example(form, item, rubric, responses, gold)

    def _blank(self, form: Format, item: Item, rubric: Rubric, responses: tuple[int, ...]) -> Example | None:
        gold = gold_of(item, rubric, responses)
        claims = tuple(Claim(claim.text, "unclear") for claim in gold.claims)
        if form.kind == "pairwise":
            if "tie" not in dict(form.words):
                return None
            label = "tie"
        else:
            label = rubric.scale.labels[-1 if rubric.scale.lower_is_better else 0]
        said = "" if claims else "Nothing can be seen in the image, so nothing that the response says is supported."
        return _example(form, item, rubric, responses, Gold(label, said, claims, gold.split), tag="blank")

    def _rubrics_of(self, item: Item, source: int) -> tuple[Rubric, ...]:
        rubric = item.rubric or self._rubrics[source]
        if rubric is None:
            raise DataError(
                f"item {item.id!r} has no rubric, nor has its source: give one of them a 'rubric'",
                path=item.origin,
                field="rubric",
            )
        return tuple(rubric) if isinstance(rubric, Sheet) else (rubric,)


def draws(seed: int, *names: object) -> np.random.Generator:
    """The random generator of one record: it depends on the seed and `names` alone, not on other records."""
    spelt = "\0".join(map(str, (seed, *names))).encode("utf-8", "surrogatepass")
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(spelt, digest_size=16).digest(), "big"))


def _example(
    form: Format, item: Item, rubric: Rubric, responses: tuple[int, ...], gold: Gold, tag: str = ""
) -> Example:
    reply = form.target(gold, rubric, where=f"{item.origin or item.id}: item {item.id!r}")
    shown = "-".join(map(str, responses))
    name = f"{item.id}/{form.name}/{shown}" + (f"/{tag}" if tag else "")
    asked = form.ask(item, rubric, responses)
    others = form.ask(replace(item, responses=((Text(_OTHER),),) * len(item.responses)), rubric, responses)
    return Example(name, item.origin, asked, reply, not form.feedback, _agreed(asked, others))


def _agreed(asked: tuple[Message, ...], others: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages up to where two prompts differ."""
    found: list[Message] = []
    for one, other in zip(asked, others, strict=False):
        same = list(takewhile(lambda pair: pair[0] == pair[1], zip(one.parts, other.parts, strict=False)))
        found.append(Message(one.role, tuple(part for part, _ in same)))
        if one != other:
            break
    return tuple(found)


def _shown(form: Format, item: Item) -> list[tuple[int, ...]]:
    """The indices of the responses that the format shows: each response, or each pair."""
    count = len(item.responses)
    if form.kind == "absolute":
        return [(i,) for i in range(count)]
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _orders(shown: list[tuple[int, ...]], augment: Augment, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    for responses in shown:
        turned = responses[::-1]
        if len(responses) == 1 or augment.swap == "none":
            yield responses
        elif augment.swap == "both":
            yield responses
            yield turned
        else:
            yield turned if rng.random() < 0.5 else responses


def _blanked(item: Item) -> Item | None:
    """The item with grey images in instruction and context; None if it has none, or if its gold does not depend on the
    image (`meta.needs` other than `image`).
    """
    shown = [part for turn in item.instruction for part in turn.content] + list(item.context or ())
    if not any(isinstance(part, Image | Video) for part in shown) or item.meta.get("needs", "image") != "image":
        return None
    turns = tuple(Turn(turn.role, _greyed(turn.content)) for turn in item.instruction)
    return replace(item, instruction=turns, context=_greyed(item.context) if item.context else None)


def _greyed(content: Content) -> Content:
    parts: list[Any] = []
    for part in content:
        if isinstance(part, Image):
            parts.append(_grey(*load_image(part).size))
        elif isinstance(part, Video):
            frames = tuple(_grey(*load_image(frame).size) for frame in part.frames)
            parts.append(replace(part, frames=frames, source=""))
        else:
            parts.append(part)
    return tuple(parts)


@lru_cache(maxsize=64)
def _grey(width: int, height: int) -> Image:
    from PIL import Image as Pillow

    buffer = io.BytesIO()
    Pillow.new("RGB", (width, height), (128, 128, 128)).save(buffer, "PNG")
    return Image.of(buffer.getvalue())


def named_format(config: Config, name: str) -> str:
    """The path of a format's file beside the configuration, or the format's name."""
    path = config.path(name)
    return str(path) if path.is_file() else name


def _rubric(config: Config, data: Data) -> Rubric | Sheet | None:
    return load_rubric(data.rubric, root=config.root) if data.rubric else None
