"""What is sent to a model: messages whose parts remember which text the user wrote."""

from dataclasses import dataclass
from typing import Literal

from dikast.core.part import Image, Video, images_of


@dataclass(frozen=True, slots=True)
class Span:
    """Text of a message. `trusted` text comes from a format's template, any other from the item or the rubric.

    Engines must treat untrusted text as text only: special tokens inside it have no effect.
    """

    text: str
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One turn as a model sees it. Adjacent spans join without any separator."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Span | Image | Video, ...]

    @property
    def text(self) -> str:
        """The text of all spans, joined; media are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, Span))

    @property
    def images(self) -> list[Image]:
        """Every image in order, frames of clips included."""
        return images_of(part for part in self.parts if not isinstance(part, Span))
