"""The training of a round: `train dpo` in this process, or in several that a launcher starts."""

import shlex
import subprocess
from pathlib import Path

import yaml

from dikast.alignment.align_inputs import Given
from dikast.core.errors import RunError

TRAINING = "training.yaml"
_LAST = 20  # lines of what a launcher said that are repeated where it fails


def train_round(given: Given, model: str, folder: Path) -> None:
    """Train `model` on the pairs in the folder into its `model/`, resuming an earlier call.

    RunError, with the last lines of what was said, where the processes of `--launch` fail.
    """
    if not given.options.launch:
        from dikast.training.dpo import dpo

        dpo(given.training(model, folder))
        return
    file = folder / TRAINING
    file.write_text(yaml.safe_dump(given.training_settings(model, folder)), "utf-8")
    command = [*shlex.split(given.options.launch), "-m", "dikast", "train", "dpo", "--config", str(file)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").splitlines()[-_LAST:]
        raise RunError("\n".join([f"{shlex.join(command)}: exit code {done.returncode}", *said]))
