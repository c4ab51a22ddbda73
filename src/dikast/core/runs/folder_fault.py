"""What is wrong with a run folder, as its files tell without a verdict being read: one judgement for the report and the
viewer. What only its lines tell, `examine_run` finds.
"""

from pathlib import Path

from dikast.core.errors import DataError
from dikast.core.runs.judge_lock import damaged_lock, read_lock, unreadable
from dikast.core.runs.run_files import (
    AGAIN,
    GOLD,
    KEYS,
    LOCK,
    META,
    NOTES,
    PREFERENCES,
    RANKINGS,
    RUBRICS,
    SHEETS,
    SUMMARY,
    VERDICTS,
    changed_files,
    is_kept,
)
from dikast.core.runs.schema import summary_of

_FILES = (VERDICTS, LOCK, SUMMARY, KEYS, RUBRICS, GOLD, META, NOTES, SHEETS, PREFERENCES, RANKINGS)
_CHECKED = (KEYS, RUBRICS, GOLD, META)  # written before the first question, and read whole
_ASKED = "run the command that made it again, which asks its questions"


def fault_of(folder: Path) -> str:
    """What is wrong with a run folder, with the cure; "" for nothing, and for a run that is merely unfinished.

    DataError where a pipe or a device lies in it.
    """
    for name in _FILES:
        if (folder / name).exists() and not (folder / name).is_file():
            return f"{name} is not a file: remove it, and {_ASKED if name == VERDICTS else AGAIN}"
    if (told := damaged_lock(folder) or unreadable(folder)) is not None:
        return str(told)
    if read_lock(folder) is None and not is_kept(folder):
        return f"{LOCK} is missing: {AGAIN}"
    summary = summary_of(folder)
    if summary is None and (folder / SUMMARY).exists():
        return f"{SUMMARY} is damaged: {AGAIN}"
    counted = (summary or {}).get("verdicts", 0)
    if counted and not (folder / VERDICTS).exists():
        return f"{VERDICTS} is missing, of which {SUMMARY} counts {counted:,}: restore it, or {_ASKED}"
    if counted and not (folder / VERDICTS).stat().st_size:
        return f"{VERDICTS} is empty, of which {SUMMARY} counts {counted:,}: restore it, or {_ASKED}"
    try:
        return next((f"{name}: {told}; {AGAIN}" for name, told in changed_files(folder, *_CHECKED).items()), "")
    except DataError as error:
        return str(error)
