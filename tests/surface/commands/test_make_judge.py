"""`dikast make-judge`: one command from recipes to an audited judge, in miniature."""

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models
from dikast.core.errors import DataError, UserError
from dikast.surface.cli import app
from dikast.surface.make_judge import _plan, make_judge
from runs import rows, write_jsonl

TRAIN: dict[str, Any] = {
    "steps": 3, "batch_size": 4, "max_tokens_per_micro_batch": 20_000, "max_tokens": 20_000, "learning_rate": 1e-3,
    "device": "cpu", "save_every": 1,
}  # fmt: skip


def recipe(folder: Path, *, family: str = "qwen", pictures: bool = False, **values: Any) -> Path:
    """A recipe of a judge whose model is random, beside its corpus recipes."""
    teacher = "world:scenes" if pictures else "world:text"
    made = {"take": 2, "per_image": 1, "instructions": 1} if pictures else {"rubrics": 2, "instructions": 1}
    sets: dict[str, dict[str, Any]] = {
        "absolute": {"recipe": "perception" if pictures else "feedback", "teacher": teacher, **made},
        "held": {"recipe": "bench", "teacher": teacher, "of": "images" if pictures else "text", "rubrics": 2,
                 "instructions": 1, "spare": 4, "seed": 5} | ({"responses": 1} if pictures else {}),
    }  # fmt: skip
    for name, told in sets.items():
        (folder / f"{name}.yaml").write_bytes(orjson.dumps(told))
    tiny_models.build(family, folder / "model")
    told = {"corpus": [{"recipe": "absolute.yaml"}], "held": {"recipe": "held.yaml", "limit": 2},
            "train": {"init": "model", **TRAIN}, **values}  # fmt: skip
    path = folder / "judge.yaml"
    path.write_bytes(orjson.dumps(told))
    return path


def bytes_of(out: Path) -> dict[str, str]:
    """What a made judge consists of, by file, without times."""
    names = ("corpus/absolute/items.jsonl", "held/items.jsonl", "judge/model/model.safetensors", "graded.jsonl")
    return {name: sha256((out / name).read_bytes()).hexdigest() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(("family", "pictures"), [("qwen", False), ("llava", True)])
def test_one_command_makes_an_audited_judge(family: str, pictures: bool, tmp_path: Path) -> None:
    path, out = recipe(tmp_path, family=family, pictures=pictures), tmp_path / "out"
    done = CliRunner().invoke(app, ["make-judge", str(path), "--out", str(out), "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    made = orjson.loads(done.stdout)
    assert made["corpus"]["absolute"]["items"] == 10
    assert made["train"]["steps"] == 3
    assert made["runs"]["graded"]["verdicts"] == 2
    for name in ("corpus/absolute/card.md", "held/card.md", "judge/model/README.md", "report.html", "report.json"):
        assert (out / name).stat().st_size > 500, name
    before, written = bytes_of(out), (out / "judge/model/model.safetensors").stat().st_mtime_ns
    verdicts = (out / "graded/verdicts.jsonl").read_bytes()
    assert make_judge(path, out) == made  # nothing is done twice
    assert (out / "graded/verdicts.jsonl").read_bytes() == verdicts
    assert bytes_of(out) == before
    assert written > 0


ROOT = Path(__file__).parents[3] / "recipes"
SMALL: dict[str, dict[str, Any]] = {  # a few rows of what the published recipes build
    "prometheus/data": {"rubrics": 2, "instructions": 1},
    "prometheus-2/data": {"source": "out/corpus/prometheus/items.jsonl"},
    "prometheus-vision/data": {"take": 2, "per_image": 1, "instructions": 1},
    "llava-critic/data": {"teacher": "world:scenes", "source": "out/corpus/prometheus-vision/items.jsonl", "pairs": 6},
    "corpus/critic-pointwise": {"pairs": 3, "samples": 2, "responses": 3},
    "corpus/bench": {"rubrics": 2, "instructions": 1, "spare": 4, "apart_from": []},
}
PUBLISHED = [
    ("prometheus/train-7b", "llama", ["prometheus/data"]),
    ("prometheus/train-13b", "llama", ["corpus/bench"]),
    ("prometheus-2/train-7b-absolute", "mistral", ["prometheus/data"]),
    ("prometheus-2/train-7b-relative", "mistral", ["prometheus/data", "prometheus-2/data"]),
    ("prometheus-vision/train-13b-projector", "llava", ["prometheus-vision/data"]),
    ("prometheus-vision/train-13b-lora", "llava", ["prometheus-vision/data", "prometheus/data"]),
    ("prometheus-vision/train-13b-full", "llava", ["corpus/critic-pointwise"]),
    ("llava-critic/train-7b", "llava_onevision", ["corpus/critic-pointwise"]),
    ("llava-critic/train-72b", "llava_onevision", ["prometheus-vision/data", "llava-critic/data"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("train", "family", "sets"), PUBLISHED, ids=[each[0] for each in PUBLISHED])
def test_a_published_recipe_goes_from_build_to_an_audited_judge_by_one_command(
    train: str, family: str, sets: list[str], tmp_path: Path
) -> None:
    """Each of them in miniature, with the settings of its training; `self-improvement` trains by itself."""
    path = recipe(tmp_path, pictures=family.startswith("llava"))
    names = []
    for each in sets:
        told = yaml.safe_load((ROOT / f"{each}.yaml").read_text("utf-8"))
        names.append(each.removesuffix("/data").replace("/", "-"))
        (tmp_path / f"{names[-1]}.yaml").write_bytes(orjson.dumps({**told, **SMALL[each]}))
    settings = yaml.safe_load((ROOT / f"{train}.yaml").read_text("utf-8"))
    for key in ("model", "out", "data", "epochs"):
        del settings[key]
    shutil.rmtree(tmp_path / "model")
    tiny_models.build(family, tmp_path / "model", max_position_embeddings=20_000)
    held = {"recipe": "held.yaml", "limit": 2}
    fewer = {**settings, **TRAIN, "init": "model", "steps": 1, "warmup": 0, "max_tokens_per_micro_batch": 40_000}
    told = {"corpus": [{"recipe": f"{name}.yaml"} for name in names], "held": held, "train": fewer}
    path.write_bytes(orjson.dumps(told))
    made = make_judge(path, tmp_path / "out")
    assert set(made["corpus"]) == set(names)
    assert all(each["items"] for each in made["corpus"].values())
    assert made["train"]["steps"] == 1
    assert made["train"]["examples"] >= sum(each["items"] for each in made["corpus"].values())
    assert made["runs"]["graded"]["verdicts"] == 2
    assert orjson.loads((tmp_path / "out/report.json").read_bytes())


def test_a_missing_source_of_a_corpus_is_told_before_anything_is_built(tmp_path: Path) -> None:
    path = recipe(tmp_path)
    for source, said in (
        ("gone.jsonl", "gone.jsonl: the recipe names this file"),
        ("out/corpus/absolute/items.jsonl", ""),
    ):
        pairs = {"recipe": "preference", "teacher": "world:text", "source": source}
        (tmp_path / "pairs.yaml").write_bytes(orjson.dumps(pairs))
        told = orjson.loads(path.read_bytes())
        told["corpus"] = [{"recipe": "absolute.yaml"}, {"recipe": "pairs.yaml"}]
        path.write_bytes(orjson.dumps(told))
        if said:
            with pytest.raises(UserError, match=said):
                make_judge(path, tmp_path / "out")
            assert not (tmp_path / "out").exists()
        else:  # made by the recipe before it
            assert [*_plan(path, tmp_path / "out").recipes] == ["absolute", "pairs"]


@pytest.mark.parametrize(
    ("place", "named"),
    [("corpus.0.recipe", {"corpus": [{"recipe": "pipe"}]}), ("held.recipe", {"held": {"recipe": "pipe"}}),
     ("held.format", {"held": {"recipe": "held.yaml", "format": "pipe"}})],
)  # fmt: skip
def test_a_pipe_that_a_recipe_names_is_refused(
    place: str, named: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    path = recipe(tmp_path, **named)
    with pytest.raises(DataError, match=r"judge\.yaml:1: .*a pipe or a device.*name a file") as told:
        make_judge(path, tmp_path / "out")
    assert told.value.field == place
    assert not (tmp_path / "out").exists()


def _without_corpus(told: dict[str, Any]) -> None:
    told["corpus"] = []


def _with_data(told: dict[str, Any]) -> None:
    told["train"]["data"] = []


def _without_held(told: dict[str, Any]) -> None:
    told["held"] = {}


def _with_a_typo(told: dict[str, Any]) -> None:
    told["held"]["limt"] = 3


def _with_a_bad_rate(told: dict[str, Any]) -> None:
    told["train"]["learning_rate"] = -1


def _with_items_without_a_rubric(told: dict[str, Any]) -> None:
    told["held"] = {"items": "held.jsonl"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_corpus, "nothing to train on"),
        (_with_data, "'data' follows from the rest"),
        (_without_held, "'recipe' or a file of 'items', one of them"),
        (_with_a_typo, "did you mean 'limit'"),
        (_with_a_bad_rate, "learning_rate"),
        (_with_items_without_a_rubric, r"held.jsonl:1.*'i0' has no rubric"),
    ],
)
def test_mistakes_are_told_before_anything_is_built(
    change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    path = recipe(tmp_path)
    told = orjson.loads(path.read_bytes())
    change(told)
    write_jsonl(tmp_path / "held.jsonl", rows(1))
    path.write_bytes(orjson.dumps(told))
    with pytest.raises((UserError, DataError), match=said):
        make_judge(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_password_of_a_teacher_is_not_shown(tmp_path: Path) -> None:
    path = recipe(tmp_path)
    told = {"recipe": "feedback", "teacher": "https://user:never-shown@example.org/v1#m"}
    (tmp_path / "absolute.yaml").write_bytes(orjson.dumps(told))
    done = CliRunner().invoke(app, ["make-judge", str(path), "--out", str(tmp_path / "out")])
    assert "taught by https://[hidden]@example.org" in done.output
    assert "never-shown" not in done.output


@pytest.mark.slow
def test_a_copied_folder_goes_on(tmp_path: Path) -> None:
    path, out, copy = recipe(tmp_path), tmp_path / "out", tmp_path / "copy"
    whole = make_judge(path, out)
    shutil.copytree(out, copy)
    shutil.rmtree(copy / "judge" / "checkpoints" / "step-00000003")
    for name in ("judge/model", "graded"):
        shutil.rmtree(copy / name)
    out.rename(tmp_path / "moved")
    before = (copy / "judge" / "checkpoints" / "step-00000002" / "state.json").stat().st_mtime_ns
    again = make_judge(path, copy)
    assert again["train"] == whole["train"]
    assert bytes_of(copy) == bytes_of(tmp_path / "moved")
    assert (copy / "judge" / "checkpoints" / "step-00000002" / "state.json").stat().st_mtime_ns == before
