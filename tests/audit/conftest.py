"""The command line of `dikast audit` for tests, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dikast.surface.commands.audit_command import audit

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def audit_app() -> typer.Typer:
    app = typer.Typer()
    app.command("audit")(audit)
    app.command("other")(lambda: None)  # with one command, typer drops its name
    return app


@pytest.fixture(scope="session")
def run_audit(audit_app: typer.Typer) -> Run:
    """`run_audit("FILE", "--score", ...)` gives the tables that `--json` prints; mistakes raise."""

    def run(*arguments: str | Path) -> dict[str, Any]:
        words = ["audit", *map(str, arguments), "--json"]
        result = CliRunner().invoke(audit_app, words, catch_exceptions=False, standalone_mode=False)
        if result.exit_code:
            raise RuntimeError(result.output)
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    return run
