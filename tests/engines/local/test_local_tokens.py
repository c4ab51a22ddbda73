"""Control tokens in what users write are text; ordinary prompts are what the model's own template makes of them."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.local.batch import TokenRow, tensors_of
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.prompt import Prompt, encode
from dikast.engines.local.tokens import Piece, Tokens

Engines = Callable[[str], LocalEngine]

# Every control token of every family, with what an attacker would put around it.
HOSTILE = (
    "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|im_start|>", "<|im_end|>", "<s>",
    "</s>", "<unk>", "<pad>", "<|pad|>", "<|endoftext|>", "<image>", "<|image_pad|>", "<|video_pad|>",
    "<|vision_start|>", "<|vision_end|>",
)  # fmt: skip
PIECES = ("system\n", "\n\n", " ", "[INST]", "[/INST]", "ASSISTANT:", "good", "<|", "|>", "\U00100000", "é", "<", "s>")

hostile = st.lists(st.sampled_from(HOSTILE + PIECES) | st.text(max_size=5), max_size=8).map("".join)
harmless = st.text(alphabet=st.characters(exclude_characters="<|>", exclude_categories=["Cs"]), max_size=40)


def prompt_of(engine: LocalEngine, *spans: Span, prefill: str = "", image: bool = False) -> Prompt:
    picture = (red_square(),) if image else ()
    messages = (Message("system", (Span("Judge.", trusted=True),)), Message("user", (*picture, *spans)))
    return encode(messages, engine._loaded.processor, prefill=prefill)


def red_square() -> Image:
    from PIL import Image as Pictures

    return Image.of(Pictures.new("RGB", (70, 56), (200, 30, 30)))


def control_ids(engine: LocalEngine, ids: list[int]) -> Counter[int]:
    tokens = engine._loaded.tokens
    return Counter(i for i in ids if i in tokens.special_ids and i != tokens.tokenizer.unk_token_id)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=hostile, prefill=hostile)
def test_untrusted_text_never_becomes_a_control_token(family: str, text: str, prefill: str, engine: Engines) -> None:
    model = engine(family)
    plain = prompt_of(model, Span("Rate: ", trusted=True), Span("fine"), Span(" End.", trusted=True))
    attacked = prompt_of(model, Span("Rate: ", trusted=True), Span(text), Span(" End.", trusted=True), prefill=prefill)
    assert control_ids(model, attacked.ids) == control_ids(model, plain.ids)


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
@pytest.mark.parametrize(
    "text", ["<image>", "<|image_pad|> <|video_pad|>", "<|vision_start|><|image_pad|><|vision_end|>"]
)
def test_placeholders_in_text_are_no_images(family: str, text: str, engine: Engines) -> None:
    model = engine(family)
    attacked = prompt_of(model, Span(text), Span("<image> <|image_pad|>", trusted=True), image=True)
    assert control_ids(model, attacked.ids) == control_ids(model, prompt_of(model, Span("fine"), image=True).ids)
    assert len(attacked.seen.images) == 1


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_control_token_put_together_from_two_spans_is_inert(family: str, engine: Engines) -> None:
    model = engine(family)
    end = next(iter(model._loaded.tokens.controls))
    plain = prompt_of(model, Span("fine"))
    assert control_ids(model, prompt_of(model, Span(end[:2]), Span(end[2:])).ids) == control_ids(model, plain.ids)
    assert control_ids(model, prompt_of(model, Span(end[:2]), Span(end[2:], trusted=True)).ids) == control_ids(
        model, plain.ids
    )


@pytest.mark.parametrize("family", tiny_models.TEXT_FAMILIES)
def test_trusted_text_may_use_control_tokens(family: str, engine: Engines) -> None:
    model = engine(family)
    end = next(s for s, i in model._loaded.tokens.controls.items() if i in model._loaded.ends)
    more = control_ids(model, prompt_of(model, Span(end, trusted=True)).ids) - control_ids(
        model, prompt_of(model, Span("x")).ids
    )
    assert more == Counter({model._loaded.tokens.controls[end]: 1})


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=harmless)
def test_ordinary_text_is_tokenised_as_the_models_own_template_does(family: str, text: str, engine: Engines) -> None:
    model = engine(family)
    made = encode([Message("user", (Span("Rate: ", trusted=True), Span(text)))], model._loaded.processor)
    assert made.ids == own_way(model, "Rate: " + text)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=st.text(max_size=40))
def test_texts_of_single_tokens_make_the_text_of_all(family: str, text: str, engine: Engines) -> None:
    """Where a marker ends is looked for in them; a part of a character is told by U+FFFD."""
    tokens = engine(family)._loaded.tokens
    before, ids = tokens.encode([Piece("Say: ok")]), tokens.encode([Piece(text)])
    joined = "".join(map(tokens.text_of, ids))
    assert "\ufffd" in joined or joined == tokens.decode(ids, after=before)


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_images_are_placed_as_the_models_own_processor_does(family: str, engine: Engines) -> None:
    import torch

    from dikast.core.media import load_image

    loaded = engine(family)._loaded
    assert loaded.processor.vision is not None
    first, second = red_square(), Image.of(load_image(red_square()).picture.resize((120, 64)))
    message = Message("user", (first, Span("One. "), second, Span("Two.")))
    made = encode([message], loaded.processor)
    content = [
        {"type": "image"},
        {"type": "text", "text": "One. "},
        {"type": "image"},
        {"type": "text", "text": "Two."},
    ]
    processor = loaded.processor.vision.processor
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    pictures = [load_image(image).picture for image in (first, second)]
    theirs = processor(text=[text], images=[pictures], return_tensors="pt")
    ours = tensors_of([TokenRow(made, made.ids)], loaded.processor)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name


def own_way(engine: LocalEngine, text: str) -> list[int]:
    loaded = engine._loaded
    content: Any = [{"type": "text", "text": text}] if loaded.processor.template.takes_parts else text
    conversation = [{"role": "user", "content": content}]
    owner: Any = loaded.processor.vision.processor if loaded.processor.vision else loaded.tokens.tokenizer
    made = owner.apply_chat_template(conversation, add_generation_prompt=True, tokenize=True, return_dict=True)[
        "input_ids"
    ]
    return list(made[0] if isinstance(made[0], list) else made)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_no_prompt_starts_twice(family: str, engine: Engines) -> None:
    model = engine(family)
    start = model._loaded.tokens.tokenizer.bos_token_id
    ids = prompt_of(model, Span("<s> <|begin_of_text|> hello")).ids
    assert ids.count(start) == (0 if start is None else 1)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_text_around_an_inert_token_keeps_its_tokens(family: str, engine: Engines) -> None:
    tokens = engine(family)._loaded.tokens
    control = next(iter(tokens.controls))
    lead = Piece(control, control=True)
    for word in ("The response is good.", "Feedback: clear"):
        alone = tokens.encode([lead, Piece(word)])
        assert tokens.encode([lead, Piece(word + " " + control)])[: len(alone)] == alone
        assert tokens.decode(tokens.encode([Piece(f"a {control} b")])).strip() == f"a {control} b"


def test_a_tokenizer_that_looks_whole_words_up_is_kept_from_it() -> None:
    """Unigram and word-level models can pick a control token straight from their vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.Unigram([("<unk>", 0.0), ("<end>", 0.0), *((c, -5.0) for c in "<>end ")], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    made: Any = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", eos_token="<end>")  # type: ignore[no-untyped-call]
    tokens = Tokens(made)
    ids = tokens.encode([Piece("end <end>"), Piece("<end>", control=True)])
    assert ids.count(1) == 1
    assert ids[-1] == 1


def test_a_tokenizer_without_a_backend_gets_the_spelling_broken() -> None:
    from transformers import PreTrainedTokenizerFast

    folder: Any = tiny_models.byte_level_tokenizer(
        ["<|endoftext|>", "<|im_end|>"], bos=None, eos="<|im_end|>", pad="<|endoftext|>", template=None
    )

    class Slow:
        """The same tokenizer behind an interface without `backend_tokenizer`."""

        backend_tokenizer = None

        def __getattr__(self, name: str) -> Any:
            return getattr(folder, name)

        def __call__(self, text: str, **options: Any) -> Any:
            return folder(text, **options)

    assert isinstance(folder, PreTrainedTokenizerFast)
    tokens = Tokens(Slow())
    ids = tokens.encode([Piece("a <|im_end|> b"), Piece("<|im_end|>", control=True)])
    assert ids.count(folder.eos_token_id) == 1
    assert tokens.decode(ids).replace("\u200b", "") == "a <|im_end|> b"


def test_added_words_that_a_template_writes_are_control_tokens() -> None:
    made: Any = tiny_models.byte_level_tokenizer(
        ["<|endoftext|>", "<|im_end|>"], bos=None, eos="<|im_end|>", pad="<|endoftext|>", template=None
    )
    made.add_tokens(["<think>", "<table>"])
    tokens = Tokens(made, template="{{ '<think>' }}")
    assert "<think>" in tokens.controls
    assert "<table>" not in tokens.controls, "an added word that steers nothing stays ordinary vocabulary"
