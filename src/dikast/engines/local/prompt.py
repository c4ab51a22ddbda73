"""Messages prepared for a model: token ids with every image and clip in its place, and their tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dikast.core.errors import EngineError
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.core.thinking import begun_thinking
from dikast.engines.base import Request
from dikast.engines.local.processor import Processor
from dikast.engines.local.seeing.seen import Seen
from dikast.engines.local.seeing.shown import media_of, see
from dikast.engines.local.template import Medium, Part, Turn
from dikast.engines.local.tokens import Piece, Tokens, unused_character


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of everything before the reply, prefill included, with the images and clips they hold.

    `pieces` from `tail` on are what text after the prompt is encoded together with: the last control token and all
    behind it, which became the last `tail_length` ids.
    """

    ids: list[int]
    pieces: tuple[Piece, ...]
    tail: int
    tail_length: int
    seen: Seen = field(default_factory=Seen)

    @property
    def thinking(self) -> str:
        """The tag that makes the model begin in its thinking, where the prompt ends with one; else ""."""
        return begun_thinking("".join(piece.text for piece in self.pieces[-3:]))

    def continued(self, text: str, tokens: Tokens) -> list[int]:
        """Token ids of the prompt with `text` after it, merged where the tokenizer merges."""
        pieces = self.pieces[self.tail :]
        ids = tokens.encode([*pieces, Piece(text)])
        return self.ids[: len(self.ids) - self.tail_length] + ids[_led(pieces) :]


class _Marked:
    """Messages in which private marks replace untrusted control tokens while the template is rendered."""

    def __init__(self, tokens: Tokens, texts: Sequence[str]) -> None:
        self._tokens = tokens
        self._mark = unused_character("".join(texts))
        self._spellings = list(tokens.controls)

    def hide(self, spans: Sequence[Span]) -> str:
        """The joined text, with a mark in place of every spelling that touches untrusted text or stands for media."""
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


def encode(messages: Sequence[Message], processor: Processor, *, prefill: str = "") -> Prompt:
    """Render and tokenise one conversation and process its media, up to where the model's reply begins.

    `prefill` is the beginning of the reply. `Prompt.continued` gives the ids with more of the reply, as a training
    target needs them; `batch.tensors_of` stacks prompts. EngineError says why a model cannot be asked this.
    """
    seen = see(media_of(messages, processor.vision), processor)
    marked = _Marked(processor.tokens, [*(message.text for message in messages), prefill])
    as_video = processor.vision is not None and processor.vision.clips is not None
    rendered = processor.template.render([_turn(message, marked, as_video=as_video) for message in messages])
    pieces = marked.reveal(rendered + marked.hide([Span(prefill)]))
    return _with_media(processor.tokens.encode(pieces), pieces, seen, processor)


def room_for_reply(request: Request, prompt: Prompt, tokens: Tokens, context: int) -> int:
    """Tokens that remain of `context` for the reply, minus those reserved for label scoring; EngineError if none."""
    room = context - len(prompt.ids) - _kept_for_reading(request, tokens)
    if room < 1:
        shown = (*prompt.seen.images, *prompt.seen.clips)
        raise EngineError(
            f"the prompt has {len(prompt.ids)} tokens ({sum(map(len, shown))} of them for {len(shown)} images and "
            f"clips), the model takes {context} with its reply: shorten the item, or use smaller images or "
            "fewer frames",
            kind="context_length",
        )
    return room


def _kept_for_reading(request: Request, tokens: Tokens) -> int:
    """How many tokens a marker and the longest label may take, merges at both ends included."""
    if request.readout is None:
        return 0
    longest = max(request.readout.labels, key=len, default="")
    return len(tokens.encode([Piece(request.readout.marker + longest)])) + 4


def _turn(message: Message, marked: _Marked, *, as_video: bool) -> Turn:
    parts: list[Part] = []
    spans: list[Span] = []
    for part in message.parts:
        if isinstance(part, Span):
            spans.append(part)
            continue
        if spans:
            parts.append(marked.hide(spans))
            spans = []
        if isinstance(part, Video) and as_video:
            parts.append(Medium.VIDEO)
        else:
            parts.extend([Medium.IMAGE] * (1 if isinstance(part, Image) else len(part.frames)))
    if spans or not parts:
        parts.append(marked.hide(spans))
    return Turn(message.role, tuple(parts))


def _with_media(ids: list[int], pieces: list[Piece], seen: Seen, processor: Processor) -> Prompt:
    """Replace the placeholder of each image and clip by its tokens, and put the first token of the tokenizer."""
    full: list[int] = [] if processor.start is None or ids[:1] == [processor.start] else [processor.start]
    waiting = {}
    if (vision := processor.vision) is not None:
        kinds = [(vision.image_token_id, "images", seen.images), (vision.video_token_id, "clips", seen.clips)]
        for token, kind, shown in kinds:
            if token is None:
                continue
            if (places := ids.count(token)) != len(shown):
                raise EngineError(
                    f"the chat template made places for {places} {kind}, the request has {len(shown)}",
                    kind="chat_template",
                )
            waiting[token] = iter(shown)
    for token in ids:
        full.extend(next(waiting[token]) if token in waiting else (token,))
    tail = max((i for i, piece in enumerate(pieces) if piece.control), default=0)
    alone = processor.tokens.encode(pieces[tail:])[_led(pieces[tail:]) :]
    if (
        ids[len(ids) - len(alone) :] != alone
    ):  # a tokenizer with a longer dependency: nothing is merged with what follows
        tail, alone = len(pieces), []
    return Prompt(full, tuple(pieces), tail, len(alone), seen)


def _led(pieces: Sequence[Piece]) -> int:
    """1 if the first piece is a control token, else 0."""
    return int(bool(pieces) and pieces[0].control)
