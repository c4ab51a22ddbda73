"""Configurations: shipped ones can be read, the fingerprint covers what determines the weights, rates by hand."""

import math
import re
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import get_args, get_origin

import pytest
import yaml

from dikast.alignment.align_options import AlignOptions
from dikast.core.checking import keys_of
from dikast.core.errors import DataError
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.recipes import KINDS
from dikast.training.config import Augment, Config, Data, load_config
from dikast.training.preferences import PreferenceConfig
from dikast.training.schedule import rate_at

RECIPES = Path(__file__).parents[2] / "recipes"
SYSTEMS = {
    "prometheus/train-7b": ("full", 1e-5, 16, 2048, 0.0, 3.0),
    "prometheus/train-13b": ("full", 1e-5, 16, 2048, 0.0, 3.0),
    "prometheus-2/train-7b-absolute": ("full", 1e-5, 64, 4096, 0.1, 1.0),
    "prometheus-2/train-7b-relative": ("full", 1e-5, 64, 4096, 0.1, 1.0),
    "prometheus-vision/train-13b-projector": ("projector", 1e-3, 32, 2048, 0.03, 1.0),
    "prometheus-vision/train-13b-lora": ("lora", 2e-4, 32, 2048, 0.03, 1.0),
    "prometheus-vision/train-13b-full": ("full", 2e-5, 32, 2048, 0.03, 1.0),
    "llava-critic/train-7b": ("full", 2e-6, 32, 16384, 0.03, 1.0),
    "llava-critic/train-72b": ("full", 2e-6, 32, 16384, 0.03, 1.0),
}
PUBLISHED = {  # billions of weights of the models that are trained
    "prometheus/shapes/7b": 6.738,
    "prometheus/shapes/13b": 13.016,
    "prometheus-2/shapes/7b": 7.242,
    "prometheus-vision/shapes/7b": 7.063,
    "prometheus-vision/shapes/13b": 13.351,
    "llava-critic/shapes/7b": 8.03,
    "llava-critic/shapes/72b": 73.2,
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_recipes_say_their_source_and_what_is_not_verified(name: str) -> None:
    path = RECIPES / f"{name}.yaml"
    text = path.read_text("utf-8")
    assert all(each in text for each in ("# Source: ", "# Not verified: ", "Not run at ", "# Data: "))
    config = load_config(path)
    found = (config.train, config.learning_rate, config.batch_size, config.max_tokens, config.warmup, config.epochs)
    assert found == SYSTEMS[name]
    assert config.schedule == "cosine"


@pytest.mark.parametrize("name", sorted({each.partition("/")[0] for each in SYSTEMS}))
def test_a_recipe_folder_holds_data_and_reported_figures(name: str) -> None:
    folder = RECIPES / name
    assert load_recipe(folder / "data.yaml").recipe
    figures = yaml.safe_load((folder / "reported.yaml").read_text("utf-8"))
    head = (folder / "reported.yaml").read_text("utf-8").partition("\n-")[0]
    assert all({"judge", "bench", "measure", "value"} <= each.keys() for each in figures)
    assert "arXiv" in head or all("source" in each for each in figures)
    told = (folder / "README.md").read_text("utf-8")
    assert all(f"{path.name}" in told for path in folder.glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_shapes_have_the_published_number_of_weights(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        shape = transformers.AutoConfig.from_pretrained(RECIPES / name)
        sees = hasattr(shape, "vision_config")
        kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
        model = kind.from_config(shape)
    assert sum(each.numel() for each in model.parameters()) / 1e9 == pytest.approx(PUBLISHED[name], rel=0.01)


def test_the_fingerprint_holds_what_decides_the_weights_and_nothing_else() -> None:
    config = Config("out", (Data(items=("a",)),), init="x")
    same = [{"out": "b"}, {"save_every": 7}, {"max_seconds": 3.0}, {"workers": 4}, {"log_every": 2}, {"keep": 5},
            {"max_tokens_per_micro_batch": 9}, {"checkpointing": True}, {"compile": True},
            {"data": (Data(items=("b",)),)}]  # fmt: skip
    other = [{"learning_rate": 1e-3}, {"seed": 1}, {"batch_size": 8}, {"steps": 5}, {"precision": "bf16"}]
    assert {replace(config, **each).hash for each in same} == {config.hash}  # type: ignore[arg-type]
    assert len({replace(config, **each).hash for each in other} | {config.hash}) == 6  # type: ignore[arg-type]
    assert replace(config, augment=Augment(blank=0.1)).hash != config.hash


def test_rates_by_hand() -> None:
    def rates(shape: str, **more: float) -> list[float]:
        given = {"warmup": 2.0, "final": 0.0, **more}
        return [rate_at(step, steps=6, peak=3.0, shape=shape, **given) for step in range(6)]  # type: ignore[arg-type]

    # two steps up by thirds, then from 3 down over four: quarters of a line, or (1 + cos(pi k / 4)) / 2
    assert rates("linear") == pytest.approx([1, 2, 3, 2.25, 1.5, 0.75])
    assert rates("cosine") == pytest.approx([1, 2, 3, 3 * 0.853553, 1.5, 3 * 0.146447], abs=1e-5)
    assert rates("constant") == pytest.approx([1, 2, 3, 3, 3, 3])
    assert rates("linear", final=0.5) == pytest.approx([1, 2, 3, 2.625, 2.25, 1.875])
    assert rates("constant", warmup=0.5) == pytest.approx([0.75, 1.5, 2.25, 3, 3, 3])  # half of six steps


def unlimited(kind: type, at: str = "") -> list[str]:
    """The numbers of a configuration, those of its parts included, that may be as large as one likes."""
    found = []
    for name, key in keys_of(kind).items():
        for each in get_args(key.type) or (key.type,):
            if is_dataclass(each):
                found += unlimited(each, f"{at}{name}.")  # type: ignore[arg-type]
            elif (
                get_origin(key.type) is not dict
                and each in (int, float)
                and min(key.option.most, key.option.below) == math.inf
            ):
                found.append(at + name)
    return found


@pytest.mark.parametrize("kind", [Config, PreferenceConfig, AlignOptions, *(each.options for each in KINDS.values())])
def test_each_number_has_an_upper_limit(kind: type) -> None:
    assert unlimited(kind) == []
    assert unlimited(Recipe) == []


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("epochs", "1e308", "above 0 and at most 1000000000"),
        ("warmup", "1e308", "from 0 to 1000000000"),
        ("steps", "9223372036854775807", "from 0 to 1000000000"),
        ("label_loss_weight", "1e308", "from 0 to 1e+38"),
        ("workers", "100000", "from 1 to 1024"),
    ],
)
def test_a_number_too_large_to_be_meant_is_refused_with_its_line(
    key: str, value: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"out: o\ninit: m\ndata: [{{items: [a.jsonl]}}]\n{key}: {value}\n", "utf-8")
    with pytest.raises(DataError, match=f"c.yaml:4.*{re.escape(told)}"):
        load_config(path)


def test_a_recipes_number_too_large_to_be_meant_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"recipe: feedback\nteacher: world:text\nrounds: {10**12}\ntries: {10**10}\n", "utf-8")
    with pytest.raises(DataError, match=r"(?s)r.yaml:3.*rounds.*to 1000000000.*r.yaml:4.*tries.*to 1000000000"):
        load_recipe(path)
