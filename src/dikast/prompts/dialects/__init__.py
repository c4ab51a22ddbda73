"""How judges state their verdicts: one small reader for each family."""

from collections.abc import Callable
from dataclasses import dataclass

from dikast.prompts.dialects import claims, json_object, marked
from dikast.prompts.parsed import Reading, Target


@dataclass(frozen=True, slots=True)
class Dialect:
    """A reader of replies. `version` rises with every change of what it accepts; it is part of a format's hash."""

    name: str
    version: int
    about: str
    read: Callable[[str, Target], Reading]


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("verdict", 1, "our own: a line `Verdict: LABEL`", marked.read_verdict),
        Dialect("bracketed", 1, "`[RESULT] LABEL`, with the common slips of it", marked.read_bracketed),
        Dialect("claims", 1, "`Claim:` and `Finding:` lines before `Verdict: LABEL`", claims.read_claims),
        Dialect("json", 1, "a JSON object with `feedback` and `verdict`", json_object.read_json),
    )
}
