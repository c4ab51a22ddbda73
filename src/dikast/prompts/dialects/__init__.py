"""Parsers of replies: one small reader for each way in which judges state verdicts."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dikast.prompts.dialects import arena, boxed, brackets, claims, critic, json_object, marked, prose
from dikast.prompts.dialects.contradiction import settled
from dikast.prompts.dialects.mention import without_mentions
from dikast.prompts.parsed import Reading, Target

_LABELS, _ROUNDS = 200, 8  # labels at the end of a reply that are examined first, and how often more of them are


@dataclass(frozen=True, slots=True)
class Dialect:
    """A reader of replies.

    `version` is part of a format's hash, and so of every question's key. It is increased only if models have to be
    asked again. A corrected parser does not increase it: `dikast replay` reads old replies again.
    """

    name: str
    version: int
    about: str
    reader: Callable[[str, Target], Reading]

    def read(self, text: str, target: Target) -> Reading:
        """The verdict of the text, or why there is none; there is none either if the text contradicts its own
        verdict.
        """
        weighed = self.reader is prose.read_prose or (self.reader is critic.read_critic and target.scale is None)
        reading, spoken, last = self.reader(text, target), text, _LABELS
        for _ in range(_ROUNDS):
            less = without_mentions(spoken, reading, last)
            if less == spoken:
                break
            reading, spoken, last = self.reader(less, target), less, 4 * last  # however many, a few rounds
        else:
            reading = Reading(None)
        if spoken is not text and reading.stated is None:
            return replace(reading, reason="the reply only quotes a verdict, or tells what somebody else has said")
        return settled(spoken, reading, target, prose=weighed)


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("verdict", 1, "our own: a line `Verdict: LABEL`", marked.read_verdict),
        Dialect("claims", 1, "`Claim:` and `Finding:` lines before `Verdict: LABEL`", claims.read_claims),
        Dialect("json", 1, "a JSON object with `feedback` and `verdict`", json_object.read_json),
        Dialect("bracketed", 1, "`[RESULT] LABEL`, with the common slips of it", marked.read_bracketed),
        Dialect("bridge", 1, "`So the overall score is LABEL.` and then `[RESULT] LABEL`", marked.read_bridge),
        Dialect(
            "critic",
            1,
            "a better response in brackets or words, two scores, labels of an arena, final scores",
            critic.read_critic,
        ),
        Dialect(
            "second-score",
            1,
            "two scores on a line, of a reference and then of the response, whose score is the second",
            critic.read_second_score,
        ),
        Dialect("arena", 1, "`[[A>>B]]` to `[[B>>A]]`", arena.read_arena),
        Dialect("mt-bench", 1, "`[[A]]`, `[[B]]`, `[[C]]` for a tie; `[[7]]` for a rating", brackets.read_brackets),
        Dialect("boxed", 1, "`\\boxed{LABEL}` or `<answer>LABEL</answer>`, after thinking", boxed.read_boxed),
        Dialect(
            "prose",
            1,
            "comparisons in plain sentences (`Output (b) is better.`), by `A > B`, or by labels such as `[[A]]`",
            prose.read_prose,
        ),
    )
}
