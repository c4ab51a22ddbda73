"""The recipe `self-improvement`: a judge is trained on those of its own verdicts that agree and that gold confirms.

The recipe prepares a folder for each round and measures its model on held-out gold; `dikast train sft` trains it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.intervals import Resampling
from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.media import image_sha256
from dikast.core.part import text_of
from dikast.core.records import read_items, write_items
from dikast.core.rubric import Rubric
from dikast.core.runs import run_files as sums
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.text import in_shell
from dikast.core.verdict import Status
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe, count, share
from dikast.corpus.pipeline.round_training import CONFIG, GRADED, PAIRS, configure, named, start_of, trained
from dikast.corpus.pipeline.stage import Asking, Rejected, Task
from dikast.corpus.pipeline.verdict_filter import Dropped, ballots, due_label, learnt, stop_reason, with_gold
from dikast.corpus.schemas.public_schema import asked
from dikast.engines.base import Engine, Sampling
from dikast.engines.spec import open_engine, parse_spec
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from dikast.judging.run_plan import Source
from dikast.prompts.ask import prompt_alone
from dikast.prompts.parse import parse_reply
from dikast.prompts.parsed import Target

Record = dict[str, Any]
ROUNDS = "rounds.json"
_HELD, _KEPT = "held.json", "kept.json"
_OURS = ("out", "data")  # keys of the training configuration that the round sets
_HOW = Resampling(draws=1000)


@dataclass(frozen=True, slots=True)
class ImprovementOptions:
    """Options of the recipe `self-improvement`. The `teacher` is the judge to improve, as it is before the first round.

    `source`: items whose responses are judged, together with `generate` responses to each instruction by the judge that
    is improved. Everything is judged by `judge` ("" for the improved judge itself) `samples` times, pairs in both
    orders; with `compare` the generated responses are compared in pairs. A verdict is kept if at least the share
    `agree` of the samples of each order gave it and gold, if the item has any, confirms it. `train`: keys of `dikast
    train sft`; without `model` or `init` each round continues from the previous model. `held`: items with gold and one
    response each, on which every round is measured. The rounds end after `rounds`, or when the Pearson correlation has
    not risen by `least` for `patience` rounds. `rubric` is for items without one; `format` and `compare_format` are for
    asking and for training ("" for the judge's own).
    """

    source: str = ""
    held: str = ""
    judge: str = ""
    rounds: int = count(3)
    generate: int = count(0, least=0)
    compare: bool = False
    samples: int = count(4)
    agree: float = share(0.75)
    least: float = share(0.005)
    patience: int = count(1)
    rubric: str = ""
    format: str = ""
    compare_format: str = ""
    train: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Round:
    """One round of a run; number 0 is the judge before any training."""

    run: BuildRun
    options: ImprovementOptions
    number: int
    opened: Engine | None = None

    @property
    def folder(self) -> Path:
        return self.run.folder / f"round-{self.number}"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def engine(self) -> Engine:
        """The engine of the model trained in this round, opened when it is first needed."""
        if self.opened is None:
            if self.number == 0:
                self.opened = self.run.asking.engine
            else:
                spec = parse_spec(self.run.recipe.teacher)
                options = spec.options if spec.scheme in ("", "hf") else {}
                self.opened = open_engine(str(self.model), **options)
        return self.opened

    def judge(self, engine: Engine, *, samples: int = 1) -> Judge:
        """A judge with the formats of this recipe: greedy for one sample, at the recipe's temperature for several."""
        recipe, options = self.run.recipe, self.options
        sampling = Sampling(
            temperature=recipe.temperature if samples > 1 else 0.0, max_tokens=recipe.max_tokens, seed=recipe.seed
        )
        return Judge(
            engine, named(recipe, options.rubric) or None, format=named(recipe, options.format) or None,
            compare_format=named(recipe, options.compare_format) or None, sampling=sampling, samples=samples,
        )  # fmt: skip


def _run(run: BuildRun, options: ImprovementOptions) -> None:
    """Run rounds until the stop rule ends them; write the items of the best round."""
    history: list[Record] = []
    before = _Round(run, options, 0)
    asked_by = run.recipe.engine(options.judge) if options.judge else before.engine
    _held_out(run.recipe, options, before.judge(asked_by, samples=options.samples))
    stopped = f"all {options.rounds} rounds are done"
    for number in range(options.rounds + 1):
        now = before if number == 0 else _Round(run, options, number)
        now.folder.mkdir(parents=True, exist_ok=True)
        if number:
            if not _prepare(now, before):
                return
            if not _counts(now.folder)["kept"]:
                stopped = f"round {number} kept nothing to train on"
                break
            if not trained(now.folder):
                train = f"dikast train sft --config {in_shell(now.folder / CONFIG)}"
                run.built.waits = f"round {number} is ready to train: {train}, then run again"
                return
        if not _measure(now):
            return
        history.append(orjson.loads((now.folder / _HELD).read_bytes()) | (_counts(now.folder) if number else {}))
        why = stop_reason([each["pearson"]["value"] for each in history], options.least, options.patience)
        _tell(run, history, why)
        before = now
        if why:
            stopped = why
            break
    _tell(run, history, stopped)
    run.built.notes.append(stopped)
    taught = [each for each in history if each["round"]]
    if taught:
        best = max(taught, key=lambda each: (each["pearson"]["value"] is not None, each["pearson"]["value"] or 0.0))
        folder = run.folder / f"round-{best['round']}"
        run.write(item for name in (GRADED, PAIRS) if (folder / name).exists() for item in read_items(folder / name))


def _tell(run: BuildRun, history: list[Record], stopped: str) -> None:
    known = [each for each in history if each["pearson"]["value"] is not None]
    best = max(known, key=lambda each: each["pearson"]["value"])["round"] if known else None
    told = {"rounds": history, "best": best, "stopped": stopped}
    sums.write_checked(run.folder / ROUNDS, orjson.dumps(told, option=orjson.OPT_INDENT_2))


# -- a round ----------------------------------------------------------------------------------------------------------


def _prepare(now: _Round, before: _Round) -> bool:
    """Generate, judge, filter, and write the training set; False if some requests have no answer."""
    run, options, folder = now.run, now.options, now.folder
    kept = folder / _KEPT
    if kept.exists() and not sums.changed_files(folder, _KEPT, GRADED, PAIRS, CONFIG, "absolute.yaml", "pairwise.yaml"):
        run.built.dropped.update(_counts(folder)["dropped"])
        return True
    stage = f"{folder.name}/1-responses"
    if options.generate:
        asking = Asking(before.engine, run.asking.sampling, 1, run.asking.most_rejects)
        run.stage(stage, generation_tasks(run.recipe, options), asking)
        if run.built.waits:
            return False
    judge = before.judge(run.recipe.engine(options.judge) if options.judge else before.engine, samples=options.samples)
    dropped: Counter[str] = Counter()
    n = {GRADED: 0, PAIRS: 0}
    verified = 0
    whole = folder / "candidates.jsonl"
    write_items(whole, _candidates(run, options, run.path(stage), judge, dropped))
    for name, pairs in ((GRADED, False), (PAIRS, True)):
        candidates = folder / f"candidates-{name}"
        if not write_items(candidates, (item for item in read_items(whole) if (len(item.responses) == 2) == pairs)):
            continue
        into = folder / f"judged-{name.removesuffix('.jsonl')}"
        (compare_file if pairs else grade_file)(judge, Source(str(candidates)), into)
        if not _answered(run, into):
            return False
        counted: Counter[str] = Counter()
        n[name] = write_items(folder / name, _kept(candidates, into, judge, options, now, counted, pairs=pairs))
        dropped.update({reason: each for reason, each in counted.items() if reason != "verified"})
        verified += counted["verified"]
    if sum(n.values()):
        configure(folder, run.recipe, options.train, judge, n, before.model if before.number else None)
    told = {"kept": sum(n.values()), "graded": n[GRADED], "pairs": n[PAIRS], "verified": verified, "dropped": dropped}
    sums.record(folder, {name: sums.checksum(folder / name) for name in (GRADED, PAIRS) if (folder / name).is_file()})
    sums.write_checked(kept, orjson.dumps(told, option=orjson.OPT_INDENT_2))
    run.built.dropped.update(dropped)
    return True


def _answered(run: BuildRun, folder: Path) -> bool:
    """Whether every question of a run has an answer; if not, `waits` says so."""
    left = [verdict for verdict in current_verdicts(folder) if verdict.status is Status.ENGINE_ERROR]
    if left:
        run.built.waits = f"{len(left)} questions in {folder} have no answer ({left[0].reason}): run again to ask them"
    return not left


def _counts(folder: Path) -> Record:
    return dict(orjson.loads((folder / _KEPT).read_bytes()))


def generation_tasks(recipe: Recipe, options: ImprovementOptions) -> Iterator[Task]:
    """Requests for responses to each distinct instruction of the source, as a user would ask."""
    seen: set[str] = set()
    for number, item in enumerate(read_items(recipe.path(options.source))):
        key = _question(item)
        if key in seen or not item.instruction:
            continue
        seen.add(key)
        messages = prompt_alone(item)
        for at in range(options.generate):
            about = {"stage": "generate", "item": item.id, "sample": at}
            yield Task((number, at), messages, _reader(number, at), None, about, final=True)


def _question(item: Item) -> str:
    return fingerprint([asked(item), [image_sha256(image) for image in item.images]])


def _reader(number: int, at: int) -> Any:
    def read(text: str) -> list[Record]:
        if not text.strip():
            raise Rejected("empty")
        if parse_reply("verdict", text, None, words=Target().words).status is Status.REFUSED:
            raise Rejected("the response refuses")
        return [{"number": number, "at": at, "response": text.strip()}]

    return read


def _candidates(
    run: BuildRun, options: ImprovementOptions, made: Path, judge: Judge, dropped: Counter[str]
) -> Iterator[Item]:
    """What is judged: each response of the source with its gold, its pairs, and the generated responses."""
    recipe = run.recipe
    known = _known([recipe.path(name) for name in (options.held, *recipe.against)], near=recipe.near)
    answers: dict[int, list[str]] = {}
    for record in accepted(made):
        answers.setdefault(record["number"], []).append(record["response"])
    for number, item in enumerate(read_items(recipe.path(options.source))):
        if not isinstance(item.rubric or judge.rubric, Rubric):
            dropped["no single rubric"] += 1
            continue
        if known(item):
            dropped["in the held-out set"] += 1
            continue
        plain = replace(item, gold=None, meta={"from": item.id})
        if len(item.responses) in (1, 2):
            yield replace(item, id=f"s{number}", meta={"from": item.id})
        own = answers.get(number, [])
        groups = zip(own[::2], own[1::2], strict=False) if options.compare else ((each,) for each in own)
        for at, group in enumerate(groups):
            yield replace(
                plain, id=f"s{number}-g{at}", responses=tuple(Item.of(response=text).response for text in group)
            )


def _known(files: list[Path], *, near: bool) -> Callable[[Item], bool]:
    """A test whether an item's question, with its pictures, occurs in the files or (`near`) nearly does."""
    texts, shown = Index(near=near), set[str]()
    for item in chain.from_iterable(map(read_items, files)):
        if item.images:
            shown.add(_question(item))
        else:
            texts.add(asked(item), item.origin)
    return lambda item: _question(item) in shown if item.images else texts.find(asked(item)) is not None


def _kept(
    candidates: Path, into: Path, judge: Judge, options: ImprovementOptions, now: _Round, counted: Counter[str], *,
    pairs: bool,
) -> Iterator[Item]:  # fmt: skip
    """The items to train on; `counted` counts the others by reason."""
    said = ballots(current_verdicts(into))
    form = judge.compare_format if pairs else judge.format
    for item in read_items(candidates):
        rubric = item.rubric or judge.rubric
        assert isinstance(rubric, Rubric)
        try:
            gold = learnt(
                item, rubric, said[item.id], samples=options.samples, agree=options.agree,
                prose=form.feedback or form.explains,
            )  # fmt: skip
        except Dropped as error:
            counted[str(error)] += 1
            continue
        counted["verified"] += gold["verified"]
        yield with_gold(item, rubric, gold, {"recipe": "self-improvement", "round": now.number})


# -- measurement ------------------------------------------------------------------------------------------------------


def _measure(now: _Round) -> bool:
    """Judge the held-out items with the round's model, once; False if some have no answer."""
    path = now.folder / _HELD
    if path.exists() and not sums.changed_files(now.folder, _HELD):
        return True
    judge = now.judge(now.engine)
    into = now.folder / "held"
    grade_file(judge, Source(str(now.run.recipe.path(now.options.held))), into)
    if not _answered(now.run, into):
        return False
    said = {verdict.question.item: verdict for verdict in current_verdicts(into)}
    scores, golds, clusters, codes = [], [], [], dict[str, int]()
    held = _held_out(now.run.recipe, now.options, judge)
    for item, rubric, due in held:
        score = said[item.id].score
        if score is not None:
            scores.append(rubric.scale.goodness(score))
            golds.append(rubric.scale.goodness(rubric.scale.value(due)))
            clusters.append(codes.setdefault(_question(item), len(codes)))
    cluster = np.array(clusters, np.int64) if len(codes) < len(clusters) else None
    failed = len(held) - len(scores)
    found = measure(np.array(scores), np.array(golds), ["pearson"], _HOW, cluster, dropped=failed)
    told = {"round": now.number, "pearson": found["pearson"].to_dict(), "failed": failed}
    sums.write_checked(path, orjson.dumps(told, option=orjson.OPT_INDENT_2))
    return True


def _held_out(recipe: Recipe, options: ImprovementOptions, judge: Judge) -> list[tuple[Item, Rubric, str]]:
    """The held-out items with rubric and gold label; UserError for an item that lacks one of them."""
    found = []
    for item in read_items(recipe.path(options.held)):
        rubric = item.rubric or judge.rubric
        if not isinstance(rubric, Rubric) or len(item.responses) != 1:
            raise UserError(f"{item.origin}: held-out items have one response and one rubric; {item.id!r} does not")
        due = due_label(item, rubric)
        if due is None:
            raise UserError(f"{item.origin}: the held-out item {item.id!r} has no gold: give it one, or leave it out")
        found.append((item, rubric, due))
    return found


def _estimate(recipe: Recipe, options: ImprovementOptions) -> list[BuildEstimate]:
    """The cost of one round: responses, verdicts, and the held-out items."""
    tasks = [size_of(task) for task in generation_tasks(recipe, options)]
    items = list(read_items(recipe.path(options.source)))
    long = sum(len(asked(item)) + sum(len(text_of(each)) for each in item.responses) for item in items) // 4
    pairs = sum(len(item.responses) == 2 for item in items)
    made = len(tasks) // 2 if options.compare else len(tasks)
    questions = options.samples * (
        sum(len(item.responses) == 1 for item in items) + 2 * pairs + made * (2 if options.compare else 1)
    )
    held = sum(1 for _ in read_items(recipe.path(options.held)))
    each = long // max(1, len(items))
    most = recipe.max_tokens
    return [
        BuildEstimate("responses a round", len(tasks), sum(tasks), len(tasks) * most),
        BuildEstimate("verdicts a round", questions, questions * each, questions * most),
        BuildEstimate("held-out a round", held, held * each, held * most),
    ]


def _check(recipe: Recipe, options: ImprovementOptions) -> Iterable[tuple[str, str]]:
    if recipe.world:
        yield "teacher", "a world is exact and cannot be trained: name the model to improve"
    for key, what in (("source", "items to judge"), ("held", "items with gold to measure each round on")):
        if not getattr(options, key):
            yield key, f"needs '{key}': {what}"
    if options.agree <= 0.5:
        yield "agree", f"must be a share above .5, so that at most one label reaches it, got {options.agree:g}"
    if options.compare and options.generate < 2:
        yield "generate", "to compare generated responses there must be two or more of each"
    for key in _OURS:
        if key in options.train:
            yield "train", f"{key!r} is set by each round: leave it out"
    if not options.train:
        yield "train", "needs 'train': keys of the training configuration, such as {steps: 200, learning_rate: 0.00001}"
    if not recipe.world and not ({"model", "init"} & options.train.keys()) and not start_of(recipe):
        yield "train", f"{recipe.teacher!r} has no local weights: name the 'model' to train under 'train'"


def _world(recipe: Recipe, options: ImprovementOptions) -> Engine:
    raise UserError("teacher: a world is exact and cannot be trained")


KIND = Kind("self-improvement", ImprovementOptions, (), _run, _estimate, _check, _world, files=("source", "held"))
