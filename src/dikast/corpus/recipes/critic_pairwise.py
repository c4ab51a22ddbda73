"""The recipe `critic-pairwise`: pairs with known preferences, asked in thirty wordings, with the teacher's reasons."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.item import Item, item_from, item_to
from dikast.core.message import Message, Span
from dikast.core.part import text_of
from dikast.core.records.writing import rebased
from dikast.corpus.dedup.contamination import Apart
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe, count, share
from dikast.corpus.pipeline.stage import Rejected, Task, in_language, object_in, prompt, text_in
from dikast.corpus.schemas.delta import difference
from dikast.corpus.schemas.llava_critic import write_critic
from dikast.corpus.schemas.public_schema import asked, image_sources
from dikast.corpus.sources.pair_templates import Template, templates
from dikast.corpus.sources.scored_pairs import Draw, Pair, criterion_of, from_people, from_scores
from dikast.corpus.teachers.picture_teacher import teacher_of
from dikast.engines.base import Engine
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.parsed import Target

Record = dict[str, Any]
_TEXT = {"type": "string"}
_SCHEMA = {
    "type": "object", "properties": {"reasons": _TEXT, "better": {"enum": ["a", "b", "tie"]}},
    "required": ["reasons", "better"],
}  # fmt: skip
_SLOTS = {"first": "a", "second": "b", "tie": "tie"}
_MOST_TIES = 0.9
_STAGE = "1-pairs"


@dataclass(frozen=True, slots=True)
class CriticPairwiseOptions:
    """Options of the recipe `critic-pairwise`.

    From the scored responses in `source` (rows of one instruction are consecutive; several scores of a response are
    averaged): all pairs whose means differ by more than `gap` points of their scale, at most `pairs` of them (0: all).
    From each file in `preferences`: every pair that people compared. Pairs with equal means are added until ties are
    the share `ties` of all.
    """

    source: str = ""
    preferences: tuple[str, ...] = ()
    gap: float = share(0.6, most=1000)
    ties: float = share(0.2, most=_MOST_TIES)
    pairs: int = count(0, least=0)


@dataclass(slots=True)
class _Count:
    """The numbers of pairs to draw from: clear preferences and ties."""

    scored: int = 0
    scored_ties: int = 0
    people: int = 0
    people_ties: int = 0


def chosen(recipe: Recipe, options: CriticPairwiseOptions, dropped: Counter[str]) -> Iterator[tuple[Pair, bool]]:
    """The drawn pairs, and whether the second response is shown first. Two passes: one counts, one draws.

    Every set of pairs of the required size is equally likely; the better response is A as often as B, up to one.
    """
    count, left_out = _Count(), _left_out(recipe, options, dropped)
    for pair in _all(recipe, options, left_out, dropped):
        people, tie = pair.gap is None, pair.better is None
        name = ("people" if people else "scored") + ("_ties" if tie else "")
        setattr(count, name, getattr(count, name) + 1)
    clear = min(options.pairs or count.scored, count.scored)
    decided = clear + count.people
    due = round(decided * options.ties / (1 - options.ties)) - count.people_ties
    ties = max(0, min(due, count.scored_ties))
    for reason, n in (
        ("clear pairs beyond the number asked for", count.scored - clear),
        ("equal scores beyond the share of ties", count.scored_ties - ties),
        ("ties short of the share asked for", due - ties),
    ):
        if n > 0:
            dropped[reason] += n
    rng = random.Random(f"{recipe.seed} critic-pairwise")
    take, take_tie = Draw(clear, count.scored, rng), Draw(ties, count.scored_ties, rng)
    a_wins = Draw(decided // 2 + (rng.randrange(2) if decided % 2 else 0), decided, rng)
    for pair in _all(recipe, options, left_out, Counter()):
        if pair.better is None:
            if pair.gap is None or take_tie():
                yield pair, rng.random() < 0.5
        elif pair.gap is None or take():
            yield pair, (pair.better == 0) != a_wins()


def _groups(recipe: Recipe, options: CriticPairwiseOptions, dropped: Counter[str]) -> Iterator[list[Pair]]:
    """The pairs of each instruction, source by source."""
    if options.source:
        yield from from_scores(recipe.path(options.source), options.gap, dropped)
    for name in options.preferences:
        yield from from_people(recipe.path(name), dropped)


def _all(recipe: Recipe, options: CriticPairwiseOptions, left_out: set[int], dropped: Counter[str]) -> Iterator[Pair]:
    for number, pairs in enumerate(_groups(recipe, options, dropped)):
        if number not in left_out:
            yield from pairs


def _left_out(recipe: Recipe, options: CriticPairwiseOptions, dropped: Counter[str]) -> set[int]:
    """The groups that occur in part in a benchmark, or nearly repeat an earlier group."""
    found: set[int] = set()
    repeats = recipe.near and not recipe.world
    if not recipe.against and not repeats:
        return found
    bench = Apart(map(recipe.path, recipe.against), near=recipe.near, bare=True)
    seen = Index(near=recipe.near)
    for number, pairs in enumerate(_groups(recipe, options, Counter())):
        sides = {id(side): side for pair in pairs for side in pair.sides}.values()
        item, said = pairs[0].sides[0].item, [text_of(side.response) for side in sides]
        if bench.known(asked(item), said, item.images):
            reason = "in a benchmark"
        elif repeats and seen.add(_whole(pairs[0], [asked(item), *said]), str(number)):
            reason = "near-duplicate of an earlier pair"
        else:
            continue
        dropped[reason] += len(pairs)
        found.add(number)
    return found


def _whole(pair: Pair, texts: list[str]) -> str:
    """The text by which a group is compared with others: instruction, criterion and every response."""
    rubric = criterion_of(pair)
    return "\n".join([*image_sources(pair.sides[0].item), rubric.criterion if rubric else "", *texts])


def items(
    recipe: Recipe, options: CriticPairwiseOptions, folder: Path, dropped: Counter[str]
) -> Iterator[tuple[Item, Template]]:
    """The pairs as items with their gold, image paths relative to `folder`, each with the template that asks it."""
    for number, (pair, turned) in enumerate(chosen(recipe, options, dropped)):
        template = random.Random(f"{recipe.seed} template {number}").choice(templates())
        yield rebased(_item(recipe, number, pair, template, turned=turned), str(folder)), template


def _item(recipe: Recipe, number: int, pair: Pair, template: Template, *, turned: bool) -> Item:
    sides = pair.sides[::-1] if turned else pair.sides
    better = "tie" if pair.better is None else "b" if (pair.better == 1) != turned else "a"
    means = [side.mean for side in sides] if pair.gap is not None else None
    single = means is not None and all(len(side.scores) == 1 for side in sides)
    alone = ("score", "label", "scores", "raters", "preference")
    parts = [{key: value for key, value in side.gold.items() if key not in alone} for side in sides]
    meta: Record = {
        "recipe": recipe.recipe, "teacher": recipe.teacher, "from": [side.item.id for side in sides],
        "known": "people" if means is None else "scores",
        "template": {"name": template.name, "hash": template.form.hash},
    }  # fmt: skip
    if means is not None:
        meta |= {"gap": pair.gap, "means": means, "scores_each": [len(side.scores) for side in sides]}
    first = sides[0].item
    meta |= {key: first.meta[key] for key in ("lineage", "families") if key in first.meta}
    gold = {"preference": better, "responses": parts} | ({"scores": means} if single else {})
    return replace(
        first,
        id=f"p{number}",
        responses=(sides[0].response, sides[1].response),
        rubric=criterion_of(pair) or template.rubric,
        gold=gold,
        meta=meta,
    )


def pair_tasks(recipe: Recipe, options: CriticPairwiseOptions, folder: Path, dropped: Counter[str]) -> Iterator[Task]:
    """For each pair a request for the reasons of its known preference."""
    for number, (item, template) in enumerate(items(recipe, options, folder, dropped)):
        rubric: Any = item.rubric
        if recipe.world and not all(part.get("claims") for part in item.gold["responses"]):
            raise UserError(
                f"a world argues from the claims of its responses, and {item.meta['from']} have none: use a source"
                " that a world made, or another teacher"
            )
        asking = template.form.ask(item, rubric, (0, 1))[0]
        first, second = template.called
        better = item.gold["preference"]
        told = [str(part.get("feedback") or "") for part in item.gold["responses"]]
        task = prompt("critic-pairwise").ask(
            better=better, first=first, second=second, winner=second if better == "b" else first,
            about_first=told[0], about_second=told[1], images=bool(item.images), language=recipe.language,
        )[0]  # fmt: skip
        parts = (*asking.parts, Span("\n\n", trusted=True), *task.parts)
        about = {"stage": "critic-pairwise", "item": item, "called": template.called}
        yield Task(
            (number,), (Message("user", parts),), _reader(item, template, asking.text, recipe.language), _SCHEMA, about
        )


def _reader(item: Item, template: Template, question: str, language: str) -> Any:
    better, rubric = item.gold["preference"], item.rubric

    def read(text: str) -> list[Record]:
        value = object_in(text)
        reasons, said = text_in(value, "reasons"), value.get("better")
        in_language(language, reasons=reasons)
        if said != better:
            raise Rejected("prefers the other", f"'better' must be {better!r}, which is known")
        stated = DIALECTS["prose"].read(reasons, Target(words=template.form.words)).stated
        if stated is not None and _SLOTS.get(stated.label or "") != better:
            raise Rejected(
                "the reasons contradict the preference", f"they say {stated.said!r}, and {better!r} is known"
            )
        reply = template.reply(reasons, better)
        if _SLOTS.get(template.form.parse(reply, rubric).label or "") != better:  # type: ignore[arg-type]
            raise Rejected("the reasons contradict the preference", "they read as another verdict; state none in them")
        return [finished(item, question, reasons, reply)]

    return read


def finished(item: Item, question: str, reasons: str, reply: str) -> Record:
    """The record with its reasons. `meta.source` keeps the question as its template asks it, and the whole reply.

    `corpus convert --to critic` (or `llava`) then writes the drawn template, or Dikast's own prompt after an edit.
    """
    done = replace(item, gold={**item.gold, "feedback": reasons})
    row = write_critic(done)
    wanted = {
        **row,
        "conversations": [
            {"from": "human", "value": "<image>\n" * len(image_sources(done)) + question},
            {"from": "gpt", "value": reply},
        ],
    }
    source = {"schema": "critic", "delta": difference(wanted, row)}
    return item_to(replace(done, meta={**done.meta, "source": source}))


def run(run: BuildRun, options: CriticPairwiseOptions) -> None:
    """Ask for the reasons of each pair's preference, and write the pairs."""
    found = run.stage(_STAGE, pair_tasks(run.recipe, options, run.folder, run.built.dropped))
    if not found.left["budget"]:
        run.write(_finished(run))


def _finished(run: BuildRun) -> Iterator[Item]:
    for made in accepted(run.path(_STAGE)):
        yield item_from(made, root=str(run.folder))


def estimate(recipe: Recipe, options: CriticPairwiseOptions) -> list[BuildEstimate]:
    """The cost of the stage, from the pairs themselves."""
    sizes = [size_of(task) for task in pair_tasks(recipe, options, Path(recipe.folder), Counter())]
    return [BuildEstimate(_STAGE, len(sizes), sum(sizes), len(sizes) * recipe.max_tokens)]


def _check(recipe: Recipe, options: CriticPairwiseOptions) -> Iterator[tuple[str, str]]:
    if not options.source and not options.preferences:
        yield "source", "needs 'source' (scored responses), 'preferences' (files of people's preferences), or both"


def _world(recipe: Recipe, options: CriticPairwiseOptions) -> Engine:
    return teacher_of(recipe.world, recipe.seed)


KIND = Kind(
    "critic-pairwise", CriticPairwiseOptions, ("critic-pairwise", "pair-templates"), run, estimate, _check, _world,
    files=("source", "preferences"),
)  # fmt: skip
