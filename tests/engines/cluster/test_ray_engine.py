"""Real Ray on this machine: the same verdicts as in one process, workers that are killed, clusters without room."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import EngineError, UserError
from dikast.engines.cluster.ray_engine import RayEngine, address_from, workers_from
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from engines.http_servers import ask
from runs import dikast_here

JUDGE = "mock:oracle,r=.8"


def test_workers_and_runners_that_cannot_be_meant() -> None:
    assert workers_from("3") == (3, 3)
    assert workers_from("1:8") == (1, 8)
    assert (address_from("ray"), address_from("ray://h:1"), address_from("ray:h:1")) == (None, "ray://h:1", "h:1")
    for wrong in ("0", "4:2", "many", "1:2:3"):
        with pytest.raises(UserError, match="--workers"):
            workers_from(wrong)
    for wrong in ("slurm", "ray://", "ray:"):
        with pytest.raises(UserError, match="--runner"):
            address_from(wrong)


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(EngineError("late", kind="timeout", retryable=True, sent=False)))
    assert (str(error), error.kind, error.retryable, error.sent) == ("late", "timeout", True, False)


STRANGER = """
import os, subprocess, sys
from dikast.engines.cluster.ray_engine import connect
ray = connect("ray")
print(ray.get(ray.remote(lambda: "an answer").remote()))
enter = "import ray, sys; ray.init(address=sys.argv[1], logging_level='CRITICAL', log_to_driver=False); print('inside')"
without = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
for env in (dict(os.environ), without):
    where = ray.get_runtime_context().gcs_address
    done = subprocess.run([sys.executable, "-c", enter, where], env=env, capture_output=True, text=True, timeout=120)
    print(done.stdout.strip() or done.stderr.strip().splitlines()[-1])
"""


@pytest.mark.slow
def test_nobody_else_enters_a_cluster_that_is_started_here() -> None:
    pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    done = subprocess.run([sys.executable, "-c", STRANGER], env=env, capture_output=True, text=True, timeout=300)
    answer, friend, stranger = done.stdout.splitlines()
    assert (answer, friend) == ("an answer", "inside"), done.stderr
    assert stranger.startswith("ConnectionError")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of four CPUs in this process's charge."""
    ray = pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    here = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def items(path: Path, n: int) -> Path:
    rows = [{"id": f"i{i}", "instruction": f"Q{i}?", "response": f"A{i}.", "gold": i % 5 + 1} for i in range(n)]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def labels(run: Path) -> dict[str, str]:
    lines = [orjson.loads(line) for line in (run / "verdicts.jsonl").read_bytes().splitlines()]
    found = {line["key"]: line["label"] for line in lines}
    assert len(found) == len(lines)
    return found


@pytest.mark.slow
def test_the_same_verdicts_and_keys_as_one_process(cluster: Any, tmp_path: Path) -> None:
    path = items(tmp_path / "items.jsonl", 2000)
    grade_file(Judge(JUDGE, "helpfulness"), str(path), tmp_path / "one")
    with RayEngine(JUDGE, workers="2") as engine:
        summary = grade_file(Judge(engine, "helpfulness"), str(path), tmp_path / "ray")
    assert summary["asked"] == 2000
    assert labels(tmp_path / "ray") == labels(tmp_path / "one")
    with RayEngine(JUDGE, workers="1") as engine:
        assert grade_file(Judge(engine, "helpfulness"), str(path), tmp_path / "one")["asked"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kill", [0, 1])
def test_a_worker_that_is_killed_loses_and_doubles_nothing(cluster: Any, tmp_path: Path, kill: int) -> None:
    path = items(tmp_path / "items.jsonl", 6000)
    with RayEngine(f"{JUDGE},latency=.0005", workers="2") as engine:
        pids = cluster.get([each.actor.__ray_call__.remote(lambda self: os.getpid()) for each in engine._running])
        signals = [(50, signal.SIGSTOP), (3000, signal.SIGKILL)]  # stopped first: it dies while it is asked

        def watch(progress: Any) -> None:
            while signals and progress.done > signals[0][0]:
                os.kill(pids[kill], signals.pop(0)[1])

        summary = grade_file(Judge(engine, "helpfulness"), str(path), tmp_path / "run", watch=watch)
    assert not signals
    assert summary["status"] == {"ok": 6000}
    assert len(labels(tmp_path / "run")) == 6000
    assert any("asked again, since a worker died" in note for note in summary["notes"])


@pytest.mark.slow
def test_a_cluster_that_was_just_used_has_room_again(cluster: Any) -> None:
    for n in range(3):
        with RayEngine(JUDGE, workers="4") as engine:
            assert len(list(engine.stream([ask(i) for i in range(n + 1)]))) == n + 1


@pytest.mark.slow
def test_what_cannot_work_is_told_and_not_waited_for(cluster: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match=r"9 workers need a CPU each, and . of the cluster's 4 are free"):
        RayEngine(JUDGE, workers="9")
    with pytest.raises(UserError, match="cannot open 'mock:nobody'"):
        RayEngine("mock:nobody", workers="1")
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_failed_requests_come_back_with_their_errors(cluster: Any) -> None:
    with RayEngine("http://127.0.0.1:9/v1#m,retries=0,backoff=0.01", workers="1") as engine:
        found = list(engine.stream([ask(i) for i in range(3)]))
    assert sorted(each.key for each in found) == ["key-0", "key-1", "key-2"]
    assert all(each.error is not None and each.error.kind in ("connection", "unreachable") for each in found)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--runner", "slurm"], "--runner 'slurm'"),
        (["--workers", "2"], "--workers is for --runner ray"),
        (["--runner", "ray", "--workers", "some"], "write a number or MIN:MAX"),
    ],
)
def test_flags_that_cannot_be_meant_end_with_exit_code_2(tmp_path: Path, options: list[str], told: str) -> None:
    path = items(tmp_path / "items.jsonl", 2)
    out = ["--rubric", "helpfulness", "--out", str(tmp_path / "run")]
    done = dikast_here("grade", str(path), "--judge", JUDGE, *out, *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_command_asks_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    path = items(tmp_path / "items.jsonl", 50)
    out = ["--rubric", "helpfulness", "--out", str(tmp_path / "run")]
    done = dikast_here("grade", str(path), "--judge", JUDGE, *out, "--runner", "ray", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout)["asked"] == 50
    listed = dikast_here("doctor", "--runner", "ray", "--json")
    assert orjson.loads(listed.stdout)["resources"]["CPU"]["there"] >= 1
