"""Fixtures that every room shares."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of public recordings, or a skip."""
    folder = os.environ.get("DIKAST_RECORDED")
    if not folder:
        pytest.skip(
            "set DIKAST_RECORDED to a folder with the public recordings; docs/recordings.md says where they come from"
        )
    return Path(folder)
