"""From messages to a model's inputs: tokenizer, chat template, image processor. It needs no weights."""

from dataclasses import dataclass
from typing import Any

from dikast.core.errors import UserError
from dikast.engines.local.seeing.vision import Vision, load_vision
from dikast.engines.local.source import ModelSource
from dikast.engines.local.template import Medium, Template
from dikast.engines.local.tokens import Tokens
from dikast.engines.local.trusted import pretrained_tokenizer


@dataclass(frozen=True, slots=True)
class Processor:
    """`blind` says why there is no `vision`; `start` is a first token that prompts need and the template does not
    write.

    `padding` pads rows of a batch.
    """

    tokens: Tokens
    template: Template
    vision: Vision | None
    blind: str
    start: int | None
    padding: int


def load_processor(source: ModelSource, config: Any, *, sees: bool, as_video: bool = True) -> Processor:
    """The processor of the checkpoint in `source`; `config` is its configuration, `sees` whether it takes images.

    Without `as_video` a clip is its frames, one image each, also for a model that knows clips.
    """
    tokenizer = pretrained_tokenizer(source.tokenizer_folder)
    vision = load_vision(source.folder, config, tokenizer, as_video=as_video) if sees else "it is a text-only model"
    processor = assemble(tokenizer, vision)
    if processor.template.refusal:
        raise UserError(
            f"{source.tokenizer_folder}: its chat template (chat_template.jinja, or field 'chat_template' of"
            f" tokenizer_config.json) renders no question ({processor.template.refusal[:300]}): take the file from the"
            " model's source again"
        )
    return processor


def assemble(tokenizer: Any, vision: Vision | str) -> Processor:
    """Put a processor together; `vision` is that of images, or why there is none."""
    eye = vision if isinstance(vision, Vision) else None
    written = (eye.processor.chat_template if eye else None) or tokenizer.chat_template
    if isinstance(written, dict):
        written = written.get("default", next(iter(written.values())))
    shown = {Medium.IMAGE: eye.image_token, Medium.VIDEO: eye.video_token} if eye else {}
    template = Template(tokenizer, written, placeholders=shown)
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return Processor(
        tokens=Tokens(tokenizer, template=template.source, placeholders=eye.placeholders if eye else ()),
        template=template,
        vision=eye,
        blind="" if eye else str(vision),
        start=_start_id(tokenizer) if eye or not template.own else None,
        padding=padding if padding is not None else 0,
    )


def _start_id(tokenizer: Any) -> int | None:
    """The first token that the tokenizer puts before any text, if it does."""
    ids = tokenizer("")["input_ids"]
    return int(ids[0]) if ids and tokenizer.bos_token_id is not None and ids[0] == tokenizer.bos_token_id else None
