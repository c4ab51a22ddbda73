"""Merging several runs over different items into one, for runs too large for one machine to plan and write."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from dikast.core.canonical import read_json
from dikast.core.errors import DataError, UserError
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.judge_lock import check_version, read_lock
from dikast.core.runs.last_verdict import latest, told_at
from dikast.core.runs.rubrics import load_rubrics, load_sheets
from dikast.core.runs.run_files import (
    AGAIN,
    GOLD,
    KEYS,
    LOCK,
    META,
    RUBRICS,
    SHEETS,
    SUMMARY,
    VERDICTS,
    check,
    write_checked,
    written_together,
)
from dikast.core.verdict import Verdict
from dikast.judging.derived_verdicts import derive
from dikast.judging.notes import notes_of
from dikast.judging.recorded.replay_run import begin, way_in
from dikast.judging.summary import Tally

if TYPE_CHECKING:
    import numpy as np

_SAME = ("judge", "format", "rubric", "samples", "way", "ids", "equate")  # of the locks of runs that can be one

_READ_APART = (
    "these runs were begun by versions that recognise other names of columns, so a column (system, gold_answer)"
    " may be shown to the judge in some of them and be metadata in others"
)


def merge_runs(runs: Sequence[str | Path], out: str | Path) -> dict[str, Any]:
    """Make one run folder of `runs`, which judged different items in the same way, and return its summary.

    The folder is that of one run over all the items: the same command over all of them, with `out`, asks only what
    none of the runs has answered. Memory grows by 8 bytes an item, and by what one of the runs needs. UserError,
    before anything is written, for fewer than two runs, runs that have not ended or differ in judge, format, rubric,
    samples or way of judging, runs of `rank`, and an `out` that holds something else; DataError for an item that two
    of them judged.
    """
    folders, out = [Path(each) for each in runs], Path(out)
    locks = _locks(folders)
    judges = [_judge(folder) for folder in folders]
    lock = {**locks[0], "items": ", ".join(str(each["items"]) for each in locks), "merged": [str(f) for f in folders]}
    try:
        rubrics = {name: rubric for folder in folders for name, rubric in load_rubrics(folder).items()}
        way = way_in(lock, folders[0], rubrics)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"not the lock of a run ({error!r}); {AGAIN}", path=str(folders[0] / LOCK)) from error
    way = replace(way, sheets={item: s for folder in folders for item, s in load_sheets(folder, rubrics).items()})
    tally, items = Tally(rubrics), _Items()
    with begin(out, lock, "merged", "a merge goes") as ledger:

        def merged() -> Iterator[Verdict]:
            for folder in folders:
                for verdict in current_verdicts(folder):
                    items.add(verdict.question.item)
                    tally.add(orjson.loads(orjson.dumps(verdict)))
                    ledger.append(verdict)
                    yield verdict
                items.end(folder)

        derived = derive(merged(), way, out)
        questions = _join_files(folders, out)
        notes = dict.fromkeys(note for folder in folders for told in notes_of(folder).values() for note in told)
        if len({each.get("names") for each in locks}) > 1:
            notes[_READ_APART] = None
        summary = {
            **lock["way"],
            **derived,
            "judge": judges[0],
            **({"notes": list(notes)} if notes else {}),
            "format": lock["format"]["name"],
            "merged": lock["merged"],
            "items": items.count,
            "questions": questions,
            **tally.summary(),
            **told_at(latest(folders)),
        }
        write_checked(out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    return summary


def _locks(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """The locks of the runs, which judged in the same way; UserError where they cannot be one run."""
    if len(folders) < 2:
        raise UserError("name at least two runs to merge")
    if twice := next((each for at, each in enumerate(folders) if each.resolve() in _resolved(folders[:at])), None):
        raise UserError(f"{twice} is named twice")
    locks = []
    for folder in folders:
        lock = read_lock(folder)
        if lock is None or "way" not in lock:
            raise UserError(f"{folder}: not a run that can be merged: it has no readable {LOCK}; {AGAIN}")
        check_version(folder)
        check(folder, LOCK, KEYS, GOLD, META, SHEETS)
        locks.append(lock)
    for folder, lock in zip(folders, locks, strict=True):
        if lock["way"].get("schedule"):
            raise UserError(f"{folder}: runs of `rank` cannot be merged: what it asks depends on what was answered")
        if differ := [name for name in _SAME if lock.get(name) != locks[0].get(name)]:
            raise UserError(
                f"{folders[0]} and {folder} differ in {', '.join(differ)} ({LOCK}): only runs of one judge, rubric and"
                " way of judging can be merged; `dikast report` takes both side by side"
            )
    return locks


def _resolved(folders: Sequence[Path]) -> set[Path]:
    return {each.resolve() for each in folders}


def _judge(folder: Path) -> str:
    """The judge, as the summary of a run that has ended says; UserError where it has not."""
    if not (folder / SUMMARY).exists():
        raise UserError(f"{folder}: the run has not ended (no {SUMMARY}): run its command again, then merge")
    check(folder, SUMMARY)
    try:
        found = read_json((folder / SUMMARY).read_bytes())
        judge = found["judge"]
        if not isinstance(judge, str):
            raise TypeError(f"'judge' is {judge!r}")
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"not the summary of a run ({error!r}); {AGAIN}", path=str(folder / SUMMARY)) from None
    return judge


def _join_files(folders: Sequence[Path], out: Path) -> int:
    """Write keys, gold, metadata, sheets and rubrics of all runs into `out`; the number of keys."""
    rubrics, questions = set(), 0
    names = (KEYS, GOLD, META, SHEETS, RUBRICS)
    with written_together(*(out / name for name in names)) as parts:
        for name, part in zip(names, parts, strict=True):
            with part.open("wb") as joined:
                for path in (folder / name for folder in folders if (folder / name).exists()):
                    with path.open("rb") as file:
                        for line in file:
                            if name == RUBRICS and line in rubrics:
                                continue
                            rubrics |= {line} if name == RUBRICS else set()
                            questions += name == KEYS
                            joined.write(line)
    return questions


class _Items:
    """Which items were met, as 64-bit hashes: one that two runs judged is an error."""

    def __init__(self) -> None:
        self._known: list[np.ndarray[Any, Any]] = []
        self._now: set[int] = set()
        self._last = ""

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(each) for each in self._known)

    def add(self, item: str) -> None:
        """Note an item of the run that is being read."""
        if item != self._last:
            self._now.add(_hashed(item))
            self._last = item

    def end(self, folder: Path) -> None:
        """End a run; DataError where it judged an item of an earlier one."""
        import numpy as np

        mine = np.fromiter(self._now, np.uint64, len(self._now))
        for other in self._known:
            if len(both := np.intersect1d(mine, other)):
                at = next(v.question.item for v in current_verdicts(folder) if _hashed(v.question.item) in both)
                raise DataError(
                    f"the item {at!r} and {len(both) - 1:,} more were judged by an earlier run too: give items of"
                    " different files different ids, and judge each item in one run",
                    path=str(folder / VERDICTS),
                )
        self._known.append(mine)
        self._now, self._last = set(), ""


def _hashed(item: str) -> int:
    return int.from_bytes(blake2b(item.encode(), digest_size=8).digest(), "little")
