"""The commands of the README and of the tutorials, run as they stand on fresh copies of `examples`.

`sh` and `python` blocks are run in order, each page in a folder of its own; a `text` block after one is what it prints,
whole or, with a line `...`, in part. The API model is a server on loopback, which looks each answer up in a table of
grades.
`DIKAST_WRITE_GOLDEN=1` writes the whole ones anew.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from pathlib import Path

import pytest

from dikast.testing.faults import FaultServer
from hub_server import served
from stand_in import ROOT, AnyModel, Hub, environment, reply

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
SLOW = ("circle", "five-models", "gate", "last-year", "my-csv", "panel", "reward", "train", "two-models")
WRITE = os.environ.get("DIKAST_WRITE_GOLDEN") == "1"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with AnyModel(reply) as opened:
        yield opened


@pytest.fixture(scope="module")
def hub() -> Iterator[dict[str, str]]:
    """Variables for the page whose data lie on the Hub: a server that speaks as the Hub does."""
    with served(Hub) as address:
        yield {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}


def missing(expected: str, printed: str) -> list[str]:
    """The lines that were promised and not printed; all of them in order, unless the block leaves some out."""
    wanted, got = [
        [" ".join(line.split()) for line in text.splitlines() if line.strip()] for text in (expected, printed)
    ]
    if "..." in wanted:
        return [line for line in wanted if line != "..." and line not in got]
    return [] if wanted == got else [f"{a!r} is {b!r}" for a, b in zip_longest(wanted, got) if a != b]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in SLOW), id=page.stem) for page in PAGES]
)
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, server: FaultServer, hub: dict[str, str], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    variables = {**environment(server, tmp_path), **(hub if page.stem == "hub" else {})}
    whole = page.read_text("utf-8")
    blocks = BLOCK.findall(whole)
    for (kind, code), (after, expected) in pairwise([*blocks, ("", "")]):
        if kind not in ("sh", "python"):
            continue
        command = ["bash", "-euo", "pipefail", "-c", code] if kind == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
        if after == "text" and WRITE and "..." not in expected:
            block = f"```{kind}\n{code}```\n\n```text\n"
            whole = whole.replace(f"{block}{expected}```", f"{block}{done.stdout.strip()}\n```")
        elif after == "text":
            assert missing(expected, done.stdout) == [], done.stdout
    if WRITE:
        page.write_text(whole, "utf-8")
