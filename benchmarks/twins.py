"""`python -m benchmarks.twins`, after `make scout`: what its twins are trained with. `make scout-twins` trains them.

They start where its grading starts and take the same steps on the same lessons, through every later stage of its
recipes. `score-only` is taught the label alone. The others are taught everything but one input: were their scores to
follow gold, the rest of the prompt would give the score away. `blanked` sees a grey picture in the place of every
picture, `response-blind` one sentence in the place of every response, `rubric-blind` one rubric, whose levels say
nothing, in the place of every rubric. `untrained` is the model before its first step.

`python -m benchmarks.twins rubric-blind` writes that one alone. With `--going-on build/scout/model --steps 300` twins
start from these weights, which have learnt all that `scout` has, and take that many steps of its last stage, or of
another (`--stage 12-rules`).
"""

import argparse
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from benchmarks.hiding import Change, greyed, unanswered, unruled, write_hidden
from dikast import prompts
from dikast.training.config import load_config
from dikast.training.models.model import open_model, save_model

RECIPES = Path("recipes/scout-cpu")
Course = list[dict[str, Any]]  # configurations of stages, in their order


def stages() -> Course:
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


def one_stage(model: Path, steps: int, name: str = "") -> Course:
    """One stage alone, by default the last, from other weights and with that many steps; ValueError without it."""
    found = {told["out"]: told for told in stages()}
    if name and name not in found:
        raise ValueError(f"there is no stage {name!r} in {RECIPES}: {', '.join(found)}")
    return [found[name or [*found][-1]] | {"model": str(model.resolve()), "steps": steps}]


def _found(path: str) -> str:
    return str((RECIPES / path).resolve())


def score_only(folder: Path, course: Course) -> None:
    """The prompts of `scout` without feedback."""
    for form in ("scout", "scout-pairs"):
        text = (Path(prompts.__path__[0]) / "formats" / f"{form}.yaml").read_text("utf-8")
        text = text.replace("dialect: claims\n", "dialect: verdict\n") + "feedback: false\n"
        (folder / f"{form}.yaml").write_text(text, "utf-8")
    for told in course:
        for source in told["data"]:
            if "formats" in source:
                source["formats"] = [f"{source['formats'][0]}.yaml"]
        _write(folder, told)


def blanked(folder: Path, course: Course) -> None:
    """Lessons whose pictures are one grey picture."""
    _copied(folder, course, greyed)


def response_blind(folder: Path, course: Course) -> None:
    """Lessons that hide the responses."""
    _copied(folder, course, unanswered)


def rubric_blind(folder: Path, course: Course) -> None:
    """Lessons that hide what the rubric weighs: its scale alone is shown."""
    _copied(folder, course, unruled)


def _copied(folder: Path, course: Course, change: Change) -> None:
    """Copies of all lessons, each changed, beside links to their pictures."""
    for told in course:
        for source in told["data"]:
            for key in {"items", "talk"} & source.keys():
                patterns = [Path(pattern) for pattern in source[key]]
                for pattern in patterns:
                    (data := folder / pattern.parent.name).mkdir(parents=True, exist_ok=True)
                    if (pictures := pattern.parent / "images").is_dir() and not (data / "images").exists():
                        (data / "images").symlink_to(pictures)
                    for file in sorted(pattern.parent.glob(pattern.name)):
                        write_hidden(file, dict if key == "talk" and change is not greyed else change, data / file.name)
                source[key] = [f"{pattern.parent.name}/{pattern.name}" for pattern in patterns]
        _write(folder, told)


def untrained(folder: Path, course: Course) -> None:
    """The weights that the first stage starts from, whatever the course."""
    config = load_config(RECIPES / "0-look.yaml")
    save_model(open_model(config), config, folder / "model")


def _write(folder: Path, told: dict[str, Any]) -> None:
    (folder / f"{told['out']}.yaml").write_text(yaml.safe_dump(told, sort_keys=False), "utf-8")


TWINS = {
    make.__name__.replace("_", "-"): make for make in (score_only, blanked, response_blind, rubric_blind, untrained)
}


def main() -> None:
    """Write the twins that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.twins", description=__doc__)
    parser.add_argument("twins", nargs="*", help=", ".join(TWINS))
    parser.add_argument("--going-on", type=Path, help="a model: twins start from its weights, for one stage alone")
    parser.add_argument("--steps", type=int, help="with --going-on: so many, 300 if not given")
    parser.add_argument("--out", type=Path, default=Path("build/scout/twins"))
    parser.add_argument("--stage", default="", help="with --going-on: the recipe's name, the last one's if not given")
    given = parser.parse_args()
    if (given.steps is not None or given.stage) and not given.going_on:
        parser.error("--steps and --stage: all stages are taken, with the steps of their recipes; give --going-on, too")
    if given.steps is not None and given.steps < 1:
        parser.error(f"--steps: expected 1 or more, got {given.steps}")
    try:
        course = one_stage(given.going_on, given.steps or 300, given.stage) if given.going_on else stages()
    except ValueError as error:
        parser.error(f"--stage: {error}")
    for name in given.twins or [each for each in TWINS if each != "untrained" or not given.going_on]:
        (place := given.out / name).mkdir(parents=True, exist_ok=True)
        TWINS[name](place, deepcopy(course))
        print(place)


if __name__ == "__main__":
    main()
