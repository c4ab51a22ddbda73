"""Secrets typed where no judge is named: in a folder's, a file's or a variable's place. No message repeats one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runs import environment

KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5d"
LOGIN = f"https://user:{KEY[8:]}@example.org/x"
LINES: dict[str, list[str]] = {
    "serve": ["serve", "--judge", "mock:random", "--port", "0", "--token-env", KEY],
    "serve out": ["serve", "--judge", "mock:random", "--port", "0", "--out", LOGIN],
    "rank": ["rank", "items.csv", "--judge", "mock:random", "--rubric", "helpfulness", "--out", LOGIN],
    "annotate": ["annotate", "items.csv", "--rubric", "helpfulness", "--export", "--out", LOGIN],
    "view": ["view", LOGIN],
    "merge-runs": ["merge-runs", LOGIN, LOGIN + "y", "--out", "merged"],
    "export": ["export", "run", f"hf:{LOGIN}"],
    "export a file": ["export", "run", f"{LOGIN}.csv"],
    "train plan": ["train", "plan", "--config", f"{LOGIN}.yaml"],
    "bench new": ["bench", "new", "new.yaml", "--hub", LOGIN, "--file", "a.jsonl"],
    "lab": ["lab", "report", LOGIN],
    "a judge of a lab": ["lab", "run", "drift", "--judge", KEY, "--out", "lab"],
    "a judge at an address in a lab": ["lab", "run", "drift", "--judge", f"{LOGIN}#m", "--out", "lab"],
    "prefs": ["prefs", "run", "--format", "trl", "--items", LOGIN, "--out", "pairs.jsonl"],
    "audit": ["audit", "run", "--gold-file", LOGIN],
}


@pytest.mark.slow
def test_no_verb_repeats_a_secret_that_was_typed(tmp_path: Path) -> None:
    def dikast(*line: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dikast", *line]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=120)

    (tmp_path / "items.csv").write_text("instruction,response\nSay it.,It.\n")
    made = dikast("grade", "items.csv", "--judge", "mock:random", "--rubric", "helpfulness", "--out", "run", "-q")
    assert made.returncode == 0, made.stderr
    for name, line in LINES.items():
        done = dikast(*line)
        said = done.stdout + done.stderr
        assert done.returncode == 2, (name, said)
        assert KEY[8:20] not in said, (name, said)
        assert "Traceback" not in said, (name, said)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and KEY[8:20].encode() in path.read_bytes()]
    assert not held
    assert not [path for path in os.listdir(tmp_path) if "http" in path]
