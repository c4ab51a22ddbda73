"""`python -m benchmarks.twins`, after `make scout`: what its twins are trained with. `make scout-twins` trains them.

Both start where its grading starts and take the same steps on the same lessons. `score-only` is taught the
label alone. `blanked` is taught everything, with a grey picture in the place of every picture: were its scores to
follow gold, the texts of the world would give the score away. `untrained` is the model before its first step.
"""

import json
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from dikast import prompts
from dikast.training.config import load_config
from dikast.training.models.model import open_model, save_model

RECIPES = Path("recipes/scout-cpu")
STAGES = ("2-grade", "3-words")
OUT = Path("build/scout/twins")
SIDE = 96  # pixels


def stages() -> list[dict[str, Any]]:
    """The stages of `scout` that grade, their paths spelt out, for a twin in a folder of its own."""
    found, before = [], ""
    for stage in STAGES:
        told: dict[str, Any] = yaml.safe_load((RECIPES / f"{stage}.yaml").read_text("utf-8"))
        model = f"{before}/model" if before else _found(told["model"])
        told |= {"model": model, "out": (before := stage), "shards": "shards"}
        for source in told["data"]:
            for key in {"items", "talk"} & source.keys():
                source[key] = [_found(each) for each in source[key]]
        found.append(told)
    return found


def _found(path: str) -> str:
    return str((RECIPES / path).resolve())


def score_only(folder: Path) -> None:
    """The prompts of `scout` without feedback."""
    for form in ("scout", "scout-pairs"):
        text = (Path(prompts.__path__[0]) / "formats" / f"{form}.yaml").read_text("utf-8")
        text = text.replace("dialect: claims\n", "dialect: verdict\n") + "feedback: false\n"
        (folder / f"{form}.yaml").write_text(text, "utf-8")
    for told in stages():
        for source in told["data"]:
            if "formats" in source:
                source["formats"] = [f"{source['formats'][0]}.yaml"]
        _write(folder, told)


def blanked(folder: Path) -> None:
    """Copies of the lessons whose pictures are one grey picture."""
    for told in stages():
        for source in told["data"]:
            for key in {"items", "talk"} & source.keys():
                (pattern,) = map(Path, source[key])
                (data := folder / pattern.parent.name).mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (SIDE, SIDE), (128, 128, 128)).save(data / "grey.png")
                for file in sorted(pattern.parent.glob(pattern.name)):
                    rows = map(json.loads, file.read_text("utf-8").splitlines())
                    (data / file.name).write_text("".join(json.dumps(_grey(row)) + "\n" for row in rows), "utf-8")
                source[key] = [f"{data.name}/{pattern.name}"]
        _write(folder, told)


def _grey(row: dict[str, Any]) -> dict[str, Any]:
    row |= {"image": "grey.png"} if "image" in row else {}
    parts = row["instruction"] if isinstance(row["instruction"], list) else []
    return {**row, "instruction": [_grey_part(part) for part in parts] or row["instruction"]}


def _grey_part(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "image": "grey.png"} if part["type"] == "image" else part


def untrained(folder: Path) -> None:
    """The weights that the first stage starts from."""
    config = load_config(RECIPES / "0-look.yaml")
    save_model(open_model(config), config, folder / "model")


def _write(folder: Path, told: dict[str, Any]) -> None:
    (folder / f"{told['out']}.yaml").write_text(yaml.safe_dump(told, sort_keys=False), "utf-8")


if __name__ == "__main__":
    for make in (score_only, blanked, untrained):
        place = OUT / make.__name__.replace("_", "-")
        place.mkdir(parents=True, exist_ok=True)
        make(place)
        print(place)
