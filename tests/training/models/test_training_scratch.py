"""A judge from scratch: initialised, trained for a few steps, released, opened."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dikast.core.errors import UserError
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons

pytest.importorskip("torch")
pytest.importorskip("transformers")

from dikast.training.config import Config, load_config
from dikast.training.models.release import release
from dikast.training.models.scratch import Shape, new_judge, texts
from dikast.training.sft import sft

SHAPE = Shape(width=16, layers=1, heads=2, inner=32, seeing_layers=1, vocabulary=600)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("scratch")
    write_lessons(Settings(seed=1), 6, folder / "scenes")
    write_lessons(Settings(seed=2, domain="text"), 4, folder / "text")
    write_lessons(Settings(seed=3), 4, folder / "talk", instead="talk")
    value = {
        "init": "init",
        "out": "out",
        "data": [
            {"items": ["scenes/items-*.jsonl", "text/items-*.jsonl"], "formats": ["scout"]},
            {"talk": ["talk/talk-*.jsonl"]},
        ],
        "steps": 4,
        "stop_at": 2,
        "batch_size": 4,
        "learning_rate": 1e-3,
        "device": "cpu",
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump(value), "utf-8")
    return load_config(path)


def test_from_nothing_to_a_checkpoint_as_released_ones_are(config: Config, tmp_path: Path) -> None:
    from safetensors import safe_open

    from dikast.engines.local.engine import LocalEngine
    from dikast.judging.judge import Judge
    from dikast.worlds.make import make
    from dikast.worlds.write import write_samples

    init = new_judge(config, config.path("init"), SHAPE, most=50)
    words = (init / "words.txt").read_text("utf-8").split()
    assert "verdict" in words
    done = sft(config)
    assert (done["steps"], done["complete"]) == (2, True)  # stop_at, though the rate goes by four steps
    out = release(done["model"], tmp_path / "released")
    assert "A judge trained with Dikast" in (out / "README.md").read_text("utf-8")
    with safe_open(out / "model.safetensors", "pt") as file:
        assert "vision_tower.vision_model.embeddings.patch_embedding.weight" in file.keys()  # noqa: SIM118
    assert (
        json.loads((out / "tokenizer_config.json").read_text("utf-8"))["tokenizer_class"] == "PreTrainedTokenizerFast"
    )
    samples = list(make(Settings(split="fresh", seed=5), 1))
    item = write_samples(samples, tmp_path / "items", {"test": 1}).files[0]
    from dikast.core.records.items import read_items

    verdicts = [
        next(iter(Judge(LocalEngine(str(where)), format="scout", read="only").grade_many(read_items(str(item)))))
        for where in (done["model"], out)
    ]
    assert verdicts[0].distribution == verdicts[1].distribution  # other names, the same weights


def test_words_of_later_stages_are_known_and_change_no_token(config: Config, tmp_path: Path) -> None:
    write_lessons(Settings(seed=4, version=4), 40, tmp_path / "rubrics", quote=True)
    data = (replace(config.data[0], items=(str(tmp_path / "rubrics" / "items-*.jsonl"),)),)
    init, plain = (
        new_judge(config, tmp_path / name, SHAPE, most=50, later=later)
        for name, later in (("both", [replace(config, data=data)]), ("plain", []))
    )
    more = set((init / "words.txt").read_text("utf-8").split()) - set((plain / "words.txt").read_text("utf-8").split())
    assert "weighed" in more
    assert (init / "tokenizer.json").read_bytes() == (plain / "tokenizer.json").read_bytes()


def test_a_tokenizer_spells_anything_and_knows_the_lines_of_feedback(config: Config) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(new_judge(config, config.path("again"), SHAPE, most=50))
    for text in ("\nVerdict: 10", "naïve 😀 \t x", next(texts(config, 1))):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    assert tokenizer.tokenize("\nFinding: right") == ["ĊFinding:", "Ġright"]


def test_made_up_words_of_rubrics_are_no_part_of_its_language(config: Config) -> None:
    noisy = replace(config, augment=replace(config.augment, other_words=1.0))
    assert list(texts(noisy, 50)) == list(texts(config, 50))


def test_a_folder_that_holds_a_model_is_left_alone(config: Config, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"learnt")
    with pytest.raises(UserError, match="holds a model already: name a new folder"):
        new_judge(config, tmp_path)
    with pytest.raises(UserError, match="is a file already"):
        new_judge(config, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="1 example or more, got -1"):
        new_judge(config, tmp_path / "new", most=-1)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_shape_that_does_not_come_out_even_is_refused() -> None:
    with pytest.raises(UserError, match="patch must divide image"):
        Shape(image=96, patch=25)


def test_other_makes_are_not_released(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}', "utf-8")
    with pytest.raises(UserError, match="'qwen2'"):
        release(tmp_path, tmp_path / "out")
