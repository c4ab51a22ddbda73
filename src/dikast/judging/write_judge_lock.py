"""`judge.lock.json`: the judge, precisely enough to repeat the run or to name what differs."""

import logging
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.output_folder import move
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.judge_lock import SCHEMA, read_lock
from dikast.core.runs.run_files import LOCK, write_checked
from dikast.judging.judge import Judge
from dikast.judging.run_plan import Source
from dikast.prompts.format import Format

_log = logging.getLogger(__name__)


def write_lock(out: Path, judge: Judge, format: Format, source: Source, way: Mapping[str, Any], names: int) -> None:
    """Write the lock; the lock of another judge in the same folder is kept under a name with its hash."""
    rubric = judge.rubric
    spelt = None
    if isinstance(rubric, Rubric):
        spelt = rubric.to_dict()
    elif isinstance(rubric, Sheet):
        spelt = {"name": rubric.name, "criteria": [each.to_dict() for each in rubric]}
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "judge": judge.hash,
        "identity": judge.identity,
        "format": format.to_dict(),
        "rubric": spelt,
        "samples": judge.samples,
        "way": way,
        "items": source.path,
        "columns": dict(source.columns),
        **({"ids": "content"} if names else {}),
        **({"names": names} if names > 1 else {}),
        **({"equate": str(judge.equate)} if judge.equate is not None else {}),
        "versions": {
            "dikast": version("dikast"),
            "python": platform.python_version(),
            "platform": sys.platform,
            **judge.engine.versions(),
        },
    }
    value["hash"] = fingerprint({key: value[key] for key in ("judge", "format", "rubric")})
    path = out / LOCK
    old = read_lock(out)
    if old is not None and old.get("hash") != value["hash"]:
        differs = " and ".join(name for name in ("judge", "format", "rubric") if old.get(name) != value[name])
        _log.warning(
            "%s: it was last used with another %s: those verdicts are kept, and count again with the earlier command",
            out, differs or "configuration",
        )  # fmt: skip
        move(path, out / f"judge.lock.{str(old.get('hash'))[:8]}.json")
    write_checked(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
