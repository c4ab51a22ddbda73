"""The one place where files of a model become Python objects: anything in them that is not data is refused.

A checkpoint can name code: classes in Python files in its folder or elsewhere (`auto_map`), kernels of the Hub, modules
that an adapter imports, objects in pickled weights. None of it is ever run, and the user is never asked to allow it.
"""

import copy
import json
import logging
import math
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.runs.run_files import refuse_special
from dikast.engines.local.hub_kernels import no_hub_kernels, set_aside_kernels

_log = logging.getLogger(__name__)
_SETTINGS = "*config*.json"
_WHOLE = ("model.safetensors", "model.safetensors.index.json")
_INDEXES = (*_WHOLE[1:], "pytorch_model.bin.index.json")
_KERNELS = frozenset(
    f"{start}{part}_implementation{end}"
    for part in ("attn", "experts")
    for start in ("", "_")
    for end in ("", "_internal")
)
_EXPERTS = ("deepgemm", "sonicmoe")  # which transformers has on the Hub alone
_LIBRARIES = ("transformers", "peft", "torch", "dikast")  # that an adapter may name as the home of its model's class
_MOST_BYTES = 2**26  # of a file of settings; those of tokenizers with many added tokens have a few MB
_DEPTH = re.compile(r".*layers|n_layer|(?:.*_)?depth", re.I)
MOST_LAYERS = 2_000  # each is a module, so that a billion of them would not end, with or without weights
_SIZES = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "vocab_size",
    "max_position_embeddings", "patch_size",
)  # fmt: skip
_UNSTATED = {"max_position_embeddings": -1}  # as OLMo-core exports models that have no table of positions
_MOST = {  # of what is made as it is written, whatever the weights are
    "num_labels": 100_000, "num_additional_image_tokens": 10_000, "height": 4_096, "width": 4_096, "merge_size": 64,
    "temporal_patch_size": 64, "extra_ids": 100_000,
}  # fmt: skip
_told: set[Path] = set()


def never_ask() -> None:
    """A second wall: what a model loads by itself (the parts of LLaVA, for one) is not told that nothing is trusted,
    and transformers would ask on standard input; without a time to answer in, it refuses.
    """
    from transformers import dynamic_module_utils

    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0


def pretrained(kind: Any, folder: str | Path, **settings: Any) -> Any:
    """`kind.from_pretrained(folder)` of local files, without foreign code; UserError where the folder needs some."""
    refuse_foreign_code(Path(folder))
    never_ask()
    if kind.__name__.startswith("Auto"):
        settings["trust_remote_code"] = False  # explicit, since otherwise transformers asks on standard input
    with no_hub_kernels():
        return kind.from_pretrained(folder, local_files_only=True, **settings)


def model_config(folder: str | Path) -> Any:
    """The transformers configuration of a model, from its `config.json`; UserError where no model can have it."""
    import transformers

    with configured(folder):
        config = pretrained(transformers.AutoConfig, folder)
        set_aside_kernels(config, Path(folder) / "config.json")
        return config


def pretrained_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a model; UserError, which names its settings, where none can be made of its files."""
    import transformers

    with configured(
        folder, "tokenizer_config.json", "no tokenizer can be made with these settings and the files beside"
    ):
        tokenizer = pretrained(transformers.AutoTokenizer, folder)
        if not isinstance(tokenizer.model_max_length, int | float):
            raise TypeError(f"model_max_length is {tokenizer.model_max_length!r:.60}")
        merges = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
        if merges is not None and getattr(merges, "dropout", None):
            merges.dropout = None  # or each prompt would become other tokens each time
        return tokenizer


@contextmanager
def panics_caught() -> Iterator[None]:
    """What is written in Rust (tokenizers, safetensors) panics where it should raise, and a panic is no `Exception`:
    it would end the process. Inside, it is a RuntimeError.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(f"it panics: {error}") from error


@contextmanager
def configured(
    folder: str | Path,
    name: str = "config.json",
    told: str = "no model can be made with these settings",
    cure: str = "take the file from the model's source again",
) -> Iterator[None]:
    """What fails inside is the fault of the settings in `folder`: UserError, which names the file and the cure.

    Classes of models check few of their settings, and raise whatever comes of a size that is none. Packages that do not
    import are no fault of the file.
    """
    try:
        with panics_caught(), no_hub_kernels():
            yield
    except (UserError, ImportError):
        raise
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UserError(f"{Path(folder) / name}: {told} ({why}): {cure}") from error


def pretrained_weights(kind: Any, folder: Path, **settings: Any) -> Any:
    """`pretrained` for a model: from safetensors, or from `.bin` files by torch's loader of nothing but tensors."""
    safe = any((folder / name).is_file() for name in _WHOLE)
    if not safe:
        say_pickled(folder, "pytorch_model*.bin")
    _refuse_larger(settings["config"], folder)
    refuse_elsewhere(folder)
    if (folder / "adapter_config.json").is_file():  # transformers would put it over the model, unchecked
        raise UserError(
            f"{folder}: holds a whole model (config.json) and an adapter (adapter_config.json), so it does not say"
            " which is meant: move the adapter's files to a folder of their own and open that with base=FOLDER, or"
            " remove them"
        )
    try:
        return pretrained(kind, folder, use_safetensors=safe, weights_only=True, **settings)
    except pickle.UnpicklingError as error:
        raise more_than_tensors(folder, error) from None
    except Exception as error:
        _blame_settings(kind, folder, settings["config"], error)
        raise


def refuse_elsewhere(folder: Path) -> None:
    """UserError where the index of the weights names anything but files in its folder: those alone are identified."""
    path = next((folder / name for name in _INDEXES if (folder / name).is_file()), None)
    if path is None or (folder / _WHOLE[0]).is_file():
        return
    try:
        named = set(json.loads(path.read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{path}: field 'weight_map': names no file for each tensor ({type(error).__name__}): take the file from"
            " the model's source again"
        ) from None
    kind = ".safetensors" if path.name == _WHOLE[1] else ".bin"
    for name in sorted(map(str, named)):
        if len(Path(name).parts) != 1 or not name.endswith(kind) or not (folder / name).is_file():
            raise UserError(
                f"{path}: field 'weight_map': {name!r:.120} is no {kind} file in this folder: take all files of the"
                " model from one source"
            )


def _refuse_larger(config: Any, folder: Path) -> None:
    """UserError where one matrix of the model would have more numbers than the files of its weights have bits."""
    text = config.get_text_config()
    width = stated_size(text, "hidden_size")
    heads = stated_size(text, "num_attention_heads") * stated_size(text, "head_dim")
    sizes = {name: stated_size(text, name) for name in ("vocab_size", "intermediate_size")}
    for name, size in {**sizes, "hidden_size": width, "head_dim": heads}.items():
        refuse_without_weights(width * size, folder, "config.json", name)


def refuse_without_weights(numbers: int, folder: Path, file: str, field: str) -> None:
    """UserError where the files of weights in a folder have fewer bits than a matrix would have numbers."""
    bits = 8 * sum(path.stat().st_size for kind in ("*.safetensors", "*.bin") for path in folder.glob(kind))
    if numbers > bits > 0:
        raise UserError(
            f"{folder / file}: field {field!r}: the weights beside it are far too small for this size: take both from"
            " one source"
        )


def stated_size(config: Any, name: str) -> int:
    """A whole number among the settings of a model; 0 where it is none."""
    value = getattr(config, name, None)
    return value if isinstance(value, int) else 0


def _blame_settings(kind: Any, folder: Path, config: Any, error: Exception) -> None:
    """UserError where the cause of `error` is in a file of settings; nothing where it is in another file."""
    import torch
    import transformers
    from safetensors import SafetensorError

    if isinstance(error, UserError | torch.OutOfMemoryError):
        return
    path, why = folder / "config.json", " ".join(f"{type(error).__name__}: {error}".split())[:300]
    damaged = isinstance(error, OSError | SafetensorError)  # a file of weights that is cut short or not there
    if getattr(config, "quantization_config", None) is not None and not damaged:
        raise UserError(
            f"{path}: field 'quantization_config' asks for what cannot be used here ({why}): take weights that are not"
            " quantized, or ask the model through a server (http://HOST/v1#MODEL)"
        ) from error
    if "ignore_mismatched_sizes" in str(error):
        raise UserError(
            f"{path}: the sizes in it are not those of the weights beside it: take both from one source"
        ) from error
    with configured(folder), torch.device("meta"):
        kind.from_config(copy.deepcopy(config), trust_remote_code=False)
    if (folder / "generation_config.json").is_file():
        with configured(folder, "generation_config.json", "no text can be generated with these settings"):
            pretrained(transformers.GenerationConfig, folder)


def refuse_foreign_code(folder: Path) -> None:
    """UserError, with the file and the field that ask, where this folder cannot be used without running code of others.

    A folder that names code for a model that transformers has itself is fine: its own class is taken. Pipes, devices,
    settings of more than 64 MiB and models of more layers than any has are refused too, before they are read or made.
    """
    refuse_special(folder)
    for path in sorted(folder.glob(_SETTINGS)):
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path}: has {path.stat().st_size:,} bytes, more than settings of any model")
        try:
            settings = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue  # the loader says what is wrong with it
        if not isinstance(settings, dict):
            continue
        for name, value in _fields(settings):
            deep = _DEPTH.fullmatch(name)
            if not isinstance(value, int | float):
                continue
            most = MOST_LAYERS if deep else _MOST.get(name, math.inf)
            if value > most or (name in _SIZES and value < 1 and value != _UNSTATED.get(name)):
                raise UserError(f"{path}: field {name!r}: no model has {value:,}; restore the file from its source")
        for field, asks in _asked(settings):
            raise UserError(
                f"{path}: field {field!r} asks for {asks}, and Dikast never runs code that comes with a model: choose"
                " one that transformers has itself, or ask this one through a server (http://HOST/v1#MODEL)"
            )


def say_pickled(folder: Path, pattern: str) -> None:
    """Warn once for each folder that its weights are pickled, and say how they are read."""
    if folder in _told or not (found := sorted(folder.glob(pattern))):
        return
    _told.add(folder)
    _log.warning(
        "%s: no safetensors, so the weights are read from %s by torch's loader of tensors alone (weights_only)",
        folder, found[0].name,
    )  # fmt: skip


def _asked(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields that only foreign code could serve, and what they ask for."""
    code = settings.get("auto_map")
    if code and not _is_known(settings):
        named = code.values() if isinstance(code, dict) else [code]
        yield "auto_map", f"code that comes with the model ({', '.join(str(each) for each in named)[:200]})"
    for inner in _objects(settings):
        for auto, named in inner["auto_map"].items() if isinstance(inner.get("auto_map"), dict) else ():
            if inner is not settings and not _has_own_class(auto, str(inner.get("model_type"))):
                yield "auto_map", f"code for a part of the model ({auto}: {named!s:.100})"
    for name, value in _fields(settings):
        if name == "trust_remote_code" and value:
            yield name, "trust in code that comes with the model"
        elif name in _KERNELS and any(sign in str(value) for sign in ("/", *_EXPERTS)):
            yield name, f"a kernel from the Hub ({value})"
        elif name == "megatron_config" and value:
            yield name, "the module that 'megatron_core' names"
        elif name == "parent_library" and str(value).split(".")[0] not in _LIBRARIES:
            yield f"auto_mapping.{name}", f"the module {value!r}"


def _is_known(settings: dict[str, Any]) -> bool:
    """Whether transformers has a class of its own for what these settings describe."""
    import transformers

    named = [
        str(settings[key])
        for key in ("tokenizer_class", "image_processor_type", "feature_extractor_type", "processor_class")
        if settings.get(key)
    ]
    if "model_type" in settings:
        return str(settings["model_type"]) in transformers.CONFIG_MAPPING
    known = set(dir(transformers))
    return bool(named) and named[0] in known


def _has_own_class(auto: str, model_type: str) -> bool:
    """Whether transformers has a class of its own, of the kind that `auto` ("AutoModel") makes, for a type of model."""
    import transformers

    if auto == "AutoConfig":
        return model_type in transformers.CONFIG_MAPPING
    known = getattr(getattr(transformers, auto, None), "_model_mapping", None)
    return model_type in getattr(known, "_model_mapping", ())


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of nested JSON values."""
    for each in _objects(value):
        yield from each.items()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of nested JSON values."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def more_than_tensors(folder: Path, error: Exception) -> UserError:
    """What torch's loader of nothing but tensors refused, as a message."""
    why = next((line.strip() for line in str(error).splitlines() if "Unsupported" in line), "it holds other objects")
    return UserError(
        f"{folder}: its pickled weights hold more than tensors ({why[:200]}), and loading them would run code: refused;"
        " take a copy of the model in safetensors"
    )
