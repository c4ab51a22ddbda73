"""LLaVA-Critic-113k: conversations whose prompts have the parts in brackets, and answers in several dialects."""

import re
from typing import Any, NamedTuple

from dikast.core.item import Item
from dikast.core.scale import Scale
from dikast.corpus.schemas.conversation import human_and_reply, images_at
from dikast.corpus.schemas.public_schema import (
    Row,
    asked,
    gold_of,
    image_sources,
    own_id,
    pictured,
    plain,
    put,
    rendered,
    responses_of,
)
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.parse import parse_reply

_SLOT = (
    ("question", r"(?:user\s)?(?:question|instruction|query)"),
    ("first", r"(?:the\s)?(?:first\sresponse|response\s(?:1|a)|assistant\sa(?:'s\sanswer)?)"),
    ("second", r"(?:the\s)?(?:second\sresponse|response\s(?:2|b)|assistant\sb(?:'s\sanswer)?)"),
    ("reference", r"(?:the\s)?(?:reference|standard|ground\struth|correct)\s?(?:answer|response)?"),
    ("response", r"(?:the\s)?(?:lmm\s|model\s|assistant\s)?(?:response|answer|prediction)"),
)
_HEADS = re.compile(
    r"^[#*\s]{0,8}(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _SLOT) + r")[*\s]{0,4}:[*\s]{0,4}",
    re.I | re.M,
)
_ASSISTANT = re.compile(r"^\s*ASSISTANT:\s*\Z", re.M)
_SCALES = (
    re.compile(r"(?:out of|/)\s?(?P<high>10|100|5|6)\b", re.I),
    re.compile(r"\b(?P<low>0|1|0\.0|1\.0)\s?(?:-|–|to|and)\s?(?P<high>1\.0|100|10|5|6|4|3|1)\b", re.I),
)
_TWO = re.compile(r"^\s*(\d{1,2}(?:\.\d)?)[ ,]+(\d{1,2}(?:\.\d)?)\s*$")
HUNDRED = Scale.parse("0-100")


class Slots(NamedTuple):
    """The slots of a prompt, and the text before the first one, which says what is judged."""

    parts: dict[str, str]
    criteria: str


def slots_of(prompt: str) -> Slots:
    """The text after each named slot without its brackets; of slots that occur twice the first counts."""
    text = _ASSISTANT.sub("", prompt)
    heads: list[tuple[str, re.Match[str]]] = []
    for match in _HEADS.finditer(text):
        role = str(match.lastgroup)
        if role not in {name for name, _ in heads}:
            heads.append((role, match))
    parts: dict[str, str] = {}
    for i, (role, match) in enumerate(heads):
        end = heads[i + 1][1].start() if i + 1 < len(heads) else len(text)
        said = text[match.end() : end].strip()
        parts[role] = said[1:-1].strip() if said.startswith("[") and said.endswith("]") else said
    return Slots(parts, text[: heads[0][1].start()].strip() if heads else text.strip())


def scale_of(prompt: str) -> Scale | None:
    """The scale that a prompt asks for: `out of 100`, `1 to 10`, `0-6`; None if it names none."""
    for pattern in _SCALES:
        match = pattern.search(prompt)
        if match is None:
            continue
        low, high = match.groupdict().get("low") or "1", match["high"]
        if high == "1.0" or (high == "1" and low.startswith("0")):
            return Scale.parse("0-1/0.1")
        return HUNDRED if high == "100" else Scale.parse(f"{int(float(low))}-{high}")
    return None


def gold_from(prompt: str, reply: str, *, pair: bool, relative: bool = False) -> tuple[Row, str]:
    """The gold in an answer, and the name of its dialect: `better`, `arena`, `two scores`, `score`, or `unread`.

    `relative`: of two scores the first is a reference's, the second the response's.

    An answer that no dialect reads becomes feedback without a score.
    """
    arena = parse_reply("arena", reply, ARENA)
    if arena.label is not None:
        slot = {"A": "a", "B": "b"}[arena.label[0]] if "=" not in arena.label else "tie"
        return {"preference": slot, "label": arena.label, "feedback": arena.feedback}, "arena"
    head, _, rest = reply.strip().partition("\n")
    if two := _TWO.match(head):
        first, second = float(two[1]), float(two[2])
        if relative:
            return {"score": plain(second), "feedback": rest.strip()}, "relative"
        slot = "tie" if first == second else "a" if first > second else "b"
        return {"preference": slot, "scores": [plain(first), plain(second)], "feedback": rest.strip()}, "two scores"
    if pair:
        parsed = parse_reply("critic", reply)
        if parsed.label is not None:
            slot = {"first": "a", "second": "b", "tie": "tie"}[parsed.label]
            return {"preference": slot, "feedback": parsed.feedback}, "better"
        return {"feedback": reply}, "unread"
    for scale in [each for each in (scale_of(prompt), HUNDRED) if each is not None]:
        parsed = parse_reply("critic", reply, scale)
        if parsed.label is not None:
            return {"score": plain(scale.value(parsed.label)), "feedback": parsed.feedback}, "score"
    return {"feedback": reply}, "unread"


def read_critic(row: Row) -> Row:
    """A row of either configuration. A prompt without named slots is used as the instruction unchanged."""
    prompt, reply = human_and_reply(row)
    found, images = slots_of(prompt.replace("<image>\n", "").replace("<image>", "")), images_at(row)
    pair = "first" in found.parts and "second" in found.parts
    relative = not pair and {"reference", "response"} <= found.parts.keys()
    gold, dialect = gold_from(prompt, reply, pair=pair, relative=relative) if reply else ({}, "")
    record: Row = {}
    if pair:
        record["responses"] = [found.parts["first"], found.parts["second"]]
    elif "response" in found.parts:
        record["response"] = found.parts["response"]
    known = pair or "response" in found.parts
    record["instruction"] = pictured(found.parts.get("question", "") if known else prompt, images)
    put(record, reference=found.parts.get("reference"))
    criterion = found.criteria if known else ""
    scale = None if pair or dialect == "arena" else scale_of(prompt) or (HUNDRED if dialect == "score" else None)
    if criterion:
        record["rubric"] = put({"criterion": criterion}, scale=_spelt(scale))
    put(record, id=None if row.get("id") is None else str(row["id"]), gold=gold or None)
    return put(record, meta=put({"dialect": dialect or None} if dialect else {}, source_set=row.get("source")) or None)


def _spelt(scale: Scale | None) -> str | None:
    return None if scale is None else str(scale)


def write_critic(item: Item) -> Row:
    """A row with Dikast's prompt; a score of 0-100 as `Final Score: N`, a pair as `The better response: [...]`."""
    gold, images = gold_of(item), image_sources(item)
    pair = len(item.responses) == 2
    responses_of(item, 2 if pair else 1)
    prompt = rendered(item) if item.rubric is not None else _bare(item)
    turns: list[dict[str, Any]] = [{"from": "human", "value": "<image>\n" * len(images) + prompt}]
    verdict = _verdict(gold, pair=pair)
    if verdict:
        turns.append({"from": "gpt", "value": f"{gold.get('feedback') or ''}\n{verdict}".strip()})
    row = put({}, id=own_id(item), source=item.meta.get("source_set"))
    if images:
        row["image"] = images[0] if len(images) == 1 else images
    return row | {"conversations": turns}


def _verdict(gold: Any, *, pair: bool) -> str:
    if not pair:
        score = gold.get("score")
        return "" if score is None else f"Final Score: {plain(float(score))}"
    said = gold.get("preference")
    words = {"a": "The better response: [first]", "b": "The better response: [second]", "tie": "equally good"}
    return "" if said is None else words[said]


def _bare(item: Item) -> str:
    names = ("The first response", "The second response") if len(item.responses) == 2 else ("The LMM response",)
    said = responses_of(item, len(names))
    return "\n".join([f"Question: [{asked(item)}]", *(f"{n}: [{r}]" for n, r in zip(names, said, strict=True))])
