"""Tiny models of real classes with random weights, built from config and saved as a checkpoint would be.

Every family has the tokenizer kind, the special tokens and a chat template of the shape that its real checkpoints
have, so that the code that loads and prompts them meets the same conditions. `build("qwen", folder)` takes about a
second; the weights depend on the family, `seed` and shape only.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

TEXT_FAMILIES = ("llama", "mistral", "qwen")
VIDEO_FAMILIES = ("llava_onevision", "qwen_vl", "qwen3_vl")
IMAGE_FAMILIES = ("llava", *VIDEO_FAMILIES)
FAMILIES = TEXT_FAMILIES + IMAGE_FAMILIES

WORDS = (
    "The response is good. It follows the instruction and cites a source, but one claim is wrong; the answer helps. "
    "Feedback: clear, short, correct. [RESULT] 1 2 3 4 5 6 7 8 9 10 100 0.5 Score: Yes No pass fail A B tie better "
    '{"feedback": "fine", "score": 3}\nVerdict: the second image shows a red square left of a blue circle.\n'
)

CHATML = (
    "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{%- if m.content is string %}{{ m.content }}{%- else %}{%- for c in m.content %}"
    "{%- if c.type == 'image' %}{{ IMAGE }}{%- elif c.type == 'video' %}{{ VIDEO }}"
    "{%- elif c.type == 'text' %}{{ c.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}{{ '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"
)

# Turns must alternate and there is no system role, as in the first Mistral instruct models.
ALTERNATING = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ m['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)

# Headers between special tokens and trimmed content, as in Llama 3.
HEADERS = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)

# Images first, then text; content must be a list; no BOS of its own, as in LLaVA-1.5.
VICUNA = (
    "{% for m in messages %}{% if m['role'] != 'system' %}{{ m['role'].upper() + ': ' }}{% endif %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>\n' }}{% endfor %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'text') %}{{ c['text'] + ' ' }}{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)

# All images of a turn, then its clips, then its text, as in LLaVA-OneVision.
MEDIA_FIRST = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + ' ' }}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>' }}{% endfor %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'video') %}{{ '<video>' }}{% endfor %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'text') %}{{ '\n' + c['text'] }}{% endfor %}"
    "{{ '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

TEXT_SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
}


def build(family: str, folder: str | Path, *, seed: int = 0, **shape: Any) -> Path:
    """Save a random model of `family` with tokenizer (and processor) under `folder`; returns the folder.

    `shape` replaces entries of TEXT_SHAPE.
    """
    import torch

    makers: dict[str, Callable[[Path], None]] = {
        "llama": _llama,
        "mistral": _mistral,
        "qwen": _qwen,
        "llava": _llava,
        "llava_onevision": _llava_onevision,
        "qwen_vl": _qwen_vl,
        "qwen3_vl": _qwen3_vl,
    }
    folder = Path(folder)
    with torch.random.fork_rng(), patch.dict(TEXT_SHAPE, shape):
        torch.manual_seed(seed)
        makers[family](folder)
    return folder


def byte_level_tokenizer(specials: list[str], *, bos: str | None, eos: str, pad: str, template: str | None) -> Any:
    """Byte-level BPE, as Qwen and Llama 3 have."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=560,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=specials,
        show_progress=False,
    )
    backend.train_from_iterator([WORDS] * 10, trainer)
    if bos is not None:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, backend.token_to_id(bos))]
        )
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=eos,
        pad_token=pad,
        additional_special_tokens=[s for s in specials if s not in (bos, eos, pad)],
    )
    tokenizer.chat_template = template
    return tokenizer


def sentence_piece_tokenizer(extra: list[str], *, template: str | None) -> Any:
    """Sentence-piece-like BPE with byte fallback and a word-start mark, as Llama 2, Mistral and LLaVA-1.5 have."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    specials = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=[*specials, *(f"<0x{b:02X}>" for b in range(256))],
        show_progress=False,
        max_token_length=8,
    )
    backend.train_from_iterator([word for word in WORDS.replace("\n", " ").split(" ")] * 10, trainer)
    plain = Tokenizer.from_str(_without_byte_specials(backend.to_str()))
    plain.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=plain,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token=extra[0] if extra else "</s>",
        additional_special_tokens=extra[1:],
    )
    tokenizer.chat_template = template
    return tokenizer


def _without_byte_specials(spelled: str) -> str:
    """Byte pieces are ordinary vocabulary in real checkpoints, not special tokens."""
    import json

    backend = json.loads(spelled)
    backend["added_tokens"] = [token for token in backend["added_tokens"] if not token["content"].startswith("<0x")]
    return json.dumps(backend)


def _finish(model: Any, tokenizer: Any, folder: Path, processor: Any = None) -> None:
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.bos_token_id = tokenizer.bos_token_id
    model.save_pretrained(folder)
    (processor or tokenizer).save_pretrained(folder)


def _ids(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _llama(folder: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    specials = ["<|begin_of_text|>", "<|eot_id|>", "<|pad|>", "<|start_header_id|>", "<|end_header_id|>"]
    tokenizer = byte_level_tokenizer(specials, bos=specials[0], eos=specials[1], pad=specials[2], template=HEADERS)
    _finish(LlamaForCausalLM(LlamaConfig(**TEXT_SHAPE, **_ids(tokenizer))), tokenizer, folder)


def _mistral(folder: Path) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    tokenizer = sentence_piece_tokenizer([], template=ALTERNATING)
    config = MistralConfig(**TEXT_SHAPE, **_ids(tokenizer), sliding_window=None)
    _finish(MistralForCausalLM(config), tokenizer, folder)


def _qwen(folder: Path) -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = byte_level_tokenizer(
        specials,
        bos=None,
        eos=specials[2],
        pad=specials[0],
        template=CHATML.replace("IMAGE", "''").replace("VIDEO", "''"),
    )
    _finish(Qwen2ForCausalLM(Qwen2Config(**TEXT_SHAPE, **_ids(tokenizer))), tokenizer, folder)


def _llava(folder: Path) -> None:
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    tokenizer = sentence_piece_tokenizer(["<pad>", "<image>"], template=VICUNA)
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
        projection_dim=32,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=LlamaConfig(**TEXT_SHAPE, **_ids(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    processor = LlavaProcessor(  # type: ignore[no-untyped-call]
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA,
    )
    _finish(LlavaForConditionalGeneration(config), tokenizer, folder, processor)


def _llava_onevision(folder: Path) -> None:
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessorPil,
        Qwen2Config,
        SiglipVisionConfig,
    )

    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"]
    tokenizer = byte_level_tokenizer(specials, bos=None, eos=specials[2], pad=specials[0], template=MEDIA_FIRST)
    vision = SiglipVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=56, patch_size=14
    )
    grid = [[56, 56], [56, 112], [112, 56], [112, 112]]
    config = LlavaOnevisionConfig(
        vision_config=vision,
        text_config=Qwen2Config(**TEXT_SHAPE, **_ids(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        image_grid_pinpoints=grid,
    )
    _finish(LlavaOnevisionForConditionalGeneration(config), tokenizer, folder)
    images = LlavaOnevisionImageProcessorPil(size={"height": 56, "width": 56}, image_grid_pinpoints=grid)
    clips = {"size": {"height": 56, "width": 56}, "video_processor_type": "LlavaOnevisionVideoProcessor"}
    settings = {
        "num_image_tokens": 16,
        "vision_feature_select_strategy": "full",
        "vision_aspect_ratio": "anyres_max_9",
    }
    _write_processor(folder, "LlavaOnevisionProcessor", images, settings, clips=clips)


def _qwen_vl(folder: Path) -> None:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorPil

    tokenizer, ids = _qwen_vl_tokenizer()
    vision = {
        **QWEN_VISION,
        "patch_size": 14,
        "window_size": 56,
        "fullatt_block_indexes": [1],
    }
    text = {
        **TEXT_SHAPE,
        **_ids(tokenizer),
        "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [2, 3, 3]},
    }
    config = Qwen2_5_VLConfig(vision_config=vision, text_config=text, **ids)
    _finish(Qwen2_5_VLForConditionalGeneration(config), tokenizer, folder)
    images = Qwen2VLImageProcessorPil(min_pixels=28**2, max_pixels=84**2, patch_size=14)
    _write_processor(folder, "Qwen2_5_VLProcessor", images)  # clips take their sizes from the images' file


def _qwen3_vl(folder: Path) -> None:
    from transformers import Qwen2VLImageProcessorPil, Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer, ids = _qwen_vl_tokenizer()
    vision = {
        **QWEN_VISION,
        "patch_size": 16,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }
    text = {
        **TEXT_SHAPE,
        **_ids(tokenizer),
        "head_dim": 16,
        "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]},
    }
    config = Qwen3VLConfig(vision_config=vision, text_config=text, **ids)
    _finish(Qwen3VLForConditionalGeneration(config), tokenizer, folder)
    images = Qwen2VLImageProcessorPil(
        size={"shortest_edge": 32**2, "longest_edge": 96**2},
        patch_size=16,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    clips = {
        "size": {"shortest_edge": 32**2, "longest_edge": 8 * 64**2},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "video_processor_type": "Qwen3VLVideoProcessor",
    }
    _write_processor(folder, "Qwen3VLProcessor", images, clips=clips)


QWEN_VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": 32,
    "in_channels": 3,
}


def _qwen_vl_tokenizer() -> tuple[Any, dict[str, Any]]:
    """The tokenizer of Qwen's vision-language models, and the ids of its media tokens as a config names them."""
    specials = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
        "<|video_pad|>",
    ]
    template = CHATML.replace("IMAGE", "'<|vision_start|><|image_pad|><|vision_end|>'")
    template = template.replace("VIDEO", "'<|vision_start|><|video_pad|><|vision_end|>'")
    tokenizer = byte_level_tokenizer(specials, bos=None, eos=specials[2], pad=specials[0], template=template)
    named = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return tokenizer, {key: tokenizer.convert_tokens_to_ids(token) for key, token in named.items()}


def _write_processor(
    folder: Path, kind: str, images: Any, settings: Any = None, *, clips: dict[str, Any] | None = None
) -> None:
    """The processor's files as a checkpoint has them.

    They are written by hand because the processor classes hold a video processor, which cannot be made where
    torchvision does not load.
    """
    import json

    preprocessor = {**images.to_dict(), "processor_class": kind}
    preprocessor["image_processor_type"] = preprocessor["image_processor_type"].removesuffix("Pil")
    files = {"preprocessor_config.json": preprocessor}
    if settings:
        files["processor_config.json"] = {**settings, "processor_class": kind}
    if clips:
        files["video_preprocessor_config.json"] = {**clips, "processor_class": kind}
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, default=str), encoding="utf-8")
