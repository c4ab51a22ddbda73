"""Environments beside `.venv`, for programs whose dependencies would not fit into it."""

import os
from pathlib import Path

import pytest


def python_of(name: str, variable: str, made_by: str) -> Path:
    """The interpreter of the environment `.NAME`, or of the folder that `variable` names; a skip that says how it is
    made where there is none, and a failure where the variable names one that is not there.
    """
    named = os.environ.get(variable)
    folder = Path(named) if named else Path(__file__).parents[1] / f".{name}"
    if (folder / "ready").exists():
        return folder / "bin" / "python"
    if named:
        pytest.fail(f"{variable}={named}: this folder holds no environment that {made_by} finished")
    pytest.skip(f"needs an environment of its own: {made_by} makes it in .{name}")
