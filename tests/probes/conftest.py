"""The suite that probes draw from, written once."""

from pathlib import Path

import pytest

from dikast.worlds.prove import write_suite


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite `probe`."""
    folder = tmp_path_factory.mktemp("probing") / "suite"
    write_suite("probe", folder)
    return folder
