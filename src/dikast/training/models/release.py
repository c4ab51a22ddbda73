"""Releasing a trained judge in the layout of LLaVA-1.5 checkpoints on the Hub, so that other engines can open it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, RunError, UserError, require
from dikast.core.runs.run_files import CHECKSUMS
from dikast.training.models.folders import Weights, laid_out, read_config, read_json

_COPIED = ("README.md", "generation_config.json", "tokenizer.json", "chat_template.jinja", "words.txt")
_MADE = ("config.json", "model.safetensors", "preprocessor_config.json")
_NAMES = {*_COPIED, *_MADE, "processor_config.json", "tokenizer_config.json", CHECKSUMS}
_VISION = re.compile(r"^vision_tower\.(?!vision_model\.)")


def release(model: str | Path, out: str | Path) -> Path:
    """Copy a LLaVA-1.5 model from the folder `model` to `out` under the names and settings of the Hub.

    Weights of the tower begin with `vision_tower.vision_model`; the image processor has its own file, and the tokenizer
    the class that every version of transformers knows. `out` is new, empty or an earlier release, which is replaced.
    UserError for a model of another class, or one with a missing or damaged file; RunError if it cannot be written.
    """
    require("torch", "hf")
    require("safetensors", "hf")
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    source, out = Path(model), Path(out)
    config = read_config(source)
    if config.get("model_type") != "llava":
        raise UserError(
            f"{source}: only models of the LLaVA-1.5 classes can be released, not {config.get('model_type')!r}"
        )
    if out.resolve() == source.resolve():
        raise UserError(f"{out}: is the model itself: name another folder")
    text = _part(config, "text_config", source / "config.json")
    text.setdefault("rope_theta", (text.get("rope_parameters") or {}).get("rope_theta", 10000.0))
    processor = read_json(source / "processor_config.json")
    images = _part(processor, "image_processor", source / "processor_config.json")
    tokenizer = read_json(source / "tokenizer_config.json")
    special = tokenizer.pop("extra_special_tokens", None) or tokenizer.get("additional_special_tokens", [])
    tokenizer.pop("backend", None)
    tokenizer |= {"tokenizer_class": "PreTrainedTokenizerFast", "additional_special_tokens": special}
    read_json(source / "tokenizer.json")
    weights = Weights(source)
    with laid_out(out, replace=_released(out)) as folder:
        for name in _COPIED:
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        with weights:
            named = {_VISION.sub("vision_tower.vision_model.", name): weights.read(name) for name in weights.files}
            try:
                save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
            except SafetensorError as error:
                raise RunError(f"{out}: cannot be written ({error}): free space, or name another folder") from error
        (folder / "model.safetensors").chmod(0o644)
        _write(folder / "config.json", config)
        _write(folder / "processor_config.json", processor)
        _write(folder / "preprocessor_config.json", {**images, "processor_class": "LlavaProcessor"})
        _write(folder / "tokenizer_config.json", tokenizer)
    return out


def _released(folder: Path) -> bool:
    """Whether a folder is an earlier release and nothing else; a training folder keeps image settings elsewhere."""
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if not set(_MADE) <= there <= _NAMES:
        return False
    try:
        config, images = read_json(folder / "config.json"), read_json(folder / "preprocessor_config.json")
    except DataError:
        return False
    return config.get("model_type") == "llava" and images.get("processor_class") == "LlavaProcessor"


def _part(value: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    part = value.get(key)
    if not isinstance(part, dict):
        raise DataError("is missing: save the model with transformers 5", path=str(path), field=key)
    return part


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")
