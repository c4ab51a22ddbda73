"""Regular expressions from files: some take longer than any patience, and nothing in Python can stop one that runs."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from dikast.core.errors import UserError

_SECONDS = 30  # for all patterns together; those that people write for names take milliseconds
_PLAIN = re.compile(r"[^*+?{|]*")  # without a choice, which alone can be made in exponentially many ways
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
            compiled.search(name)
            compiled.match(name)
            compiled.fullmatch(name)
"""


def refuse_endless(
    patterns: Iterable[str], names: Iterable[str], where: str, *, forms: Sequence[str] = ("{}",)
) -> None:
    """UserError where a pattern does not end on these names of a model's modules, tried in a process of their own.

    where: the file or field that holds the patterns; forms: how they are put before they are matched, `{}` for each.
    """
    tried = sorted({each for each in patterns if not _PLAIN.fullmatch(each)})
    if not tried:
        return
    asked = json.dumps({"patterns": tried, "forms": list(forms), "names": list(names)})
    command = [sys.executable, "-I", "-S", "-c", _TRY]
    try:
        subprocess.run(command, input=asked.encode(), capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        reached = (late.stdout or b"0").split()[-1]
        raise UserError(
            f"{where}: the pattern {tried[int(reached)]!r:.120} takes more than {_SECONDS} s on the names of the"
            " model's modules, and may never end: list the names of the modules instead"
        ) from None
