"""Finding where a model's reasoning ends and its answer begins. Text inside the reasoning is never a verdict.

Delimiters as models write them: `<think>` and its relatives (DeepSeek, Qwen, GLM, EXAONE, Seed), `[THINK]` (Magistral),
`◁think▷` (Kimi), `<|channel>` (Gemma), `<|START_THINKING|>` (Command), `<|inner_prefix|>` (Apertus), the channels of
gpt-oss: `<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>`, also
where a server has dropped these tokens (`analysis...assistantfinal...`). Sources: github.com/openai/harmony
(docs/format.md) and the reasoning parsers of github.com/vllm-project/vllm.
"""

import re
from collections import deque
from typing import NamedTuple

_NAME = r"(?:\w{1,8}[:|])?(?:think|thinking|thoughts?|reasoning)"
_BEGIN = rf"(?:<(?:{_NAME}>|\|channel>|\|START_THINKING\|>|\|inner_prefix\|>|\|begin_of_thought\|>)|\[THINK\]|◁think▷)"
_END = rf"(?:<(?:/{_NAME}>|channel\|>|\|END_THINKING\|>|\|inner_suffix\|>|\|end_of_thought\|>)|\[/THINK\]|◁/think▷)"
_OPEN = re.compile(rf"\s{{0,40}}+{_BEGIN}", re.I)
_OPEN_LATER = re.compile(rf"\n[ \t]{{0,8}}+{_BEGIN}", re.I)
_CLOSE = re.compile(rf"(?=[<\[◁]){_END}(?:\s{{0,8}}+<\|(?:START_RESPONSE|begin_of_solution)\|>)?", re.I)
_ANSWER = re.compile(r"\s{0,40}+<\|(?:START_RESPONSE|begin_of_solution)\|>")  # an answer without reasoning
# The head of a message: at the beginning of the reply, or after the end of another message.
_HEAD = re.compile(
    r"(?:\A\s{0,40}+(?:assistant)?|<\|(?:start\|>assistant|end\|>\s{0,8}+(?:assistant)?|return\|>|call\|>))"
    r"(?:\sto=[\w.]{1,60})?\s?<\|channel\|>\s?(?P<name>\w{1,20})[^<\n]{0,80}(?:<\|constrain\|>\w{0,20}\s?)?<\|message\|>"
)
_MESSAGE_OVER = re.compile(r"<\|(?:end|return|call|start)\|>")
_BARE = re.compile(r"\s{0,40}+(?:assistant)?(?:(?:analysis|commentary)(?=[\w\"'“(<\[])|final(?=[A-Z*#{\[]))")
_BARE_FINAL = "assistantfinal"
_OPENED = re.compile(rf"(?:{_BEGIN}|<\|channel\|>analysis<\|message\|>)(?=\s{{0,40}}$)", re.I)


class _Split(NamedTuple):
    """`reply[begin:end]` is the answer, None where the reply never leaves its reasoning; the reasoning before it."""

    begin: int | None
    end: int
    thought: str


def after_thinking(reply: str) -> tuple[str, str, bool]:
    """The reply proper, the reasoning before it, and whether the reply never left its reasoning."""
    found = _split(reply)
    if found.begin is None:
        return "", found.thought, True
    return reply[found.begin : found.end], found.thought, False


def answer_begins(reply: str) -> int:
    """Where the reply proper begins: 0 without reasoning, its length if it never leaves its reasoning."""
    begin = _split(reply).begin
    return len(reply) if begin is None else begin


def begun_thinking(prompt: str) -> str:
    """The tag with which a prompt ends that makes the model begin in its reasoning; "" for any other prompt."""
    found = _OPENED.search(prompt[-80:])
    return found[0] if found else ""


def _split(reply: str) -> _Split:
    if "<|channel|>" in reply and (heads := list(_HEAD.finditer(reply))):
        return _channels(reply, heads)
    bare = _BARE.match(reply)
    if bare is not None:
        at = reply.rfind(_BARE_FINAL)
        begin = at + len(_BARE_FINAL) if at >= 0 else bare.end() if bare[0].endswith("final") else None
        return _Split(begin, len(reply), reply[bare.end() : at if begin else None].strip() if at > bare.start() else "")
    opened = _OPEN.match(reply)
    close = next(iter(deque(_CLOSE.finditer(reply), maxlen=1)), None)
    begin = close.end() if close else 0
    thought = reply[opened.end() if opened else 0 : close.start()].strip() if close else ""
    again = opened if opened and not close else _OPEN_LATER.search(reply, begin)
    if again is not None:
        return _Split(None, len(reply), thought or reply[again.end() :].strip())
    alone = None if close else _ANSWER.match(reply)
    return _Split(alone.end() if alone else begin, len(reply), thought)


def _channels(reply: str, heads: list[re.Match[str]]) -> _Split:
    """The last message of the channel `final`; messages of other channels are reasoning."""
    ends = [_over(reply, head.end()) for head in heads]
    thought = "\n".join(
        reply[head.end() : end].strip() for head, end in zip(heads, ends, strict=True) if head["name"] != "final"
    )
    finals = [(head.end(), end) for head, end in zip(heads, ends, strict=True) if head["name"] == "final"]
    return _Split(*finals[-1], thought) if finals else _Split(None, len(reply), thought)


def _over(reply: str, at: int) -> int:
    found = _MESSAGE_OVER.search(reply, at)
    return found.start() if found else len(reply)
