"""Where a model's thinking ends and its answer begins. Nothing inside the thinking is ever a verdict."""

import re

_OPEN = re.compile(r"\s{0,40}+<(think|thinking|reasoning)>", re.I)
_OPENED = re.compile(r"<(?:think|thinking|reasoning)>(?=\s{0,40}$)", re.I)
_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.I)


def after_thinking(reply: str) -> tuple[str, str, bool]:
    """The reply proper, the thinking before it, and whether the reply never left its thinking."""
    close = None
    for match in _CLOSE.finditer(reply):
        close = match
    opened = _OPEN.match(reply)
    begin = opened.end() if opened else 0
    if close is not None:
        return reply[close.end() :], reply[begin : close.start()].strip(), False
    if opened:
        return "", reply[begin:].strip(), True
    return reply, "", False


def answer_begins(reply: str) -> int:
    """Where the reply proper begins: 0 without thinking, its length if it never leaves its thinking."""
    return len(reply) - len(after_thinking(reply)[0])


def begun_thinking(prompt: str) -> str:
    """The tag with which a prompt ends that makes the model begin in its thinking; "" for any other prompt."""
    found = _OPENED.search(prompt[-80:])
    return found[0] if found else ""
