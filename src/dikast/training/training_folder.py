"""The folder of a training run: one writer at a time, and the model that it ends with."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dikast.core.errors import RunError
from dikast.core.output_folder import one_writer
from dikast.core.runs.opening import tell_writer
from dikast.training.config import Config

if TYPE_CHECKING:
    from dikast.engines.local.loading import Loaded
    from dikast.training.loop import Outcome
    from dikast.training.processes import SingleProcess


def in_folder(config: Config, work: "Callable[[SingleProcess], dict[str, Any]]") -> dict[str, Any]:
    """Run `work` while the main process holds the lock of `out`; returns its result in all processes.

    RunError where another process trains there, and where weights cannot be written.
    """
    from safetensors import SafetensorError

    from dikast.training.processes import team_of

    out, team = config.path(config.out), team_of(config)
    with team, ExitStack() as held:

        def hold() -> None:
            held.enter_context(one_writer(out, "training"))
            tell_writer(out)

        team.from_main(hold)
        try:
            return work(team)
        except SafetensorError as error:  # it contains the operating system's message
            raise RunError(
                f"{out}: weights cannot be written ({error}); what was written before is kept: free space, and run the"
                " same command again"
            ) from error


def save_result(loaded: "Loaded", config: Config, team: "SingleProcess") -> None:
    """Write `out`/model from a finished run; called in the main process alone.

    A sharded model is assembled from the last checkpoint tensor by tensor, if the source allows it.
    """
    from dikast.training.checkpoint import checkpoints, load_weights
    from dikast.training.fsdp.streamed_model import streamed
    from dikast.training.models.model import frozen_in_bf16, open_model, save_model

    out = config.path(config.out)
    if team.size == 1 and not frozen_in_bf16(config):
        return save_model(loaded, config, out / "model")
    last = checkpoints(out / "checkpoints")[-1]
    if (write := streamed(loaded, config, last)) is not None:
        return save_model(loaded, config, out / "model", write=write)
    precision = "fp32" if config.precision == "bf16" else config.precision  # weights that were not rounded
    made = open_model(replace(config, device="cpu", precision=precision))
    load_weights(last, made.model)
    return save_model(made, config, out / "model")


def training_result(
    config: Config, outcome: "Outcome", team: "SingleProcess", *, examples: int, run: str
) -> dict[str, Any]:
    """The return value of a training function: steps, examples, the model if complete, the run's identity."""
    return {
        "steps": outcome.steps,
        "total": outcome.total,
        "complete": outcome.complete,
        "examples": examples,
        "model": str(config.path(config.out) / "model") if outcome.complete else None,
        "run": run,
        "processes": team.about,
        "main": team.main,
    }
