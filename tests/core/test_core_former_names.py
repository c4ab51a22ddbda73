"""Keys under their former names are read, told apart from mistakes, and change no fingerprint."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

import dikast
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError
from dikast.core.former_names import FORMER_NAMES, FORMER_VALUES, under_former_names
from dikast.training.config import Config, load_config


def config(folder: Path, name: str, **values: Any) -> Config:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"init": "m", "out": "o", "data": [{"items": ["i.jsonl"]}], **values}), "utf-8")
    return load_config(path)


def test_every_former_name_is_read_as_the_present_one(tmp_path: Path) -> None:
    values = {"label_loss_weight": 2.5, "min_lr_ratio": 0.25, "max_tokens_per_micro_batch": 512}
    assert values.keys() == FORMER_NAMES.keys() <= {each.name for each in dataclasses.fields(Config)}
    present, former = config(tmp_path, "a", **values), config(tmp_path, "b", **under_former_names(values))
    assert [getattr(former, name) for name in values] == list(values.values())
    assert present.hash == former.hash
    # as commit c5cb13d fingerprinted this configuration, under the former names: its checkpoints are gone on with
    assert present.runs("data", "start")[1] == fingerprint(["09e68ab29124e45b9ad278e52cb2ea4d", "data", "start"])


def test_every_former_value_is_read_as_the_present_one(tmp_path: Path) -> None:
    for (key, former), present in FORMER_VALUES.items():
        found = config(tmp_path, "a", **{key: former})
        assert getattr(found, key) == present
        assert found.hash == config(tmp_path, "b", **{key: present}).hash


def test_a_former_value_stands_in_the_table_alone() -> None:
    package = Path(dikast.__file__).parent
    for _, former in FORMER_VALUES:
        holders = [path.name for path in package.rglob("*.py") if former in path.read_text("utf-8")]
        assert holders == ["former_names.py"]


def test_both_names_at_once_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is the former name of 'min_lr_ratio', which is given too") as caught:
        config(tmp_path, "a", final_rate=0.1, min_lr_ratio=0.1)
    assert "a.yaml:" in str(caught.value)
