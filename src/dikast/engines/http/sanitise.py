"""Sanitises users' text for servers: control tokens that are spelled out are broken up, so that they are text.

A server renders and tokenises the prompt itself, so its tokenizer does not know which text is trusted, as the local
engine's is. Instead a zero-width space goes in after the first character of every known spelling of a control token or
media placeholder in untrusted text: `<|im_end|>` is sent as `<` U+200B `|im_end|>`. The model then sees ordinary
characters that look the same. Spellings that no released model is known to use are not recognised.
"""

import re
from collections.abc import Iterator, Sequence

from dikast.core.message import Message, Span
from dikast.core.part import Image

ZERO_WIDTH_SPACE = "\u200b"
VERSION = 1  # increased when the same text would be sent differently

_ANGLED = (
    "s|bos|eos|pad|unk|mask|image|video|audio|img|IMG_CONTEXT|image_soft_token|audio_soft_token|image_pad|video_pad"
    "|start_of_turn|end_of_turn|start_of_image|end_of_image|start_of_audio|end_of_audio|think|thinking|tool_call"
    "|tool_response|tool_calls|tools|sop|eop|box|ref|quad|patch|slice|point|SPECIAL_\\d+|extra_id_\\d+|unused\\d+"
    "|image_\\d+|im_start|im_end|endoftext|vision_start|vision_end|BOS_TOKEN|EOS_TOKEN|PAD_TOKEN"
)
_SQUARE = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END|AUDIO"
    "|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|THINK|ARGS|CALL_ID|gMASK|sMASK|MASK|CLS|SEP|PAD|UNK|BOS|EOS"
)
_SPELLING = re.compile(
    rf"<[|｜][^<>\s]{{1,64}}[|｜]>|<<?/?(?:{_ANGLED}|SYS)>>?|\[/?(?:{_SQUARE})\]",
)


def sanitise(spans: Sequence[Span]) -> str:
    """The joined text of adjacent spans, with every spelling that touches untrusted text broken up."""
    text = "".join([span.text for span in spans])
    if not any(not span.trusted and _suspect(span.text) for span in spans):
        return text
    trusted: list[tuple[int, int]] = []
    at = 0
    for span in spans:
        if span.trusted:
            trusted.append((at, at + len(span.text)))
        at += len(span.text)

    def broken(match: re.Match[str]) -> str:
        if any(begin <= match.start() and match.end() <= end for begin, end in trusted):
            return match[0]
        return match[0][0] + ZERO_WIDTH_SPACE + match[0][1:]

    return _SPELLING.sub(broken, text)


def _suspect(text: str) -> bool:
    """Whether the text holds any character that begins or ends a spelling."""
    return "<" in text or "[" in text or ">" in text or "]" in text


def sent_text(message: Message) -> str:
    """All text of a message, sanitised; media are left out."""
    return sanitise([part for part in message.parts if isinstance(part, Span)])


def sent_parts(message: Message) -> Iterator[str | Image]:
    """What a server is sent of a message, in order: sanitised texts (adjacent spans joined) and images; a clip is its
    frames.
    """
    spans: list[Span] = []
    for part in message.parts:
        if isinstance(part, Span):
            spans.append(part)
            continue
        if spans:
            yield sanitise(spans)
            spans = []
        yield from (part,) if isinstance(part, Image) else part.frames
    if spans:
        yield sanitise(spans)
