"""The recipe `perception`: rubrics that fit each picture, instructions, and one response for each score."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from dikast.core.part import Image
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe, added, count, share
from dikast.corpus.pipeline.reply_readers import (
    RESPONSE,
    RUBRICS,
    instruction_reader,
    levels_of,
    list_schema,
    response_reader,
    rubric_reader,
    shown_rubrics,
    with_meta,
)
from dikast.corpus.pipeline.reply_sizes import instruction_pieces, rubrics_a_reply, too_long
from dikast.corpus.pipeline.stage import Rejected, Task, object_in, prompt, text_in
from dikast.corpus.recipes.feedback import Filters, answered, item_of
from dikast.corpus.recipes.regrading import distinct, expected_tries, graded_responses, kept_records
from dikast.corpus.sources.image_lists import (
    EXPLICIT,
    IMPLICIT,
    Listed,
    beside,
    drawn,
    listed,
    readable,
    sensitive_of,
    write_picture,
)
from dikast.corpus.sources.request_plan import language_of, plan_lines, plan_of
from dikast.corpus.sources.seed_rubrics import SCALE, SEEDS, load_seeds
from dikast.corpus.sources.sensitive import mark_of, mistakes_of
from dikast.corpus.teachers.picture_teacher import TEXT_RICH, PictureTeacher, behind
from dikast.engines.base import Engine

Record = dict[str, Any]
_EXAMPLES = 4
_IMAGE_TOKENS = 1000
_TOLD = 3  # images without a rubric that the report names
_REPEATED = "a rubric like it exists already"
_FIT = {
    "type": "object", "properties": {"reason": {"type": "string"}, "fits": {"type": "boolean"}},
    "required": ["reason", "fits"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PerceptionOptions:
    """Options of the recipe `perception`.

    `images`: a folder, a pattern, or a list of images (a `.txt` with one path a line, or records with a column
    `image`), of which `take` are drawn by seed, 0 for all; for a world, the number to make. `skip_unreadable` leaves
    out images that cannot be read, and counts them, instead of stopping. Each image gets `per_image` rubrics, with
    examples from `seeds` (without it, from those that come with Dikast). The teacher checks whether each rubric fits
    its image and is asked for others until the share `fit` does, in at most `rounds` rounds. Each rubric gets
    `instructions`, and each instruction a response of about `words` words for each score, which the teacher grades
    again (`regrade`). `retries`, `agreement`, `complete` and `plan` are as in the recipe `feedback`; the picture is the
    topic.

    `text_rich`: the share of images that contain text, drawn from `text_images`; worlds make them. `sensitive`: the
    share of images whose rubrics and instructions are about sensitive or biased content, every second one implicitly.
    """

    images: str = ""
    text_images: str = ""
    take: int = count(0, least=0)
    skip_unreadable: bool = False
    seeds: str = ""
    per_image: int = count(3)
    fit: float = share(1.0)
    rounds: int = count(5)
    instructions: int = count(2)
    words: int = count(120)
    regrade: bool = True
    retries: int = count(2, least=0, last=True)
    agreement: float = share(0.8, last=True)
    complete: Literal[True, False, "require", "prefer"] = True
    text_rich: float = share(0.0)
    sensitive: float = share(0.0)
    plan: str = added("")


@dataclass(slots=True)
class Picture:
    """One picture and its rubrics. `image` is its path, relative to the build's folder.

    `refused`: criteria of rubrics that were not taken, each with the `reason`.
    """

    number: int
    image: str
    text_rich: bool | None
    sensitive: str
    kept: list[Record]
    refused: list[Record]
    asked: int = 0


def _pictures(run: BuildRun, options: PerceptionOptions) -> list[Picture]:
    """The pictures of a build, in order; those of a world are written beside the items."""
    recipe = run.recipe
    if recipe.world:
        teacher = behind(run.asking.engine)
        sources = [write_picture(teacher, number, run.folder) for number in range(options.take)]
        rich: list[bool | None] = [teacher.domain_of(number) in TEXT_RICH for number in range(options.take)]
    else:
        images = _images(recipe, options, run.built.dropped)
        sources = [beside(each, run.folder) for each in images]
        rich = [each.text_rich if options.text_rich else None for each in images]
    told = sensitive_of(len(sources), options.sensitive, recipe.seed)
    return [
        Picture(i, source, text, hard, [], [])
        for i, (source, text, hard) in enumerate(zip(sources, rich, told, strict=True))
    ]


def _images(recipe: Recipe, options: PerceptionOptions, dropped: Counter[str]) -> list[Listed]:
    found = listed(recipe, options.images) if options.images else []
    if options.text_images:
        found += listed(recipe, options.text_images, text_rich=True)
    found = readable(found, dropped, skip=options.skip_unreadable, near=recipe.near)
    return drawn(found, options.take, options.text_rich, recipe.seed)


def rubric_tasks(
    recipe: Recipe, pictures: list[Picture], seeds: list[Record], round_: int, root: str
) -> Iterator[Task]:
    """For each of these pictures a request for the rubrics it still lacks."""
    for picture in pictures:
        rng = random.Random(f"{recipe.seed} rubrics {round_} {picture.number}")
        at = rng.sample(range(len(seeds)), min(_EXAMPLES, len(seeds)))
        wanted = _wanted(recipe, picture)
        messages = prompt("picture-rubrics").ask(
            picture=Image(picture.image, root), examples=shown_rubrics(recipe, [seeds[i] for i in at]),
            taken=[each["criterion"] for each in picture.kept], refused=picture.refused[-_EXAMPLES:], count=wanted,
            explicit=picture.sensitive == EXPLICIT, implicit=picture.sensitive == IMPLICIT,
            language=recipe.language, low=SCALE.labels[0], high=SCALE.labels[-1],
        )  # fmt: skip
        about = {"stage": "rubrics", "picture": picture.number, "first": picture.asked, "count": wanted}
        lineage = {"round": round_, "picture": picture.number, "families": [f"seed {i}" for i in sorted(at)]}
        read = rubric_reader(wanted, lineage, world=bool(recipe.world))
        yield Task((picture.number,), messages, read, RUBRICS, about)


def fit_tasks(recipe: Recipe, pictures: list[Picture], rubrics: Path, root: str) -> Iterator[Task]:
    """For each new rubric the question whether it fits its picture."""
    for number, group in groupby(accepted(rubrics), key=lambda each: each["lineage"]["picture"]):
        for i, rubric in enumerate(group):
            messages = prompt("picture-fit").ask(
                picture=Image(pictures[number].image, root), criterion=rubric["criterion"], levels=levels_of(rubric),
                language=recipe.language,
            )  # fmt: skip
            about = {"stage": "fit", "lineage": rubric["lineage"]}
            yield Task((number, i), messages, _fit_reader(rubric), _FIT, about)


def _fit_reader(rubric: Record) -> Any:
    def read(text: str) -> list[Record]:
        value = object_in(text)
        if not isinstance(value.get("fits"), bool):
            raise Rejected("no verdict on the fit", "'fits' must be true or false")
        return [{"rubric": rubric, "fits": value["fits"], "reason": text_in(value, "reason")}]

    return read


def instruction_tasks(recipe: Recipe, pictures: list[Picture], root: str) -> Iterator[Task]:
    """The requests for each rubric's instructions and reference answers, cut so that the replies fit."""
    plan, pieces = plan_of(recipe, pictures=True), instruction_pieces(recipe)
    schema = list_schema("instructions", ("instruction", "reference"))
    pool = [(picture, rubric) for picture in pictures for rubric in picture.kept]
    for number, (picture, rubric) in enumerate(pool):
        meta = mark_of(picture.sensitive)
        if picture.text_rich is not None:
            meta["text_rich"] = picture.text_rich
        for first, n in pieces:
            planned = plan.of_requests(number * recipe.options.instructions + first, n)
            messages = prompt("picture-instructions").ask(
                picture=Image(picture.image, root), criterion=rubric["criterion"], levels=levels_of(rubric),
                count=n, best=SCALE.labels[-1], plan=plan_lines(planned), explicit=picture.sensitive == EXPLICIT,
                implicit=picture.sensitive == IMPLICIT, language=plan.language(recipe),
            )  # fmt: skip
            about = {"stage": "instructions", "count": n, "lineage": rubric["lineage"]}
            read = with_meta(instruction_reader(number, rubric, planned, first), meta, image=picture.image)
            at = (number,) if len(pieces) == 1 else (number, first)
            yield Task(at, messages, read, schema, about)


def response_tasks(recipe: Recipe, instructions: Path, root: str, dropped: Counter[str]) -> Iterator[Task]:
    """For each instruction and score a request for a response aimed at it, with feedback."""
    for record in distinct(accepted(instructions), recipe, dropped):
        rubric = record["rubric"]
        for score in SCALE.labels:
            messages = prompt("picture-responses").ask(
                picture=Image(record["image"], root), criterion=rubric["criterion"], levels=levels_of(rubric),
                instruction=record["instruction"], reference=record["reference"], score=score,
                words=recipe.options.words, language=language_of(recipe, record),
            )  # fmt: skip
            about = {"stage": "responses", "lineage": rubric["lineage"], "instruction": record["at"], "score": score}
            at = (record["number"], record["at"], int(score))
            yield Task(at, messages, response_reader(recipe, record, score), RESPONSE, about)


def _run(run: BuildRun, options: PerceptionOptions) -> None:
    """The stages: pictures, rubrics that fit them, instructions, responses, a second grading; then the filters."""
    recipe, root = run.recipe, str(run.folder)
    pictures = _pictures(run, options)
    if not _rubrics(run, options, pictures):
        return
    last = "2-instructions"
    if run.stage(last, instruction_tasks(recipe, pictures, root)).left["budget"]:
        return
    journals = graded_responses(
        run, lambda dropped: response_tasks(recipe, run.path(last), root, dropped), item_of, root
    )  # fmt: skip
    if journals is None:
        return
    filters = Filters.of(recipe, run.path("incomplete"))
    run.write(filters.groups(kept_records(journals), root))
    run.built.dropped.update(filters.dropped)


def _rubrics(run: BuildRun, options: PerceptionOptions, pictures: list[Picture]) -> bool:
    """Rounds of writing and checking rubrics until enough fit each picture; False if some requests have no answer."""
    recipe, root, dropped = run.recipe, str(run.folder), run.built.dropped
    seeds = _seeds(recipe, options)
    index = Index(near=recipe.near and not recipe.world)
    enough = math.ceil(options.fit * options.per_image - 1e-9)
    for round_ in range(1, options.rounds + 1):
        open_ = [each for each in pictures if round_ == 1 or len(each.kept) < enough]
        if not open_:
            break
        asked, inspected = f"1-rubrics-{round_}", f"1-fit-{round_}"
        if not answered(run, asked, lambda: rubric_tasks(recipe, open_, seeds, round_, root)):  # noqa: B023
            return False
        if not answered(run, inspected, lambda: fit_tasks(recipe, pictures, run.path(asked), root)):  # noqa: B023
            return False
        for picture in open_:
            picture.asked += _wanted(recipe, picture)
        for each in accepted(run.path(inspected)):
            rubric = each["rubric"]
            picture = pictures[rubric["lineage"]["picture"]]
            if not each["fits"]:
                dropped["rubric that does not fit its image"] += 1
                reason = "" if recipe.world else each["reason"]
                picture.refused.append({"criterion": rubric["criterion"], "reason": reason})
            elif not recipe.world and index.add(_words(rubric), f"{asked} {len(index)}"):
                dropped["near-duplicate rubric"] += 1
                picture.refused.append({"criterion": rubric["criterion"], "reason": _REPEATED})
            else:
                picture.kept.append(rubric)
    short = sum(options.per_image - len(each.kept) for each in pictures)
    if short:
        dropped["rubrics short of the number asked for"] = short
    none = [each for each in pictures if not each.kept]
    if none:
        dropped["image without a rubric that fits"] = len(none)
    for picture in none[:_TOLD]:
        why = "; ".join(f"{each['criterion']} ({each['reason']})" for each in picture.refused[:1] if each["reason"])
        run.built.notes.append(f"{picture.image}: no rubric fits" + (f", such as: {why}" if why else ""))
    return True


def _wanted(recipe: Recipe, picture: Picture) -> int:
    """How many rubrics to ask for a picture at once."""
    return rubrics_a_reply(recipe, recipe.options.per_image - len(picture.kept))


def _seeds(recipe: Recipe, options: PerceptionOptions) -> list[Record]:
    if recipe.world:
        return []
    return load_seeds(recipe.path(options.seeds) if options.seeds else SEEDS / "pictures.yaml")


def _inputs(recipe: Recipe, options: PerceptionOptions) -> dict[str, Any]:
    return {"seeds": _seeds(recipe, options), "plan": plan_of(recipe, pictures=True).axes}


def _words(rubric: Record) -> str:
    return " ".join([rubric["criterion"], *rubric["levels"].values()])


def _estimate(recipe: Recipe, options: PerceptionOptions) -> list[BuildEstimate]:
    """The cost of the stages for a rubric and an instruction of typical length, if every rubric fits at once."""
    n = options.take if recipe.world else len(_images(recipe, options, Counter()))
    level = "One sentence of about the length that such a description has."
    rubric = {"criterion": "A question about one quality?", "levels": dict.fromkeys(SCALE.labels, level), "lineage": {}}
    picture = Picture(0, "", None, "", [], [])
    first = size_of(next(rubric_tasks(recipe, [picture], _seeds(recipe, options), 1, ""))) + _IMAGE_TOKENS
    picture.kept.append(rubric)
    one = size_of(next(instruction_tasks(recipe, [picture], ""))) + _IMAGE_TOKENS
    calls = -(-options.per_image // rubrics_a_reply(recipe, options.per_image))
    pieces = len(instruction_pieces(recipe))
    rubrics = n * options.per_image
    answers = rubrics * options.instructions * len(SCALE.labels)
    answers = round(answers * expected_tries(recipe))
    answer = one + 3 * options.words
    sizes = [
        ("1-rubrics", n * calls, first), ("1-fit", rubrics, one), ("2-instructions", rubrics * pieces, one),
        ("3-responses", answers, answer),
    ]  # fmt: skip
    if options.regrade:
        sizes.append(("4-regrade", answers, answer + 2 * options.words))
    return [BuildEstimate(name, calls, calls * size, calls * recipe.max_tokens) for name, calls, size in sizes]


def _check(recipe: Recipe, options: PerceptionOptions) -> Iterator[tuple[str, str]]:
    if recipe.world:
        for key in ("images", "text_images", "seeds"):
            if getattr(options, key):
                yield key, f"a world makes its own pictures and rubrics: leave out {key!r}"
        yield from mistakes_of(options.sensitive, recipe.world)
        if not options.take:
            yield "take", "say how many pictures the world is to make with 'take'"
        return
    yield from too_long(recipe)
    if not options.images and not options.text_images:
        yield "images", "a teacher other than a world needs 'images': a folder, a pattern or a list"
    if options.text_rich and not options.text_images:
        yield "text_rich", "name the images that contain text with 'text_images'"
    if options.text_images and not options.text_rich:
        yield "text_images", "set the share of images that contain text with 'text_rich'"
    if 0 < options.text_rich < 1 and not options.images:
        yield "images", "name the images without text with 'images', or set 'text_rich: 1'"


def _world(recipe: Recipe, options: PerceptionOptions) -> Engine:
    return PictureTeacher(
        recipe.world, seed=recipe.seed, per_rubric=options.instructions, text_rich=options.text_rich
    )  # fmt: skip


KIND = Kind(
    "perception", PerceptionOptions, ("picture-rubrics", "picture-fit", "picture-instructions", "picture-responses"),
    _run, _estimate, _check, _world, files=("seeds", "plan"), defaults={"length_r": 0.02}, inputs=_inputs,
)  # fmt: skip
