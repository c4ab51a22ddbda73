"""Several real Ray nodes on this machine, each of processes and resources of its own: kills, machines that come and go.

Every run that was disturbed ends, or is ended by the same command again, with each question answered once.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import UserError
from dikast.engines.cluster.ray_engine import RayEngine
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from ports import free_port
from runs import rows, write_jsonl

JUDGE = "mock:oracle,r=.8"
N = 4000
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without a CPU, so that all work is done on nodes that a test adds."""
    ray = pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    from ray.cluster_utils import Cluster

    here = str(Path(__file__).parents[2])
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
    }
    soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": soon, "ray_client_server_port": free_port()}
    made = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def nodes(cluster: Any) -> Iterator[Any]:
    """The cluster, without the nodes of the test before."""
    yield cluster
    for node in list(cluster.worker_nodes):
        kill(node)
        cluster.worker_nodes.remove(node)
    import ray

    until = time.monotonic() + 60
    while sum(bool(node["Alive"]) for node in ray.nodes()) > 1:
        assert time.monotonic() < until
        time.sleep(0.1)


def kill(node: Any) -> None:
    """The node's process dies, and its workers with it."""
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("items") / "items.jsonl", rows(N))


@pytest.fixture(scope="module")
def alone(items: Path) -> dict[str, Any]:
    """What one process says of the items, by key."""
    grade_file(Judge(JUDGE, "helpfulness"), str(items), items.parent / "alone")
    return answers(items.parent / "alone")


def answers(run: Path) -> dict[str, Any]:
    """The verdicts of a run by key, each there once."""
    found = [orjson.loads(line) for line in (run / "verdicts.jsonl").read_bytes().splitlines()]
    assert [key for key, n in Counter(each["key"] for each in found).items() if n > 1] == []
    return {each["key"]: {**each, "usage": None, "attempts": None, "crc": None} for each in found}


@pytest.mark.soak(100)
def test_a_node_that_is_killed_loses_and_doubles_nothing(
    nodes: Any, items: Path, alone: dict[str, Any], tmp_path: Path, tries: int
) -> None:
    draws = random.Random(0)
    for attempt in range(tries):
        lost, kept = nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1)
        at = draws.randrange(1, N - 500)
        flying: list[int] = []  # from the node's death on: until it is noticed, it may still be handed questions

        def watch(progress: Any, at: int = at, lost: Any = lost, flying: list[int] = flying) -> None:
            if progress.done > at:
                if not flying:
                    kill(lost)
                flying.append(progress.pulse().asked - progress.done + 1)

        with RayEngine(JUDGE, workers="2") as engine:
            summary = grade_file(Judge(engine, "helpfulness"), str(items), tmp_path / str(attempt), watch=watch)
        assert flying, attempt
        assert summary["status"] == {"ok": N}, attempt
        again = [int(told.split()[0].replace(",", "")) for told in summary.get("notes", ()) if "asked again" in told]
        assert len(again) <= 1, attempt
        assert sum(again) <= max(flying), attempt
        assert answers(tmp_path / str(attempt)) == alone, attempt
        kill(kept)
        nodes.worker_nodes -= {lost, kept}


@pytest.mark.soak(100)
def test_a_driver_that_is_killed_is_resumed(
    nodes: Any, items: Path, alone: dict[str, Any], tmp_path: Path, tries: int
) -> None:
    nodes.add_node(num_cpus=2)
    command = [sys.executable, "-m", "dikast", "grade", str(items), "--judge", JUDGE, "--rubric", "helpfulness"]
    command += ["--runner", f"ray:{nodes.address}", "--workers", "2", "--json", "--out"]
    draws = random.Random(1)
    for attempt in range(tries):
        out, at = tmp_path / str(attempt), draws.randrange(1, N - 500)
        driver = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while lines(out) < at and driver.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        before = lines(out)
        done = subprocess.run([*command, str(out)], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        summary = orjson.loads(done.stdout)
        assert summary["answered_before"] >= before, attempt
        assert summary["answered_before"] + summary["asked"] == N, attempt
        assert answers(out) == alone, attempt


def test_the_workers_of_a_client_that_was_killed_are_waited_for(
    nodes: Any, items: Path, alone: dict[str, Any], tmp_path: Path
) -> None:
    """Ray's client server keeps them while the client may reconnect: by itself for 30 s, here for 12."""
    nodes.add_node(num_cpus=2)
    port = nodes.head_node._ray_params.ray_client_server_port
    impatient = "from dikast.engines.cluster import ray_engine; ray_engine._LETTING_GO = 1.0"  # where it is no client
    begin = f"{impatient}; from dikast.surface.cli import main; main()"
    command = [sys.executable, "-c", begin, "grade", str(items), "--judge", JUDGE, "--rubric", "helpfulness"]
    command += ["--runner", f"ray://127.0.0.1:{port}", "--workers", "2", "--out", str(tmp_path / "run")]
    env = {**os.environ, "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "12"}
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    until = time.monotonic() + 120
    while lines(tmp_path / "run") < 100 and driver.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
    while "Starting Ray client server failed" in done.stderr:  # of Ray itself, now and then
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
    assert done.returncode == 0, done.stderr
    assert answers(tmp_path / "run") == alone


def lines(run: Path) -> int:
    path = run / "verdicts.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_node_that_comes_while_a_run_goes_on_gets_work(nodes: Any, items: Path, tmp_path: Path) -> None:
    nodes.add_node(num_cpus=1)
    most = 0
    with RayEngine(f"{JUDGE},latency=.005", workers="1:3") as engine:

        def watch(progress: Any) -> None:
            nonlocal most
            if progress.done and len(nodes.worker_nodes) == 1:
                nodes.add_node(num_cpus=2)
            most = max(most, len(engine._running))

        assert len(engine._running) == 1
        summary = grade_file(Judge(engine, "helpfulness"), str(items), tmp_path / "run", watch=watch)
    assert most == 3
    assert summary["status"] == {"ok": N}
    assert len(answers(tmp_path / "run")) == N


def test_nodes_with_another_version_of_dikast_are_refused(nodes: Any, tmp_path: Path) -> None:
    told = tmp_path / "dikast-0.0.1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: dikast\nVersion: 0.0.1\n")
    nodes.add_node(num_cpus=1, env_vars={"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}"})
    with pytest.raises(UserError, match=r"the worker on .* has Dikast 0\.0\.1, this machine .*: install the same"):
        RayEngine(JUDGE, workers="1")


def test_nodes_without_dikast_are_named(nodes: Any, tmp_path: Path) -> None:
    (tmp_path / "dikast.py").write_text("raise ModuleNotFoundError(\"No module named 'dikast'\")\n")
    nodes.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(
        UserError, match=r"a worker on [\d.]+ died while it opened .*: ModuleNotFoundError: No module named 'dikast'"
    ):
        RayEngine(JUDGE, workers="1")


ODD = """
import os
from dikast.engines.spec import open_engine

def open_odd(target: str):
    engine = open_engine("mock:oracle")
    identity = {**engine.identity(), "weights": os.environ["WEIGHTS"]}
    engine.identity = lambda: identity
    return engine
"""


def test_nodes_whose_judges_differ_are_refused(nodes: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    told = tmp_path / "odd-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[dikast.engines]\nodd = odd:open_odd\n")
    path = f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}"
    for weights in ("some", "others"):
        nodes.add_node(num_cpus=1, env_vars={"PYTHONPATH": path, "WEIGHTS": weights})
    with pytest.raises(UserError, match=r"the workers on .* and .* have different judges: weights differ"):
        RayEngine("odd:x", workers="2")


def test_pictures_that_a_worker_cannot_read_end_the_run_by_its_host(nodes: Any, tmp_path: Path) -> None:
    from PIL import Image

    from dikast.judging.judge_file import FileRun

    nodes.add_node(num_cpus=1)
    for k in range(20):
        Image.new("RGB", (32, 32), (10 * k, 0, 0)).save(tmp_path / f"{k}.png")
    items = write_jsonl(tmp_path / "items.jsonl", [{**row, "image": f"{k}.png"} for k, row in enumerate(rows(20))])
    with (
        RayEngine(JUDGE, workers="1") as engine,
        FileRun(Judge(engine, "helpfulness"), str(items), tmp_path / "run", "each", None) as run,
    ):
        plan = run.plan(range(1))
        (tmp_path / "7.png").rename(tmp_path / "away.png")
        run.ask(range(1), plan)
        told = run.gave_up
        assert "the worker on" in told
        assert "cannot read what item 'i7' shows" in told
        assert "7.png" in told
        (tmp_path / "away.png").rename(tmp_path / "7.png")
        run.finish(plan)
    with RayEngine(JUDGE, workers="1") as engine:
        summary = grade_file(Judge(engine, "helpfulness"), str(items), tmp_path / "run")
    assert summary["status"] == {"ok": 20}
    assert summary["answered_before"] > 0
