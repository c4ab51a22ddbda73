"""Merging models of one architecture, tensor by tensor, so that memory holds one tensor of each model.

linear: the weighted mean (Wortsman et al. 2022, "Model soups"). slerp: spherical interpolation of two weight vectors
(Shoemake 1985), tensor by tensor. ties: task vectors (model minus base) are trimmed to their largest entries, signs
are elected, and entries that agree are averaged (Yadav et al. 2023); trimmed tensor by tensor, where the paper trims
the whole vector. dare: entries of task vectors are dropped at random, the others scaled up (Yu et al. 2024), and
summed.
"""

import hashlib
import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dikast.core.errors import UserError, require
from dikast.core.runs.run_files import CHECKSUMS
from dikast.engines.local.trusted import model_config, pretrained
from dikast.training.models.folders import Weights, laid_out, read_json
from dikast.training.models.tensor_files import Stored, write_tensors

if TYPE_CHECKING:
    import torch

Method = Literal["linear", "slerp", "ties", "dare"]
_PARALLEL = 0.9995  # above this cosine, interpolate linearly
_FIRST = ("architectures", "model_type")  # reported before any other difference
_PASSING = re.compile(  # keys of a configuration that do not change the meaning of the weights
    r"_name_or_path|(torch_)?dtype|use_cache|(bos|eos|pad)_token_id|max_position_embeddings|initializer_range|id2label|"
    r"label2id|output_\w+|auto_map|\w*(_version|dropout|_pdrop|_coef)"
)
_UNSEEN = re.compile(  # the same for image processors; some keys are compared elsewhere
    r"_.*|auto_map|chat_template|image_processor|return_tensors|device|disable_grouping|\w*_(version|type|class)"
)
_PREPARING = ("processor_config.json", "preprocessor_config.json")  # the first may include the second
_TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "tekken.json", "spiece.model", "vocab.json", "merges.txt", "vocab.txt",
    "added_tokens.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to merge.

    weights: one for each model; `linear` and `ties` divide by their sum. t: for `slerp`, 0 is the first model, 1 the
    second. density: share of each task vector's entries that `ties` and `dare` keep. scale: how much of the merged
    task vector is added to the base. seed: for `dare`.
    """

    method: Method
    weights: tuple[float, ...]
    t: float = 0.5
    density: float = 0.2
    scale: float = 1.0
    seed: int = 0


def merge(
    models: Sequence[Path], out: Path, recipe: Recipe, *, base: Path | None = None, shard_bytes: int = 2 * 2**30
) -> dict[str, Any]:
    """Merge checkpoints of safetensors into the folder `out`, in the first one's precision.

    Returns a summary. UserError if the models do not match in architecture, tensor names, shapes, tokenizer, chat
    template or image processing (the base may have another template), if the recipe does not fit them, or if a file
    cannot be read or a weight is not finite; nothing is written then.
    """
    require("torch", "hf")
    _check(models, recipe, base)
    inputs = [Weights(folder) for folder in (*models, *([base] if base else []))]
    _match(inputs, has_base=base is not None)
    with laid_out(out) as temporary:
        with ExitStack() as stack:
            for weights in inputs:
                stack.enter_context(weights)
            shards = _write(inputs, recipe, bool(base), temporary, shard_bytes)
        for pattern in ("*.json", "*.jinja", "*.model", "*.txt"):
            for path in models[0].glob(pattern):
                if not path.name.endswith((".index.json", CHECKSUMS)):
                    shutil.copyfile(path, temporary / path.name)
        about = _about(inputs, recipe, base)
        (temporary / "merge.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return {**about, "out": str(out), "files": shards, "tensors": len(inputs[0].files)}


def merged(name: str, tensors: "Sequence[torch.Tensor]", base: "torch.Tensor | None", recipe: Recipe) -> "torch.Tensor":
    """One merged tensor, float32. tensors: one of each model, of any shape; name seeds the draws of `dare`."""
    import torch

    values = [tensor.to(torch.float32) for tensor in tensors]
    if recipe.method == "linear":
        total = sum(recipe.weights)
        return torch.stack([w / total * v for w, v in zip(recipe.weights, values, strict=True)]).sum(0)
    if recipe.method == "slerp":
        return _slerp(values[0], values[1], recipe.t)
    assert base is not None
    origin = base.to(torch.float32)
    tasks = [value - origin for value in values]
    added = _ties(tasks, recipe) if recipe.method == "ties" else _dare(name, tasks, recipe)
    return origin + recipe.scale * added


def _slerp(a: "torch.Tensor", b: "torch.Tensor", t: float) -> "torch.Tensor":
    import torch

    cosine = torch.nn.functional.cosine_similarity(a.flatten().double(), b.flatten().double(), dim=0, eps=1e-30)
    if abs(float(cosine)) > _PARALLEL or not a.any() or not b.any():
        return (1 - t) * a + t * b
    angle = torch.arccos(cosine)
    parts = torch.sin((1 - t) * angle) / torch.sin(angle), torch.sin(t * angle) / torch.sin(angle)
    return (parts[0] * a.double() + parts[1] * b.double()).float()


def _ties(tasks: "list[torch.Tensor]", recipe: Recipe) -> "torch.Tensor":
    import torch

    weights = torch.tensor(recipe.weights).reshape(-1, *[1] * tasks[0].ndim)
    trimmed = torch.stack([_trimmed(task, recipe.density) for task in tasks])
    sign = torch.sign((weights * trimmed).sum(0))
    agree = (torch.sign(trimmed) == sign) & (trimmed != 0)
    counted = (weights * agree).sum(0)
    total = (weights * trimmed * agree).sum(0)
    return torch.where(counted != 0, total / counted.where(counted != 0, torch.ones_like(counted)), 0.0)


def _trimmed(task: "torch.Tensor", density: float) -> "torch.Tensor":
    """The task vector with all but its largest entries set to 0; ties with the smallest kept entry are kept."""
    import torch

    keep = round(density * task.numel())
    if keep == 0:
        return torch.zeros_like(task)
    size = task.abs()
    least = torch.topk(size.flatten(), keep, sorted=False).values.min()
    return torch.where(size >= least, task, 0.0)


def _dare(name: str, tasks: "list[torch.Tensor]", recipe: Recipe) -> "torch.Tensor":
    import torch

    added = torch.zeros_like(tasks[0])
    for number, (weight, task) in enumerate(zip(recipe.weights, tasks, strict=True)):
        spelt = hashlib.blake2b(f"{recipe.seed}\0{number}\0{name}".encode(), digest_size=7).digest()
        rng = torch.Generator().manual_seed(int.from_bytes(spelt, "big"))
        kept = torch.rand(task.shape, generator=rng) < recipe.density
        added += weight * torch.where(kept, task / recipe.density, 0.0)
    return added


def _check(models: Sequence[Path], recipe: Recipe, base: Path | None) -> None:
    if recipe.method not in get_args(Method):
        raise UserError(f"method {recipe.method!r}: write one of {', '.join(get_args(Method))}")
    if len(models) < 2 or (recipe.method == "slerp" and len(models) != 2):
        raise UserError(f"{recipe.method} merges {'two' if recipe.method == 'slerp' else 'two or more'} models")
    if len(recipe.weights) != len(models):
        raise UserError(f"{len(models)} models and {len(recipe.weights)} weights: give one weight for each model")
    told = {"weights": (*recipe.weights, sum(recipe.weights)), "t": [recipe.t], "density": [recipe.density]}
    for name, values in (told | {"scale": [recipe.scale]}).items():
        if not all(map(math.isfinite, values)):
            raise UserError(f"{name}: give finite numbers, got {', '.join(map(str, values[: len(models)]))}")
    if recipe.method == "slerp" and len(set(recipe.weights)) > 1:
        raise UserError(
            "slerp goes by t, not by weights: leave them out and give t (0 is the first model, 1 the second)"
        )
    if recipe.method in ("linear", "ties") and sum(recipe.weights) == 0:
        raise UserError(f"the weights sum to 0, and {recipe.method} divides by their sum: give others")
    if recipe.method in ("ties", "dare") and base is None:
        raise UserError(f"{recipe.method} adds task vectors to the model that all were trained from: name it as 'base'")
    if recipe.method in ("linear", "slerp") and base is not None:
        raise UserError(f"{recipe.method} knows no base model: leave it out")
    if not 0 < recipe.density <= 1 or not 0 <= recipe.t <= 1:
        raise UserError("density must be above 0 and at most 1, and t from 0 to 1")


def _match(inputs: Sequence[Weights], *, has_base: bool) -> None:
    """UserError, naming the difference, if two models do not match."""
    first = inputs[0]
    config = _config(first)
    for number, other in enumerate(inputs[1:], 1):
        both = f"{first.folder} and {other.folder} do not match"
        theirs = _config(other)
        for key in sorted(config.keys() | theirs.keys(), key=lambda key: (key not in _FIRST, key)):
            if config.get(key) != theirs.get(key):
                raise UserError(f"{both}: {key} is {config.get(key)} in one and {theirs.get(key)} in the other")
        if alone := sorted(first.files.keys() ^ other.files.keys()):
            raise UserError(f"{both}: {len(alone)} tensors are in only one of them ({', '.join(alone[:3])})")
        for name, shape in first.shapes.items():
            if shape != other.shapes[name]:
                raise UserError(
                    f"{both}: {name} has the shape {list(shape)} in one, {list(other.shapes[name])} in the other"
                )
        _match_texts(both, first.folder, other.folder, templates=not (has_base and number == len(inputs) - 1))
        _match_images(both, first.folder, other.folder)


def _match_texts(both: str, first: Path, other: Path, *, templates: bool) -> None:
    """Check that the tokens are the same and the chat templates do not differ (pretrained models have none)."""
    mine, theirs = ({name for name in _TOKENIZERS if (folder / name).is_file()} for folder in (first, other))
    if "tokenizer.json" in mine & theirs:  # it contains everything in the files of older tokenizers
        mine = theirs = {"tokenizer.json"}
    for name in sorted(mine & theirs):
        if (first / name).read_bytes() != (other / name).read_bytes():
            raise UserError(
                f"{both}: their {name} differ, so the same token means different text: merge models of one tokenizer"
            )
    if (mine or theirs) and not mine & theirs:  # other versions of transformers save fewer files of a tokenizer
        lone = min(mine ^ theirs, key=_TOKENIZERS.index)
        raise UserError(f"{both}: {lone} is in only one of them: put the files of their tokenizer into both folders")
    if templates and len({_template(first), _template(other)} - {None}) > 1:
        cure = "put the chat_template.jinja that the merged model is to have into both folders"
        raise UserError(f"{both}: their chat templates differ, so they learnt other prompts: {cure}")


def _template(folder: Path) -> str | None:
    """The chat template, from any of the places where versions of transformers store it."""
    written = folder / "chat_template.jinja"
    if written.is_file():
        return written.read_text("utf-8", "replace").removesuffix("\n")
    for name in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        if found := _read(folder, name).get("chat_template"):
            return (found if isinstance(found, str) else json.dumps(found, sort_keys=True)).removesuffix("\n")
    return None


def _match_images(both: str, first: Path, other: Path) -> None:
    """Check that images are processed in the same way, by the resulting settings and by the files."""
    mine, theirs = ([_read(folder, name) for name in _PREPARING] for folder in (first, other))
    images = [folder[0].get("image_processor") or folder[1] for folder in (mine, theirs)]
    if bool(images[0]) != bool(images[1]):
        raise UserError(f"{both}: preprocessor_config.json is in only one of them: put it into both folders")
    for number, pair in enumerate([_opened((first, other)) or images, *zip(mine, theirs, strict=True)]):
        said, other_said = (dict(_flat(each, _UNSEEN)) for each in pair)
        for key in sorted(said.keys() | other_said.keys()):
            values = said.get(key), other_said.get(key)
            if values[0] != values[1] and (number == 0 or None not in values):  # a file may leave out defaults
                raise UserError(
                    f"{both}: images are prepared with {key} {values[0]} in one and {values[1]} in the other"
                )


def _read(folder: Path, name: str) -> dict[str, Any]:
    return read_json(folder / name) if (folder / name).is_file() else {}


def _opened(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Settings of image processors with defaults filled in; [] if transformers does not know one of them."""
    from transformers import AutoImageProcessor

    try:
        return [pretrained(AutoImageProcessor, folder).to_dict() for folder in folders]
    except Exception:  # whatever a processor's class raises: the files are compared instead
        return []


def _config(weights: Weights) -> dict[str, Any]:
    """The configuration that affects the use of weights, with defaults filled in if transformers knows the model."""
    try:
        value = model_config(weights.folder).to_dict()
    except Exception:  # whatever a configuration's class raises: the file is compared instead
        value = weights.config
    return dict(_flat(value, _PASSING))


def _flat(value: dict[str, Any], passing: re.Pattern[str], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        if passing.fullmatch(str(key)):
            continue
        if isinstance(each, dict):
            yield from _flat(each, passing, f"{at}{key}.")
        else:
            yield f"{at}{key}", each


def _write(inputs: Sequence[Weights], recipe: Recipe, has_base: bool, folder: Path, shard_bytes: int) -> list[str]:
    """Write merged tensors into safetensors files of about `shard_bytes`, one tensor in memory at a time."""
    first = inputs[0]
    layout = {name: Stored(first.kinds[name], first.shapes[name]) for name in sorted(first.files)}
    return write_tensors(folder, layout, lambda name: _one(name, inputs, recipe, has_base), shard_bytes)


def _one(name: str, inputs: Sequence[Weights], recipe: Recipe, has_base: bool) -> "torch.Tensor":
    tensors = [weights.read(name) for weights in inputs]
    if not tensors[0].is_floating_point():
        if not all((tensor == tensors[0]).all() for tensor in tensors):
            raise UserError(f"{name} holds whole numbers that differ between the models: these cannot be merged")
        return tensors[0]
    for weights, tensor in zip(inputs, tensors, strict=True):
        if not tensor.isfinite().all():
            raise UserError(f"{weights.files[name]}: {name} holds NaN or infinity: leave this model out")
    base = tensors.pop() if has_base else None
    made = merged(name, tensors, base, recipe).to(tensors[0].dtype)
    if not made.isfinite().all():
        raise UserError(
            f"{name}: merged values are too large for {inputs[0].kinds[name]}: give smaller weights or scale"
        )
    return made


def _about(inputs: Sequence[Weights], recipe: Recipe, base: Path | None) -> dict[str, Any]:
    from dikast.engines.local.source import ModelSource

    names = [weights.folder.name for weights in inputs]
    identities = [ModelSource(weights.folder).identity()["weights"] for weights in inputs]
    found: dict[str, Any] = {"recipe": asdict(recipe)}
    if base:
        found["base"] = {"name": names.pop(), "weights": identities.pop()}
    found["models"] = [{"name": n, "weights": i} for n, i in zip(names, identities, strict=True)]
    return found
