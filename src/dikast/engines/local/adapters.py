"""Adapters of PEFT: matrices over a model, whose settings can name code, further models, and patterns without end."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.machine.endless_patterns import refuse_endless
from dikast.engines.local.trusted import (
    MOST_LAYERS,
    configured,
    more_than_tensors,
    never_ask,
    refuse_foreign_code,
    refuse_without_weights,
    say_pickled,
    stated_size,
)

_PATTERN_FORMS = (  # in which peft puts them
    "{}", r"(.*\.)?({})$", r"(^|.*\.){}($|\..*)", r"(?:^|.*?\.){}\.(?P<idx>\d+)\.",
)  # fmt: skip
_ADAPTERS = frozenset((  # kinds that are matrices alone: others of peft load further models by themselves
    "LORA", "ADALORA", "LOHA", "LOKR", "OFT", "BOFT", "VERA", "IA3", "LN_TUNING", "FOURIERFT", "HRA", "VBLORA",
    "RANDLORA", "ROAD", "MISS", "C3A", "SHIRA", "DELORA", "HIRA", "TRAINABLE_TOKENS", "PROMPT_TUNING", "P_TUNING",
    "PREFIX_TUNING", "ADAPTION_PROMPT",
))  # fmt: skip


def pretrained_adapter(peft: Any, model: Any, folder: Path) -> Any:
    """A PEFT adapter over a model, its weights read as `pretrained_weights` reads them."""
    refuse_foreign_code(folder)
    never_ask()
    written = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    _refuse_adapter(written, folder / "adapter_config.json")
    ranks = written.get("rank_pattern") if isinstance(written.get("rank_pattern"), dict) else {}
    sizes = [*ranks.items(), *((name, written.get(name)) for name in ("r", "num_virtual_tokens"))]
    if written.get("peft_type") == "LOKR":
        sizes = []  # none of its matrices is larger than its layer: a rank above that means full factors
    for name, rank in sizes:
        width = stated_size(model.config.get_text_config(), "hidden_size")
        refuse_without_weights(width * rank if isinstance(rank, int) else 0, folder, "adapter_config.json", name)
    names = (name for name, _ in model.named_modules())  # which peft matches with what may be patterns
    refuse_endless(_texts(written), names, str(folder / "adapter_config.json"), forms=_PATTERN_FORMS)
    if not (folder / "adapter_model.safetensors").is_file():
        say_pickled(folder, "adapter_model.bin")
    try:
        with configured(
            folder, "adapter_config.json", "no adapter of this model can be made with these settings and weights",
            "take the adapter from its source again, or give the model that it was trained on (base=FOLDER)",
        ):  # fmt: skip
            return peft.PeftModel.from_pretrained(model, str(folder), local_files_only=True)
    except UserError as error:
        if isinstance(error.__cause__, pickle.UnpicklingError):
            raise more_than_tensors(folder, error.__cause__) from None
        raise


def _refuse_adapter(written: dict[str, Any], path: Path) -> None:
    """UserError for a kind of adapter that is not known to be matrices alone, and for one of very many layers."""
    if (kind := str(written.get("peft_type")).upper()) not in _ADAPTERS:
        raise UserError(
            f"{path}: field 'peft_type': no adapter of the kind {kind!r:.60} is read, since it may load further models:"
            f" merge it into its model where you trust it; read are {', '.join(sorted(_ADAPTERS))}"
        )
    copied = written.get("layer_replication")
    ends = [each for each in copied if isinstance(each, list) and len(each) == 2] if isinstance(copied, list) else []
    layers = sum(high - low for low, high in ends if isinstance(low, int) and isinstance(high, int) and high > low)
    if layers > MOST_LAYERS:
        raise UserError(f"{path}: field 'layer_replication': no model has {layers:,} layers; restore the file")


def _texts(value: Any) -> Iterator[str]:
    """Every text in nested JSON values, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
