"""What an alignment would take, by hand."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from benchmarks.gpu_models import model_folder
from safetensors.torch import save_file
from typer.testing import CliRunner

from dikast.alignment.align_inputs import checked
from dikast.alignment.align_options import AlignOptions
from dikast.alignment.dry_run import dry_run, plan_lines
from dikast.core.checking import Mistakes, keys_of, read_settings
from dikast.core.text import read_located
from dikast.surface.cli import app
from dikast.training.models.model import open_model
from dikast.training.preferences import load_preference_config

RECIPES = Path(__file__).parents[2] / "recipes/align"


def test_counts_memory_and_hours(options: Callable[..., AlignOptions]) -> None:
    given = checked(options(schedule="full", second_judge="mock:random"))
    plan = dry_run(given)
    loaded = open_model(given.training(given.policy, given.options.out))
    assert plan["parameters"] == sum(each.numel() for each in loaded.model.parameters())
    assert plan["parameters"] == plan["trained"]
    # 20 prompts of 3 replies, 8 held-out ones of 1
    assert plan["round"]["replies"] == 68
    assert plan["round"]["reply_tokens_at_most"] == 68 * 12
    # 6 ordered pairs a prompt; a grade by each judge and two orders against the start's for each held-out prompt
    assert plan["round"]["questions_to_the_judge"] == 20 * 6 + 8 * 2 + 8 * 2
    one, eight = plan["cards"]
    fixed = [
        sum(each["memory_gb_by_part"][part] for part in ("weights", "gradients", "optimizer")) for each in (one, eight)
    ]
    assert fixed[0] == pytest.approx(16 * plan["parameters"] / 1e9)  # fp32 with moments
    assert fixed[1] == pytest.approx(fixed[0] / 8)
    assert one["memory_gb_a_card"] > fixed[0]
    for name, cards in (("training", 8), ("reference", 8), ("reading", 1), ("writing_at_most", 1)):
        assert one["hours_a_round"][name] == pytest.approx(cards * eight["hours_a_round"][name])
    assert one["hours"] == pytest.approx(2 * sum(one["hours_a_round"].values()))
    lines = plan_lines(plan)
    assert "not measured on a card" in lines[-1]
    # so small a model needs no time worth a number
    told = "training under 1 s, reference under 1 s, reading under 1 s, writing at most under 1 s"
    assert sum(f"under 1 s for 2 rounds (in each: {told})" in line for line in lines) == 2
    for each in (one, eight):
        each["hours"], each["memory_gb_a_card"] = 1234.5, 2345.6
        each["hours_a_round"] = {"training": 1.5, "reference": 0.01, "reading": 2.5}
    assert all(
        "2,346 GB a card in training; 1,234.5 hours for 2 rounds (in each: training 90 minutes, reference 36 s, reading"
        " 2.5 hours)" in line
        for line in plan_lines(plan)[3:5]
    )


def test_tokens_are_those_of_prompts_from_the_whole_file(options: Callable[..., AlignOptions], tmp_path: Path) -> None:
    """The second half of 60 prompts is longer, and 32 of them are looked at: as many long ones as short ones."""
    rows = [{"id": str(i), "instruction": "word " * (1 if i < 30 else 21), "rubric": "helpfulness"} for i in range(60)]
    held = tmp_path / "held.jsonl"
    held.write_text(json.dumps({"id": "h", "instruction": "hm", "rubric": "helpfulness"}) + "\n")

    def mean_of(name: str, rows: list[dict[str, str]]) -> float:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = dry_run(checked(options(prompts=path, held_out=held)))["tokens_of_a_prompt"]
        assert found["n"] == min(32, len(rows))
        return float(found["mean"])

    short, long = mean_of("short", rows[:30]), mean_of("long", rows[30:])
    assert mean_of("both", rows) == pytest.approx((short + long) / 2)


def test_the_verb_prints_it_and_writes_nothing(options: Callable[..., AlignOptions], tmp_path: Path) -> None:
    wanted = options()
    names = ("policy", "judge", "prompts", "held_out", "out", "samples", "schedule", "max_tokens", "training")
    flags = [f"--{name.replace('_', '-')}={getattr(wanted, name)}" for name in names]
    done = CliRunner().invoke(app, ["align", *flags, "--dry-run"])
    assert done.exit_code == 0, done.output
    assert re.search(r"8 x H200 +\S+ GB a card", done.output)
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("mine")
    done = CliRunner().invoke(app, ["align", *flags, "--dry-run"])  # as the run itself would say
    assert "holds something else" in str(done.exception)


def test_the_recipe_holds_settings_that_exist() -> None:
    flags = yaml.safe_load((RECIPES / "llava-critic.yaml").read_text("utf-8"))
    assert flags.keys() <= keys_of(AlignOptions).keys()
    mistakes = Mistakes(read_located(str(RECIPES / "llava-critic.yaml")))
    mistakes.document.value["out"] = "run"
    recipe = read_settings(AlignOptions, mistakes)
    mistakes.raise_all()
    assert recipe is not None
    assert (recipe.rounds, recipe.samples, recipe.schedule, recipe.temperature, recipe.top_p) == (
        3,
        5,
        "full",
        0.7,
        0.9,
    )
    settings = yaml.safe_load((RECIPES / "llava-critic-training.yaml").read_text("utf-8"))
    config = load_preference_config({**settings, "model": "m", "out": "o", "data": [{"items": ["p.jsonl"]}]})
    assert (config.beta, config.learning_rate, config.sft_weight, config.dpop) == (0.1, 5e-7, 0.0, 0.0)
    assert Path(str(recipe.training)).name == "llava-critic-training.yaml"


@pytest.mark.slow
def test_the_recipe_at_its_published_size(options: Callable[..., AlignOptions], tmp_path: Path) -> None:
    """All weights of 7B do not fit into one card, over eight (`--launch`) they do, adapters also into one."""
    folder = model_folder("onevision", tmp_path / "7b", small=False)
    save_file({"none": torch.zeros(1)}, folder / "model.safetensors")
    settings = yaml.safe_load((RECIPES / "llava-critic-training.yaml").read_text("utf-8"))
    found = {}
    for train in ("full", "lora"):
        training = tmp_path / f"{train}.yaml"
        training.write_text(yaml.safe_dump({**settings, "train": train}))
        plan = dry_run(
            checked(options(policy=str(folder), samples=5, schedule="full", max_tokens=1024, training=training))
        )
        found[train] = [(each["cards"], round(each["memory_gb_a_card"]), each["fits"]) for each in plan["cards"]]
    assert found == {"full": [(1, 146, False), (8, 36, True)], "lora": [(1, 50, True), (8, 39, True)]}
