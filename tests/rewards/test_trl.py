"""Real steps of trl with the judge inside as the reward: GRPO and RLOO, with pictures, sync and async."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("torch")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

import tiny_models
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.part import text_of
from dikast.core.records.items import read_items
from dikast.engines.mock import Failures, Random
from dikast.judging.judge import Judge
from dikast.rewards import Reward
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples
from trl_alone import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

STEPS: dict[str, Any] = {
    "max_steps": 2, "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 8,
    "report_to": [], "use_cpu": True, "bf16": False, "logging_steps": 1, "save_strategy": "no", "disable_tqdm": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    samples = list(make(Settings(domain="scenes", split="fresh", seed=31), 4))
    folder = tmp_path_factory.mktemp("worlds")
    return list(read_items(str(write_samples(samples, folder, {"test": 1}).files[0])))


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("policy") / "llava")


class Watched:
    """A reward that keeps what it was called with and what it answered."""

    def __init__(self, reward: Reward) -> None:
        self.reward, self.calls = reward, list[tuple[dict[str, Any], list[float | None]]]()
        self.__name__ = reward.__name__

    def __call__(self, **told: Any) -> list[float | None]:
        values = self.reward(**told)
        self.calls.append((told, values))
        return values


def rows(worlds: list[Item]) -> Dataset:
    return Dataset.from_list(
        [
            {
                "prompt": [{"role": "user", "content": text_of(item.instruction[0].content)}],
                "images": [load_image(image).picture for image in item.images],
            }
            for item in worlds
        ]
    )


def test_grpo_with_pictures_and_the_embedded_judge(worlds: list[Item], policy: Path, tmp_path: Path) -> None:
    judge = Judge("scout", worlds[0].rubric)
    watched = Watched(Reward(judge))
    processor: Any = AutoProcessor
    trainer = GRPOTrainer(
        model=AutoModelForImageTextToText.from_pretrained(policy),
        processing_class=processor.from_pretrained(policy),
        reward_funcs=[watched],
        args=GRPOConfig(output_dir=str(tmp_path), **STEPS),
        train_dataset=rows(worlds),
    )
    trainer.train()
    assert len(watched.calls) == 2
    for told, values in watched.calls:
        assert len(values) == 4
        items = watched.reward.items(told["prompts"], told["completions"], {"images": told["images"]})
        assert all(len(item.images) == 1 for item in items)
        alone = {v.key: v for v in judge.grade_many(items)}  # a plain grade of the same rows
        for item, value in zip(items, values, strict=True):
            (task,) = judge.tasks(iter([item]), "each")
            verdict = alone[task.key]
            assert (value is None) == (verdict.score is None)
            if value is not None:
                assert value == pytest.approx(task.rubric.scale.goodness(verdict.expected or 0.0), abs=1e-5)
    logged = [line for line in trainer.state.log_history if "rewards/judge/mean" in line]
    assert len(logged) == 2
    for line, (_, values) in zip(logged, watched.calls, strict=True):
        given = [value for value in values if value is not None]
        assert line["rewards/judge/mean"] == pytest.approx(sum(given) / len(given), abs=1e-5)
        assert line["judge/no_verdict"] == pytest.approx(1 - len(given) / 4)


@pytest.mark.parametrize(("trainer", "config"), [(GRPOTrainer, GRPOConfig), (RLOOTrainer, RLOOConfig)])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_steps_over_text_sync_and_async(trainer: Any, config: Any, asynchronous: bool, tmp_path: Path) -> None:
    folder = tiny_models.build("llama", tmp_path / "policy")
    reward = Reward(Random(), "helpfulness", name="helpful")
    made = trainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=[reward.trl_async if asynchronous else reward],
        args=config(output_dir=str(tmp_path / "out"), **STEPS),
        train_dataset=Dataset.from_list([{"prompt": "The response is"}, {"prompt": "It follows"}]),
    )
    before = [p.detach().clone() for p in made.model.parameters()]
    made.train()
    assert reward.scored == 8
    means = [line["rewards/helpful/mean"] for line in made.state.log_history if "rewards/helpful/mean" in line]
    assert len(means) == 2
    assert all(0 <= mean <= 1 for mean in means)
    assert any(not torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))


def test_a_batch_without_any_verdict_changes_nothing(tmp_path: Path) -> None:
    folder = tiny_models.build("llama", tmp_path / "policy")
    reward = Reward(Random(failures=Failures(errors=1.0)), "helpfulness")
    made: Any = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=[reward],
        args=GRPOConfig(output_dir=str(tmp_path / "out"), **STEPS),
        train_dataset=Dataset.from_list([{"prompt": "The response is"}]),
    )
    before = [p.detach().clone() for p in made.model.parameters()]
    made.train()
    assert reward.missing == reward.scored == 8
    assert all(torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))
    means = [line["rewards/judge/mean"] for line in made.state.log_history if "rewards/judge/mean" in line]
    assert len(means) == 2
    assert not any(mean is not None and math.isfinite(mean) for mean in means)


def test_more_pictures_than_the_judge_takes(worlds: list[Item]) -> None:
    picture = load_image(worlds[0].images[0]).picture
    reward = Reward("scout", worlds[0].rubric)
    prompt = text_of(worlds[0].instruction[0].content)
    scored = reward.one(prompt, "A red square.", {"images": [picture] * 140})
    assert scored.value is None
    assert scored.reason.startswith("engine_error")
    assert asyncio.run(reward.trl_async([prompt], ["There is a red square."], images=[[picture]]))[0] is not None
