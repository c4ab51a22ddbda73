"""How judges state their verdicts: one small reader for each family."""

from collections.abc import Callable
from dataclasses import dataclass

from dikast.prompts.dialects import arena, boxed, claims, critic, json_object, marked, prose
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
        Dialect("claims", 1, "`Claim:` and `Finding:` lines before `Verdict: LABEL`", claims.read_claims),
        Dialect("json", 1, "a JSON object with `feedback` and `verdict`", json_object.read_json),
        Dialect("bracketed", 1, "`[RESULT] LABEL`, with the common slips of it", marked.read_bracketed),
        Dialect("bridge", 1, "`So the overall score is LABEL.` and then `[RESULT] LABEL`", marked.read_bridge),
        Dialect("critic", 1, "a better response in words, two scores, arena labels, final scores", critic.read_critic),
        Dialect("arena", 1, "`[[A>>B]]` to `[[B>>A]]`", arena.read_arena),
        Dialect("boxed", 1, "`\\boxed{LABEL}` or `<answer>LABEL</answer>`, after thinking", boxed.read_boxed),
        Dialect("prose", 1, "comparisons in plain sentences: `Output (b) is better.`", prose.read_prose),
    )
}
