"""Probing a judge: the plan on disk, the runs, the card. Running again pays only for what has no answer yet."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import read_items, write_records
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.reading import current_verdicts
from dikast.judging.joining import join_orders
from dikast.judging.judge import Judge
from dikast.judging.plan import Source
from dikast.judging.run import Watcher, compare_file, grade_file
from dikast.probes.card import Card
from dikast.probes.measure import Answers, measure
from dikast.probes.plan import ProbePlan, plan, record
from dikast.prompts.format import format_from

CARD = "card.json"
_LOOP = "for level in levels"


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
    """Change items, judge them, and say where the judge breaks. Writes `card.json` and `card.md` into `out`.

    `items` are those of the standing suite of the worlds, or anybody's. `out` holds the changed items and one run
    folder for each way they are asked; when it is there already, only what is missing is asked.
    """
    made = prepare(judge, items, out, calls=calls, seed=seed, only=only)
    for part, asker in (("absolute", judge), ("reversed", from_the_top(judge))):
        if asker is not None and (out / f"{part}.jsonl").exists():
            grade_file(asker, Source(str(out / f"{part}.jsonl")), out / part, watch=watch)
    if made.pairs:
        compare_file(judge, Source(str(out / "pairs.jsonl")), out / "pairs", watch=watch)
    card = Card(name or judge.engine.name, made.calls, seed, tuple(measure(made, answers(judge, out))))
    (out / CARD).write_bytes(orjson.dumps(card.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    (out / "card.md").write_text(card.to_markdown(), "utf-8")
    return card


def prepare(
    judge: Judge, items: Iterable[Item], out: Path, *, calls: int, seed: int, only: tuple[str, ...] = ()
) -> ProbePlan:
    """The plan, its items written to `out`: the same folder must be given the same items, calls and seed."""
    if isinstance(judge.rubric, Sheet):
        raise UserError("a probe takes one criterion, not a sheet: name one rubric")
    out.mkdir(parents=True, exist_ok=True)
    rubric = judge.rubric if isinstance(judge.rubric, Rubric) else None
    made = plan(items, rubric, out, calls=calls, seed=seed, only=only)
    if made.reversed and from_the_top(judge) is None:
        made.reversed.clear()
        made.skipped["level-order"] = "the format lists no levels that could be turned round"
    for part in ("absolute", "reversed", "pairs"):
        by_id: dict[str, Any] = {}
        for ask in getattr(made, part):
            by_id.setdefault(ask.item.id, record(ask.item))
        if by_id:
            write_records(out / f"{part}.jsonl", by_id.values())
    return made


def answers(judge: Judge, out: Path) -> Answers:
    """What the runs in `out` have answered."""

    def verdicts(part: str) -> Any:
        return current_verdicts(out / part) if (out / part / "verdicts.jsonl").exists() else ()

    pairs = join_orders(iter(verdicts("pairs")), judge.samples, both_orders=True)
    return Answers.of(verdicts("absolute"), verdicts("reversed"), pairs)


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
