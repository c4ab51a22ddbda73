"""Vision alignment: the model learns the words for each image patch."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dikast.core.errors import DataError, UserError
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons

pytest.importorskip("torch")
pytest.importorskip("transformers")

from dikast.training.config import Config, load_config
from dikast.training.log import read_log
from dikast.training.models.scratch import Shape, new_judge
from dikast.training.vision_alignment import look

transformers: Any = importlib.import_module("transformers")
SHAPE = Shape(width=64, layers=1, heads=2, inner=32, seeing_layers=1, vocabulary=600)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    write_lessons(Settings(seed=3), 60, tmp_path / "talk", instead="talk")
    return _config(tmp_path, data=[{"talk": ["talk/talk-*.jsonl"]}])


def _config(folder: Path, **keys: object) -> Config:
    values = {
        "init": "init", "out": "out", "steps": 150, "batch_size": 16, "optimizer": "muon", "learning_rate": 0.006,
        "warmup": 10, "betas": [0.9, 0.98], "frozen": ["post_layernorm"], "device": "cpu", **keys,
    }  # fmt: skip
    path = folder / "look.yaml"
    path.write_text(yaml.safe_dump(values), "utf-8")
    return load_config(path)


@pytest.mark.slow
def test_every_patch_comes_to_be_named_and_the_model_can_be_trained_on(config: Config) -> None:
    import torch

    new_judge(config, config.path("init"), SHAPE, most=60)
    lines: list[dict[str, Any]] = []
    done = look(config, watch=lines.append)
    assert done["rows"] == 60
    rows = [json.loads(line) for line in (config.path("talk") / "talk-00000.jsonl").read_text("utf-8").splitlines()]
    patches = [patch.split() for row in rows for patch in row["meta"]["patches"]]
    blind = sum(2 + (words[2] == "empty") for words in patches) / sum(map(len, patches))  # each cell's name, "empty"
    assert lines[0]["right"] < blind + 0.02 < done["right"] == lines[-1]["right"]
    assert done["loss"] < lines[0]["loss"] - 0.5
    logged = read_log(config.path("out") / "train.jsonl")
    assert logged == lines
    model = transformers.AutoModelForImageTextToText.from_pretrained(done["model"])
    fresh = transformers.AutoModelForImageTextToText.from_config(model.config)
    assert {name for name, _ in model.named_parameters()} == {name for name, _ in fresh.named_parameters()}
    short = replace(config, steps=10)
    first, again = look(short), look(short)
    assert first["loss"] == pytest.approx(again["loss"], rel=1e-4)  # the seed decides everything
    layers = dict(transformers.AutoModelForImageTextToText.from_pretrained(again["model"]).named_parameters())
    untouched = [name for name in layers if "language_model.layers" in name or "lm_head" in name]
    assert untouched
    assert all(
        torch.equal(layers[name], parameter) for name, parameter in model.named_parameters() if name in untouched
    )


def test_a_folder_with_another_run_and_other_ways_of_training_are_refused(config: Config, tmp_path: Path) -> None:
    (config.path("out") / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="holds a run of `train sft`: give this one another 'out'"):
        look(config)
    with pytest.raises(UserError, match="train: lora: vision alignment trains the tower"):
        look(replace(config, out="other", train="lora"))


def test_a_source_is_cut_and_repeated_as_its_configuration_says(config: Config, tmp_path: Path) -> None:
    new_judge(config, config.path("init"), SHAPE, most=60)
    talk = ["talk/talk-*.jsonl"]
    data = [{"talk": talk, "limit": 5, "repeat": 3}, {"talk": talk, "limit": 2}]
    assert look(_config(tmp_path, data=data, steps=1))["rows"] == 17


def test_what_cannot_be_looked_at_is_told(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "talk" / "talk-00000.jsonl"
    new_judge(config, config.path("init"), SHAPE, most=60)
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    def written(**changed: object) -> None:
        first = {key: value for key, value in {**rows[0], **changed}.items() if value is not None}
        file.write_text("".join(json.dumps(row) + "\n" for row in [first, *rows[1:]]), "utf-8")

    for meta in (None, {}, {"patches": "a 1 empty"}, {"patches": ["a 1 empty", 2]}, {"patches": ["a 1 empty", " "]}):
        written(meta=meta)
        with pytest.raises(DataError, match=r"(?s)talk-00000\.jsonl:1.*give meta\.patches a list of texts"):
            look(config)
    written(image=None)
    with pytest.raises(DataError, match=r"(?s)talk-00000\.jsonl:1.*one image in each row, this one has 0"):
        look(config)
    rows[-1]["meta"]["patches"] = rows[-1]["meta"]["patches"][:9]
    written()
    with pytest.raises(DataError, match=r"(?s)talk-00000\.jsonl:60.*sees 16 patches in an image, and .* names 9"):
        look(config)
    with pytest.raises(UserError, match="uses only rows of 'talk'"):
        look(_config(tmp_path, data=[{"items": ["talk/talk-*.jsonl"]}]))


def test_a_model_of_another_class_is_refused(config: Config, tmp_path: Path) -> None:
    made = new_judge(config, config.path("init"), SHAPE, most=60)
    small = transformers.LlamaConfig(
        vocab_size=600, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.AutoModelForCausalLM.from_config(small).save_pretrained(tmp_path / "text")
    for beside in made.glob("tokenizer*"):
        (tmp_path / "text" / beside.name).write_bytes(beside.read_bytes())
    (tmp_path / "text" / "chat_template.jinja").write_bytes((made / "chat_template.jinja").read_bytes())
    text = _config(tmp_path, init="", model="text", frozen=[], data=[{"talk": ["talk/talk-*.jsonl"]}])
    with pytest.raises(UserError, match=r"LLaVA-1\.5 classes, not LlamaForCausalLM"):
        look(text)
