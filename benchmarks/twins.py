"""`python -m benchmarks.twins`, after `make scout`: what its twins are trained with. `make scout-twins` trains them.

They start where its grading starts and take the same steps on the same lessons, through every later stage of its
recipes. `score-only` is taught the label alone. The others are taught everything but one input: were their scores to
follow gold, the rest of the prompt would give the score away. `blanked` sees a grey picture in the place of every
picture, `response-blind` one sentence in the place of every response, `rubric-blind` one rubric, whose levels say
nothing, in the place of every rubric. `untrained` is the model before its first step.

`python -m benchmarks.twins rubric-blind` writes that one alone.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from dikast import prompts
from dikast.training.config import load_config
from dikast.training.models.model import open_model, save_model

RECIPES = Path("recipes/scout-cpu")
OUT = Path("build/scout/twins")
SIDE = 96  # pixels
HIDDEN = "The answer is not shown."
CRITERION, LEVEL = "Grade the answer.", "as the answer deserves"
SHOWN = ("image", "instruction", "context", "response", "responses", "reference")  # where a row has pictures
Row = dict[str, Any]


def stages() -> list[dict[str, Any]]:
    """The stages of `scout` that grade, their paths spelt out, for a twin in a folder of its own."""
    found, before = [], ""
    numbered = {int(path.stem.partition("-")[0]): path.stem for path in RECIPES.glob("*.yaml")}
    for stage in (numbered[number] for number in sorted(numbered) if number >= 2):
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
    """Lessons whose pictures are one grey picture."""
    for data in _copied(folder, _grey):
        Image.new("RGB", (SIDE, SIDE), (128, 128, 128)).save(data / "grey.png")


def response_blind(folder: Path) -> None:
    """Lessons that hide the responses."""
    _copied(folder, _unanswered)


def rubric_blind(folder: Path) -> None:
    """Lessons that hide what the rubric weighs: its scale alone is shown."""
    _copied(folder, _unruled)


def _copied(folder: Path, change: Callable[[Row], Row]) -> set[Path]:
    """Copies of all lessons, each changed, beside links to their pictures; the folders of the copies."""
    made = set()
    for told in stages():
        for source in told["data"]:
            for key in {"items", "talk"} & source.keys():
                patterns = [Path(pattern) for pattern in source[key]]
                for pattern in patterns:
                    (data := folder / pattern.parent.name).mkdir(parents=True, exist_ok=True)
                    if (pictures := pattern.parent / "images").is_dir() and not (data / "images").exists():
                        (data / "images").symlink_to(pictures)
                    for file in sorted(pattern.parent.glob(pattern.name)):
                        rows = map(json.loads, file.read_text("utf-8").splitlines())
                        kept = rows if key == "talk" and change is not _grey else map(change, rows)
                        (data / file.name).write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
                    made.add(data)
                source[key] = [f"{pattern.parent.name}/{pattern.name}" for pattern in patterns]
        _write(folder, told)
    return made


def _grey(row: Row) -> Row:
    grey: Row = _greyed({key: row[key] for key in SHOWN if key in row})
    return row | grey


def _greyed(value: Any, key: str = "") -> Any:
    """The value of a row at this key, in which every picture and frame is the grey one."""
    if key == "image":
        return "grey.png"
    if isinstance(value, list):
        return ["grey.png" if key == "frames" else _greyed(each) for each in value]
    return {key: _greyed(each, key) for key, each in value.items()} if isinstance(value, dict) else value


def _unanswered(row: Row) -> Row:
    hidden = {"responses": [HIDDEN for _ in row["responses"]]} if "responses" in row else {"response": HIDDEN}
    return row | hidden


def _unruled(row: Row) -> Row:
    levels = dict.fromkeys(row["rubric"]["levels"], LEVEL)
    return row | {"rubric": row["rubric"] | {"name": "any", "criterion": CRITERION, "levels": levels}}


def untrained(folder: Path) -> None:
    """The weights that the first stage starts from."""
    config = load_config(RECIPES / "0-look.yaml")
    save_model(open_model(config), config, folder / "model")


def _write(folder: Path, told: dict[str, Any]) -> None:
    (folder / f"{told['out']}.yaml").write_text(yaml.safe_dump(told, sort_keys=False), "utf-8")


TWINS = {
    make.__name__.replace("_", "-"): make for make in (score_only, blanked, response_blind, rubric_blind, untrained)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or TWINS:
        (place := OUT / name).mkdir(parents=True, exist_ok=True)
        TWINS[name](place)
        print(place)
