"""Merging: values worked by hand, a second implementation in numpy, bounded files, and models that do not match."""

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import tiny_models
from dikast.core.errors import RunError, UserError
from dikast.engines.local.engine import LocalEngine
from dikast.surface.cli import app
from dikast.training.models.merge import Recipe, merge, merged
from runs import fill, small_disk


def test_linear_by_hand() -> None:
    # weights 1 and 3 are .25 and .75: .25 * 2 + .75 * 6 = 5, .25 * -4 + .75 * 0 = -1
    found = merged("w", [torch.tensor([2.0, -4.0]), torch.tensor([6.0, 0.0])], None, Recipe("linear", (1, 3)))
    assert found.tolist() == [5.0, -1.0]


def test_slerp_by_hand() -> None:
    # (1, 0) and (0, 1) are a right angle apart: a third of the way is 30 degrees, (cos 30, sin 30)
    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    found = merged("w", [a, b], None, Recipe("slerp", (1, 1), t=1 / 3))
    assert found.tolist() == pytest.approx([math.sqrt(3) / 2, 0.5])
    # vectors of one direction are joined by a line
    assert merged("w", [a, 3 * a], None, Recipe("slerp", (1, 1), t=0.5)).tolist() == [2.0, 0.0]
    assert merged("w", [a, 0 * a], None, Recipe("slerp", (1, 1), t=0.25)).tolist() == [0.75, 0.0]


def test_ties_by_hand() -> None:
    # task vectors (4, -3, 1, 0) and (2, 5, -1, .5); the larger half of each is kept: (4, -3, 0, 0) and (2, 5, 0, 0).
    # signs of the sums 6 and 2 are + and +: the first entry averages 4 and 2, the second has 5 alone
    base = torch.tensor([1.0, 1.0, 1.0, 1.0])
    models = [base + torch.tensor([4.0, -3.0, 1.0, 0.0]), base + torch.tensor([2.0, 5.0, -1.0, 0.5])]
    assert merged("w", models, base, Recipe("ties", (1, 1), density=0.5)).tolist() == [4.0, 6.0, 1.0, 1.0]
    # weights 3 and 1: sums 14 and -4, so the second entry has -3 alone; the first is (3 * 4 + 2) / 4
    found = merged("w", models, base, Recipe("ties", (3, 1), density=0.5, scale=2.0))
    assert found.tolist() == [1 + 2 * 3.5, 1 + 2 * -3.0, 1.0, 1.0]


def test_dare_keeps_the_mean_and_the_seed() -> None:
    base = torch.zeros(40_000)
    models = [torch.ones(40_000), torch.full((40_000,), 3.0)]
    recipe = Recipe("dare", (0.5, 0.5), density=0.25, seed=7)
    found = merged("w", models, base, recipe)
    # entries are .5 * 0 or 4, plus .5 * 0 or 12: 0, 2, 6 or 8; the mean is 2, its standard error about .0137
    assert set(found.tolist()) == {0.0, 2.0, 6.0, 8.0}
    assert abs(float(found.mean()) - 2) < 0.06
    assert torch.equal(found, merged("w", models, base, recipe))
    assert not torch.equal(found, merged("v", models, base, recipe))
    assert not torch.equal(found, merged("w", models, base, Recipe("dare", (0.5, 0.5), density=0.25, seed=8)))
    # all kept and weights 1: task arithmetic
    assert set(merged("w", models, base, Recipe("dare", (1, 1), density=1.0)).tolist()) == {4.0}


def plainly(tensors: list[np.ndarray], base: np.ndarray, recipe: Recipe) -> np.ndarray:
    """The same in numpy, entry by entry, from the papers."""
    if recipe.method == "linear":
        return np.average(tensors, axis=0, weights=recipe.weights)
    if recipe.method == "slerp":
        a, b = tensors
        cosine = float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
        angle = math.acos(cosine)
        return (math.sin((1 - recipe.t) * angle) * a + math.sin(recipe.t * angle) * b) / math.sin(angle)
    found = np.zeros_like(base)
    tasks = []
    for tensor in tensors:
        task = (tensor - base).ravel()
        order = np.argsort(-np.abs(task))
        kept = np.zeros_like(task)
        kept[order[: round(recipe.density * task.size)]] = task[order[: round(recipe.density * task.size)]]
        tasks.append(kept)
    for i in range(base.size):
        sign = np.sign(sum(w * task[i] for w, task in zip(recipe.weights, tasks, strict=True)))
        pairs = zip(recipe.weights, tasks, strict=True)
        agree = [(w, task[i]) for w, task in pairs if task[i] != 0 and np.sign(task[i]) == sign]
        if agree:
            found.flat[i] = sum(w * v for w, v in agree) / sum(w for w, _ in agree)
    return base + recipe.scale * found


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe("linear", (0.3, 0.7)),
        Recipe("slerp", (1, 1), t=0.4),
        Recipe("ties", (0.6, 0.4), density=0.3, scale=1.2),
        Recipe("ties", (1.0, 1.0), density=1.0),
    ],
    ids=str,
)
def test_a_second_implementation_agrees(recipe: Recipe) -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(7, 11))
    tensors = [base + rng.normal(size=base.shape) for _ in range(2)]
    found = merged("w", [torch.tensor(t) for t in tensors], torch.tensor(base), recipe)
    assert np.allclose(found.numpy(), plainly(tensors, base, recipe), atol=1e-5)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A base and two models of one shape."""
    folder = tmp_path_factory.mktemp("merge")
    return [tiny_models.build("llama", folder / name, seed=seed) for name, seed in (("base", 0), ("a", 1), ("b", 2))]


def test_a_merged_model_is_written_in_parts_and_opens(three: list[Path], tmp_path: Path) -> None:
    base, a, b = three
    command = ["train", "merge", str(a), str(b), "--method", "ties", "--base", str(base), "--density", "0.4"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "one"), "--json"])
    assert done.exit_code == 0, done.output
    recipe = Recipe("ties", (0.5, 0.5), density=0.4)
    assert json.loads(done.stdout)["recipe"]["density"] == 0.4
    merge([a, b], tmp_path / "parts", recipe, base=base, shard_bytes=20_000)
    files = sorted((tmp_path / "parts").glob("*.safetensors"))
    assert len(files) > 3
    assert all(file.stat().st_size < 80_000 for file in files)  # one tensor of 71,680 bytes is larger than a part
    whole = load_file(tmp_path / "one" / "model.safetensors")
    parts = {name: tensor for file in files for name, tensor in load_file(file).items()}
    weights = [load_file(folder / "model.safetensors") for folder in three]
    assert parts.keys() == whole.keys() == weights[0].keys()
    for name, tensor in parts.items():
        assert torch.equal(tensor, whole[name])
        assert torch.equal(tensor, merged(name, [weights[1][name], weights[2][name]], weights[0][name], recipe))
    engine = LocalEngine(str(tmp_path / "parts"), device="cpu")
    assert torch.equal(engine._loaded.model.get_input_embeddings().weight, whole["model.embed_tokens.weight"])


def test_merging_a_model_with_itself_changes_nothing(three: list[Path], tmp_path: Path) -> None:
    merge([three[1], three[1]], tmp_path / "out", Recipe("linear", (0.5, 0.5)))
    before, after = (load_file(folder / "model.safetensors") for folder in (three[1], tmp_path / "out"))
    assert all(torch.equal(before[name], after[name]) for name in before)
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_what_does_not_match_is_refused_and_nothing_is_written(
    three: list[Path], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    base, a, _ = three
    half = shutil.copytree(a, tmp_path / "half")
    weights = load_file(a / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"][:16].clone()
    save_file(weights, half / "model.safetensors", {"format": "pt"})
    less = shutil.copytree(a, tmp_path / "less")
    del weights["model.norm.weight"]
    save_file(weights, less / "model.safetensors", {"format": "pt"})
    other = shutil.copytree(a, tmp_path / "other")
    (other / "tokenizer.json").write_text((a / "tokenizer.json").read_text("utf-8") + " ", "utf-8")
    turned = shutil.copytree(a, tmp_path / "turned")
    told = json.loads((a / "config.json").read_text("utf-8"))
    told.pop("rope_parameters", None)
    (turned / "config.json").write_text(json.dumps(told | {"rope_theta": 1e6}), "utf-8")
    longer = shutil.copytree(a, tmp_path / "longer")
    passing = {
        "max_position_embeddings": 99,
        "attention_dropout": 0.1,
        "other_version": "2",
        "transformers_version": "0",
    }
    (longer / "config.json").write_text(json.dumps(told | passing), "utf-8")
    merge([a, longer], tmp_path / "merged", Recipe("linear", (0.5, 0.5)))
    odd = shutil.copytree(a, tmp_path / "odd")
    code = {"model_type": "not-known", "auto_map": {"AutoConfig": "theirs.Config"}}  # nothing of it is run
    (odd / "config.json").write_text(json.dumps(told | code), "utf-8")
    linear, ties = Recipe("linear", (0.5, 0.5)), Recipe("ties", (0.5, 0.5))
    out = tmp_path / "out"
    for models, recipe, kept, said in [
        ([a, tiny("qwen")], linear, None, "architectures is"),
        ([a, turned], linear, None, r"rope_parameters\.rope_theta is 10000\.0 in one and 1000000\.0"),
        ([a, odd], linear, None, "model_type is"),
        ([a, half], linear, None, r"model.norm.weight has the shape \[32\] in one, \[16\]"),
        ([a, less], linear, None, r"1 tensors are in only one of them \(model.norm.weight\)"),
        ([a, other], linear, None, "their tokenizer.json differ"),
        ([a], linear, None, "two or more models"),
        ([a, a, a], Recipe("slerp", (1, 1, 1)), None, "slerp merges two models"),
        ([a, a], Recipe("linear", (1,)), None, "2 models and 1 weights"),
        ([a, a], Recipe("linear", (1, -1)), None, "sum to 0"),
        ([a, a], ties, None, "name it as 'base'"),
        ([a, a], linear, base, "knows no base"),
        ([a, a], Recipe("ties", (1, 1), density=0.0), base, "density must be above 0"),
        ([a, tmp_path], linear, None, "holds no model"),
    ]:
        with pytest.raises(UserError, match=said):
            merge(models, out, recipe, base=kept)
        assert not out.exists()
    assert not list(tmp_path.glob("*.part"))
    with pytest.raises(UserError, match="exists already"):
        merge([a, a], half, linear)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_holds_one_tensor_of_each_model(tmp_path: Path) -> None:
    size, count = 4 * 2**20, 40  # bytes of a tensor, tensors: 160 MB a model
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        tensors = {f"t{i}": torch.full((size // 4,), float(i)) for i in range(count)}
        save_file(tensors, tmp_path / name / "model.safetensors")
        del tensors
    peak, stop = [0], threading.Event()

    def held() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024

    def sample() -> None:
        while not stop.is_set():
            peak[0] = max(peak[0], held())

    before = held()
    watcher = threading.Thread(target=sample)
    watcher.start()
    merge([tmp_path / "a", tmp_path / "b"], tmp_path / "out", Recipe("linear", (0.5, 0.5)))
    stop.set()
    watcher.join()
    assert peak[0] > 0
    assert peak[0] - before < 0.6 * count * size  # nine tensors at most, and what the process needs beside them


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (Recipe("linear", (math.nan, 1)), "weights: give finite numbers, got nan, 1"),
        (Recipe("linear", (math.inf, 1)), "weights: give finite numbers, got inf, 1"),
        (Recipe("linear", (1e308, 1e308)), "weights: give finite numbers"),
        (Recipe("ties", (1, 1), scale=math.nan), "scale: give finite numbers, got nan"),
        (Recipe("ties", (1, 1), density=math.nan), "density: give finite numbers"),
        (Recipe("slerp", (1, 1), t=math.nan), "t: give finite numbers"),
        (Recipe("slerp", (0.9, 0.1)), "slerp goes by t, not by weights: .* give t"),
        (Recipe("dare", (1e39, 1e39)), r"\S+: merged values are too large for F32: give smaller weights or scale"),
    ],
    ids=str,
)
def test_a_recipe_that_makes_no_numbers_is_refused(
    recipe: Recipe, said: str, three: list[Path], tmp_path: Path
) -> None:
    base, a, b = three
    with pytest.raises(UserError, match=said):
        merge([a, b], tmp_path / "new" / "out", recipe, base=base if recipe.method in ("ties", "dare") else None)
    assert not list(tmp_path.glob("new/*"))


@pytest.mark.parametrize("sick", [0, 1, 2])
def test_a_model_whose_weights_are_no_numbers_is_named(sick: int, three: list[Path], tmp_path: Path) -> None:
    models = [*three]
    models[sick] = shutil.copytree(three[sick], tmp_path / "sick")
    weights = load_file(three[sick] / "model.safetensors")
    weights["model.norm.weight"][3] = math.nan
    save_file(weights, models[sick] / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"sick/model.safetensors: model.norm.weight holds NaN or infinity"):
        merge(models[1:], tmp_path / "out", Recipe("ties", (1, 1)), base=models[0])  # signs would vote a NaN away


Change = Callable[[Path], object]


def edited(name: str, change: Callable[[dict[str, Any]], object]) -> Change:
    """A function that changes a JSON file of a model and writes its keys in another order."""

    def edit(folder: Path) -> None:
        told = json.loads((folder / name).read_text("utf-8"))
        change(told)
        (folder / name).write_text(json.dumps(dict(reversed(told.items()))), "utf-8")

    return edit


def as_older_versions_save(folder: Path) -> None:
    """Image settings in a separate file, the chat template inside a JSON file."""
    told = json.loads((folder / "processor_config.json").read_text("utf-8"))
    images = {"image_processor_type": "CLIPImageProcessorFast", "transformers_version": "4.50.0"}
    (folder / "preprocessor_config.json").write_text(json.dumps(told.pop("image_processor") | images), "utf-8")
    (folder / "processor_config.json").write_text(json.dumps(told), "utf-8")
    template = (folder / "chat_template.jinja").read_text("utf-8")
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template + "\n"}), "utf-8")


def without_images(folder: Path) -> None:
    edited("processor_config.json", lambda told: told.pop("image_processor"))(folder)


def beside(folder: Path) -> None:
    as_older_versions_save(folder)
    edited("preprocessor_config.json", lambda told: told.update(image_std=[1, 1, 1]))(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is in only one of them: put the files"),
        (lambda folder: (folder / "tokenizer.model").write_text("x"), ""),  # older versions save it besides
        (lambda folder: (folder / "vocab.json").write_text('{"a":0}'), ""),
        (lambda folder: (folder / "chat_template.jinja").write_text("{{ 1 }}"), "their chat templates differ"),
        (lambda folder: (folder / "chat_template.jinja").unlink(), ""),  # pretrained models have none
        (as_older_versions_save, ""),
        (without_images, "preprocessor_config.json is in only one of them"),
        (beside, r"images are prepared with image_std .* in one and .1.*1.*1. in the other"),
        (
            edited("processor_config.json", lambda told: told["image_processor"].update(image_mean=[0, 0, 0])),
            "images are prepared with image_mean",
        ),
        (
            edited("processor_config.json", lambda told: told.update(num_additional_image_tokens=0)),
            "images are prepared with num_additional_image_tokens 1 in one and 0 in the other",
        ),
        (edited("processor_config.json", lambda told: told.update(processor_class="X", transformers_version="4")), ""),
    ],
)
def test_tokens_templates_and_images_are_the_same(
    change: Change, said: str, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    other = shutil.copytree(tiny("llava"), tmp_path / "other")
    change(other)
    if said:
        with pytest.raises(UserError, match=rf"/other do not match: {said}"):
            merge([tiny("llava"), other], tmp_path / "out", Recipe("linear", (1, 1)))
    else:
        assert merge([tiny("llava"), other], tmp_path / "out", Recipe("linear", (1, 1)))["files"]


def test_the_base_may_have_another_template(three: list[Path], tmp_path: Path) -> None:
    base = shutil.copytree(three[0], tmp_path / "base")
    (base / "chat_template.jinja").write_text("{{ 1 }}", "utf-8")
    assert merge(three[1:], tmp_path / "out", Recipe("ties", (1, 1)), base=base)["files"]


def test_only_the_files_that_make_the_model_are_read(three: list[Path], tmp_path: Path) -> None:
    both = [shutil.copytree(folder, tmp_path / folder.name) for folder in three[1:]]
    for folder in both:  # as repositories of Mistral have
        save_file({"tok_embeddings.weight": torch.zeros(2)}, folder / "consolidated.safetensors")
    merge(both, tmp_path / "out", Recipe("linear", (1, 1)), shard_bytes=20_000)
    (tmp_path / "out" / "consolidated.safetensors").write_bytes(b"other")
    merge([tmp_path / "out", three[1]], tmp_path / "again", Recipe("linear", (1, 1)))  # read through its index
    names = load_file(three[1] / "model.safetensors").keys()
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == names
    (both[0] / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"no weights \(neither model.safetensors nor model.safetensors.index.json\)"):
        merge(both, tmp_path / "none", Recipe("linear", (1, 1)))


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def index(value: object) -> Change:
    def write(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "part.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(value), "utf-8")

    return write


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut, "/bad/model.safetensors: no weights can be read from it .*: copy the file again"),
        (lambda folder: (folder / "config.json").write_text('{"a":'), r"/bad/config.json: cannot be read as JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "/bad/config.json: is not a JSON object"),
        (index({}), r"/bad/model.safetensors.index.json: field 'weight_map': names no file"),
        (index({"weight_map": {"a": "none.safetensors"}}), "index.json: field .weight_map.: .none.safetensors. is no"),
        (index({"weight_map": {"a": "part.safetensors"}}), "index.json: a is in none of its files"),
        (lambda folder: save_file({}, folder / "model.safetensors"), "/bad/model.safetensors: holds no tensor"),
        (shutil.rmtree, "/bad: no such folder"),
    ],
)
def test_a_damaged_file_is_named(change: Change, said: str, three: list[Path], tmp_path: Path) -> None:
    bad = shutil.copytree(three[1], tmp_path / "bad")
    change(bad)
    with pytest.raises(UserError, match=said):
        merge([three[1], bad], tmp_path / "out", Recipe("linear", (1, 1)))


def test_nothing_but_the_folder_named_is_touched(
    three: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "z.part").mkdir()
    (tmp_path / "z.part" / "mine").write_text("keep", "utf-8")
    (tmp_path / "here").mkdir()
    merge(three[1:], tmp_path / "z", Recipe("linear", (1, 1)))
    monkeypatch.chdir(tmp_path / "here")
    merge(three[1:], Path(), Recipe("linear", (1, 1)))
    assert Path("model.safetensors").is_file()  # in the folder we stand in, not in one that took its place
    for out, said in [("z.part/mine", "is a file: name a folder"), ("z.part/mine/x", "lies in one: name a folder")]:
        with pytest.raises(UserError, match=said):
            merge(three[1:], tmp_path / out, Recipe("linear", (1, 1)))
    assert (tmp_path / "z.part" / "mine").read_text("utf-8") == "keep"
    assert {path.name for path in tmp_path.iterdir()} == {"z", "z.part", "here"}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
def test_a_pipe_in_the_place_of_a_file_is_told_and_not_opened(name: str, three: list[Path], tmp_path: Path) -> None:
    piped = shutil.copytree(three[1], tmp_path / "piped")
    (piped / name).unlink(missing_ok=True)
    os.mkfifo(piped / name)
    for models in ([piped, three[2]], [three[2], piped]):
        with pytest.raises(UserError, match=rf"{name}: a pipe or a device in the place of a file"):
            merge(models, tmp_path / "out", Recipe("linear", (1, 1)))
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_told_and_the_same_command_goes_on(three: list[Path], tmp_path: Path) -> None:
    weights = (three[1] / "model.safetensors").stat().st_size
    with small_disk(tmp_path / "disk", 1) as disk:
        for left in (10_000, weights // 2):  # while the first file is copied, and while weights are written
            filled = fill(disk, left)
            with pytest.raises(RunError, match=r"disk/out: cannot be written \(No space left on device\): free space"):
                merge(three[1:], disk / "out", Recipe("linear", (1, 1)))
            assert not (disk / "out").exists()
            filled.unlink()
        assert merge(three[1:], disk / "out", Recipe("linear", (1, 1)))["files"]
