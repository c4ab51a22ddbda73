"""From records to examples: the messages that are asked, and the target reply."""

import glob
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
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
from dikast.core.records.sources import is_data
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.verdict import Claim
from dikast.corpus.schemas.talk import taught_rows
from dikast.corpus.sources.own_prompts import OwnPrompt, own_prompt
from dikast.judging.settling import with_frames
from dikast.prompts.ask import as_given
from dikast.prompts.format import Format, load_format
from dikast.prompts.gold import Gold, gold_of, scored_apart
from dikast.prompts.pair_names import exchangeable
from dikast.prompts.target import Reply, spelt
from dikast.training.config import OWN, Augment, Config, Data
from dikast.training.data.rubric_augmentation import other_words

_OTHER = "\ue000"  # a response that differs from all others
_ALONE = {
    "absolute": "score-only", "claims": "score-only", "score-first": "score-only", "pairwise": "choice-only",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """The messages of a prompt and the target reply. `id` names the record and how the example was made of it.

    `others` are the labels that the reply could have given instead.
    """

    id: str
    origin: str
    messages: tuple[Message, ...]
    reply: Reply
    prefilled: bool = False  # the label is scored right after the prompt, without generated text
    opening: tuple[Message, ...] = ()  # the part of `messages` before the first response
    others: tuple[str, ...] = ()


def files_of(config: Config, patterns: tuple[str, ...]) -> list[str]:
    """The files that match the patterns, in order; UserError where one has no match, or is a pipe or a device."""
    found: list[str] = []
    for pattern in patterns:
        path = str(config.path(pattern))
        files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not files:
            raise UserError(f"{pattern}: no file matches this pattern")
        for file in files:
            _refuse_pipe(Path(file))
        found.extend(files)
    return found


def _refuse_pipe(path: Path) -> None:
    """UserError for a pipe or a device that a configuration names: reading one may never end."""
    if path.exists() and not is_data(path):
        raise UserError(f"{path} is a pipe or a device, and training reads its files several times: name a file")


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One record of a source, read but not yet made into examples."""

    source: int
    round: int
    record: Item
    target: str | None = None


def rows_of_file(file: str, *, talk: bool, images: str = "") -> Iterator[tuple[Item, str | None]]:
    """The records of a file of items, or what rows of `talk` and of published forms teach, each with its target.

    images: the folder that relative paths of pictures in talk start at, "" for the file's. DataError for a record that
    cannot be used.
    """
    if not talk:
        yield from ((item, None) for item in read_items(file))
        return
    for value, line in read_records(file):
        try:
            for number, row in enumerate(taught_rows(value)):
                given = {"id": f"row-{line}" + f"-{number}" * bool(number), **row}
                target = given.pop("target")
                yield item_from(given, path=file, line=line, root=images or folder_of(file)), target
        except DataError as error:
            if error.path:
                raise
            said = str(error).removeprefix(f"field {error.field!r}: ")
            raise DataError(said, path=file, line=line, field=error.field) from None


class Asker:
    """Makes examples from rows with the formats, rubrics and augmentation of one configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._formats = [
            [load_format(named_format(config, name)) for name in data.formats if name != OWN] for data in config.data
        ]
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
        own = own_prompt(item) if OWN in data.formats else None
        for form in [own.form] if own else self._fitting(item, row.source, rng):
            for rubric in self._rubrics_of(item, row.source):
                for responses in _orders(_shown(form, item), augment, rng, turns=_turns(item)):
                    yield self._one(form, item, rubric, responses, rng, own)
                    if augment.blank and rng.random() < augment.blank and (blank := _blanked(item)) is not None:
                        made = None if own else self._blank(form, blank, rubric, responses)
                        if made is not None:
                            yield made

    def _fitting(self, item: Item, source: int, rng: np.random.Generator) -> list[Format]:
        """The source's formats that can ask about the item; a pair with a preference alone is only compared."""
        formats, data = self._formats[source], self._config.data[source]
        fitting = [form for form in formats if _shown(form, item)]
        if len(item.responses) > 1 and not scored_apart(item):
            fitting = [form for form in fitting if form.kind == "pairwise"] or fitting
        if not fitting:
            raise DataError(
                f"item {item.id!r} has {len(item.responses)} response(s), which no format here can ask about: "
                f"{', '.join(data.formats)}",
                path=item.origin,
            )
        return [fitting[int(rng.integers(len(fitting)))]] if data.one_format else fitting

    def _one(
        self,
        form: Format,
        item: Item,
        rubric: Rubric,
        responses: tuple[int, ...],
        rng: np.random.Generator,
        own: OwnPrompt | None,
    ) -> Example:
        augment = self._config.augment
        gold = gold_of(item, rubric, responses)
        decisive = item.meta.get("needs") == "reference" or (own and own.scores_reference)
        if item.reference and rng.random() < augment.drop_reference and not decisive:
            item = replace(item, reference=None)
        if rubric.levels and rng.random() < augment.permute_levels:
            order = rng.permutation(len(rubric.levels))
            rubric = replace(rubric, levels=tuple(rubric.levels[i] for i in order))
        if augment.other_words and rng.random() < augment.other_words:
            rubric = other_words(rubric, rng)
        if augment.drop_rubric and rng.random() < augment.drop_rubric:
            rubric = rubric.bare
        prose = not (augment.drop_feedback and rng.random() < augment.drop_feedback)
        if own is not None:
            if form.kind == "pairwise" and self._config.label_smoothing:
                told = f"item {item.id!r} is asked in its own prompt, whose labels label_smoothing does not know"
                raise DataError(f"{told}: leave 'own' out of 'formats', or label_smoothing", path=item.origin)
            reply = own.target(item, gold, rubric, responses, prose=prose)
            return _asked(form, item, rubric, responses, reply, prefilled=False)
        return _example(form if prose else without_prose(form), item, rubric, responses, gold)

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


def without_prose(form: Format) -> Format:
    """The format that asks the same for a verdict alone; where there is none, the same prompt with a bare verdict."""
    alone = _ALONE.get(form.name)
    if alone is not None and form.hash == load_format(form.name).hash:
        return load_format(alone)
    return replace(form, feedback=False, explains=False)


def _example(
    form: Format, item: Item, rubric: Rubric, responses: tuple[int, ...], gold: Gold, tag: str = ""
) -> Example:
    reply = form.target(gold, rubric, where=f"{item.origin or item.id}: item {item.id!r}")
    return _asked(form, item, rubric, responses, reply, tag, prefilled=not form.feedback)


def _asked(
    form: Format,
    item: Item,
    rubric: Rubric,
    responses: tuple[int, ...],
    reply: Reply,
    tag: str = "",
    *,
    prefilled: bool,
) -> Example:
    shown = "-".join(map(str, responses))
    name = f"{item.id}/{form.name}/{shown}" + (f"/{tag}" if tag else "")
    asked = form.ask(item, rubric, responses)
    others = form.ask(replace(item, responses=((Text(_OTHER),),) * len(item.responses)), rubric, responses)
    known = dict(form.words).values() if form.kind == "pairwise" else rubric.scale.labels
    labels = [spelt(form, label) for label in known]
    instead = tuple(label for label in labels if label != reply.label) if reply.label in labels else ()
    return Example(name, item.origin, asked, reply, prefilled, _agreed(asked, others), instead)


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


def _turns(item: Item) -> bool:
    """Whether the responses of a pair can change places: its feedback must read as well with the names exchanged."""
    feedback = item.gold.get("feedback") if isinstance(item.gold, dict) else None
    return not isinstance(feedback, str) or exchangeable(feedback)


def _orders(
    shown: list[tuple[int, ...]], augment: Augment, rng: np.random.Generator, *, turns: bool
) -> Iterator[tuple[int, ...]]:
    for responses in shown:
        turned = responses[::-1]
        if len(responses) == 1 or augment.swap == "none":
            yield responses
        elif augment.swap == "both":
            yield responses
            if turns:
                yield turned
        else:
            yield turned if rng.random() < 0.5 and turns else responses


def _blanked(item: Item) -> Item | None:
    """The item with grey images in instruction and context; None if it has none, or if its gold does not depend on the
    image (`meta.needs` other than `image`).
    """
    shown = [part for turn in item.instruction for part in turn.content] + list(item.context or ())
    if not any(isinstance(part, Image | Video) for part in shown) or item.meta.get("needs", "image") != "image":
        return None
    turns = tuple(Turn(turn.role, greyed(turn.content)) for turn in item.instruction)
    return replace(item, instruction=turns, context=greyed(item.context) if item.context else None)


def greyed(content: Content) -> Content:
    """The content with pictures and frames all grey, of the same size."""
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
    _refuse_pipe(path)
    return str(path) if path.is_file() else name


def _rubric(config: Config, data: Data) -> Rubric | Sheet | None:
    return load_rubric(data.rubric, root=config.root) if data.rubric else None
