"""A judge from scratch: its configuration, and its tokenizer, trained on the records of the training data.

The classes are those of LLaVA-1.5 (Liu et al. 2023): a CLIP vision tower, a projector of two layers, a Llama.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError, require
from dikast.core.item import Item
from dikast.core.output_folder import one_writer
from dikast.training.config import Config
from dikast.training.data.examples import Asker, ExampleRow, files_of, rows_of_file

_WORD = re.compile(r"[^\W\d_]+")
SPECIALS = ("<pad>", "<s>", "</s>", "<image>", "<judge>")
TEMPLATE = (
    "<s>{% for m in messages %}{% if m['role'] == 'assistant' %}<judge>{% endif %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>' }}{% endfor %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'text') %}{{ c['text'] }}{% endfor %}"
    "{% if m['role'] == 'assistant' %}</s>{% else %}{{ '\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<judge>{% endif %}"
)
# The word that begins a line of feedback is one token; words include the preceding space, and every
# digit is a token, so that arithmetic can be learnt.
PIECES = r"\n(?:Claim|Evidence|Finding|Lost|Grade|Verdict):| ?[A-Za-z]+| ?[0-9]|\n| ?[^\sA-Za-z0-9]"


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the model. `patch` divides `image` (both in pixels); `vocabulary` is the largest number of tokens."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    inner: int = 384
    seeing_layers: int = 2
    image: int = 96
    patch: int = 24
    vocabulary: int = 1280
    context: int = 2048
    spread: float = 0.06  # standard deviation of the initial weights

    def __post_init__(self) -> None:
        if self.image % self.patch or self.width % self.heads:
            raise UserError(
                f"shape: patch must divide image and heads width, got {self.patch}, {self.image}, {self.heads}, "
                f"{self.width}"
            )


SIZES = {
    "nano": Shape(),
    "small": Shape(
        width=256, layers=6, heads=8, inner=768, seeing_layers=3, vocabulary=2048, context=4096, spread=0.04
    ),
}


def new_judge(
    config: Config, folder: str | Path, shape: Shape | None = None, *, most: int = 20_000, later: Iterable[Config] = ()
) -> Path:
    """Write configuration, tokenizer and processor for the data of `config` to `folder`; weights are drawn later.

    The tokenizer is byte-level BPE, so that it can encode any text, trained on the first `most` examples of each
    source; `words.txt` lists their words, and those of `later` stages, which the tokenizer spells. Files of an earlier
    call are replaced; UserError if `folder` holds weights, which belong to another tokenizer.
    """
    require("torch", "hf")
    folder = Path(folder)
    if folder.is_file():
        raise UserError(f"{folder}: is a file already: name a new folder")
    if most < 1:
        raise UserError(f"--most: the tokenizer is trained on 1 example or more, got {most}")
    with one_writer(folder, "laying out a judge"):
        if any(folder.glob("*.safetensors")):
            raise UserError(f"{folder}: holds a model already: name a new folder")
        _lay_out(config, folder, shape or Shape(), most, later)
    return folder


def _lay_out(config: Config, folder: Path, shape: Shape, most: int, later: Iterable[Config]) -> None:
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        GenerationConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaProcessor,
    )

    tokenizer = _tokenizer(texts(config, most), shape.vocabulary)
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<{mark}>") for name, mark in _MARKS}
    vision = CLIPVisionConfig(
        hidden_size=shape.width, intermediate_size=4 * shape.width, num_hidden_layers=shape.seeing_layers,
        num_attention_heads=shape.heads, image_size=shape.image, patch_size=shape.patch, projection_dim=shape.width,
        initializer_range=shape.spread,
    )  # fmt: skip
    text = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=shape.width, intermediate_size=shape.inner,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.heads,
        max_position_embeddings=shape.context, initializer_range=shape.spread, tie_word_embeddings=False, **ids,
    )  # fmt: skip
    seen = (shape.image // shape.patch) ** 2
    made = LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1, vision_feature_select_strategy="default", image_seq_length=seen,
        tie_word_embeddings=False, **ids,
    )  # fmt: skip
    made.architectures = ["LlavaForConditionalGeneration"]
    side = {"height": shape.image, "width": shape.image}
    images = CLIPImageProcessorPil(size=side, crop_size=side, do_center_crop=False)
    processor: Any = LlavaProcessor(
        image_processor=images, tokenizer=tokenizer, patch_size=shape.patch,
        vision_feature_select_strategy="default", num_additional_image_tokens=1, chat_template=TEMPLATE,
    )  # fmt: skip
    lines = (line for each in (config, *later) for line in texts(each, most, each_file=True))
    words = {word for line in lines for word in _WORD.findall(line.casefold())}
    (folder / "words.txt").write_text("\n".join(sorted(words)) + "\n", "utf-8")
    processor.save_pretrained(folder)
    made.save_pretrained(folder)
    GenerationConfig(**ids).save_pretrained(folder)


_MARKS = (("pad", "pad"), ("bos", "s"), ("eos", "/s"))


def texts(config: Config, most: int, *, each_file: bool = False) -> Iterator[str]:
    """Prompts and replies of the examples of a configuration, the first `most` of each source (or pattern).

    Without `augment.other_words`: made-up words do not belong to the vocabulary of the data.
    """
    asker = Asker(replace(config, augment=replace(config.augment, other_words=0.0)))
    for number, data in enumerate(config.data):
        patterns = data.items or data.talk
        for part in [(pattern,) for pattern in patterns] if each_file else [patterns]:
            rows = (
                (number, row) for file in files_of(config, part) for row in rows_of_file(file, talk=bool(data.talk))
            )
            yield from islice(_spelt(asker, rows), most)


def _spelt(asker: Asker, rows: Iterator[tuple[int, tuple[Item, str | None]]]) -> Iterator[str]:
    for number, (record, answer) in rows:
        for example in asker.examples(ExampleRow(number, 0, record, answer)):
            yield "\n".join([*(message.text for message in example.messages), example.reply.text])


def _tokenizer(lines: Iterator[str], vocabulary: int) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(SPECIALS),
        show_progress=False,
    )  # fmt: skip
    backend.train_from_iterator(lines, trainer)
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        additional_special_tokens=["<image>", "<judge>"],
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer
