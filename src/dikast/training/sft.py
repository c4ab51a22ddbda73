"""Supervised fine-tuning of a judge, from its configuration to a model folder."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import require
from dikast.training.config import Config, load_config
from dikast.training.training_folder import in_folder, save_result, training_result

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
    config = config if isinstance(config, Config) else load_config(config)
    return in_folder(config, lambda team: _sft(config, team, watch))


def _sft(config: Config, team: "SingleProcess", watch: Watcher) -> dict[str, Any]:
    import torch

    from dikast.training.data.prepare import data_hash, prepare_shards
    from dikast.training.fsdp.sharded_model import dealt_out_again
    from dikast.training.log import Log, read_log
    from dikast.training.loop import Loop
    from dikast.training.metrics import held_out, judge_metrics
    from dikast.training.models.model import about, frozen_in_bf16, open_model, source_of
    from dikast.training.models.model_card import write_card
    from dikast.training.planning.training_plan import check_before_loading
    from dikast.training.plot import plot

    team.from_main(lambda: check_before_loading(config))
    out = config.path(config.out)
    held = held_out(config)
    loaded = open_model(config, shards=team.shards)
    data = data_hash(config)
    shards = prepare_shards(config, loaded, about(loaded), data, team)
    start = source_of(config).identity() if config.model else about(loaded)
    data = fingerprint([data, shards.shown])
    runs = config.runs(data, start)
    loop = Loop(config, loaded, shards, out, team, runs=runs)
    told = {line["format"] for line in read_log(out / "eval.jsonl") if line["step"] == loop.done}
    missing = held is not None and loop.done > 0 and loop.evaluation_due() and not told >= held.asked
    missing = team.total(float(missing and team.main)) > 0  # as the main process found it
    evals = team.from_main(lambda: Log(out / "eval.jsonl", loop.done - missing))

    def judge(step: int) -> None:
        loaded.model.eval()
        kind, mixed = loaded.device.type, frozen_in_bf16(config)
        # the evaluation must not change the training's random state
        with torch.random.fork_rng(), torch.autocast(kind, torch.bfloat16, enabled=mixed):
            lines = list(judge_metrics(loaded, held, config, step=step)) if held else []
        dealt_out_again(loaded.model)
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
        if outcome.complete:
            lines, found = read_log(out / "train.jsonl"), read_log(out / "eval.jsonl")
            about_run = {"processes": team.about} if team.size > 1 else {}
            save_result(loaded, config, team)
            write_card(
                out / "model", config, data=data, run=loop.run, examples=len(shards), lines=lines, evals=found,
                more=about_run,
            )  # fmt: skip

    team.from_main(finish)
    return training_result(config, outcome, team, examples=len(shards), run=loop.run)
