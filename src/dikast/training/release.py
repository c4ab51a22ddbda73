"""A trained judge laid out as released LLaVA-1.5 checkpoints are, so that engines of other makes open it too."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import orjson
from safetensors.torch import load_file, save_file

from dikast.core.errors import UserError

_COPIED = ("README.md", "generation_config.json", "tokenizer.json", "chat_template.jinja", "words.txt")
_VISION = re.compile(r"^vision_tower\.(?!vision_model\.)")


def release(model: str | Path, out: str | Path) -> Path:
    """Copy a LLaVA-1.5 model from the folder `model` to `out` under the names and settings of the hub.

    Weights of the tower begin with `vision_tower.vision_model`; the image processor has a file of its own, and the
    tokenizer the class that every version of transformers knows. UserError for a model of another make.
    """
    source, out = Path(model), Path(out)
    config: dict[str, Any] = orjson.loads((source / "config.json").read_bytes())
    if config.get("model_type") != "llava":
        raise UserError(
            f"{source}: only models of the classes of LLaVA-1.5 are laid out so, not {config.get('model_type')!r}"
        )
    out.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)
    weights = load_file(source / "model.safetensors")
    named = {_VISION.sub("vision_tower.vision_model.", name): tensor for name, tensor in weights.items()}
    save_file(named, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    config["text_config"].setdefault(
        "rope_theta", config["text_config"].get("rope_parameters", {}).get("rope_theta", 10000.0)
    )
    _write(out / "config.json", config)
    processor: dict[str, Any] = orjson.loads((source / "processor_config.json").read_bytes())
    _write(out / "processor_config.json", processor)
    _write(out / "preprocessor_config.json", {**processor["image_processor"], "processor_class": "LlavaProcessor"})
    tokenizer: dict[str, Any] = orjson.loads((source / "tokenizer_config.json").read_bytes())
    special = tokenizer.pop("extra_special_tokens", [])
    tokenizer.pop("backend", None)
    tokenizer |= {"tokenizer_class": "PreTrainedTokenizerFast", "additional_special_tokens": special}
    _write(out / "tokenizer_config.json", tokenizer)
    return out


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")
