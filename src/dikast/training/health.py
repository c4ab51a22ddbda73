"""Checks of the folder of a training run, and repair of its logs; needs no torch."""

from pathlib import Path

from dikast.core.runs.examine import Examined, Problem, examine_files, examine_lines, repair_lines
from dikast.core.runs.opening import UNCHECKED, checksums_are_gone
from dikast.core.runs.run_files import CHECKSUMS
from dikast.training.log import parsed

_AGAIN = "run the command that made it again: it resumes from what is undamaged, and writes the file again"


def is_training(folder: Path) -> bool:
    """Whether `train sft` or `train look` wrote this folder."""
    return (folder / "train.jsonl").is_file()


def examine_training(folder: Path) -> Examined:
    """Check the logs of a training run line by line, and its shards, checkpoints and model by their checksums."""
    lines, problems = examine_lines(_logs(folder), parsed, f"`dikast doctor FOLDER --repair`, then {_AGAIN}", folder)
    files = 0
    sealed = checksums_are_gone(folder, "train.jsonl") or (folder / CHECKSUMS).exists()
    parts = [*sorted((folder / "checkpoints").glob("step-*")), *sorted((folder / "shards").glob("*")), folder / "model"]
    for part in (folder, *(each for each in parts if each.is_dir())):
        n, found = examine_files(part, _AGAIN, folder)
        files += n
        problems += found
        if sealed and not (part / CHECKSUMS).exists():
            name = str((part / CHECKSUMS).relative_to(folder))
            problems.append(Problem(name, None, UNCHECKED, "run the command that made it again"))
    return Examined("training run", lines, files, tuple(problems))


def repair_training(folder: Path) -> int:
    """Move damaged lines of the logs to files beside them; returns how many. The curves leave them out."""
    return repair_lines(folder, _logs(folder), parsed)


def _logs(folder: Path) -> list[Path]:
    return [folder / name for name in ("train.jsonl", "eval.jsonl") if (folder / name).is_file()]
