"""Patterns of an adapter, which say which modules it changes: regular expressions of others, some of which never end.

peft matches them against the name of every module. They are tried on these names in a process of their own before.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError

_SECONDS = 30  # for all of them together; those of published adapters take milliseconds
_FORMS = ("{}", r"(.*\.)?({})$", r"(^|.*\.){}($|\..*)", r"(?:^|.*?\.){}\.(?P<idx>\d+)\.")  # in which peft puts them
_TRY = """
import json, re, sys
asked = json.load(sys.stdin)
for number, pattern in enumerate(asked["patterns"]):
    print(number, flush=True)
    for form in asked["forms"]:
        try:
            compiled = re.compile(form.replace("{}", pattern))
        except (re.error, OverflowError, RecursionError):
            continue
        for name in asked["names"]:
            compiled.match(name)
            compiled.fullmatch(name)
"""


def refuse_endless_patterns(written: dict[str, Any], names: Iterable[str], path: Path) -> None:
    """UserError where a pattern in the settings of an adapter does not end on the names of the model's modules."""
    patterns = sorted({text for text in _texts(written) if any(sign in text for sign in "*+{")})
    if not patterns:
        return
    asked = json.dumps({"patterns": patterns, "forms": _FORMS, "names": list(names)})
    command = [sys.executable, "-I", "-S", "-c", _TRY]
    try:
        subprocess.run(command, input=asked.encode(), capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        reached = (late.stdout or b"0").split()[-1]
        raise UserError(
            f"{path}: the pattern {patterns[int(reached)]!r:.120} takes more than {_SECONDS} s on the names of the"
            " model's modules, and may never end: list the names of the modules instead"
        ) from None


def _texts(value: Any) -> Iterator[str]:
    """Every text in nested JSON values, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
