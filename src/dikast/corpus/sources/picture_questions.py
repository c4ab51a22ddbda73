"""Questions about pictures, with their existing answers, drawn by seed from files and worlds."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from
from dikast.core.media import check_image
from dikast.core.part import Content, Image, Text, Turn, images_of, text_of
from dikast.corpus.convert import records_of
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.schemas.public_schema import asked
from dikast.corpus.sources.image_lists import write_picture
from dikast.corpus.teachers.picture_teacher import TEXT_RICH, PictureTeacher

_WORLD = "world:"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """A file of a known schema or `world:DOMAIN`, as a source of questions. `usable`: rows that ask about a picture."""

    name: str
    text_rich: bool
    usable: range | list[int]


def sources_of(
    recipe: Recipe, names: Iterable[str], dropped: Counter[str], *, text_rich: bool
) -> Iterator[QuestionSource]:
    """The sources with these names; rows without a picture or a question are counted. A world has any number."""
    for name in names:
        if name.startswith(_WORLD):
            yield QuestionSource(name, text_rich or name.removeprefix(_WORLD) in TEXT_RICH, range(2**31))
            continue
        if not recipe.path(name).is_file():
            raise UserError(f"{recipe.path(name)}: the recipe names this file, but it does not exist")
        usable = []
        for i, (item, _) in enumerate(_items(recipe.path(name))):
            if not pictures_of(item):
                dropped["row without a picture"] += 1
            elif not asked(item).strip():
                dropped["row without a question"] += 1
            else:
                usable.append(i)
        yield QuestionSource(name, text_rich, usable)


def quotas(sources: list[QuestionSource], pairs: int, text_rich: float) -> list[int]:
    """How many questions to take from each source: the share `text_rich` from those with text, evenly within each kind.

    A source that has fewer gives all of them, and the others make up for it. `pairs` 0 takes as many as the files have
    and the share allows. UserError if there are too few.
    """
    sorts = {True: text_rich, False: 1 - text_rich} if text_rich else {None: 1.0}
    sizes = [len(each.usable) for each in sources]
    members = {sort: [i for i, s in enumerate(sources) if sort in (None, s.text_rich)] for sort in sorts}
    most = min(int(sum(sizes[i] for i in members[sort]) / part + 1e-9) for sort, part in sorts.items() if part)
    wanted, found = pairs or most, [0] * len(sources)
    counts = {True: round(wanted * text_rich), None: wanted}
    for sort in sorts:
        due = counts[sort] if sort is not False else wanted - counts[True]
        there = sum(sizes[i] for i in members[sort])
        if due > there:
            what = {True: " about pictures with text", False: " about other pictures", None: ""}[sort]
            raise UserError(
                f"pairs: {due} questions{what} are needed, the sources have {there}: ask for fewer, or add some"
            )
        for left, i in enumerate(sorted(members[sort], key=lambda i: sizes[i]), -len(members[sort])):
            found[i] = min(sizes[i], due // -left)
            due -= found[i]
    return found


def drawn_items(
    recipe: Recipe, sources: list[QuestionSource], counts: list[int], folder: Path, dropped: Counter[str], *,
    skip: bool, answers: int,
) -> Iterator[Item]:  # fmt: skip
    """The drawn questions as items whose responses are the existing answers; pictures of worlds are written to disk.

    DataError, naming them, if pictures cannot be read; with `skip` they are counted instead. The same question about
    the same picture is used once.
    """
    seen: set[str] = set()
    bad: list[str] = []
    number = 0
    for source, n in zip(sources, counts, strict=True):
        found = (
            _of_world(recipe, source, n, folder, answers) if source.name.startswith(_WORLD) else
            _of_file(recipe, source, n)
        )  # fmt: skip
        for item in found:
            try:
                key = fingerprint([asked(item), [check_image(each) for each in pictures_of(item)]])
            except DataError as error:
                dropped["image that cannot be read"] += 1
                bad.append(f"{item.origin}: {error}")
                continue
            if key in seen:
                dropped["the same question about the same image"] += 1
                continue
            seen.add(key)
            yield replace(item, id=f"p{number}", origin="")
            number += 1
    if bad and not skip:
        told = "\n".join(f"  {each}" for each in bad[:_SHOWN])
        more = f"\n  and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise DataError(f"{len(bad)} images cannot be read: fix them or set 'skip_unreadable: true'\n{told}{more}")


def world_item(teacher: PictureTeacher, number: int, folder: Path, answers: int) -> Item:
    """A world's question about its picture `number`, with `answers` that differ in how much is correct."""
    image = Image(write_picture(teacher, number, folder, teacher.domain_of(number)), str(folder))
    said = teacher.answers(number, answers)
    return Item(
        f"p{number}", (Turn("user", (image, Text(teacher.question(number)))),),
        tuple((Text(each.text),) for each in said),
        meta={
            "source_set": f"{_WORLD}{teacher.domain_of(number)}", "models": ["world"] * len(said), "number": number,
            "text_rich": teacher.domain_of(number) in TEXT_RICH,
        },
    )  # fmt: skip


def _of_world(recipe: Recipe, source: QuestionSource, n: int, folder: Path, answers: int) -> Iterator[Item]:
    teacher = PictureTeacher(source.name.removeprefix(_WORLD), seed=recipe.seed)
    for number in range(n):
        item = world_item(teacher, number, folder, answers)
        yield replace(item, reference=(Text(teacher.reference(number, answers)),))


def _of_file(recipe: Recipe, source: QuestionSource, n: int) -> Iterator[Item]:
    path, usable = recipe.path(source.name), source.usable
    chosen = {usable[i] for i in random.Random(f"{recipe.seed} {source.name}").sample(range(len(usable)), n)}
    for i, (item, line) in enumerate(_items(path)):
        if i not in chosen:
            continue
        told = item.meta.get("models") or [item.meta.get("model")] * len(item.responses)
        pairs = zip(item.responses, told, strict=False)
        said = [(content, model or source.name) for content, model in pairs if _plain(content)]
        meta = {"source_set": source.name, "line": line, "models": [str(model) for _, model in said]}
        yield replace(
            item, responses=tuple(content for content, _ in said), rubric=None, gold=None,
            reference=item.reference if item.reference and _plain(item.reference) else None, context=None,
            meta={**meta, "text_rich": source.text_rich}, origin=f"{path}:{line}",
        )  # fmt: skip


def _plain(content: Content) -> bool:
    return bool(text_of(content).strip()) and not images_of(content)


def _items(path: Path) -> Iterator[tuple[Item, int]]:
    for record, line in records_of(path):
        try:
            yield item_from({"id": str(line), **record}, path=str(path), line=line, root=str(path.parent)), line
        except DataError as error:
            if error.path:
                raise
            raise DataError(str(error), path=str(path), line=line) from None


def pictures_of(item: Item) -> list[Image]:
    """The pictures that a question is about."""
    return [image for turn in item.instruction for image in images_of(turn.content)]
