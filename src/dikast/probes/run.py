"""Probing a judge: the plan on disk, the runs, the card. Running again asks only what has no answer yet."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.output_folder import one_writer
from dikast.core.records import read_items, write_records
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.run_files import changed_files, write_checked
from dikast.core.verdict import Status
from dikast.judging.joining import join_orders
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from dikast.judging.run_plan import Source
from dikast.judging.watching import Watcher
from dikast.probes.card import Card
from dikast.probes.catalogue import LEAST
from dikast.probes.measure import Answers
from dikast.probes.outcome import bound, gain, measure, needs
from dikast.probes.plan import Planner, ProbePlan, chosen, record, turns
from dikast.probes.sets import PARTS, Asked, Part, sets_of
from dikast.prompts.format import format_from

CARD = "card.json"
PLAN = "plan.json"
ENOUGH = 0.95
_LOOP = "for level in levels"


@dataclass(frozen=True, slots=True)
class Probing:
    """A judge to be probed: the folder, the calls allowed, the seed for choosing items, the probes (none: all)."""

    judge: Judge
    out: Path
    calls: int = 2000
    seed: int = 0
    only: tuple[str, ...] = ()


def probe(
    judge: Judge,
    items: Iterable[Item],
    out: Path,
    *,
    calls: int = 2000,
    seed: int = 0,
    only: tuple[str, ...] = (),
    watch: Watcher | None = None,
    name: str = "",
) -> Card:
    """Change items, judge them, and report the judge's faults. Writes `card.json` and `card.md` into `out`.

    `items` are those of the standard suite of the worlds, or any others. `out` holds the changed items and a run folder
    for each way of asking; if it exists, only what is missing is asked. The last part of the calls goes to the probes
    that need them, given the noise in earlier answers. A folder that was written by a version without rounds is
    completed as it was planned.
    """
    with one_writer(out, "probing"):
        return _probe(Probing(judge, out, calls, seed, only), items, watch, name)


def _probe(given: Probing, items: Iterable[Item], watch: Watcher | None, name: str) -> Card:
    judge, out, calls = given.judge, given.out, given.calls
    if (kept := _kept(given)) is not None and not (out / PLAN).exists():
        _ask(given, kept, watch)
        return _write(given, kept, name)
    planner = _planner(given, items)
    plan = kept or planner.first(calls)
    _save(given, plan)
    _ask(given, plan, watch)
    while len(plan.rounds) < plan.last and _complete(plan, told := answers(judge, out)):
        more = planner.next(plan, needs(plan, measure(plan, told)))
        _save(given, plan)
        if not more:
            break
        _ask(given, plan, watch)
    return _write(given, plan, name)


def prepare(
    judge: Judge, items: Iterable[Item], out: Path, *, calls: int, seed: int, only: tuple[str, ...] = ()
) -> ProbePlan:
    """The first round of the plan, its items written to `out`; an existing plan is kept."""
    with one_writer(out, "probing"):
        given = Probing(judge, out, calls, seed, only)
        plan = _kept(given) or _planner(given, items).first(calls)
        if plan.rounds:
            _save(given, plan)
    return plan


def answers(judge: Judge, out: Path) -> Answers:
    """The answers of the runs in `out`."""

    def verdicts(part: str) -> Any:
        return current_verdicts(out / part) if (out / part / "verdicts.jsonl").exists() else ()

    pairs = join_orders(iter(verdicts("pairs")), judge.samples, both_orders=True)
    return Answers.of(verdicts("absolute"), verdicts("reversed"), pairs)


class Asker(Protocol):
    """A function that answers items; `asking` makes one from a judge."""

    def __call__(self, part: Part, items: list[Item]) -> Iterable[Any]:
        """Verdicts of the absolute and the reversed part, preferences of pairs."""
        ...


def asking(judge: Judge) -> Asker:
    """A judge as an asker."""
    from_top = from_the_top(judge) or judge

    def ask(part: Part, items: list[Item]) -> Iterable[Any]:
        if part == "pairs":
            return judge.compare_many(items)
        return (judge if part == "absolute" else from_top).grade_many(items)

    return ask


def simulate(ask: Asker, planner: Planner, calls: int) -> tuple[ProbePlan, Answers]:
    """All rounds in memory, without a folder: for simulations with judges that cost nothing."""
    told = Answers({}, {}, {})
    plan, begun = planner.first(calls), 0
    while begun < len(plan.rounds):
        for part, start, stop in _new_turns(plan, begun):
            answered = ask(part, list(plan.asked.of(part).values())[start:stop])
            if part == "pairs":
                told.pairs.update({each.item: each for each in answered})
            else:
                into = told.absolute if part == "absolute" else told.reversed
                into.update({each.question.item: each for each in answered})
        begun = len(plan.rounds)
        if begun < plan.last:
            planner.next(plan, needs(plan, measure(plan, told)))
    return plan, told


def _new_turns(plan: ProbePlan, begun: int) -> list[tuple[Part, int, int]]:
    before = plan.rounds[begun - 1] if begun else dict.fromkeys(PARTS, 0)
    return [each for each in turns(plan.rounds) if each[1] >= before[each[0]]]


def _planner(given: Probing, items: Iterable[Item]) -> Planner:
    judge = given.judge
    rubric = judge.rubric if isinstance(judge.rubric, Rubric) else None
    without, shown = {}, judge.format.to_dict()["user"]
    if from_the_top(judge) is None:
        without["level-order"] = "the format lists no levels that could be reversed"
    for probe in chosen(given.out, given.only):
        if "reference" in probe.name and "reference" not in shown:
            without[probe.name] = "the format shows the judge no reference"
    if "context" not in shown:
        without["decoy"] = "the format shows the judge no context"
    return Planner(items, rubric, given.out, seed=given.seed, only=given.only, without=without)


def _kept(given: Probing) -> ProbePlan | None:
    """The plan in the folder; UserError if it was made with another seed or for other probes."""
    if isinstance(given.judge.rubric, Sheet):
        raise UserError("a probe takes one criterion, not a sheet: name one rubric")
    asked = Asked()
    for part in PARTS:
        if (path := given.out / f"{part}.jsonl").exists():
            asked.of(part).update({item.id: item for item in read_items(path)})
    if not asked.calls:
        return None
    plan = ProbePlan(chosen(given.out, given.only), given.calls, asked)
    if (path := given.out / PLAN).exists():
        for why in changed_files(given.out, PLAN).values():
            raise DataError(f"{why}: restore it, or name another folder", path=str(path))
        told = orjson.loads(path.read_bytes())
        if told["seed"] != given.seed or told["only"] != list(given.only):
            made = f"seed {told['seed']}" + (f", only {', '.join(told['only'])}" if told["only"] else "")
            raise UserError(f"{given.out} holds probes made with {made}: use the same, or name another folder")
        plan.rounds, plan.skipped, plan.last = told["rounds"], told["skipped"], told["last"]
        if given.calls > told["calls"]:  # more calls are allowed than before: one more round
            plan.last = max(plan.last, len(plan.rounds) + 1)
        plan.calls = max(given.calls, told["calls"])
        return plan
    for each in plan.probes:
        reads_others = each.derived or each.name in ("lenience", "run-order")
        if not reads_others and len(sets_of(each, asked)) < LEAST:
            plan.skipped[each.name] = "the folder was planned by an earlier version, without this probe or items for it"
    return plan


def _save(given: Probing, plan: ProbePlan) -> None:
    """Write the plan and its items, the plan last, so that it never names items that are not there."""
    if (given.out / PLAN).exists() and not plan.rounds:
        return
    for part in PARTS:
        if items := plan.asked.of(part):
            write_records(given.out / f"{part}.jsonl", [record(item) for item in items.values()])
    told = {
        "calls": plan.calls,
        "seed": given.seed,
        "only": list(given.only),
        "rounds": plan.rounds,
        "last": plan.last,
        "skipped": plan.skipped,
    }
    write_checked(given.out / PLAN, orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")


def _ask(given: Probing, plan: ProbePlan, watch: Watcher | None) -> None:
    """Ask what has no answer, alternating between parts; if nothing is missing, each part is checked once."""
    told = answers(given.judge, given.out)
    if plan.rounds and not _complete(plan, told):
        slices = list(turns(plan.rounds))
    else:
        slices = [(part, 0, len(plan.asked.of(part))) for part in PARTS if plan.asked.of(part)]
    have: dict[Part, Any] = {"absolute": told.absolute, "reversed": told.reversed, "pairs": told.pairs}
    for part, _, stop in slices:
        first = list(plan.asked.of(part))[:stop]
        if stop < len(plan.asked.of(part)) and all(id in have[part] for id in first):
            continue  # only the questions that are new in this round
        source = Source(str(given.out / f"{part}.jsonl"), limit=stop)
        if part == "pairs":
            done = compare_file(given.judge, source, given.out / part, watch=watch)
        elif (asker := given.judge if part == "absolute" else from_the_top(given.judge)) is not None:
            done = grade_file(asker, source, given.out / part, watch=watch)
        else:
            continue
        if "gave_up" in done:
            raise RunError(str(done["gave_up"]))


def _complete(plan: ProbePlan, told: Answers) -> bool:
    """Whether at least `ENOUGH` of the plan is answered; the engine may have failed, or a budget run out."""
    have: dict[Part, Any] = {"absolute": told.absolute, "reversed": told.reversed, "pairs": told.pairs}
    due = [(part, id) for part in PARTS for id in plan.asked.of(part)]
    there = [id in have[part] and have[part][id].status is not Status.ENGINE_ERROR for part, id in due]
    return sum(there) >= ENOUGH * len(due)


def _write(given: Probing, plan: ProbePlan, name: str) -> Card:
    told = answers(given.judge, given.out)
    results = tuple(measure(plan, told))
    named = name or given.judge.engine.name
    card = Card(named, plan.asked.calls, given.seed, results, gain(plan, told), bound(plan))
    write_checked(given.out / CARD, orjson.dumps(card.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    write_checked(given.out / "card.md", card.to_markdown().encode())
    return card


def from_the_top(judge: Judge) -> Judge | None:
    """The same judge with the levels of the rubric listed from the highest label; None if its format has no list."""
    told = judge.format.to_dict()
    if _LOOP not in told["user"]:
        return None
    told = {key: value for key, value in told.items() if key != "hash"}
    turned = {"name": f"{judge.format.name}-from-the-top", "user": told["user"].replace(_LOOP, f"{_LOOP}|reverse")}
    settings = judge.settings
    return Judge(
        judge.engine,
        judge.rubric,
        format=format_from({**told, **turned}, path=f"{judge.format.name}, turned round"),
        compare_format=judge.compare_format,
        sampling=settings.sampling,
        samples=judge.samples,
        read=settings.read,
        min_mass=settings.min_mass,
    )


def load_items(path: str, limit: int | None = None) -> list[Item]:
    """The items of a file, or of all files of a folder that `dikast world make` wrote."""
    source = Path(path)
    files = sorted(source.glob("items-*")) if source.is_dir() else [source]
    if not files:
        raise UserError(f"{path}: there are no items-* files here")
    found = [item for file in files for item in read_items(file)]
    return found[:limit]
