"""Examples to tokens: the prompt, which the loss mask excludes, and the reply that the model is trained on.

The prompt is made by the code of the local engine, and the reply is tokenised after it as label scoring does it, so
that text, tokens and images are the same in training and in judging.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dikast.core.errors import DataError, EngineError
from dikast.engines.local.label_scoring import behind_anchor
from dikast.engines.local.loading import Loaded
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.prompt import encode as encode_prompt
from dikast.engines.local.seeing.shown import Media, media_of
from dikast.engines.local.template import Turn
from dikast.engines.local.tokens import Tokens
from dikast.training.data.examples import Example

_PROBE = "probe-of-a-reply"


class Shown(NamedTuple):
    """A picture or clip of a prompt: for how many of its placeholder tokens it stands, and a key of its content."""

    clip: bool
    tokens: int
    key: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids; the first `prompt` ones are masked in the loss; `label` = (first, last + 1) of the verdict's label.

    `media` are the images and clips that it shows; rows of equal `shape` may share a batch. `shown` has the images in
    order, then the clips. `others` has for each other label of the question the place where the reply would differ if
    it gave that one, and the token that would stand there.
    """

    ids: list[int]
    prompt: int
    label: tuple[int, int]
    media: Media = field(default_factory=Media)
    shape: tuple[int, ...] = ()
    shown: tuple[Shown, ...] = ()
    others: tuple[tuple[int, int], ...] = ()


def end_of_reply(loaded: Loaded) -> int:
    """The token that ends a reply: the one the chat template writes after it, else the model's first end token.

    EngineError if the model has none.
    """
    template = loaded.processor.template
    turns = [Turn("user", ("probe",)), Turn("assistant", (_PROBE,))]
    try:
        after = template.render(turns).rpartition(_PROBE)[2]
    except EngineError:
        after = ""
    for piece in loaded.tokens.pieces(after):
        if piece.control and loaded.tokens.controls[piece.text] in loaded.ends:
            return loaded.tokens.controls[piece.text]
        if piece.text.strip():
            break
    if not loaded.ends:
        raise EngineError("this model has no token that ends a reply: set eos_token_id in its config", kind="tokenizer")
    return loaded.ends[0]


def encode(
    example: Example, loaded: Loaded, *, end: int, most: int, find_label: bool = True, find_others: bool = False
) -> Encoded:
    """The tokens of an example. DataError, naming its record, if it has more than `most` tokens.

    `find_label` false skips the search for the verdict's label, which takes time; so does `find_others`.
    """
    try:
        made = encode_prompt(example.messages, loaded.processor)
    except EngineError as error:
        raise DataError(f"example {example.id!r}: {error}", path=example.origin) from error
    reply = example.reply
    whole = _behind(made, reply.text, loaded.tokens, merged=example.prefilled)
    start = _agreed(made.ids, whole)
    label = (0, 0)
    if find_label and reply.label:
        before = _behind(made, reply.before.rstrip(), loaded.tokens, merged=example.prefilled)
        upto = _behind(made, reply.before + reply.label, loaded.tokens, merged=example.prefilled)
        label = (_agreed(before, whole), _agreed(upto, whole))
    ids = [*whole, end]
    others = [
        [*_behind(made, reply.before + other + reply.after, loaded.tokens, merged=example.prefilled), end]
        for other in (example.others if find_others else ())
    ]
    differing = tuple((at, each[at]) for each in others if each != ids for at in (_agreed(each, ids),))
    for limit, name in ((loaded.context, "what the model takes"), (most, "max_tokens")):
        if len(ids) > limit:
            shown = (*made.seen.images, *made.seen.clips)
            cure = "raise it, shorten" if name == "max_tokens" else "shorten"
            raise DataError(
                f"example {example.id!r} has {len(ids)} tokens ({len(made.ids)} of them asked, {sum(map(len, shown))} "
                f"for {len(shown)} images and clips), more than {name}: {limit}; {cure} the item, use smaller images "
                "or fewer frames",
                path=example.origin,
            )
    shape = made.seen.shape if made.seen.tensors else ()
    media = media_of(example.messages, loaded.processor.vision)
    return Encoded(ids, start, label, media, shape, tuple(_shown(made, loaded)), differing)


def _shown(made: Prompt, loaded: Loaded) -> Iterator[Shown]:
    seen, vision = made.seen, loaded.processor.vision
    for medium, ids, key in zip(seen.media, (*seen.images, *seen.clips), seen.keys, strict=True):
        assert vision is not None
        token = vision.video_token_id if medium.clip else vision.image_token_id
        yield Shown(medium.clip, ids.count(token), key)


def _behind(made: Prompt, text: str, tokens: Tokens, *, merged: bool) -> list[int]:
    """The prompt's token ids followed by those of `text`.

    If the tokenizer would merge `text` into the prompt's last tokens, it is tokenised on its own, since a generated
    reply starts after them. With `merged` (label scoring without generation) it is tokenised as label scoring does.
    """
    ids = made.continued(text, tokens)
    if merged or ids[: len(made.ids)] == made.ids:
        return ids
    return [*made.ids, *behind_anchor([text], tokens)[0]]


def _agreed(one: list[int], other: list[int]) -> int:
    shortest = min(len(one), len(other))
    return next((n for n in range(shortest) if one[n] != other[n]), shortest)
