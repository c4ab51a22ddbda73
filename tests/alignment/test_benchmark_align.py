"""`make align` with a very small budget: every step of it runs, and goes on where it stopped."""

from pathlib import Path

import pytest
from benchmarks import align


@pytest.mark.slow
def test_two_arms_of_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--out", str(tmp_path), "--arms", "gold,random", "--seeds", "1", "--budget", "tiny", "--rate", "1e-4"]
    align.main([*flags, "--table", str(tmp_path / "table.md")])
    table = (tmp_path / "table.md").read_text("utf-8")
    assert "| gold | start | " in table
    assert "| random | " in table
    assert "share of what the gold arm gained" in table
    for arm in ("gold-0", "random-0"):
        assert (tmp_path / "tiny" / arm / "report.json").is_file()
    policy = tmp_path / "tiny/policy-0/sft/model/model.safetensors"
    made = policy.stat().st_mtime_ns
    capsys.readouterr()
    align.main(flags)  # nothing is done again
    assert policy.stat().st_mtime_ns == made
    assert table.strip() in capsys.readouterr().out
