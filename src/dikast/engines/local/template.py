"""Messages rendered by a model's own chat template, with workarounds for what the template refuses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from dikast.core.errors import EngineError

# For a model without a chat template: every turn under its role's name, then the assistant's name.
PLAIN_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] | capitalize }}:"
    "{% if m['content'] is string %}{{ ' ' + m['content'] }}{% else %}"
    "{% for c in m['content'] %}{{ ' ' + (placeholders[c['type']] if c['type'] in placeholders else c['text']) }}"
    "{% endfor %}"
    "{% endif %}{{ '\n\n' }}{% endfor %}{{ 'Assistant:' }}"
)


class Medium(Enum):
    """A part of a turn that is not text, by the name that templates give it."""

    IMAGE = "image"
    VIDEO = "video"


Part = str | Medium
_NONE: Mapping[Medium, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn for a template: its role, and its texts and media in order."""

    role: str
    parts: tuple[Part, ...]


class Template:
    """A chat template, and what it takes: system turns or not, content as text or as a list of parts.

    `placeholders` are what stands for a medium where the template does not write it itself. `refusal` is the error that
    it raises for the plainest question, with a system turn or without; "" if it renders that.
    """

    def __init__(self, tokenizer: Any, template: str | None, *, placeholders: Mapping[Medium, str] = _NONE) -> None:
        self.own = template is not None
        self.source = template if template is not None else PLAIN_TEMPLATE
        self._tokenizer = tokenizer
        self._placeholders = placeholders
        self.takes_parts = self._shows(Turn("user", ("probe-part",)), as_parts=True)
        shows = self.takes_parts or self._shows(Turn("user", ("probe-text",)))
        refused = "" if shows else self._refused
        self.takes_system = self._shows(Turn("system", ("probe-system",)), Turn("user", ("probe-user",)))
        self.refusal = "" if self.takes_system else refused

    def render(self, turns: Sequence[Turn]) -> str:
        """The prompt's text, up to where the model's reply begins.

        Where the template refuses system turns or drops them, they go into the user's turn that follows; where it
        still refuses, neighbouring turns of one role are joined by an empty line.
        """
        tries = [list(turns)] if self.takes_system else []
        if any(turn.role == "system" for turn in turns) or not tries:
            tries.append(without_system(turns))
        tries.append(joined(without_system(turns)))
        for attempt in tries:
            try:
                return self._rendered(attempt, as_parts=self.takes_parts)
            except Exception as error:  # templates may raise anything
                refusal = error
        raise EngineError(f"the model's chat template refuses this conversation: {refusal}", kind="chat_template")

    def _rendered(self, turns: Sequence[Turn], *, as_parts: bool) -> str:
        conversation = [{"role": turn.role, "content": self._content(turn, as_parts=as_parts)} for turn in turns]
        return str(
            self._tokenizer.apply_chat_template(
                conversation,
                chat_template=self.source,
                tokenize=False,
                add_generation_prompt=True,
                placeholders={medium.value: token for medium, token in self._placeholders.items()},
            )
        )

    def _content(self, turn: Turn, *, as_parts: bool) -> str | list[dict[str, str]]:
        if as_parts:
            return [
                {"type": part.value} if isinstance(part, Medium) else {"type": "text", "text": part}
                for part in turn.parts
            ]
        return "".join(self._placeholders.get(part, "") if isinstance(part, Medium) else part for part in turn.parts)

    def _shows(self, *turns: Turn, as_parts: bool | None = None) -> bool:
        """Whether the template renders these turns and every text in them comes out, as text."""
        try:
            text = self._rendered(turns, as_parts=self.takes_parts if as_parts is None else as_parts)
        except Exception as error:  # templates may raise anything; a refusal is the answer
            self._refused = f"{type(error).__name__}: {error}"
            return False
        self._refused = "" if text.strip() else "it renders nothing"
        shown = [part for turn in turns for part in turn.parts if isinstance(part, str)]
        return all(part in text for part in shown) and "'type'" not in text


def without_system(turns: Sequence[Turn]) -> list[Turn]:
    """Each system turn goes, with an empty line, before the user's turn that follows it, or becomes a user's turn."""
    kept: list[Turn] = []
    waiting: list[tuple[Part, ...]] = []
    for turn in turns:
        if turn.role == "system":
            waiting.append(turn.parts)
        elif turn.role == "user" and waiting:
            kept.append(Turn("user", _with_gaps([*waiting, turn.parts])))
            waiting = []
        else:
            kept.extend([Turn("user", _with_gaps(waiting))] if waiting else [])
            kept.append(turn)
            waiting = []
    return [*kept, Turn("user", _with_gaps(waiting))] if waiting else kept


def joined(turns: Sequence[Turn]) -> list[Turn]:
    """Neighbouring turns of one role become one."""
    kept: list[Turn] = []
    for turn in turns:
        if kept and kept[-1].role == turn.role:
            kept[-1] = Turn(turn.role, _with_gaps([kept[-1].parts, turn.parts]))
        else:
            kept.append(turn)
    return kept


def _with_gaps(contents: Sequence[tuple[Part, ...]]) -> tuple[Part, ...]:
    """Contents one after another with an empty line between; texts that meet become one."""
    parts: list[Part] = []
    for i, content in enumerate(contents):
        for part in ("\n\n", *content) if i else content:
            last = parts[-1] if parts else None
            if isinstance(part, str) and isinstance(last, str):
                parts[-1] = last + part
            else:
                parts.append(part)
    return tuple(parts)
