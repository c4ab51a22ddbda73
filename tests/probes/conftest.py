"""The suite that probes draw from, written once."""

from pathlib import Path

import pytest

from dikast.core.item import Item
from dikast.probes.run import load_items
from dikast.worlds.prove import write_suite


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite `probe`."""
    folder = tmp_path_factory.mktemp("probing") / "suite"
    write_suite("probe", folder)
    return folder


@pytest.fixture(scope="session")
def suite_items(suite: Path) -> list[Item]:
    """The items of the suite, read once."""
    return load_items(str(suite))
