"""`benchmarks.gpu` on tiny models, on the CPU: every part of it ends with its figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_every_part_runs_on_tiny_models(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    command = ["-m", "benchmarks.gpu", "--small", "--device", "cpu", "--steps", "6", "--feedback", "4"]
    sizes = ["--rounds", "1", "--together", "1", "--json", str(file)]
    done = subprocess.run([sys.executable, *command, *sizes], cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(file.read_text("utf-8"))
    assert done.returncode == 0, [each for name, each in found.items() if name.startswith("failed")]
    assert found["exact"]["llava_onevision"]["float32_labels"] < 5e-5
    assert max(found["exact"]["gradients"].values()) < 1e-5
    for shape in ("onevision", "llava"):
        figures = found[f"engine {shape}"]
        assert figures["tokens_computed"] < figures["tokens_asked"]
        assert figures["feedback of 1 round robins"]["feedback_tokens"] == 4
    assert found["training lora"]["resumed_at"] == 3
    assert len(found["training full"]["losses"]) == 4
    assert found["align"]["pairs"] > 0
    assert found["plan full"]["planned_gb"] > 0


def test_a_part_that_fails_or_takes_too_long_leaves_its_traceback(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    command = ["-m", "benchmarks.gpu", "--small", "--device", "cpu", "--parts", "engine=.01,matmul", "--shapes", "none"]
    done = subprocess.run([sys.executable, *command, "--json", str(file)], cwd=ROOT, check=False)
    found = json.loads(file.read_text("utf-8"))
    assert done.returncode == 1
    assert "Traceback" in found["failed engine"]["traceback"]
    assert found["matmul"]["tflops"] > 0
