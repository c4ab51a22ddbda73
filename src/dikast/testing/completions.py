"""Replies of the fault-injecting server: tokens, their log-probabilities, and requested extras."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

_TOKEN = re.compile(r" ?[^\W\d_]+| ?\d+|\s+| ?[^\s\w]|_")
_LABEL = re.compile(r"(Verdict:|\[RESULT\])(\s*)(\d+|[A-E]\b|\w+)")


def begun(body: Mapping[str, Any]) -> str:
    """The prefilled reply of a request; "" if it has none."""
    messages: Sequence[Mapping[str, Any]] = body.get("messages") or []
    last = messages[-1] if messages else {}
    return str(last.get("content")) if last.get("role") == "assistant" else ""


def after(text: str, begun: str) -> str:
    """The text after the prefilled reply: the label after a marker, else the whole reply."""
    found = _LABEL.search(text)
    if found is not None and begun.rstrip().endswith(found[1]):
        return found[2] + found[3]
    return text


def as_json(text: str, wanted: Mapping[str, Any]) -> str:
    """The verdict in `text` as the JSON object that a response format requires."""
    schema = (wanted.get("json_schema") or {}).get("schema") or {}
    found = _LABEL.search(text)
    values = {"verdict": found[3] if found else "", "feedback": "It answers what was asked."}
    return orjson.dumps({name: values.get(name, "") for name in schema.get("required", ())}).decode()


def tokens(text: str, *, split: bool) -> list[bytes]:
    """Words with the blank before them; with `split`, single digits, blanks apart, and bytes of what is not ASCII."""
    words = [word.encode() for word in _TOKEN.findall(text)]
    if not split:
        return words
    found: list[bytes] = []
    for word in words:
        if word.isalpha() and word.isascii():
            found.append(word)
        else:
            found += [word[at : at + 1] for at in range(len(word))]
    return found


def entry(token: bytes, top: int, sure: float) -> dict[str, Any]:
    """One token's log-probability; a label's alternatives are the other digits or letters."""
    bare = token.strip()
    others: list[bytes] = []
    if len(bare) == 1 and bare.isdigit():
        others = [b"%d" % digit for digit in range(10) if b"%d" % digit != bare]
    elif bare in (b"A", b"B", b"C", b"D", b"E"):
        others = [letter for letter in (b"A", b"B", b"C", b"D", b"E") if letter != bare]
    lead = token[: len(token) - len(token.lstrip())]
    share = {token: sure if others else 1.0, **{lead + other: (1 - sure) / len(others) for other in others}}
    ranked = sorted(share.items(), key=lambda pair: -pair[1])[:top]
    spelt = [
        {"token": each.decode("utf-8", "replace"), "logprob": math.log(p), "bytes": list(each)} for each, p in ranked
    ]
    own = {"token": token.decode("utf-8", "replace"), "logprob": math.log(share[token]), "bytes": list(token)}
    return {**own, "top_logprobs": spelt}
