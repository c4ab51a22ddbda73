"""The time that continuous integration has for slow tests."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_no_slow_test_begins_after_its_time_and_the_summary_says_so() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "slow", "-rs", "-p", "no:cacheprovider", HERE / "test_docs_site.py"],
        env={**os.environ, "DIKAST_SLOW_UNTIL": "1"}, cwd=HERE.parent, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "`make slow` by hand has no limit" in said
    assert "passed" not in said


def test_each_time_draws_another_order_of_files() -> None:
    def listed(until: str) -> list[str]:
        files = (HERE / "test_docs_site.py", HERE / "test_examples.py")
        said = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "slow", "--collect-only", "-p", "no:cacheprovider", *files],
            env={**os.environ, "DIKAST_SLOW_UNTIL": until}, cwd=HERE.parent, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        return [line for line in said.splitlines() if "::" in line]

    first, other = listed("3"), listed("4")
    assert first == listed("3") != []
    assert first != other
    assert sorted(first) == sorted(other)
