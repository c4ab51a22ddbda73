"""Supervised fine-tuning of a judge, from its configuration to a model folder."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import RunError, require
from dikast.core.output_folder import one_writer
from dikast.core.runs.opening import tell_writer
from dikast.training.config import Config, load_config

if TYPE_CHECKING:
    from dikast.training.processes import SingleProcess

Watcher = Callable[[dict[str, Any]], None]


def sft(config: "Config | str | Path", *, watch: Watcher = lambda line: None) -> dict[str, Any]:
    """Train the judge that the configuration describes, resuming an earlier call.

    The folder `out` gets `train.jsonl` (loss, rate, speed), `eval.jsonl` (judge metrics), `curves.svg`, `checkpoints/`,
    and, at the end, `model/` with its card. watch: gets every line of either log. Returns what was done.
    """
    require("torch", "hf")
    require("transformers", "hf")
    require("matplotlib", "train")
    from safetensors import SafetensorError

    from dikast.training.processes import team_of

    config = config if isinstance(config, Config) else load_config(config)
    out, team = config.path(config.out), team_of(config)
    with team, ExitStack() as held:

        def hold() -> None:
            held.enter_context(one_writer(out, "training"))
            tell_writer(out)

        team.from_main(hold)
        try:
            return _sft(config, team, watch)
        except SafetensorError as error:  # it contains the operating system's message
            raise RunError(
                f"{out}: weights cannot be written ({error}); what was written before is kept: free space, and run the"
                " same command again"
            ) from error


def _sft(config: Config, team: "SingleProcess", watch: Watcher) -> dict[str, Any]:
    import torch

    from dikast.training.checkpoint import checkpoints, load_weights
    from dikast.training.data.prepare import data_hash, prepare_shards
    from dikast.training.log import Log, read_log
    from dikast.training.loop import Loop
    from dikast.training.metrics import held_out, judge_metrics
    from dikast.training.models.model import about, open_model, save_model, source_of
    from dikast.training.models.model_card import write_card
    from dikast.training.plot import plot

    out = config.path(config.out)
    held = held_out(config)
    loaded = open_model(config)
    data = data_hash(config)
    shards = prepare_shards(config, loaded, about(loaded), data, team)
    start = source_of(config).identity() if config.model else about(loaded)
    data = fingerprint([data, shards.shown])
    run = fingerprint([config.hash, data, start])
    loop = Loop(config, loaded, shards, out, team, run=run)
    told = {line["format"] for line in read_log(out / "eval.jsonl") if line["step"] == loop.done}
    missing = held is not None and loop.done > 0 and loop.evaluation_due() and not told >= held.asked
    missing = team.total(float(missing and team.main)) > 0  # as the main process found it
    evals = team.from_main(lambda: Log(out / "eval.jsonl", loop.done - missing))

    def judge(step: int) -> None:
        loaded.model.eval()
        with torch.random.fork_rng():  # the evaluation must not change the training's random state
            lines = list(judge_metrics(loaded, held, config, step=step)) if held else []
        loaded.model.train()
        team.from_main(lambda: tell(lines))

    def tell(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            evals.write(line)
            watch(line)
        plot(out)

    if missing:
        judge(loop.done)
    outcome = loop.train(watch=watch, judge=judge if held else None)

    def finish() -> None:
        plot(out)
        if not outcome.complete:
            return
        made = loaded
        if team.size > 1:  # the weights are dealt out: put them together in a model of this process alone
            made = open_model(replace(config, device="cpu"))
            load_weights(checkpoints(out / "checkpoints")[-1], made.model)
        save_model(made, config, out / "model")
        lines, found = read_log(out / "train.jsonl"), read_log(out / "eval.jsonl")
        about_run = {"processes": team.about} if team.size > 1 else {}
        write_card(
            out / "model", config, data=data, run=run, examples=len(shards), lines=lines, evals=found, more=about_run
        )

    team.from_main(finish)
    return {
        "steps": outcome.steps,
        "total": outcome.total,
        "complete": outcome.complete,
        "examples": len(shards),
        "model": str(out / "model") if outcome.complete else None,
        "run": run,
        "processes": team.about,
        "main": team.main,
    }
