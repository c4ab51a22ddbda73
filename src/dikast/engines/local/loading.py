"""Loading a model from files: weights, tokenizer, chat template, image processor, limits."""

import contextlib
import importlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError, require
from dikast.core.text import counted, one_line
from dikast.engines.local.adapters import pretrained_adapter
from dikast.engines.local.install_hints import TORCHVISION_CURE
from dikast.engines.local.processor import Processor, load_processor
from dikast.engines.local.seeing.vision import FAMILIES
from dikast.engines.local.source import ModelSource
from dikast.engines.local.tokens import Tokens
from dikast.engines.local.trusted import model_config, pretrained_weights

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with all that belongs to it. `context` is the most tokens it takes, prompt and reply together.

    `ends` are the ids that end a reply; `forbidden` those that are never generated (media placeholders and rows of the
    output layer that belong to no token).
    """

    model: Any
    processor: Processor
    context: int
    ends: tuple[int, ...]
    forbidden: tuple[int, ...]

    @property
    def tokens(self) -> Tokens:
        """The processor's tokenizer."""
        return self.processor.tokens

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go."""
        return torch.device(self.model.device)


def load(source: ModelSource, *, device: str, dtype: str, as_video: bool = True, distributed: Any = None) -> Loaded:
    """Load a model; UserError says what is missing or does not fit. Without `as_video` clips are seen as images.

    distributed: transformers' `DistributedConfig`, with which each of several processes reads only its share.
    """
    with opening(source, device):
        return _load(source, device=device, dtype=dtype, as_video=as_video, distributed=distributed)


@contextlib.contextmanager
def opening(source: ModelSource, device: str) -> Iterator[None]:
    """What fails inside is the fault of the model's files, or of the device's memory: UserError, with the folder."""
    try:
        with _quiet():
            yield
    except UserError:
        raise
    except torch.OutOfMemoryError as error:
        raise UserError(f"{source.folder}: the model does not fit into the memory of {device}: {error}") from error
    except Exception as error:  # transformers, tokenizers and safetensors each raise their own kinds
        _blame_torchvision(error)
        raise UserError(f"{source.folder}: this model cannot be loaded: {error}") from error


def _load(source: ModelSource, *, device: str, dtype: str, as_video: bool, distributed: Any) -> Loaded:
    source.check()
    config = model_config(source.folder)
    sees = sees_images(config, source)
    processor = load_processor(source, config, sees=sees, as_video=as_video)
    model = _load_weights(source, config, sees=sees, device=device, dtype=dtype, distributed=distributed)
    return limits(model, processor)


def sees_images(config: Any, source: ModelSource) -> bool:
    """Whether the model takes images; UserError for a model that Dikast does not support."""
    if config.model_type in FAMILIES:
        return True
    if type(config) in transformers.AutoModelForCausalLM._model_mapping and not hasattr(config, "vision_config"):
        return False
    known = ", ".join(f"{name} ({kind})" for kind, name in FAMILIES.items())
    raise UserError(
        f"{source.folder}: models of the type {config.model_type!r} are not supported here: run a vision-language "
        f"model of the families {known}, or any causal language model; others can be asked through a server "
        "(http://HOST/v1#MODEL)"
    )


def _blame_torchvision(error: Exception) -> None:
    """Transformers imports torchvision if it is installed, and gives no readable error if it is broken."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except Exception as broken:
        why = f"torchvision is installed but does not load ({broken}), and transformers uses it wherever it is there"
        raise UserError(f"{why}: {TORCHVISION_CURE}; see `dikast doctor`") from error


def limits(model: Any, processor: Processor) -> Loaded:
    """Put a model and its processor together, with what bounds its replies."""
    tokenizer = processor.tokens.tokenizer
    return Loaded(
        model=model,
        processor=processor,
        context=_context_length(model.config, tokenizer),
        ends=_end_ids(model, tokenizer),
        forbidden=_never_generated(model, processor.tokens),
    )


def settings_of(config: Any, processor: Processor) -> dict[str, Any]:
    """Everything in a checkpoint besides its weights that could change an answer, as JSON values."""
    values = config.to_dict()
    for volatile in ("transformers_version", "_name_or_path", "dtype", "torch_dtype"):
        values.pop(volatile, None)
    return {
        "config": fingerprint(_plain(values)),
        "tokenizer": _tokenizer_fingerprint(processor.tokens.tokenizer),
        "chat_template": fingerprint(processor.template.source),
        "images": fingerprint(_plain(processor.vision.settings())) if processor.vision else None,
    }


def fixed_settings(loaded: Loaded) -> dict[str, Any]:
    """Everything besides the weights that could change an answer, as JSON values."""
    return {
        "architecture": type(loaded.model).__name__,
        **settings_of(loaded.model.config, loaded.processor),
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "ends": list(loaded.ends),
        "context": loaded.context,
    }


def _load_weights(source: ModelSource, config: Any, *, sees: bool, device: str, dtype: str, distributed: Any) -> Any:
    place = _device(device)
    dealt = {} if distributed is None else {"distributed_config": distributed}
    kind: Any = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    model, about = pretrained_weights(
        kind, source.folder, config=config, dtype=_dtype(dtype, place), output_loading_info=True, **dealt
    )
    if missing := sorted(about["missing_keys"]):
        raise UserError(
            f"{source.folder}: the weight files lack {len(missing)} of the model's tensors ({', '.join(missing[:3])}); "
            "they would be random: fetch the model again, or give the folder of a model with a language head"
        )
    if spare := sorted(about["unexpected_keys"]):
        _log.warning(
            "%s: the weight files hold %s that the model has no place for (%s), and that are not used",
            source.folder, counted(len(spare), "tensor"), one_line(", ".join(spare[:3])),
        )  # fmt: skip
    if source.adapter is not None:
        model = _merged(model, source.adapter)
    # The checkpoint's sampling defaults (temperature, top-k, repetition penalty) are dropped: the request decides.
    habits = model.generation_config
    ids = {name: getattr(habits, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model.generation_config = transformers.GenerationConfig(**ids)
    return model.to(place).eval().requires_grad_(False)


def _merged(model: Any, adapter: ModelSource) -> Any:
    """The model with a PEFT adapter merged into its weights, which is then a model of the same class."""
    peft = require("peft", "lora")
    weights = sorted(adapter.folder.glob("adapter_model.*"))
    if not weights:
        raise UserError(f"{adapter.folder}: the adapter's weights (adapter_model.safetensors) are missing")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        over = pretrained_adapter(peft, model, adapter.folder)
    unfit = next((str(each.message) for each in said if "missing adapter keys" in str(each.message).lower()), "")
    if unfit:
        raise UserError(f"{adapter.folder}: the adapter does not fit its base model: {unfit.splitlines()[0][:300]}")
    if not hasattr(over, "merge_and_unload"):
        kind = over.peft_config[over.active_adapter].peft_type
        raise UserError(f"{adapter.folder}: adapters of the type {kind} cannot be merged: use LoRA")
    return over.merge_and_unload()


def _device(wanted: str) -> torch.device:
    if wanted != "auto":
        try:
            return torch.device(wanted)
        except RuntimeError:
            raise UserError(f"device {wanted!r} is not known to torch: write auto, cpu, cuda, cuda:1 or mps") from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _dtype(wanted: str, place: torch.device) -> torch.dtype | str:
    """`auto` is what the checkpoint was saved in, but float32 on a CPU, where half precision is slow or missing."""
    if wanted == "auto":
        return torch.float32 if place.type == "cpu" else "auto"
    found = getattr(torch, wanted, None)
    if not isinstance(found, torch.dtype):
        raise UserError(f"dtype {wanted!r} is not known to torch: write auto, float32, bfloat16 or float16")
    return found


def _end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    for ends in (model.generation_config.eos_token_id, model.config.get_text_config().eos_token_id):
        if ends is not None:
            ids = tuple(ends) if isinstance(ends, list | tuple) else (ends,)
            if not all(isinstance(each, int) for each in ids):
                raise UserError(
                    f"{model.name_or_path}/generation_config.json: field 'eos_token_id': {ends!r:.60} is not the id of"
                    " a token, or a list of them: take the file from the model's source again"
                )
            return ids
    return (int(tokenizer.eos_token_id),) if tokenizer.eos_token_id is not None else ()


def _context_length(config: Any, tokenizer: Any) -> int:
    for each in (config.get_text_config(), config):
        known = getattr(each, "max_position_embeddings", None)
        if known is not None and known > 0:  # -1 and null: not stated
            return int(known)
    return int(min(tokenizer.model_max_length, 2**31))


def _never_generated(model: Any, tokens: Tokens) -> tuple[int, ...]:
    size = int(model.get_output_embeddings().weight.shape[0])
    beyond = range(len(tokens.tokenizer), size)
    return (*sorted(tokens.controls[spelling] for spelling in tokens.placeholders), *beyond)


def _tokenizer_fingerprint(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    spelled = backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items())
    return fingerprint([spelled, _plain(tokenizer.special_tokens_map)])


def _plain(value: Any) -> Any:
    """JSON values of a configuration; values that JSON lacks are replaced by their printed form."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars and reports of transformers, which show names of tensors as the files spell them."""
    talk = transformers.utils.logging
    shown, level = talk.is_progress_bar_enabled(), talk.get_verbosity()
    talk.disable_progress_bar()
    talk.set_verbosity(max(level, logging.ERROR))
    try:
        yield
    finally:
        talk.set_verbosity(level)
        if shown:
            talk.enable_progress_bar()
