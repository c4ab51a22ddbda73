"""A folder that `datasets.load_dataset` opens and the Hub shows: Parquet files, and a card that names the splits."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.output_folder import one_writer
from dikast.core.runs.frames import write_parquet
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import CHECKSUMS, put_in_place, recorded, remove, write_checked
from dikast.core.runs.run_table import RunTable
from dikast.core.text import markdown

CARD = "README.md"
_SPLIT = "verdicts"  # of items that name none
_NAME = re.compile(r"\w+(\.\w+)*", re.ASCII)  # what `datasets` takes as the name of a split
_DATA = re.compile(rf"data/{_NAME.pattern}-\d{{5}}-of-\d{{5}}\.parquet(\.part)?", re.ASCII)
_MOST = 100
_ROWS = 1 << 18  # of a file


def write_hf_folder(run: Run, table: RunTable, folder: Path) -> int:
    """Write `data/SPLIT-00000-of-00001.parquet` for each value of the column `split` (without one, `verdicts`).

    A split of more than 262,144 rows has several files. A folder that holds anything but an earlier export is left as
    it is: UserError.
    """
    if folder.is_dir() and not _is_ours(folder):
        raise UserError(f"{folder}: is not empty, and was not written by `dikast export`: name another folder")
    data = folder / "data"
    splits: dict[str, int] = {}  # how many rows each has
    parts: dict[Path, Path] = {}  # the files, as they are written and as they will be called

    def path_of(row: Mapping[str, Any]) -> str:
        name = str(row.get("split") or _SPLIT)
        if name not in splits and (not _NAME.fullmatch(name) or len(splits) == _MOST):
            why = f"splits are named with letters, digits, _ and ., and there are at most {_MOST}"
            raise UserError(f"the column 'split' says {name!r}: {why}; rename the column")
        at = splits.setdefault(name, 0)
        splits[name] += bool(row)
        path = data / f"{name}-{at // _ROWS:05d}-of-00000.parquet.part"
        parts[path] = path
        return str(path)

    with one_writer(folder, "exporting"):
        try:
            data.mkdir(exist_ok=True)
            write_parquet(table.columns, table, path_of)
            for part in parts:
                name = part.name.removesuffix("-of-00000.parquet.part")
                n = sum(each.name.rpartition("-of-")[0][:-6] == name[:-6] for each in parts)
                parts[part] = data / f"{name}-of-{n:05d}.parquet"
            kept = {str(path.relative_to(folder)) for path in parts.values()} | {CARD}
            for name in recorded(folder).keys() - kept:
                if _DATA.fullmatch(name):
                    remove(folder / name, folder)
            put_in_place(parts, folder)
            write_checked(folder / CARD, _card(run, splits, table).encode())
        finally:
            for part in parts:
                part.unlink(missing_ok=True)
            if data.is_dir() and not any(data.iterdir()):
                data.rmdir()
    return sum(splits.values())


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds nothing, an earlier export, or what a killed one left."""
    known = recorded(folder)
    if CARD in known:
        return True
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()} - {CHECKSUMS}
    return all(_DATA.fullmatch(name) and (name in known or name.endswith(".part")) for name in files)


def _card(run: Run, counts: Mapping[str, int], table: RunTable) -> str:
    import yaml

    files = [
        {"split": name, "path": f"data/{name}-{'00000-of-00001' if n <= _ROWS else '*'}.parquet"}
        for name, n in counts.items()
    ]
    head = {"configs": [{"config_name": "default", "data_files": files}], "tags": ["dikast", "llm-as-a-judge"]}
    judges = run.summary.get("judges") or [run.summary.get("judge", "")]
    failed = sum(n for each in run.runs for status, n in each.summary["status"].items() if status != "ok")
    rows = "\n".join(f"| `{name}` | {n:,} |" for name, n in counts.items())
    listed = ", ".join(map(markdown, table.columns))
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n# Verdicts\n\n"
        f"Verdicts of {', '.join(markdown(str(judge)) for judge in judges)}, written by `dikast export`."
        f" {failed:,} of {len(run):,} verdicts are missing: their rows have a `status` that says why, and no score.\n\n"
        f"| split | rows |\n|---|---|\n{rows}\n\nColumns: {listed}.\n"
    )
