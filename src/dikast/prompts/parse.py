"""Parsing a reply: reasoning is removed, the dialect reads the verdict, and a missing verdict gets a status and a
reason.
"""

import re

from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.text import near_miss
from dikast.core.thinking import after_thinking
from dikast.core.verdict import Claim, Status
from dikast.prompts.dialects import DIALECTS, Dialect
from dikast.prompts.dialects.label import END_TOKEN
from dikast.prompts.parsed import PAIR_WORDS, Parsed, Stated, Target

# Only at the beginning of the reply, since a judge may quote a response that refuses.
_REFUSAL = re.compile(
    r"[\s*_#>-]{0,20}+(?:(?:sorry|unfortunately|(?:my\s)?apologies|as an ai\b[^.,\n]{0,60})[,.!]?\s{1,3}+(?:but\s)?)?"
    r"(?:i(?:['’]m|\sam)(?:\s\w{1,12})?\s(?:sorry|unable|not able)|i\sapologi[sz]e"
    r"|i\s(?:can(?:['’]t|not|\snot)|won['’]t|will\snot|must|have\sto)(?:\s\w{1,12})?\s(?:assist|help|comply|fulfil|provide"
    r"|continue|engage|evaluate|judge|grade|rate|score|answer|discuss|participate|create|generate|process|view|decline|refuse)"
    r"|i\s(?:decline|refuse)\b|as an ai\b)",
    re.I,
)
_FEEDBACK_HEAD = re.compile(r"\s{0,40}+[#*_ ]{0,8}+feedback[*_ ]{0,4}+:[*_ ]{0,4}+", re.I)
_STUB = re.compile(r"(?:^|(?<=\s))[*_`#>~(\"'-]{1,6}$")  # markdown that opened just before the verdict
_AFTER = re.compile(rf"(?>(?:[\s*_`~\"'”’)\]}}>.,;!:。/-]|{END_TOKEN}){{0,40}})", re.I)


def get_dialect(name: str) -> Dialect:
    """The dialect of that name, or UserError with the near miss."""
    if name not in DIALECTS:
        near = near_miss(name, DIALECTS)
        hint = f"did you mean {near!r}? " if near else ""
        raise UserError(f"there is no dialect {name!r}: {hint}known: {', '.join(sorted(DIALECTS))}")
    return DIALECTS[name]


def parse_reply(
    dialect: str,
    reply: str,
    scale: Scale | None = None,
    *,
    marker: str = "",
    words: tuple[tuple[str, str], ...] = PAIR_WORDS,
    finish: str = "stop",
    refusal: str = "",
) -> Parsed:
    """Parse `reply` by `dialect`; `scale` None means a pair, whose slots are spelt as in `words`.

    `finish` is `length` for a reply cut off at the token limit, or another word than `stop` for one that may be cut;
    `refusal` is the server's own refusal field.
    """
    return parse_for(get_dialect(dialect), reply, Target(scale, marker, words), finish=finish, refusal=refusal)


def parse_for(dialect: Dialect, reply: str, target: Target, *, finish: str = "stop", refusal: str = "") -> Parsed:
    """As `parse_reply`, with the values at hand."""
    if refusal:
        return Parsed(Status.REFUSED, feedback=reply.strip(), reason=f"the server refused: {refusal}")
    text, thought, thinking = after_thinking(reply)
    if thinking:
        reason = "the reply ends inside its thinking"
        status = Status.UNPARSED if finish == "stop" else Status.TRUNCATED
        return Parsed(status, feedback=thought, reason=reason)
    reading = dialect.read(text, target)
    stated = reading.stated
    if stated is None:
        return _nothing(text, thought, reading.reason, reading.claims, finish)
    feedback = reading.feedback if reading.feedback is not None else _around(text, stated)
    feedback = feedback or thought
    if finish != "stop" and _could_go_on(text, stated, target):
        reason = f"{_end(finish)} came at {stated.said!r}, which may be the beginning of a longer label"
        return Parsed(Status.TRUNCATED, feedback=feedback, reason=reason, claims=reading.claims)
    if stated.label is None:
        reason = f"the verdict {stated.said.strip()!r} is not one of {target}"
        return Parsed(Status.OFF_SCALE, feedback=feedback, reason=reason, claims=reading.claims)
    return Parsed(Status.OK, stated.label, feedback, claims=reading.claims, conflict=reading.conflict)


def _nothing(text: str, thought: str, reason: str, claims: tuple[Claim, ...], finish: str) -> Parsed:
    prose = text.strip() or thought
    if finish != "stop":
        return Parsed(Status.TRUNCATED, feedback=prose, reason=f"{_end(finish)} came before the verdict", claims=claims)
    if not text.strip():
        return Parsed(Status.UNPARSED, feedback=prose, reason="the reply is empty")
    refused = _REFUSAL.match(text)
    if refused:
        return Parsed(
            Status.REFUSED, feedback=prose, reason=f"no verdict, and the reply opens with {refused[0].strip()!r}"
        )
    return Parsed(Status.UNPARSED, feedback=prose, reason=reason or "no verdict in the reply", claims=claims)


def _end(finish: str) -> str:
    return "the token limit" if finish == "length" else f"an end for another reason ({finish})"


def _around(text: str, stated: Stated) -> str:
    """The text before and after the verdict, without the stubs of markdown and the end tokens that stood beside it."""
    before = text[: stated.start]
    head = _FEEDBACK_HEAD.match(before)
    before = (before[head.end() :] if head else before).rstrip()
    before = before[: -len(stub[0])] if (stub := _STUB.search(before[-8:])) else before
    after = _AFTER.match(text, stated.end)
    rest = text[after.end() :] if after else ""
    return "\n".join(part for part in (before.strip(), rest.strip()) if part)


def _could_go_on(text: str, stated: Stated, target: Target) -> bool:
    """Whether a reply cut off right after its label could have continued to another label."""
    said = stated.said.strip().casefold()
    rest = text[stated.end :].strip(" \t*_`")
    if target.scale is None:
        return False
    if said[-1:].isdigit() and rest in (".", ",", "/"):  # 1.5, or 1/10
        return True
    if rest or not text.rstrip().casefold().endswith(said):
        return False
    return any(label.casefold().startswith(said) and label.casefold() != said for label in target.scale.labels)
