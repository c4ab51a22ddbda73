"""The logs of a training run, `train.jsonl` and `eval.jsonl`: lines by step, each with a checksum."""

from pathlib import Path
from typing import Any

from dikast.core.errors import DataError
from dikast.core.output_folder import check_in_place, identity_of
from dikast.core.runs.lines import open_record, seal_record, whole_lines
from dikast.core.runs.run_files import write_whole
from dikast.core.text import in_shell


class Log:
    """A JSONL file whose lines have a `step` and a checksum; lines of steps that will be repeated are dropped."""

    def __init__(self, path: Path, done: int) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, b"".join(raw for raw, line in _lines(path) if line["step"] <= done))
        self._identity = identity_of(path)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line. RunError where the log was removed or replaced meanwhile."""
        check_in_place(self._path, self._identity)
        with self._path.open("ab") as file:
            file.write(seal_record(line))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, without an incomplete last line."""
    return [line for _, line in _lines(path)]


def _lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """The lines of a log, raw and parsed."""
    if not path.is_file():
        return []
    return [(line, parsed(line, path, number)) for number, line in whole_lines(path) if line.strip()]


def parsed(raw: bytes, path: Path, number: int) -> dict[str, Any]:
    """One line of a log; DataError, with the cure, if it is damaged."""
    try:
        value = open_record(raw)
        if type(value.get("step")) is not int:
            raise ValueError("not a line of a training log")
    except ValueError as error:
        cure = f"remove this line, or `dikast doctor {in_shell(path.parent)} --repair`; the curves go without it"
        raise DataError(f"cannot be read ({error}): {cure}", path=str(path), line=number) from None
    return value
