"""The verb `make-judge`, and those of `train`: `new`, `look`, `plan`, `sft`, `dpo`, `release` and `merge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, Verbs, verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from dikast.training.config import Config

app = Verbs(no_args_is_help=True)


@verb
def make_judge(
    recipe: Annotated[Path, typer.Argument(help="The recipe of the judge, a YAML file described in docs/training.md.")],
    out: Annotated[Path, typer.Option("--out", help="The output folder; running again resumes.")],
    *,
    media: MediaOptions,
    shown: JsonOptions,
) -> None:
    """Make a judge from a recipe: build its data, train it, and audit it on held-out data.

    Example: dikast make-judge judge.yaml --out build/judge
    """
    from dikast.core.errors import require
    from dikast.surface.make_judge import make_judge as make

    require("torch", "hf")
    require("transformers", "hf")
    made = make(recipe, out, say=lambda line: echo(line, err=True))
    if shown.json:
        echo_json(made)
        return
    for name, each in made["runs"].items():
        answered = each["status"].get("ok", 0)
        echo(f"{name:<11} {answered:,} of {each['verdicts']:,} verdicts")
    echo(f"judge       {out / 'judge' / 'model'}")
    echo(f"report      {out / 'report.html'}")


@app.command("new")
@verb
def new(
    config: Annotated[
        Path, typer.Option("--config", help="A training configuration (YAML); the tokenizer is trained on its data.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder for configuration, tokenizer and processor.")],
    size: Annotated[str, typer.Option("--size", help="nano (1.8 million parameters) or small (8 million).")] = "nano",
    most: Annotated[
        int, typer.Option("--most", help="Maximum examples per source to train the tokenizer on.")
    ] = 20_000,
    later: Annotated[
        list[Path] | None,
        typer.Option("--later", help="A configuration of a later stage, whose vocabulary is included too."),
    ] = None,
    *,
    media: MediaOptions,
) -> None:
    """Create a small untrained vision-language judge of the LLaVA-1.5 architecture, to train from scratch (`init`)."""
    from dikast.core.errors import UserError
    from dikast.training.config import load_config
    from dikast.training.models.scratch import SIZES, new_judge

    if size not in SIZES:
        raise UserError(f"--size {size!r}: choose {', '.join(SIZES)}")
    stages = [load_config(path) for path in later or ()]
    echo(str(new_judge(load_config(config), out, SIZES[size], most=most, later=stages)))


@app.command("release")
def release(
    model: Annotated[Path, typer.Argument(help="The folder of a trained model of the LLaVA-1.5 architecture.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
) -> None:
    """Export a trained judge in the layout of released LLaVA-1.5 checkpoints, so that vLLM can serve it."""
    from dikast.training.models.release import release as lay_out

    echo(str(lay_out(model, out)))


@app.command("look")
@verb
def look(
    config: Annotated[
        Path, typer.Option("--config", help="A training configuration (YAML) whose data is from `world teach --talk`.")
    ],
    media: MediaOptions,
) -> None:
    """Align image patches with words: the first training stage of a judge trained from scratch, before `sft`."""
    from dikast.core.errors import require

    require("torch", "hf")
    require("transformers", "hf")
    from dikast.training.config import load_config
    from dikast.training.vision_alignment import look as run

    done = run(load_config(config), watch=_tell)
    echo(f"{done['steps']} steps on {done['rows']} pictures: the model is in {done['model']}")


@app.command("plan")
@verb
def plan(
    config: Annotated[Path, typer.Option("--config", help="The training configuration (YAML) of `sft` or `dpo`.")],
    shape: Annotated[
        Path | None,
        typer.Option("--shape", help="A folder with the model's config.json, for a model that is not on this machine."),
    ] = None,
    card: Annotated[str, typer.Option("--card", help="A100 or H100 (80 GB), or H200 (141 GB).")] = "H100",
    cards: Annotated[int, typer.Option("--cards", help="Number of cards; the model is sharded over them (FSDP2).")] = 1,
    rows: Annotated[int, typer.Option("--rows", help="Examples per epoch; 0: the number of records in the data.")] = 0,
    length: Annotated[int, typer.Option("--length", help="Mean number of tokens per example; 0: `max_tokens`.")] = 0,
    learnt: Annotated[int, typer.Option("--learnt", help="Mean tokens per reply; 0: a quarter of --length.")] = 0,
    tiles: Annotated[int, typer.Option("--tiles", help="Image tiles per example, as the vision tower sees them.")] = 0,
    rate: Annotated[float, typer.Option("--rate", help="Measured tokens per second of a card; 0: assumed.")] = 0.0,
    dpo: Annotated[bool, typer.Option("--dpo", help="The configuration is one of `train dpo`.")] = False,
    *,
    media: MediaOptions,
    shown: JsonOptions,
) -> None:
    """Work out memory, hours and disk of a training run, without its weights; exit code 1 if it does not fit.

    Example: dikast train plan --config judge.yaml --card H100 --cards 8 --rows 100000 --length 1500
    """
    from dikast.core.errors import require

    require("torch", "hf")
    require("transformers", "hf")
    from dikast.training.planning.plan_lines import PlanAsked, plan_lines, planned

    found = planned(config, PlanAsked(shape, card, cards, rows, length, learnt, tiles, rate, dpo))
    if shown.json:
        echo_json(found)
    else:
        for line in plan_lines(found):
            echo(line)
    if not found["fits"]:
        raise typer.Exit(1)


@app.command("sft")
@verb
def sft(
    config: Annotated[Path, typer.Option("--config", help="The training configuration (YAML).")],
    export: Annotated[
        str, typer.Option("--export", help="`trl`: write data and configuration for `trl sft` instead of training.")
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="With --export: the folder to write to.")] = None,
    *,
    media: MediaOptions,
    shown: JsonOptions,
) -> None:
    """Train a judge on items with gold; the same command resumes after an interruption."""
    from dikast.training.config import load_config
    from dikast.training.sft import sft as run

    if export:
        _export(load_config(config), export, out, "sft", shown)
    else:
        _train(run, config, out, "examples", shown)


@app.command("dpo")
@verb
def dpo(
    config: Annotated[
        Path, typer.Option("--config", help="The training configuration (YAML), with `beta` and others.")
    ],
    export: Annotated[
        str, typer.Option("--export", help="`trl`: write data and configuration for `trl dpo` instead of training.")
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="With --export: the folder to write to.")] = None,
    *,
    media: MediaOptions,
    shown: JsonOptions,
) -> None:
    """Train a model on pairs of responses, the better and the worse; the same command resumes after an interruption."""
    from dikast.core.errors import require
    from dikast.training.preferences import load_preference_config

    if export:
        _export(load_preference_config(config), export, out, "dpo", shown)
        return
    require("torch", "hf")
    require("transformers", "hf")
    require("matplotlib", "train")
    from dikast.training.dpo import dpo as run

    _train(run, config, out, "pairs", shown)


def _export(config: "Config", form: str, out: Path | None, kind: str, shown: JsonOptions) -> None:
    from dikast.core.errors import UserError
    from dikast.training.models.export import export_trl

    if form != "trl" or out is None:
        raise UserError("write --export trl --out FOLDER")
    written = export_trl(config, out)
    if shown.json:
        echo_json(written)
    else:
        echo(f"{written['examples']} examples; run: cd {out} && trl {kind} --config {kind}.yaml")


def _train(
    run: "Callable[..., dict[str, Any]]", config: Path, out: Path | None, things: str, shown: JsonOptions
) -> None:
    from dikast.core.errors import UserError

    if out is not None:
        raise UserError("--out applies to --export only; training writes to 'out' of the configuration")
    done = run(config, watch=_tell)
    if not done.pop("main"):  # only one of several processes prints
        return
    if shown.json:
        echo_json(done)
    elif done["complete"]:
        echo(f"{done['total']} steps on {done['examples']} {things}: the model is in {done['model']}")
    else:
        echo(f"{done['steps']} of {done['total']} steps: run the same command again to resume")


@app.command("merge")
@verb
def merge(
    models: Annotated[list[Path], typer.Argument(help="Folders of models with the same architecture.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    method: Annotated[str, typer.Option("--method", help="linear, slerp, ties or dare.")] = "linear",
    weights: Annotated[str, typer.Option("--weights", help="One weight for each model, comma-separated.")] = "",
    base: Annotated[
        Path | None, typer.Option("--base", help="ties, dare: the model that all were trained from.")
    ] = None,
    t: Annotated[float, typer.Option("--t", help="slerp: 0 is the first model, 1 the second.")] = 0.5,
    density: Annotated[float, typer.Option("--density", help="ties, dare: share of changes that is kept.")] = 0.2,
    scale: Annotated[float, typer.Option("--scale", help="ties, dare: how much of the changes is added.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="dare: which changes are dropped.")] = 0,
    *,
    shown: JsonOptions,
) -> None:
    """Merge judges into one, tensor by tensor; equal weights by default."""
    from dikast.core.errors import UserError
    from dikast.training.models.merge import Recipe
    from dikast.training.models.merge import merge as run

    try:
        counts = tuple(float(each) for each in weights.split(",")) if weights else (1 / len(models),) * len(models)
    except ValueError:
        raise UserError(f"--weights: numbers with commas between, such as .5,.5, got {weights!r}") from None
    recipe = Recipe(method, counts, t, density, scale, seed)  # type: ignore[arg-type]  # checked there
    done = run(models, out, recipe, base=base)
    if shown.json:
        echo_json(done)
    else:
        echo(f"{done['tensors']} tensors of {len(models)} models in {out}")


def _tell(line: dict[str, Any]) -> None:
    shown = []
    for key, value in line.items():
        if isinstance(value, dict):
            value = "undefined" if value["value"] is None else value["value"]
        shown.append(f"{key} {value:.4g}" if isinstance(value, int | float) else f"{key} {value}")
    echo(", ".join(shown), err=True)
