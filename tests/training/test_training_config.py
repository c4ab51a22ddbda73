"""Configurations: shipped ones can be read, the fingerprint covers what determines the weights, rates by hand."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from dikast.training.config import Augment, Config, Data, load_config
from dikast.training.schedule import rate_at

RECIPES = resources.files("dikast.training").joinpath("recipes")
SYSTEMS = {
    "prometheus-2": ("full", 1e-5, 64, 4096, 0.1),
    "prometheus-vision": ("projector", 1e-3, 32, 2048, 0.03),
    "llava-critic": ("full", 2e-6, 32, 16384, 0.03),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_recipes_say_their_source_and_what_is_not_verified(name: str, tmp_path: Path) -> None:
    text = RECIPES.joinpath(f"{name}.yaml").read_text("utf-8")
    assert all(each in text for each in ("# Source: ", "# Not verified: ", "Not run at ", "# Data: "))
    path = tmp_path / f"{name}.yaml"
    path.write_text(text, "utf-8")
    config = load_config(path)
    found = (config.train, config.learning_rate, config.batch_size, config.max_tokens, config.warmup)
    assert found == SYSTEMS[name]
    assert (config.epochs, config.schedule, config.weight_decay) == (1.0, "cosine", 0.0)


def test_the_fingerprint_holds_what_decides_the_weights_and_nothing_else() -> None:
    config = Config("out", (Data(items=("a",)),), init="x")
    same = [{"out": "b"}, {"save_every": 7}, {"max_seconds": 3.0}, {"workers": 4}, {"log_every": 2}, {"keep": 5},
            {"max_tokens_per_micro_batch": 9}, {"checkpointing": True}, {"compile": True}]  # fmt: skip
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
