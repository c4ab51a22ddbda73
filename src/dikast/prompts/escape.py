"""Escaping against prompt injection: lines of user text that look like a heading or the verdict line get a backslash.

A line is split into its leading backslashes and the rest. If the rest reads as one of the format's headings or as its
marker line, one more backslash is put in front; any other line stays byte for byte. The map is injective: `unescape`
takes the one backslash off again, and no escaped line reads as a heading.
"""

import re
import unicodedata
from functools import lru_cache

# All characters that any common tool treats as a line break.
_BREAK = re.compile("([\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
# What may occur before or inside a heading without changing how it reads: space, invisible characters, markdown.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_SKIPPED = re.compile(rf"[\s{_INVISIBLE}*_`~]+")
_SIGNS = "*_`~#>|+•\"'-"
_WINDOW = 400


@lru_cache(maxsize=64)
def _squeezed(guard: str) -> str:
    return _SKIPPED.sub("", unicodedata.normalize("NFKC", guard)).casefold()


@lru_cache(maxsize=64)
def _lead(guard: str) -> re.Pattern[str]:
    """What is skipped before a guard: all markdown characters except the one that the guard begins with."""
    signs = re.escape(_SIGNS.replace(guard[:1], ""))
    return re.compile(rf"[\s{_INVISIBLE}{signs}]*+")


def _guarded(line: str, guards: tuple[str, ...]) -> bool:
    return any(_begins(line, guard) for guard in guards)


def _begins(line: str, guard: str) -> bool:
    match = _lead(guard).match(line)
    begin = match.end() if match else 0
    head = _SKIPPED.sub("", unicodedata.normalize("NFKC", line[begin : begin + _WINDOW])).casefold()
    return head.startswith(_squeezed(guard))


_SKIPPED_BYTES = bytes(i for i in range(128) if _SKIPPED.fullmatch(chr(i)))


def _harmless(text: str, guards: tuple[str, ...]) -> bool:
    """Whether no line can begin with a guard, since none of them is in the text at all; known for ASCII only."""
    if not text.isascii():
        return False
    squeezed = text.encode("ascii").lower().translate(None, _SKIPPED_BYTES)
    return all(needle not in squeezed for needle in _needles(guards))


@lru_cache(maxsize=64)
def _needles(guards: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(_squeezed(guard).encode() for guard in guards)


def escape(text: str, guards: tuple[str, ...]) -> str:
    """`text` with a backslash before every line that would read as beginning with one of `guards`."""
    if not guards or _harmless(text, guards):
        return text
    return "".join("\\" + line if _guarded(line.lstrip("\\"), guards) else line for line in _BREAK.split(text))


def unescape(text: str, guards: tuple[str, ...]) -> str:
    """The inverse of `escape`."""
    if not guards:
        return text
    return "".join(
        line[1:] if line.startswith("\\") and _guarded(line.lstrip("\\"), guards) else line
        for line in _BREAK.split(text)
    )
