"""Real Ray on this machine: experiments as its tasks, tasks that are killed or stopped, machines that take none."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.media import MediaRules, media_rules
from dikast.engines.cluster.ray_tasks import _done, _Tasks, ray_tasks
from dikast.lab.experiment import load_experiment
from dikast.lab.findings import findings
from dikast.lab.lab_report import to_markdown
from dikast.lab.running import run_experiments
from lab_experiments import written


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Four CPUs, and what Ray takes for two GPUs."""
    ray = pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2])]  # workers import this file
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def told(folder: Path) -> dict[str, bytes]:
    """Every file of a lab, without its times, and the checksums of files that hold some."""
    times = re.compile(rb'"(cpu_seconds|seconds|last_verdict)": ?[^,}]+')
    files = (path for path in folder.rglob("*") if path.is_file())
    whole = {str(path.relative_to(folder)): times.sub(b"", path.read_bytes()) for path in files}
    timed = re.compile(rb'"(cost|summary)\.json": \[\s*"\w+"')
    return {name: timed.sub(b"", data) if name.endswith("checksums.json") else data for name, data in whole.items()}


@pytest.mark.slow
def test_a_lab_on_ray_is_that_of_one_process(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment(written(tmp_path, seeds=[1, 2]))
    for name, jobs, runner in (("one", 1, None), ("ray", 2, "ray")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run_experiments([experiment], "lab", jobs=jobs, runner=runner)
    one, ray = (told(tmp_path / name / "lab") for name in ("one", "ray"))
    assert len(one) > 30
    assert one == ray
    assert to_markdown(findings(tmp_path / "one" / "lab")) == to_markdown(findings(tmp_path / "ray" / "lab"))


def about(folder: str) -> tuple[str, str, str, dict[str, Any]]:
    """Where and how a task works; waits until another one does so, too."""
    place = Path(folder)
    (place / str(os.getpid())).touch()
    wait_for(lambda: len(list(place.iterdir())) == 2)
    with media_rules() as rules:
        return os.getcwd(), os.environ["OMP_NUM_THREADS"], os.environ["CUDA_VISIBLE_DEVICES"], asdict(rules)


@pytest.mark.slow
def test_tasks_work_side_by_side_as_they_would_here(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "met").mkdir()
    with media_rules(root=tmp_path), ray_tasks("ray", 2) as pool:
        found = [each.result() for each in [pool.submit(about, "met") for _ in range(2)]]
    assert len(list((tmp_path / "met").iterdir())) == 2
    assert [(where, threads, rules["root"]) for where, threads, _, rules in found] == [
        (str(tmp_path), "1", str(tmp_path))
    ] * 2
    assert {gpu for _, _, gpu, _ in found} == {"0", "1"}


def die_once(marker: str) -> str:
    """Be killed by the first try."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def refuse(why: str) -> None:
    raise UserError(why)


@pytest.mark.slow
def test_a_task_that_is_killed_is_begun_again_and_a_mistake_is_told(cluster: Any, tmp_path: Path) -> None:
    with ray_tasks("ray", 1) as pool:
        assert pool.submit(die_once, str(tmp_path / "tried")).result() == "done"
        with pytest.raises(UserError, match=r"^no such thing$"):
            pool.submit(refuse, "no such thing").result()


def hang(marker: str) -> None:
    Path(marker).write_text(str(os.getpid()))
    time.sleep(600)


def interrupted(folder: Path) -> None:
    """Two tasks that hang, one at a time, of which the first is interrupted."""
    with ray_tasks("ray", 1) as pool:
        for name in ("first", "second"):
            pool.submit(hang, str(folder / name))
        wait_for(lambda: (folder / "first").exists() and bool((folder / "first").read_text()))
        raise KeyboardInterrupt


def wait_for(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not there() and time.monotonic() < end:
        time.sleep(0.05)


@pytest.mark.slow
def test_an_interrupt_stops_tasks_and_begins_no_other(cluster: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path)
    task = Path("/proc", (tmp_path / "first").read_text())
    wait_for(lambda: not task.exists())
    assert not task.exists()
    assert not (tmp_path / "second").exists()
    assert time.monotonic() - began < 300  # it hangs for 600 s


def test_a_task_that_was_being_begun_is_stopped_too() -> None:
    beginning, stopped, cancelled = Event(), Event(), []

    def begin(*told: Any) -> str:
        beginning.set()
        stopped.wait(60)
        return "late"

    def cancel(task: str, *, force: bool) -> None:
        cancelled.append((task, force))

    ray = SimpleNamespace(cancel=cancel, get=str, exceptions=SimpleNamespace(RayTaskError=OSError, RayError=OSError))
    with _Tasks(ray, begin, 1) as pool:
        pool.submit(hang, "nowhere")
        assert beginning.wait(60)
        pool.stop()
        stopped.set()
    assert cancelled == [("late", True)]


def test_a_machine_that_differs_takes_no_task(tmp_path: Path) -> None:
    from importlib.metadata import version

    with pytest.raises(UserError, match=r" has Dikast .*, and this machine 0\.0: install one version"):
        _done(str(tmp_path), MediaRules(), "0.0", refuse, ("not asked",), {})
    with pytest.raises(UserError, match=rf" has no folder {tmp_path}/nowhere, in which the command runs"):
        _done(str(tmp_path / "nowhere"), MediaRules(), version("dikast"), refuse, ("not asked",), {})


def test_a_lab_that_names_no_cluster_is_not_begun(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--runner 'slurm'"):
        run_experiments([load_experiment(written(tmp_path))], tmp_path / "lab", runner="slurm")
    assert not (tmp_path / "lab").exists()
