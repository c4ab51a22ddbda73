"""The bundled judge: a local engine with the package's own weights, which knows one small world."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import ClassVar

from dikast.core.errors import DataError, UserError
from dikast.core.media import load_image
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Completion, Request
from dikast.engines.local.engine import LocalEngine

_log = logging.getLogger(__name__)
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = frozenset(" \n.,:;?-=+*()0123456789")  # what worlds write besides words
_NOTES = "notes"  # every question of the world of text names them
_SIDE = 96  # pixels
_FEWEST, _MOST = 2, 2048  # colours; worlds have some dozens at least and under a thousand, most photographs more
_OUTSIDE = (
    "scout was taught on the worlds that `dikast world make` draws and on nothing else, and was asked about something "
    "that is not from there: its verdicts on that mean nothing; take a grown judge, such as --judge hf:ORG/NAME"
)


class Scout(LocalEngine):
    """`scout`: a vision-language judge of two million parameters, trained from scratch on worlds (see its card).

    It is asked in formats of its own (`formats`), unless a caller names others. Asked about words that its worlds do
    not have, or shown what they do not draw, it warns once in the log (standard error) and in `notes`, which are in
    a run's summary.
    """

    formats: ClassVar[Mapping[str, str]] = {"absolute": "scout", "pairwise": "scout-pairs"}

    def __init__(self, target: str = "", *, device: str = "auto", batch_size: int = 32, window: int = 256,
        share: bool = True,
    ) -> None:  # fmt: skip
        if target:
            raise UserError(f"scout takes no name, got {target!r}: write `scout`")
        super().__init__(str(folder()), device=device, batch_size=batch_size, window=window, share=share)
        self.name = "scout"
        self._outside = 0

    @property
    def notes(self) -> dict[str, int]:
        """Warnings for readers of the verdicts, with the number of questions that they concern."""
        return {**super().notes, **({_OUTSIDE: self._outside} if self._outside else {})}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Completions in order of arrival; questions about anything but its worlds are counted in `notes`."""
        return super().stream(self._looked_at(requests))

    def _looked_at(self, requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            if not (self._knows(request) and all(map(_drawn, request.messages))):
                self._outside += 1
                if self._outside == 1:
                    _log.warning(_OUTSIDE)
            yield request

    def _knows(self, request: Request) -> bool:
        """Whether words and signs are those of the worlds, and there is a picture or a text to judge by."""
        text = " ".join(
            part.text
            for message in request.messages
            for part in message.parts
            if isinstance(part, Span) and not part.trusted
        ).casefold()
        words = set(_WORD.findall(text))
        seen = any(message.images for message in request.messages) or _NOTES in words
        return seen and words <= self._words and _SIGNS.issuperset(_WORD.sub("", text))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(folder().joinpath("words.txt").read_text("utf-8").split())


def _drawn(message: Message) -> bool:
    """Whether all pictures have the size that the worlds draw, and about as many colours."""
    for part in message.parts:
        if isinstance(part, Video):
            return False
        if isinstance(part, Image):
            try:
                picture = load_image(part).picture
            except DataError:  # the engine says what is wrong with it
                continue
            if picture.size != (_SIDE, _SIDE) or len(picture.getcolors(_MOST) or ()) < _FEWEST:
                return False
    return True


def folder() -> Path:
    """Where the weights lie; UserError where this installation has none."""
    found = Path(str(resources.files("dikast"))) / "models" / "scout"
    if not (found / "model.safetensors").is_file():
        raise UserError(f"{found} holds no weights, install dikast from a wheel, or run `make scout`")
    return found
