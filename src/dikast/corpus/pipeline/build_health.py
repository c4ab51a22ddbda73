"""Checks of the folder of a build, and repair of its journals."""

from pathlib import Path

from dikast.core.runs.examine import Examined, Problem, examine_files, examine_lines, repair_lines
from dikast.core.runs.opening import UNCHECKED, checksums_are_gone
from dikast.core.runs.run_files import CHECKSUMS
from dikast.corpus.pipeline.journal import parsed

BUILD = "build.json"
_CURE = "`dikast doctor FOLDER --repair`, then run the command that made it again: it asks the task anew"
_AGAIN = "run the command that made it again: it writes the file again and asks nothing twice"


def is_build(folder: Path) -> bool:
    """Whether `corpus build` wrote this folder."""
    return (folder / BUILD).is_file()


def examine_build(folder: Path) -> Examined:
    """Check the journals of a build line by line, and its other files by their checksums; reads only."""
    files, problems = examine_files(folder, _AGAIN)
    lines, found = examine_lines(_journals(folder), parsed, _CURE, folder)
    problems += found
    if any(checksums_are_gone(folder, str(path.relative_to(folder))) for path in _journals(folder)):
        problems.append(Problem(CHECKSUMS, None, UNCHECKED, "run the command that made it again"))
    return Examined("build", lines, files, tuple(problems))


def repair_build(folder: Path) -> int:
    """Move damaged lines of journals to files beside them; returns how many. The next run asks their tasks again."""
    return repair_lines(folder, _journals(folder), parsed)


def _journals(folder: Path) -> list[Path]:
    """The journals of a build, those of its rounds included."""
    found = [*folder.glob("[0-9]*-*.jsonl"), *folder.glob("round-*/[0-9]*-*.jsonl")]
    return sorted(path for path in found if not path.name.endswith(".damaged.jsonl"))
