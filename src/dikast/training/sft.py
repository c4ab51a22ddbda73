"""Supervised fine-tuning of a judge, from its configuration to a model folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import require
from dikast.training.config import Config, load_config

Watcher = Callable[[dict[str, Any]], None]


def sft(config: "Config | str | Path", *, watch: Watcher = lambda line: None) -> dict[str, Any]:
    """Train the judge that the configuration describes, from where an earlier call left off.

    The folder `out` gets `train.jsonl` (loss, rate, speed), `eval.jsonl` (judge metrics), `checkpoints/`, and, at the
    end, `model/`. watch: gets every line of either log. Returns what was done.
    """
    require("torch", "hf")
    require("transformers", "hf")
    from dikast.training.loop import Log, steps_done, train
    from dikast.training.metrics import held_out, judge_metrics
    from dikast.training.model import about, open_model, save_model, source_of
    from dikast.training.plot import plot
    from dikast.training.prepare import data_hash, prepare_shards

    config = config if isinstance(config, Config) else load_config(config)
    out = config.path(config.out)
    held = held_out(config)
    loaded = open_model(config)
    shards = prepare_shards(config, loaded, about(loaded))
    start = source_of(config).identity() if config.model else about(loaded)
    run = fingerprint([config.hash, data_hash(config), start])
    evals = Log(out / "eval.jsonl", steps_done(out))

    def judge(step: int) -> None:
        for line in judge_metrics(loaded, held, config, step=step) if held else ():
            evals.write(line)
            watch(line)
        if held:
            plot(out)

    outcome = train(config, loaded, shards, out, run=run, watch=watch, judge=judge if held else None)
    plot(out)
    if outcome.complete:
        save_model(loaded, config, out / "model")
    return {
        "steps": outcome.steps,
        "total": outcome.total,
        "complete": outcome.complete,
        "examples": len(shards),
        "model": str(out / "model") if outcome.complete else None,
        "run": run,
    }
