"""The recipe `critic-pointwise`: answers of several models about pictures, judged with a pool of evaluation prompts."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dikast.core.item import Item, item_from, item_to
from dikast.core.message import Message, Span
from dikast.core.part import Text, Turn, text_of
from dikast.core.records import read_items, write_items
from dikast.core.rubric import Rubric
from dikast.corpus.dedup.contamination import Apart
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.cases import PAIRS, Case, Cases, answers_stage
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe, count, share
from dikast.corpus.pipeline.stage import Asking, Rejected, Task, in_language, object_in, prompt, text_in
from dikast.corpus.schemas import get_schema
from dikast.corpus.schemas.delta import difference
from dikast.corpus.schemas.public_schema import asked, plain
from dikast.corpus.sources.evaluation_prompts import FAMILIES, FILES, RELATIVE, Evaluation, pool
from dikast.corpus.sources.image_lists import EXPLICIT, IMPLICIT, sensitive_of
from dikast.corpus.sources.picture_questions import drawn_items, pictures_of, quotas, sources_of, world_item
from dikast.corpus.sources.sensitive import mistakes_of
from dikast.corpus.teachers.picture_teacher import PictureTeacher, behind
from dikast.engines.base import Engine
from dikast.engines.budget import Budget
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.dialects.critic import first_score
from dikast.prompts.parse import parse_reply
from dikast.prompts.parsed import Target
from dikast.prompts.render import plain_pieces

Record = dict[str, Any]
_IMAGE_TOKENS = 1000


def _object(key: str) -> Record:
    return {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}


@dataclass(frozen=True, slots=True)
class CriticPointwiseOptions:
    """Options of the recipe `critic-pointwise`.

    `sources`: files of any known schema whose rows ask about a picture, and worlds (`world:scenes`). `pairs` (cases: a
    picture and a question) are drawn from them evenly by seed, 0 for all that files have. A row's own responses are
    answers of the models that `meta.models` or `meta.model` names; `responders` are engines that answer as well.
    `responses` of these answers are drawn for each case, 0 for all. The teacher writes the reference if a row has none.
    `samples` evaluations of each case are drawn: a prompt of the pool, from `families` if any are named, and an answer,
    or two for side-by-side prompts; the family `relative`, two scores of reference and answer, is drawn if it is named.
    `skip_unreadable` leaves out pictures that cannot be read, and counts them.

    `text_rich`: the share of cases from `text_sources`, whose pictures contain text; worlds make them. `sensitive`: the
    share of cases whose question the teacher rewrites about sensitive or biased content, every second one implicitly.
    """

    sources: tuple[str, ...] = ()
    text_sources: tuple[str, ...] = ()
    pairs: int = count(0, least=0)
    responders: tuple[str, ...] = ()
    responses: int = count(4, least=0)
    samples: int = count(4)
    families: tuple[str, ...] = ()
    skip_unreadable: bool = False
    text_rich: float = share(0.0)
    sensitive: float = share(0.0)


def _pairs(run: BuildRun, options: CriticPointwiseOptions) -> None:
    """Draw the cases and write them to disk; drawing again gives the same ones."""
    recipe, dropped = run.recipe, run.built.dropped
    if recipe.world:
        teacher = behind(run.asking.engine)
        made: Iterator[Item] = (world_item(teacher, n, run.folder, options.responses) for n in range(options.pairs))
        told = [""] * options.pairs
    else:
        sources = list(sources_of(recipe, options.sources, dropped, text_rich=False))
        sources += sources_of(recipe, options.text_sources, dropped, text_rich=True)
        counts = quotas(sources, options.pairs, options.text_rich)
        made = drawn_items(
            recipe, sources, counts, run.folder, dropped, skip=options.skip_unreadable, answers=options.responses or 4
        )  # fmt: skip
        told = sensitive_of(sum(counts), options.sensitive, recipe.seed)
    marked = (
        replace(item, meta={**item.meta, "sensitive": hard}) if hard else item
        for item, hard in zip(made, told, strict=False)
    )
    write_items(run.folder / PAIRS, marked)


def question_tasks(recipe: Recipe, pairs: Path) -> Iterator[Task]:
    """For each sensitive case a request for a new question."""
    for number, item in enumerate(read_items(pairs)):
        hard = item.meta.get("sensitive")
        if hard:
            messages = prompt("picture-question").ask(
                picture=tuple(pictures_of(item)), question=asked(item), explicit=hard == EXPLICIT,
                implicit=hard == IMPLICIT, language=recipe.language,
            )  # fmt: skip
            about = {"stage": "question", "pair": number}
            yield Task((number,), messages, _text_reader(recipe, "question", number), _object("question"), about)


def reference_tasks(
    recipe: Recipe, options: CriticPointwiseOptions, items: Iterator[tuple[int, Item]]
) -> Iterator[Task]:
    """For each case without a reference a request for one."""
    for number, item in items:
        if item.reference is None:
            question = (*pictures_of(item), Text(asked(item)))
            messages = prompt("picture-reference").ask(question=question, language=recipe.language)
            about = {"stage": "reference", "number": item.meta.get("number"), "count": options.responses}
            yield Task((number,), messages, _text_reader(recipe, "reference", number), _object("reference"), about)


def _text_reader(recipe: Recipe, key: str, number: int) -> Callable[[str], list[Record]]:
    def read(text: str) -> list[Record]:
        found = text_in(object_in(text), key)
        in_language(recipe.language, **{key: found})
        return [{"pair": number, key: found}]

    return read


def answer_tasks(cases: Cases, responder: int) -> Iterator[Task]:
    """The questions that a responder is drawn to answer, asked as a user would."""
    for number, item in cases.items():
        if responder in cases.drawn(number, item)[1]:
            messages = tuple(Message(turn.role, plain_pieces(turn.content)) for turn in item.instruction)
            about = {"stage": "answer", "pair": number, "model": cases.responders[responder]}
            yield Task((number,), messages, _answer_reader(number), None, about)


def _answer_reader(number: int) -> Callable[[str], list[Record]]:
    def read(text: str) -> list[Record]:
        if not text.strip():
            raise Rejected("an empty response")
        return [{"pair": number, "response": text.strip()}]

    return read


def judgement_tasks(
    recipe: Recipe, options: CriticPointwiseOptions, cases: Iterator[Case], teacher: PictureTeacher | None = None
) -> Iterator[Task]:
    """The drawn evaluations of each case, each asked with its prompt of the pool; a world uses rubrics of its own."""
    prompts = pool(options.families)
    for case in cases:
        for i, (evaluation, rubric, shown) in enumerate(_drawn(recipe, options, case, prompts, teacher)):
            item = _item(case, evaluation, rubric, shown, i)
            messages = evaluation.form.ask(item, rubric, tuple(range(len(shown))))
            if recipe.language:
                written = f"\n\nWrite the explanation in this language, thinking in it: {recipe.language}."
                messages = (*messages[:-1], replace(messages[-1], parts=(*messages[-1].parts, Span(written, True))))
            about = {
                "stage": "judgement", "number": case.item.meta.get("number"), "count": options.responses,
                "responses": shown, "evaluation": evaluation,
            }  # fmt: skip
            yield Task((case.number, i), messages, _judgement_reader(recipe, item, evaluation, rubric), None, about)


def _drawn(
    recipe: Recipe,
    options: CriticPointwiseOptions,
    case: Case,
    prompts: tuple[Evaluation, ...],
    teacher: PictureTeacher | None,
) -> Iterator[tuple[Evaluation, Rubric, tuple[int, ...]]]:
    """`samples` evaluations of a case, cycling through families and answers, both shuffled for each case."""
    rng = random.Random(f"{recipe.seed} evaluations {case.number}")
    n = len(case.models)
    turns = rng.sample(range(n), n)
    families: dict[str, list[Evaluation]] = {}
    for each in rng.sample(prompts, len(prompts)):
        if n > 1 or not each.pair:
            families.setdefault(each.family, []).append(each)
    seen = 0
    while families:
        for family, left in list(families.items()):
            evaluation = left.pop()
            if not left:
                del families[family]
            rubric = (
                evaluation.rubric
                if teacher is None
                else teacher.judged(int(str(case.item.meta["number"])), evaluation, options.responses)
            )
            if rubric is None:
                continue
            first, second = turns[seen % n], turns[(seen + 1) % n]
            pair = (first, second) if rng.random() < 0.5 else (second, first)
            yield evaluation, rubric, pair if evaluation.pair else (first,)
            seen += 1
            if seen == options.samples:
                return


def _item(case: Case, evaluation: Evaluation, rubric: Rubric, shown: tuple[int, ...], i: int) -> Item:
    meta = {key: value for key, value in case.item.meta.items() if key not in ("models", "number")}
    told = {"family": evaluation.family, "name": evaluation.name, "hash": evaluation.hash}
    return replace(
        case.item, id=f"{case.item.id}-{i}", responses=tuple(case.item.responses[each] for each in shown),
        reference=None if evaluation.pair else case.item.reference, rubric=rubric,
        meta={**meta, "models": [case.models[each] for each in shown], "prompt": told},
    )  # fmt: skip


def _judgement_reader(recipe: Recipe, item: Item, evaluation: Evaluation, rubric: Rubric) -> Any:
    def read(text: str) -> list[Record]:
        head, _, below = text.strip().partition("\n") if evaluation.relative else (text, "", "")
        parsed = parse_reply("arena", text, ARENA) if evaluation.pair else evaluation.form.parse(head, rubric)
        if parsed.label is None:
            raise Rejected("no verdict", parsed.reason)
        reasons = (below if evaluation.relative else parsed.feedback).strip()
        if not reasons:
            raise Rejected("no justification", "the explanation is missing")
        in_language(recipe.language, explanation=reasons)
        gold: Record = {"feedback": reasons}
        if evaluation.pair:
            better = "tie" if "=" in parsed.label else parsed.label[0].lower()
            gold = {"preference": better, "label": parsed.label, **gold}
        else:
            said = DIALECTS["critic"].read(reasons, Target(rubric.scale)).stated
            if said is not None:
                raise Rejected("the feedback names a score", f"the explanation names a score ({said.said!r})")
            if evaluation.relative and first_score(reasons) is not None:
                raise Rejected("the feedback names a score", "the explanation has another line of two scores")
            gold = {"score": plain(rubric.scale.value(parsed.label)), **gold}
        meta = {**item.meta, "recipe": recipe.recipe, "teacher": recipe.teacher}
        if evaluation.relative:
            meta["prompt"] = {**meta["prompt"], "reference": _of_reference(head, rubric)}
        return [item_to(_carrying(replace(item, gold=gold, meta=meta), evaluation, rubric))]

    return read


def _of_reference(text: str, rubric: Rubric) -> str:
    """The label that a reply with two scores gives the reference; Rejected where it is not on the scale."""
    score = first_score(text)
    labels = dict(zip(rubric.scale.values, rubric.scale.labels, strict=True))
    if score is None or score not in labels:
        raise Rejected("no verdict", f"the reference's score is not on the scale {rubric.scale}")
    return labels[score]


def _carrying(item: Item, evaluation: Evaluation, rubric: Rubric) -> Item:
    """The item with its prompt and reply in `meta.source`, so that `convert --to critic` writes them."""
    row = get_schema("critic").writes(item)
    messages = evaluation.form.ask(item, rubric, tuple(range(len(item.responses))))
    asked_, gold = "\n\n".join(message.text for message in messages), item.gold
    label = gold["label"] if evaluation.pair else rubric.scale.label(gold["score"])
    reply = evaluation.reply(gold["feedback"], str(label), item.meta["prompt"].get("reference", ""))
    turns = [
        {"from": "human", "value": "<image>\n" * len(pictures_of(item)) + asked_},
        {"from": "gpt", "value": reply.text},
    ]
    delta = difference({**row, "conversations": turns}, row)
    return replace(item, meta={**item.meta, "source": {"schema": "critic", "delta": delta}})


def _run(run: BuildRun, options: CriticPointwiseOptions) -> None:
    """The stages: cases, questions, references, answers, judgements; then the filters."""
    recipe = run.recipe
    engines = [recipe.engine(spec) for spec in options.responders]
    _pairs(run, options)
    cases = Cases(run, options.responses, tuple(engine.name for engine in engines))
    if options.sensitive:
        run.stage("1-questions", question_tasks(recipe, run.folder / PAIRS))
    if not _spent(run):
        run.stage("2-references", reference_tasks(recipe, options, cases.items()))
    for i, engine in enumerate(engines):
        if not _spent(run):
            run.stage(answers_stage(i), answer_tasks(cases, i), _asking(run.asking, engine))
    if _spent(run):
        return
    waits = run.built.waits
    teacher = behind(run.asking.engine) if recipe.world else None
    run.stage("4-judgements", judgement_tasks(recipe, options, cases.finished(), teacher))
    run.built.waits = run.built.waits or waits
    if not _spent(run):
        families: Counter[str] = Counter()
        run.write(_kept(run, recipe, families))
        run.built.figures["evaluation_prompts"] = dict(sorted(families.items()))


def _spent(run: BuildRun) -> bool:
    return bool(run.built.stages and run.built.stages[-1].left["budget"])


def _asking(asking: Asking, engine: Engine) -> Asking:
    """The same settings for another engine, within the same budget."""
    within = asking.engine.around(engine) if isinstance(asking.engine, Budget) else engine
    return replace(asking, engine=within)


def _kept(run: BuildRun, recipe: Recipe, families: Counter[str]) -> Iterator[Item]:
    """The judged items that are in no benchmark, counted by the family of their evaluation prompt."""
    bench = Apart(map(recipe.path, recipe.against), near=recipe.near, bare=True)
    for record in accepted(run.path("4-judgements")):
        item = item_from(record, root=str(run.folder))
        if bench.known(asked(item), map(text_of, item.responses), item.images):
            run.built.dropped["in a benchmark"] += 1
            continue
        families[item.meta["prompt"]["family"]] += 1
        yield item


def _estimate(recipe: Recipe, options: CriticPointwiseOptions) -> list[BuildEstimate]:
    """The cost of the stages for a question and an answer of typical length, if every reply is accepted at once."""
    n, size = options.pairs, 200 + _IMAGE_TOKENS
    if not recipe.world:
        dropped: Counter[str] = Counter()
        sources = list(sources_of(recipe, options.sources, dropped, text_rich=False))
        sources += sources_of(recipe, options.text_sources, dropped, text_rich=True)
        n = sum(quotas(sources, options.pairs, options.text_rich))
    hard = round(n * options.sensitive)
    item = Item("p0", (Turn("user", (Text("What is it?"),)),), ((Text("It is so. " * 20),),) * 2)
    case = Case(0, replace(item, meta={"number": 0}, reference=item.responses[0]), ("a", "b"))
    asks = [size_of(task) for task in judgement_tasks(recipe, replace(options, samples=50), iter([case]))]
    found = [("1-questions", hard, size)] if hard else []
    found.append(("2-references", n, size))
    found += [(answers_stage(i), n, size) for i in range(len(options.responders))]
    found.append(("4-judgements", n * options.samples, sum(asks) // len(asks) + _IMAGE_TOKENS))
    return [BuildEstimate(name, calls, calls * each, calls * recipe.max_tokens) for name, calls, each in found]


def _check(recipe: Recipe, options: CriticPointwiseOptions) -> Iterator[tuple[str, str]]:
    known = (*FAMILIES, RELATIVE)
    unknown = [each for each in options.families if each not in known]
    if unknown:
        yield "families", f"there is no family {unknown[0]!r}: known: {', '.join(known)}"
    if recipe.world:
        for key in ("sources", "text_sources", "responders"):
            if getattr(options, key):
                yield key, f"a world makes its own questions and answers: leave out {key!r}"
        yield from mistakes_of(options.sensitive, recipe.world)
        if not options.responses:
            yield "responses", "say how many answers the world is to make for each pair with 'responses'"
    elif not options.sources and not options.text_sources:
        yield "sources", "a teacher other than a world needs 'sources': files with questions about pictures, or worlds"
    if not options.pairs and any(each.startswith("world:") for each in (recipe.teacher, *options.sources)):
        yield "pairs", "a world can ask any number of questions: say how many to draw with 'pairs'"
    if options.sensitive and not options.responders:
        yield "sensitive", "rewritten questions have no answers yet: name 'responders'"
    if options.text_rich and not options.text_sources and not recipe.world:
        yield "text_rich", "name the sources whose pictures contain text with 'text_sources'"
    if options.text_sources and not options.text_rich:
        yield "text_sources", "set the share of pairs from these sources with 'text_rich'"


def _world(recipe: Recipe, options: CriticPointwiseOptions) -> Engine:
    return PictureTeacher(recipe.world, seed=recipe.seed, text_rich=options.text_rich)


KIND = Kind(
    "critic-pointwise", CriticPointwiseOptions, ("picture-question", "picture-reference", *FILES), _run, _estimate,
    _check, _world, defaults={"length_r": 0.02},
)  # fmt: skip
