"""A request made ready for a model: token ids with every image in its place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dikast.core.errors import DataError, EngineError
from dikast.core.media import load_image
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Request
from dikast.engines.local.loading import Loaded
from dikast.engines.local.template import Turn
from dikast.engines.local.tokens import Piece, Tokens, unused_character
from dikast.engines.local.vision import SeenImage


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of everything before the reply, prefill included, with the images they hold.

    `aligned` are further rows as long as `ids` (modality types). `pieces` from `tail` on are what text after the prompt
    is encoded together with: the last control token and all behind it, which became the last `tail_length` ids.
    """

    ids: list[int]
    pieces: tuple[Piece, ...]
    tail: int
    tail_length: int
    room: int  # tokens that the model has left for the reply, those kept for reading a label not counted
    images: tuple[SeenImage, ...] = ()
    aligned: dict[str, list[int]] = field(default_factory=dict)

    def continued(self, text: str, tokens: Tokens) -> list[int]:
        """Token ids of the prompt with `text` after it, merged where the tokenizer merges."""
        pieces = self.pieces[self.tail :]
        ids = tokens.encode([*pieces, Piece(text)])
        return self.ids[: len(self.ids) - self.tail_length] + ids[_led(pieces) :]


class _Marked:
    """Messages whose untrusted control tokens stand behind private marks while a template is rendered around them."""

    def __init__(self, tokens: Tokens, texts: Sequence[str]) -> None:
        self._tokens = tokens
        self._mark = unused_character("".join(texts))
        self._spellings = list(tokens.controls)

    def hide(self, spans: Sequence[Span]) -> str:
        """The joined text, with every spelling that touches untrusted text, or stands for media, behind its mark."""
        text = "".join(span.text for span in spans)
        trusted = [flag for span in spans for flag in [span.trusted] * len(span.text)]
        kept, at = [], 0
        for match in self._tokens.spellings(text):
            acts = all(trusted[match.start() : match.end()]) and match.group() not in self._tokens.placeholders
            kept += [text[at : match.start()], match.group() if acts else self._hidden(match.group())]
            at = match.end()
        return "".join([*kept, text[at:]])

    def reveal(self, rendered: str) -> list[Piece]:
        """Pieces of the rendered text, in which hidden spellings are plain text again."""
        pieces: list[Piece] = []
        for piece in self._tokens.pieces(rendered):
            plain = piece.text
            if not piece.control and self._mark in plain:
                shown = plain.split(self._mark)
                plain = "".join(self._spellings[int(part)] if i % 2 else part for i, part in enumerate(shown))
            pieces.append(Piece(plain, piece.control))
        return pieces

    def _hidden(self, spelling: str) -> str:
        return f"{self._mark}{self._spellings.index(spelling)}{self._mark}"


def prepare(request: Request, loaded: Loaded) -> Prompt:
    """Render, tokenise and look at the images of one request; EngineError says why it cannot be asked."""
    seen = tuple(_see(image, loaded) for message in request.messages for image in _images(message))
    marked = _Marked(loaded.tokens, [*(message.text for message in request.messages), request.prefill])
    rendered = loaded.template.render([_turn(message, marked) for message in request.messages])
    pieces = marked.reveal(rendered + marked.hide([Span(request.prefill)]))
    ids = loaded.tokens.encode(pieces)
    prompt = _with_images(ids, pieces, seen, loaded, kept=_kept_for_reading(request, loaded.tokens))
    if prompt.room < 1:
        raise EngineError(
            f"the prompt has {len(prompt.ids)} tokens ({sum(len(image.ids) for image in seen)} of them for "
            f"{len(seen)} images), the model takes {loaded.context} with its reply: shorten the item or use smaller "
            "images",
            kind="context_length",
        )
    return prompt


def _kept_for_reading(request: Request, tokens: Tokens) -> int:
    """How many tokens a marker and the longest label may take, merges at both ends included."""
    if request.readout is None:
        return 0
    longest = max(request.readout.labels, key=len, default="")
    return len(tokens.encode([Piece(request.readout.marker + longest)])) + 4


def _turn(message: Message, marked: _Marked) -> Turn:
    parts: list[str | None] = []
    spans: list[Span] = []
    for part in message.parts:
        if isinstance(part, Span):
            spans.append(part)
            continue
        if spans:
            parts.append(marked.hide(spans))
            spans = []
        parts.extend([None] * (1 if isinstance(part, Image) else len(part.frames)))
    if spans or not parts:
        parts.append(marked.hide(spans))
    return Turn(message.role, tuple(parts))


def _images(message: Message) -> list[Image]:
    """The images of a message in order; a clip is its frames."""
    found: list[Image] = []
    for part in message.parts:
        if isinstance(part, Image):
            found.append(part)
        elif not isinstance(part, Span):
            found.extend(part.frames)
    return found


def _see(image: Image, loaded: Loaded) -> SeenImage:
    if loaded.vision is None:
        raise EngineError(
            f"the request has images, but this model cannot see them: {loaded.blind}; use a vision-language model",
            kind="no_vision",
        )
    try:
        return loaded.vision.see(load_image(image).picture)
    except DataError as error:
        raise EngineError(f"image {image.name}: {error}", kind="bad_media") from error


def _with_images(
    ids: list[int], pieces: list[Piece], seen: tuple[SeenImage, ...], loaded: Loaded, *, kept: int
) -> Prompt:
    """Put the tokens of each image where its placeholder stands, and the first token that the tokenizer adds."""
    placeholder = loaded.vision.image_token_id if loaded.vision else None
    if (places := ids.count(placeholder) if placeholder is not None else 0) != len(seen):
        raise EngineError(
            f"the chat template made places for {places} images, the request has {len(seen)}", kind="chat_template"
        )
    full: list[int] = [] if loaded.start is None or ids[:1] == [loaded.start] else [loaded.start]
    aligned = {name: [0] * len(full) for image in seen for name in image.aligned}
    waiting = iter(seen)
    for token in ids:
        image = next(waiting) if token == placeholder else None
        more = image.ids if image is not None else (token,)
        full.extend(more)
        for name, row in aligned.items():
            row.extend(image.aligned[name] if image is not None else [0] * len(more))
    tail = max((i for i, piece in enumerate(pieces) if piece.control), default=0)
    alone = loaded.tokens.encode(pieces[tail:])[_led(pieces[tail:]) :]
    if (
        ids[len(ids) - len(alone) :] != alone
    ):  # a tokenizer that looks further back: nothing is merged with what follows
        tail, alone = len(pieces), []
    return Prompt(full, tuple(pieces), tail, len(alone), loaded.context - len(full) - kept, seen, aligned)


def _led(pieces: Sequence[Piece]) -> int:
    """1 if the first piece is a control token, else 0."""
    return int(bool(pieces) and pieces[0].control)
