"""Random models in published shapes, drawn on the device itself, and the operations that training them takes."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from dikast.engines.local.loading import Loaded, limits, sees_images
from dikast.engines.local.processor import load_processor
from dikast.engines.local.source import locate
from dikast.engines.local.trusted import model_config

ROOT = Path(__file__).parents[1]
FAMILIES = {"onevision": "llava_onevision", "llava": "llava"}
PEAK = 989e12  # bfloat16 operations a second of an H100 or H200 without sparsity, by NVIDIA's data sheet
_LLAVA = {  # LLaVA-1.5 7B; the context is that of 13 pictures and a judge's prompt, not the 4,096 that were published
    "model_type": "llava",
    "text_config": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "max_position_embeddings": 16384,
    },
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "projection_dim": 768,
    },
    "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
}  # fmt: skip


def model_folder(name: str, folder: Path, *, small: bool, layers: int = 0) -> Path:
    """A folder with the configuration, tokenizer and processor of a model, without its weights.

    The tokenizer is a small one; the rest is of the published 7B shape, or with `small` tiny. layers: that many layers
    of the language model, 0 for all.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    import tiny_models

    family = FAMILIES[name]
    tiny_models.build(family, folder)
    if small:
        return folder
    (folder / "model.safetensors").unlink()
    own = json.loads((folder / "config.json").read_text("utf-8"))
    published = ROOT / "recipes" / "llava-critic" / "shapes" / "7b" / "config.json"
    shape: dict[str, Any] = json.loads(published.read_text("utf-8") if name == "onevision" else json.dumps(_LLAVA))
    shape |= {key: value for key, value in own.items() if key.startswith(("image_token", "video_token"))}
    ids = ("bos_token_id", "eos_token_id", "pad_token_id")
    shape["text_config"] |= {key: own["text_config"].get(key) for key in ids}
    if layers:
        shape["text_config"]["num_hidden_layers"] = layers
    (folder / "config.json").write_text(json.dumps(shape), "utf-8")
    _write_processor(name, folder)
    return folder


def _write_processor(name: str, folder: Path) -> None:
    """Pictures as the published processors make them: 336 pixels, or tiles of 384."""
    for path in folder.glob("*processor_config.json"):
        settings = json.loads(path.read_text("utf-8"))
        inner = settings.get("image_processor", settings)
        if name == "onevision":
            if "size" in inner:
                inner["size"] = {"height": 384, "width": 384}
            if "image_grid_pinpoints" in inner:
                inner["image_grid_pinpoints"] = [[384 * i, 384 * j] for i in range(1, 7) for j in range(1, 7)]
            if "num_image_tokens" in settings:
                settings["num_image_tokens"] = 729
        elif "crop_size" in inner:
            inner["size"], inner["crop_size"] = {"shortest_edge": 336}, {"height": 336, "width": 336}
        path.write_text(json.dumps(settings), "utf-8")


def random_model(folder: Path, device: torch.device, dtype: torch.dtype = torch.bfloat16, *, seed: int = 0) -> Loaded:
    """The model of a folder with random weights, which never were on another device or in another type."""
    source, config = locate(str(folder)), model_config(folder)
    torch.manual_seed(seed)
    kind: Any = transformers.AutoModelForImageTextToText
    with torch.device(device):
        model = kind.from_config(config, dtype=dtype)
    return limits(model.eval().requires_grad_(False), load_processor(source, config, sees=sees_images(config, source)))


def operations(config: Any, lengths: Sequence[int], learnt: int, tiles: int, *, lora: bool) -> float:
    """What a step on rows of these `lengths` takes: two operations for each product and its sum.

    Of each token 2 operations a weight of the layers in the forward pass and 4 in the backward pass, with LoRA 2 there
    (no gradients of the weights); of each of `learnt` tokens the same a weight of the output layer. Causal attention
    takes 2 L d n^2 for a row of n tokens (L layers, width d of all heads), and twice that backward. A tile takes the
    same of the vision tower (without a causal mask twice the attention) and the projector, with LoRA forward alone.
    What activation checkpointing computes again is not counted.
    """
    text, tower = config.get_text_config(), config.vision_config
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    heads, keys = text.num_attention_heads * width, text.num_key_value_heads * width
    layer = text.hidden_size * (2 * heads + 2 * keys + 3 * text.intermediate_size)
    passes = 4 if lora else 6
    found = passes * text.num_hidden_layers * layer * sum(lengths)
    found += passes * text.hidden_size * text.vocab_size * learnt
    found += 6 * text.num_hidden_layers * heads * sum(n * n for n in lengths)
    patches = (tower.image_size // tower.patch_size) ** 2
    seen = tower.num_hidden_layers * tower.hidden_size * (4 * tower.hidden_size + 2 * tower.intermediate_size)
    seen += text.hidden_size * (tower.hidden_size + text.hidden_size)
    shown = 2 * seen * patches + 4 * tower.num_hidden_layers * tower.hidden_size * patches**2
    return float(found + tiles * shown * (1 if lora else 3))
