"""Derive every number of a run again from what was recorded, without a model, perhaps with another parser."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric, load_rubric
from dikast.core.verdict import Verdict
from dikast.engines.base import Sampling
from dikast.judging.ask import Settings, settle_again
from dikast.judging.judge import join_orders
from dikast.judging.ledger import KEYS, VERDICTS, Ledger, current_verdicts, write_whole
from dikast.judging.lock import LOCK, read_lock
from dikast.judging.run import write_preferences
from dikast.judging.summary import Tally
from dikast.prompts.format import Format, format_from, load_format

_COMPARED = ("status", "label", "score", "distribution", "mass", "marker", "expected", "feedback", "claims")


@dataclass
class Changes:
    """How replayed verdicts differ from the recorded ones: how many in all, and in which fields."""

    verdicts: int = 0
    changed: int = 0
    fields: dict[str, int] | None = None

    def note(self, old: Verdict, new: Verdict) -> None:
        """Compare one verdict with its replay."""
        self.verdicts += 1
        different = [name for name in _COMPARED if getattr(old, name) != getattr(new, name)]
        self.changed += bool(different)
        self.fields = self.fields or {}
        for name in different:
            self.fields[name] = self.fields.get(name, 0) + 1


def replay(run: Path, *, format: str | Path | Format | None = None, out: Path | None = None) -> dict[str, Any]:
    """Re-derive the verdicts of `run`, with its own format or another of the same kind; `out` takes a new run folder.

    Returns a summary like the run's own with `replay` counting what changed. Raises UserError when `run` has no lock,
    or a format that is not the one it was made with would be used unasked.
    """
    lock = read_lock(run)
    if lock is None:
        raise UserError(f"{run}: not a run that can be replayed: it has no readable {LOCK}")
    parser = load_format(format) if format is not None else _own_format(lock, run)
    settings = _settings(lock)
    rubrics = _rubrics(run)
    changes, tally = Changes(), Tally()

    def replayed() -> Iterator[Verdict]:
        for old in current_verdicts(run):
            if old.hashes is None or old.hashes.rubric not in rubrics:
                raise DataError(f"the rubric of verdict {old.key} is not in rubrics.jsonl", path=str(run))
            new = settle_again(old, rubrics[old.hashes.rubric], parser, settings)
            if format is not None and new.hashes is not None:
                new = replace(new, hashes=replace(new.hashes, format=parser.hash))
            changes.note(old, new)
            tally.add(orjson.loads(orjson.dumps(new)))
            yield new

    if out is None:
        for _ in replayed():
            pass
    else:
        _write(run, out, replayed(), lock)
    summary = {
        "kind": "replay",
        "of": str(run),
        "format": parser.name,
        "replay": {"verdicts": changes.verdicts, "changed": changes.changed, "fields": changes.fields or {}},
        **tally.summary(),
    }
    if out is not None:
        write_whole(out / "summary.json", orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    return summary


def _write(run: Path, out: Path, verdicts: Iterator[Verdict], lock: dict[str, Any]) -> None:
    if (out / VERDICTS).exists():
        raise UserError(f"{out}: already holds verdicts; a replay goes to a folder of its own")
    with Ledger(out) as ledger:
        for verdict in verdicts:
            ledger.append(verdict)
    for name in (LOCK, KEYS, "rubrics.jsonl", "gold.jsonl"):
        if (run / name).exists():
            write_whole(out / name, (run / name).read_bytes())
    if (run / "preferences.jsonl").exists() and len(next(current_verdicts(out)).question.responses) == 2:
        orders = {verdict.question.responses for verdict in current_verdicts(out)}
        both = any(responses[0] > responses[1] for responses in orders)
        write_preferences(out, join_orders(current_verdicts(out), int(lock.get("samples", 1)), both_orders=both))


def _own_format(lock: dict[str, Any], run: Path) -> Format:
    spelt = lock["format"]
    format = format_from(spelt, path=str(run / LOCK))
    if format.hash != spelt["hash"]:
        raise UserError(
            f"{run}: its format {spelt['name']!r} was read by another version of the parser;"
            f" say --format {spelt['name']} to replay with today's"
        )
    return format


def _settings(lock: dict[str, Any]) -> Settings:
    spelt = dict(lock["identity"]["settings"])
    known = {field.name for field in fields(Settings)}
    spelt["sampling"] = Sampling(**spelt["sampling"])
    return Settings(**{name: value for name, value in spelt.items() if name in known})


def _rubrics(run: Path) -> dict[str, Rubric]:
    found: dict[str, Rubric] = {}
    try:
        with (run / "rubrics.jsonl").open("rb") as file:
            for line in file:
                record = orjson.loads(line)
                rubric = load_rubric(record["rubric"])
                assert isinstance(rubric, Rubric)
                found[record["hash"]] = rubric
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"cannot read the rubrics of the run: {error}", path=str(run / "rubrics.jsonl")) from error
    return found
