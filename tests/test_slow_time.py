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
