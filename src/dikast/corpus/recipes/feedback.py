"""The recipe `feedback`: rubrics grown from seeds, instructions with references, one response for each score."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from statistics import median
from typing import Any, Literal

from dikast.core.item import Item, item_from
from dikast.core.part import Image
from dikast.corpus.dedup.contamination import Apart
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.observations import words_of
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe, added, count, share
from dikast.corpus.pipeline.record_pool import RecordPool
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
from dikast.corpus.pipeline.stage import Task, prompt
from dikast.corpus.recipes.regrading import distinct, expected_tries, graded_responses, kept_records
from dikast.corpus.sources.request_plan import language_of, plan_lines, plan_of
from dikast.corpus.sources.seed_rubrics import SCALE, SEEDS, load_seeds
from dikast.corpus.sources.sensitive import hard_of, mark_of, mistakes_of, sensitive_at
from dikast.corpus.teachers.world_teacher import text_teacher, wrong_world
from dikast.engines.base import Engine

Record = dict[str, Any]
_PASSES = 2  # passes over requests without an answer before the build stops for another run
_EXAMPLES = 4  # rubrics shown beside a request for more


@dataclass(frozen=True, slots=True)
class FeedbackOptions:
    """Options of the recipe `feedback`.

    The rubrics in `seeds` (without it, those that come with Dikast) are extended to `rubrics` in at most `rounds`
    rounds, `a_call` in a reply. `plan`: a file of topics, personas, tasks, formats, lengths and languages that requests
    are drawn from, otherwise those that come with Dikast. Each rubric gets `instructions`, and each instruction a
    response of about `words` words for each score, which the teacher grades again (`regrade`); one that misses its
    score is written anew up to `retries` times. `complete: true` (or `require`) keeps only instructions with a response
    of every score, `prefer` also as many responses of the others as leave the scores of the set balanced, `false` all.
    `agreement` is the share of second gradings that `--dry-run` expects to agree. `refine`: the teacher revises each
    new rubric, shown beside others, before it is added. `sensitive`: the share of new rubrics, and of their
    instructions, about sensitive or biased content, every second one implicitly. A world that teaches obeys `words`
    in `world_version` 4 alone.
    """

    seeds: str = ""
    rubrics: int = count(100)
    rounds: int = count(10)
    a_call: int = count(4)
    instructions: int = count(2)
    words: int = count(120)
    regrade: bool = True
    retries: int = count(2, least=0, last=True)
    agreement: float = share(0.8, last=True)
    complete: Literal[True, False, "require", "prefer"] = True
    refine: bool = False
    sensitive: float = share(0.0)
    plan: str = added("")
    world_version: Literal[3, 4] = added(3)


def rubric_tasks(
    recipe: Recipe,
    pool: list[Record] | RecordPool,
    round_: int,
    wanted: int,
    start: int = 0,
    repeated: Sequence[str] = (),
) -> Iterator[Task]:
    """Requests for `wanted` more rubrics, with examples from the pool; every second one asks for paraphrases.

    `start` rubrics were asked for in earlier rounds; `repeated` are criteria of some that were too much like others.
    """
    a_call = rubrics_a_reply(recipe, recipe.options.a_call)
    for call in range(-(-wanted // a_call)):
        rng = random.Random(f"{recipe.seed} rubrics {round_} {call}")
        examples = [pool[i] for i in rng.sample(range(len(pool)), min(_EXAMPLES, len(pool)))]
        count = min(a_call, wanted - call * a_call)
        how = "paraphrase" if call % 2 and pool else "new"
        first = start + call * a_call
        hard = sensitive_at(first // a_call, recipe.options.sensitive)
        messages = prompt("rubrics").ask(
            examples=shown_rubrics(recipe, examples),
            repeated=rng.sample(repeated, min(_EXAMPLES, len(repeated))),
            count=count,
            paraphrase=how == "paraphrase",
            language=recipe.language,
            low="1",
            high="5",
            **hard_of(hard),
        )
        about = {"stage": "rubrics", "first": first, "count": count}
        lineage = {"round": round_, "how": how, "families": sorted({f for each in examples for f in each["families"]})}
        lineage |= {"sensitive": hard} if hard else {}
        yield Task((round_, call), messages, rubric_reader(count, lineage, world=bool(recipe.world)), RUBRICS, about)


def refine_tasks(
    recipe: Recipe, made: Iterable[Record], pool: list[Record] | RecordPool, round_: int
) -> Iterator[Task]:
    """For each new rubric a request to revise it, with examples from the pool."""
    for number, rubric in enumerate(made):
        rng = random.Random(f"{recipe.seed} refine {round_} {number}")
        others = [pool[i] for i in rng.sample(range(len(pool)), min(_EXAMPLES, len(pool)))]
        lineage = rubric["lineage"]
        messages = prompt("rubric-refine").ask(
            criterion=rubric["criterion"], levels=levels_of(rubric), others=[each["criterion"] for each in others],
            language=recipe.language, low=SCALE.labels[0], high=SCALE.labels[-1],
            **hard_of(lineage.get("sensitive", "")),
        )  # fmt: skip
        about = {"stage": "refine", "lineage": lineage}
        told = {**lineage, "refined": True}
        yield Task((round_, number), messages, rubric_reader(1, told, world=bool(recipe.world)), RUBRICS, about)


def pooled(
    rubrics: Iterable[Record], pool: list[Record] | RecordPool, index: Index, dropped: Counter[str], most: int
) -> list[str]:
    """Add rubrics to the pool, up to `most`; near duplicates of earlier ones are dropped, counted and returned."""
    repeated: list[str] = []
    for rubric in rubrics:
        if len(pool) >= most:
            break
        if index.add(rubric["criterion"] + " " + " ".join(rubric["levels"].values()), f"rubric {len(pool)}"):
            dropped["near-duplicate rubric"] += 1
            repeated.append(rubric["criterion"])
        else:
            pool.append(rubric)
    return repeated


def instruction_tasks(recipe: Recipe, pool: Iterable[Record]) -> Iterator[Task]:
    """The requests for each rubric's instructions and reference answers, cut so that the replies fit."""
    plan, pieces = plan_of(recipe), instruction_pieces(recipe)
    for number, rubric in enumerate(pool):
        hard = rubric["lineage"].get("sensitive", "")
        for first, n in pieces:
            planned = plan.of_requests(number * recipe.options.instructions + first, n)
            messages = prompt("instructions").ask(
                criterion=rubric["criterion"], levels=levels_of(rubric), count=n, best=SCALE.labels[-1],
                plan=plan_lines(planned), language=plan.language(recipe), **hard_of(hard),
            )  # fmt: skip
            about = {"stage": "instructions", "count": n, "lineage": rubric["lineage"]}
            read = with_meta(instruction_reader(number, rubric, planned, first), mark_of(hard))
            at = (number,) if len(pieces) == 1 else (number, first)
            yield Task(at, messages, read, list_schema("instructions", ("instruction", "reference")), about)


def response_tasks(recipe: Recipe, instructions: Path, dropped: Counter[str]) -> Iterator[Task]:
    """For each instruction and score a request for a response aimed at it, with feedback."""
    for record in distinct(accepted(instructions), recipe, dropped):
        rubric = record["rubric"]
        for score in SCALE.labels:
            messages = prompt("responses").ask(
                criterion=rubric["criterion"], levels=levels_of(rubric), instruction=record["instruction"],
                reference=record["reference"], score=score, words=recipe.options.words,
                language=language_of(recipe, record),
            )  # fmt: skip
            about = {"stage": "responses", "lineage": rubric["lineage"], "instruction": record["at"], "score": score}
            at = (record["number"], record["at"], int(score))
            yield Task(at, messages, response_reader(recipe, record, score), RESPONSE, about)


def item_of(record: Record, recipe: Recipe, root: str = "") -> Item:
    """The finished item of a record; the path of its picture, if it has one, starts at `root`."""
    rubric, gold = record["rubric"], {"score": record["score"], "feedback": record["feedback"]}
    if "claims" in record:
        gold["claims"] = record["claims"]
    shown = {"image": record["image"]} if "image" in record else {}
    return item_from(
        {
            "id": f"r{record['number']}-i{record['at']}-s{record['score']}",
            **shown,
            "instruction": record["instruction"],
            "response": record["response"],
            "reference": record["reference"],
            "rubric": {
                "name": f"r{record['number']}", "scale": "1-5", "criterion": rubric["criterion"],
                "levels": rubric["levels"],
            },
            "gold": gold,
            "meta": {
                "recipe": recipe.recipe, "teacher": recipe.teacher, "lineage": rubric["lineage"],
                "families": rubric["families"], **record.get("meta", {}),
            },
        },
        root=root,
    )  # fmt: skip


@dataclass(slots=True)
class Filters:
    """The filters of finished records, and how many records each removed."""

    recipe: Recipe
    dropped: Counter[str]
    near: Index
    bench: Apart
    scratch: Path
    image: str | None = None

    @classmethod
    def of(cls, recipe: Recipe, scratch: Path) -> "Filters":
        """The filters of a recipe, with its benchmark files read. `scratch`: a file for records that wait."""
        bench = Apart(map(recipe.path, recipe.against), near=recipe.near, bare=True)
        return cls(recipe, Counter(), Index(near=recipe.near and not recipe.world), bench, scratch)

    def groups(self, found: Iterator[Record], root: str = "") -> Iterator[Item]:
        """The records that pass, instruction by instruction, then those of incomplete ones that are kept.

        Image paths start at `root`.
        """
        complete = self.recipe.options.complete
        waiting = RecordPool(self.scratch) if complete == "prefer" else None
        for (number, at), group in groupby(found, key=lambda each: (each["number"], each["at"])):
            records = self._alike(list(group))
            first = records[0] if records else None
            if first is None:
                continue
            name = f"r{number}-i{at}"
            if self._in_a_benchmark(records, root):
                self.dropped["in a benchmark"] += len(records)
                continue
            if not self.recipe.world and self._asked_before(first, name):
                self.dropped["near-duplicate instruction"] += len(records)
                continue
            if complete and len({each["score"] for each in records}) < len(SCALE.labels):
                if waiting is None:
                    self.dropped["not every score"] += len(records)
                    continue
                for record in records:
                    waiting.append(record)
                continue
            for record in records:
                yield item_of(record, self.recipe, root)
        if waiting is not None:
            for record in self._balanced(waiting):
                yield item_of(record, self.recipe, root)
            self.scratch.unlink()

    def _balanced(self, waiting: RecordPool) -> Iterator[Record]:
        """As many of the records of every score, in their order, as there are of the rarest."""
        counts = Counter(record["score"] for record in waiting)
        most, taken = min(counts[int(label)] for label in SCALE.labels), Counter[int]()
        for record in waiting:
            taken[record["score"]] += 1
            if taken[record["score"]] <= most:
                yield record
            else:
                self.dropped["not every score"] += 1

    def _in_a_benchmark(self, records: list[Record], root: str) -> bool:
        image = records[0].get("image")
        said = (each["response"] for each in records)
        return bool(self.bench.known(records[0]["instruction"], said, [Image(image, root)] if image else []))

    def _asked_before(self, record: Record, name: str) -> bool:
        """Whether a near duplicate was asked before; about another picture the same words ask something else."""
        if record.get("image") != self.image:
            self.image, self.near = record.get("image"), Index(near=self.recipe.near)
        return self.near.add(record["instruction"], name) is not None

    def _alike(self, records: list[Record]) -> list[Record]:
        """The records whose length is close to the others', without repeated responses."""
        said = [words_of(each["response"]) for each in records]
        middle = median(map(len, said))
        found: list[Record] = []
        seen: list[list[str]] = []
        for record, words in zip(records, said, strict=True):
            if abs(len(words) - middle) > self.recipe.tolerance * middle:
                self.dropped["length"] += 1
            elif words in seen:
                self.dropped["the same response for two scores"] += 1
            else:
                found.append(record)
                seen.append(words)
        return found


def _run(run: BuildRun, options: FeedbackOptions) -> None:
    """The stages: rubrics, instructions, responses, a second grading; then the filters."""
    recipe = run.recipe
    pool = _rubrics(run, options)
    if run.built.waits:
        return
    last = "2-instructions"
    if run.stage(last, instruction_tasks(recipe, pool)).left["budget"]:
        return
    journals = graded_responses(run, lambda dropped: response_tasks(recipe, run.path(last), dropped), item_of)
    if journals is None:
        return
    filters = Filters.of(recipe, run.path("incomplete"))
    run.write(filters.groups(kept_records(journals)))
    run.built.dropped.update(filters.dropped)


def _rubrics(run: BuildRun, options: FeedbackOptions) -> Iterable[Record]:
    """Run rounds until there are enough rubrics; each round shows rubrics of earlier ones."""
    recipe = run.recipe
    index, pool = Index(near=recipe.near and not recipe.world), RecordPool(run.path("rubrics"))
    for i, seed in enumerate(_seeds(recipe, options)):
        families = [f"seed {i}"]
        pool.append({**seed, "lineage": {"round": 0, "families": families, "world": None}, "families": families})
        index.add(seed["criterion"] + " " + " ".join(seed["levels"].values()), f"rubric {i}")
    asked, repeated = 0, list[str]()
    for round_ in range(1, options.rounds + 1):
        missing = options.rubrics - len(pool)
        if missing <= 0:
            break
        most = missing if recipe.world else min(missing, max(options.a_call, len(pool) * options.a_call))
        name = f"1-rubrics-{round_}"
        if not answered(run, name, lambda: rubric_tasks(recipe, pool, round_, most, asked, repeated)):  # noqa: B023
            return pool
        asked += most
        if options.refine:
            name, made = f"1-refine-{round_}", run.path(name)
            if not answered(run, name, lambda: refine_tasks(recipe, accepted(made), pool, round_)):  # noqa: B023
                return pool
        found = pooled(accepted(run.path(name)), pool, index, run.built.dropped, options.rubrics)
        repeated += [] if recipe.world else found
    if len(pool) < options.rubrics:
        run.built.dropped["rubrics short of the number asked for"] = options.rubrics - len(pool)
    return islice(pool, options.rubrics)


def answered(run: BuildRun, name: str, tasks: Callable[[], Iterable[Task]]) -> bool:
    """Ask a stage, and once more the tasks that failed; False if some still have no answer."""
    for _ in range(_PASSES):
        run.built.waits = ""
        found = run.stage(name, tasks())
        if not found.left or found.left["budget"]:
            break
        run.built.stages.pop()
    return not run.built.waits


def _seeds(recipe: Recipe, options: FeedbackOptions) -> list[Record]:
    if recipe.world:
        return []
    return load_seeds(recipe.path(options.seeds) if options.seeds else SEEDS / "text.yaml")


def _inputs(recipe: Recipe, options: FeedbackOptions) -> dict[str, Any]:
    return {"seeds": _seeds(recipe, options), "plan": plan_of(recipe).axes}


def _estimate(recipe: Recipe, options: FeedbackOptions) -> list[BuildEstimate]:
    """The cost of the stages for a rubric and an instruction of typical length."""
    seeds = _seeds(recipe, options)
    level = "One sentence of about the length that such a description has."
    rubric = {"criterion": "A question about one quality?", "levels": dict.fromkeys(SCALE.labels, level)}
    known = [{**each, "families": ["x"], "lineage": {}} for each in (seeds or [rubric])]
    calls = -(-max(0, options.rubrics - len(seeds)) // rubrics_a_reply(recipe, options.a_call))
    first = next(rubric_tasks(recipe, known, 1, options.a_call))
    one, pieces = size_of(next(instruction_tasks(recipe, known))), len(instruction_pieces(recipe))
    answers = options.rubrics * options.instructions * len(SCALE.labels)
    answers = round(answers * expected_tries(recipe))
    answer = one + 3 * options.words
    sizes = [
        ("1-rubrics", calls, size_of(first)),
        ("2-instructions", options.rubrics * pieces, one),
        ("3-responses", answers, answer),
    ]
    if options.refine:
        one_more = size_of(next(refine_tasks(recipe, [{**rubric, "lineage": {}, "families": []}], [], 1)))
        sizes.insert(1, ("1-refine", max(0, options.rubrics - len(seeds)), one_more))
    if options.regrade:
        sizes.append(("4-regrade", answers, answer + 2 * options.words))
    return [BuildEstimate(name, n, n * size, n * recipe.max_tokens) for name, n, size in sizes]


def _check(recipe: Recipe, options: FeedbackOptions) -> Iterator[tuple[str, str]]:
    yield from mistakes_of(options.sensitive, recipe.world)
    yield from (*too_long(recipe), *wrong_world(recipe.world, options.world_version, options.words))


def _world(recipe: Recipe, options: FeedbackOptions) -> Engine:
    return text_teacher(recipe)


KIND = Kind(
    "feedback", FeedbackOptions, ("rubrics", "rubric-refine", "instructions", "responses"), _run, _estimate, _check,
    _world, files=("seeds", "plan"), defaults={"length_r": 0.02}, inputs=_inputs,
)  # fmt: skip
