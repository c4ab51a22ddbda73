"""The two recipes of `scout`, from worlds to a working judge, with few lessons and steps."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from dikast.core.records.items import read_items
from dikast.core.verdict import Status
from dikast.engines.base import Sampling
from dikast.judging.judge import Judge
from dikast.training.config import load_config
from dikast.training.models.merge import Recipe, merge
from dikast.training.models.release import release
from dikast.training.models.scratch import SIZES, new_judge
from dikast.training.sft import sft
from dikast.training.vision_alignment import look

ROOT = Path(__file__).parents[2]
OF_TERMS = {  # first words of folders with lessons of version 4, unless these are `quoted`
    "rubrics", "even", "again", "only", "names", "match", "matching", "rules", "silent", "notes", "keep",
}  # fmt: skip
FEWER: dict[str, Any] = {
    "steps": 1, "batch_size": 6, "workers": 1, "compile": False, "warmup": 0, "max_seconds": 0, "device": "cpu",
}  # fmt: skip
if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
    FEWER |= {"precision": "fp32", "optimizer": "adamw"}  # other processors emulate bf16, in which Muon multiplies


@pytest.mark.slow(minutes=1)
@pytest.mark.parametrize(
    ("name", "target", "size"), [("scout-cpu", "scout", "nano"), ("scout-gpu", "scout-gpu", "small")]
)
def test_a_recipe_runs_from_worlds_to_a_judge(name: str, target: str, size: str, tmp_path: Path) -> None:
    (recipes := tmp_path / "recipes" / name).mkdir(parents=True)
    wanted: set[str] = set()
    for path in sorted((ROOT / "recipes" / name).glob("*.yaml")):
        told = yaml.safe_load(path.read_text("utf-8"))
        for source in told["data"]:
            key = "items" if "items" in source else "talk"
            wanted.update(Path(each).parent.name for each in source[key])
            source[key] = [str(Path(each).with_name(f"{key}-*.jsonl")) for each in source[key]]  # there are few here
        (recipes / path.name).write_text(yaml.safe_dump({**told, **FEWER}), "utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (commands,) = re.findall(rf"^{target}: .*\n((?:\t.*\n)+)", makefile, re.M)
    numbered = {int(path.stem.partition("-")[0]): path.stem for path in recipes.glob("*.yaml")}
    _, *stages, last = (numbered[number] for number in sorted(numbered))  # the first is not a stage of `sft`
    assert [each for each in ("train new", "train look", *stages, last, "train release") if each not in commands] == []
    data = tmp_path / "build" / target / "data"
    for folder in sorted(wanted):
        pairs = "pairs" in folder
        first, *_, last_word = folder.split("-") if "-" in folder else (folder, "")
        only = last_word if last_word in ("sum", "list", "number", "texture", "colour") else ""
        known = next((each for each in folder.split("-") if each in DOMAINS), "scenes")
        known = "text" if only in ("sum", "list", "number") else known
        composed = first in OF_TERMS and "quoted" not in folder
        settings = Settings(
            domain=known, seed=1, responses=2 if pairs else 1, version=4 if composed else 3, form=0 if only else 20
        )
        if first in ("names", "rules", "matching"):
            write_lessons(settings, 6, data / folder, instead="matching" if first == "matching" else "glossary")
            continue
        write_lessons(
            settings, 6, data / folder, reference=25, padding=50, instead=first if first == "talk" else "",
            only=only, quote=composed or "quoted" in folder or first == "agree",
            silent=60 * (first == "silent"), agreement=100 * (first == "agree"),
        )  # fmt: skip
    later = [load_config(recipes / f"{each}.yaml") for each in re.findall(r"--later \S+/([\w-]+)\.yaml", commands)]
    assert later
    init = tmp_path / "build" / target / "init"
    new_judge(load_config(recipes / "2-grade.yaml"), init, SIZES[size], most=6, later=later)
    assert look(load_config(recipes / "0-look.yaml"))["steps"] == 1
    merges = re.findall(r"train merge (\S+) (\S+) .*--out (\S+)", commands)
    for stage in (*stages, last):
        assert sft(load_config(recipes / f"{stage}.yaml"))["complete"]
        for one, other, out in merges:  # a later stage may go on from a mean
            if (tmp_path / one).is_dir() and (tmp_path / other).is_dir() and not (tmp_path / out).is_dir():
                merge([tmp_path / one, tmp_path / other], tmp_path / out, Recipe("linear", (0.5, 0.5)))
    (last_of_all,) = re.findall(r"train release (\S+) ", commands)
    made = release(tmp_path / last_of_all, tmp_path / "model")
    judge = Judge(str(made), format="scout", sampling=Sampling(max_tokens=8))
    items = list(read_items(str(data / "scenes" / "items-00000.jsonl")))[:2]
    answered = {verdict.status for verdict in judge.grade_many(items)}
    assert answered
    assert not answered & {Status.ENGINE_ERROR, Status.BAD_ITEM}


@pytest.mark.parametrize("name", ["prometheus", "prometheus-2", "prometheus-vision", "llava-critic"])
def test_a_published_recipe_evaluates_by_every_bench_that_its_reported_figures_name(name: str) -> None:
    folder, catalogue = ROOT / "recipes" / name, resources.files("dikast.benches").joinpath("catalogue")
    known = {path.name.removesuffix(".yaml") for path in catalogue.iterdir()}
    reported = {row["bench"] for row in yaml.safe_load((folder / "reported.yaml").read_text("utf-8"))}
    (benches,) = re.findall(r"^dikast bench run (.*?) --judge", (folder / "README.md").read_text("utf-8"), re.M)
    assert set(benches.split()) == reported & known
