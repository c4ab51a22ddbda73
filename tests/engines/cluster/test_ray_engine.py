"""Real Ray on this machine: the same verdicts as in one process, workers that are killed, clusters without room."""

import itertools
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from benches.own_bench import own
from dikast.core.errors import EngineError, UserError
from dikast.core.media import media_rules
from dikast.engines.base import Sampling
from dikast.engines.cluster.ray_connection import address_from, first_line, workers_from
from dikast.engines.cluster.ray_engine import RayEngine
from dikast.judging.by_workers import judge_batch
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, compare_file_by_scores, grade_file
from dikast.testing.faults import FaultServer
from engines.http.test_http_secrets import PLACES, SPELT, leaks
from engines.http_servers import ask
from runs import dikast, dikast_here, pairs, rows, write_jsonl

JUDGE = "mock:oracle,r=.8"
KEY_ENV, KEY = "DIKAST_RAY_TEST_KEY", "sk-test+/ray=AbCdEfGh0123456789"


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
    for wrong in ("ray://u:hunter2@h:1", "ray://h:1?token=hunter2", "ray:h:1#hunter2", "ray://h\x1b[31m:1",
                  "ray://sk-proj-hunter2abcdef012345:1"):  # fmt: skip
        with pytest.raises(UserError, match="host and port alone") as refused:
            address_from(wrong)
        assert "hunter2" not in str(refused.value)


def test_an_error_that_announces_a_traceback_is_told_with_its_last_line() -> None:
    raised = "Initialization failure from server:\nTraceback (most recent call last):\n  File ...\nRuntimeError: why\n"
    assert first_line(ConnectionAbortedError(raised)) == "Initialization failure from server: RuntimeError: why"
    assert first_line(OSError("refused:")) == "refused:"
    assert first_line(OSError("\nrefused\nmore")) == "refused"
    assert first_line(OSError("")) == "OSError"


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(EngineError("late", kind="timeout", retryable=True, sent=False)))
    assert (str(error), error.kind, error.retryable, error.sent) == ("late", "timeout", True, False)


STRANGER = """
import os, subprocess, sys
from dikast.engines.cluster.ray_connection import connect
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
    os.environ[KEY_ENV] = KEY  # workers inherit it
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
    del os.environ[KEY_ENV]


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


SHEET = {"name": "both", "criteria": [{"criterion": "Is it polite?", "scale": "1-5", "name": "polite"},
                                       {"criterion": "Is it short?", "scale": "1-5", "name": "short"}]}  # fmt: skip


@pytest.mark.slow
def test_a_batch_comes_back_from_a_worker_as_from_this_process(cluster: Any, tmp_path: Path) -> None:
    """Pictures, some of which cannot be read, criteria, samples, pairs in both orders, and scores of pairs."""
    from PIL import Image

    for k in range(6):
        Image.new("RGB", (32, 32), (40 * k, 0, 0)).save(tmp_path / f"{k}.png")
    (tmp_path / "3.png").write_bytes(b"no picture")
    more = [{"image": f"{k % 7}.png", "rubric": SHEET} if k % 2 else {"image": f"{k % 7}.png"} for k in range(60)]
    single = write_jsonl(tmp_path / "single.jsonl", [{**row, **more[k]} for k, row in enumerate(rows(60))])
    paired = write_jsonl(tmp_path / "paired.jsonl", pairs(60))
    drawn = Sampling(temperature=1.0)
    runs: dict[str, Callable[[Judge, Path], Any]] = {
        "graded": lambda judge, out: grade_file(judge, str(single), out),
        "compared": lambda judge, out: compare_file(judge, str(paired), out),
        "by-scores": lambda judge, out: compare_file_by_scores(judge, str(paired), out, equal="resample"),
    }
    with RayEngine(JUDGE, workers="2") as workers, media_rules(root=tmp_path):
        for name, run in runs.items():
            for way, engine in (("one", JUDGE), ("ray", workers)):
                samples = 1 if name == "by-scores" else 2
                run(Judge(engine, "helpfulness", sampling=drawn, samples=samples), tmp_path / way / name)
            one, ray = (tmp_path / way / name for way in ("one", "ray"))
            assert kept(one) == kept(ray), name
            assert planned(one) == planned(ray), name
            assert derived(one) == derived(ray), name
            assert counts(one) == counts(ray), name
    assert {each["status"] for each in kept(tmp_path / "one" / "graded")} == {"ok", "bad_item"}


def kept(run: Path) -> list[Any]:
    """The verdicts of a run, whole, in the order of their keys."""
    return sorted(map(orjson.loads, (run / "verdicts.jsonl").read_bytes().splitlines()), key=lambda each: each["key"])


WRITTEN = ("verdicts.jsonl", "combined.jsonl", "preferences.jsonl", "totals.jsonl", "summary.json")


def planned(run: Path) -> dict[str, bytes]:
    """The files of a run's plan, whole, but for the versions of packages, of which Ray is one more."""
    found = {path.name: path.read_bytes() for path in run.iterdir() if path.name not in (*WRITTEN, "checksums.json")}
    lock = orjson.loads(found["judge.lock.json"])
    lock["versions"].pop("ray", None)
    return {**found, "judge.lock.json": orjson.dumps(lock)}


def derived(run: Path) -> dict[str, list[bytes]]:
    """The lines of the files that are made of the verdicts, which come in order of arrival."""
    found = (run / name for name in WRITTEN[1:4])
    return {path.name: sorted(path.read_bytes().splitlines()) for path in found if path.exists()}


def counts(run: Path) -> dict[str, Any]:
    """The summary of a run. `failures` names the first example of each kind to arrive: compared are the kinds."""
    told: dict[str, Any] = orjson.loads((run / "summary.json").read_bytes())
    del told["seconds"]
    told.pop("last_verdict", None)  # not told where the driver was killed after its last verdict
    for tally in (told, told.get("combined", told)):
        tally["failures"] = {re.sub(r"\d+", "#", reason): n for reason, n in tally["failures"].items()}
    return told


@pytest.mark.slow
@pytest.mark.soak(100)
def test_a_worker_that_is_killed_loses_and_doubles_nothing(cluster: Any, tmp_path: Path, tries: int) -> None:
    n, draws = 3000, random.Random(2)
    path = items(tmp_path / "items.jsonl", n)
    for attempt in range(tries):
        at, kill = draws.randrange(n - 500), draws.randrange(2)
        with RayEngine(f"{JUDGE},latency=.0005", workers="2") as engine:
            pids = cluster.get([each.actor.__ray_call__.remote(lambda self: os.getpid()) for each in engine._running])
            signals = [(at, signal.SIGSTOP), (at + 200, signal.SIGKILL)]  # stopped first: it dies while it is asked

            flying: list[int] = []

            def watch(
                progress: Any, signals: list[Any] = signals, pid: int = pids[kill], flying: list[int] = flying
            ) -> None:
                while signals and progress.done > signals[0][0]:
                    os.kill(pid, signals.pop(0)[1])
                    flying.append(progress.pulse().asked - progress.done)

            summary = grade_file(Judge(engine, "helpfulness"), str(path), tmp_path / str(attempt), watch=watch)
        assert not signals, attempt
        assert summary["status"] == {"ok": n}, attempt
        assert len(labels(tmp_path / str(attempt))) == n, attempt
        again = [int(told.split()[0].replace(",", "")) for told in summary["notes"] if "asked again" in told]
        assert len(again) == 1, attempt
        assert 0 < again[0] <= flying[-1], attempt


@pytest.mark.slow
def test_an_exception_of_the_work_is_raised_and_not_tried_again(cluster: Any, tmp_path: Path) -> None:
    def broken_work(engine: Any, batch: list[Path], tick: Callable[[], None]) -> None:
        with batch[0].open("a") as file:
            file.write("called\n")
        raise ZeroDivisionError("no death of a worker")

    with RayEngine(JUDGE, workers="1") as engine:
        with pytest.raises(ZeroDivisionError, match="no death of a worker"):
            list(engine.spread(broken_work, iter([tmp_path / "calls"]), lambda batch, error: pytest.fail(str(error))))
        assert (tmp_path / "calls").read_text() == "called\n"
        assert len(list(engine.stream([ask(0)]))) == 1  # the worker lives


@pytest.mark.slow
def test_a_batch_that_workers_die_of_takes_no_others_with_it(cluster: Any) -> None:
    def deadly_work(engine: Any, batch: list[int], tick: Callable[[], None]) -> list[int]:
        time.sleep(0.2)
        if 0 in batch:
            os._exit(1)
        return batch

    with RayEngine(JUDGE, workers="1") as engine:
        engine._size = 1
        found = list(engine.spread(deadly_work, iter(range(6)), lambda batch, error: [f"{batch} failed"]))
        assert engine._asked_again == 3  # the batch twice, and once the one that waited behind it at first
    assert sorted(str(each) for handed in found for each in handed.result) == ["1", "2", "3", "4", "5", "[0] failed"]


@pytest.mark.slow
def test_workers_import_their_work_while_they_start(cluster: Any) -> None:
    def has_judging(engine: Any, batch: list[int], tick: Callable[[], None]) -> bool:
        return "dikast.judging.by_workers" in sys.modules

    for work in (None, judge_batch):
        with RayEngine(JUDGE, workers="1", work=work) as engine:
            found = engine.spread(has_judging, iter([0]), lambda batch, error: pytest.fail(str(error)))
            assert [each.result for each in found] == [work is not None]


@pytest.mark.slow
def test_a_cluster_that_was_just_used_has_room_again(cluster: Any) -> None:
    for n in range(3):
        with RayEngine(JUDGE, workers="4") as engine:
            assert len(list(engine.stream([ask(i) for i in range(n + 1)]))) == n + 1


@pytest.mark.slow
def test_a_panel_and_probes_share_a_cluster(cluster: Any, tmp_path: Path) -> None:
    path, out = items(tmp_path / "items.jsonl", 400), ["--rubric", "helpfulness", "--runner", "ray", "--quiet"]
    panel = ["--judge", JUDGE, "--judge", "mock:random", "--out", str(tmp_path / "panel")]
    done = dikast_here("grade", str(path), *panel, *out)
    assert done.returncode == 0, done.stderr
    assert [len(labels(run.parent)) for run in sorted((tmp_path / "panel").glob("*/verdicts.jsonl"))] == [400, 400]
    probed = ["--judge", JUDGE, "--items", str(path), "--calls", "200", "--only", "length", "--json"]
    cards = []
    for way, runner in (("one", []), ("ray", [*out[2:4], "--workers", "1"])):  # one: an answer's place is a covariate
        done = dikast_here("probe", *probed, "--out", str(tmp_path / way), *runner, *out[:2])
        assert done.returncode == 0, done.stderr
        cards.append(orjson.loads(done.stdout))
    assert cards[0] == cards[1]


@pytest.mark.slow
def test_rankings_and_benches_say_the_same_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    several = [{"id": f"i{i}", "instruction": f"Q{i}?", "responses": [f"A{i}.", f"B{i}.", f"C{i}."]} for i in range(40)]
    rows = [{"q": f"Q{i}?", "a": f"Answer {i}.", "l": i % 5 + 1} for i in range(200)]
    bench = own(tmp_path, rows, kind="scores", rubric="helpfulness", fields={"instruction": "q", "response": "a"},
                gold={"column": "l"}, official={"metric": "pearson"})  # fmt: skip
    verbs: tuple[list[Any], ...] = (
        ["rank", write_jsonl(tmp_path / "several.jsonl", several), "--rubric", "helpfulness"],
        ["bench", "run", bench, "--data", tmp_path],
    )
    for verb in verbs:
        said = []
        for way, runner in (("one", []), ("ray", ["--runner", "ray", "--workers", "2"])):
            out = tmp_path / verb[0] / way
            done = dikast(*verb, "--judge", "mock:random", "--out", out, "--quiet", *runner)
            assert done.returncode == 0, done.stderr
            (found,) = out.rglob("verdicts.jsonl")
            said.append(labels(found.parent))
        assert len(said[0]) >= 100
        assert said[0] == said[1]


@pytest.mark.slow
def test_what_cannot_work_is_told_and_not_waited_for(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match=r"9 workers need a CPU each, and . of the cluster's 4 are free"):
        RayEngine(JUDGE, workers="9")
    for spec, told in (
        ("mock:nobody", "there is no such mock judge"),
        (str(tmp_path / "judge"), "there is no such folder"),
        ("hf:org/judge", r"pip install 'dikast\[hf\]'"),  # this environment has Ray, and no packages of local models
    ):
        with pytest.raises(UserError, match=rf"the worker on {socket.gethostname()} cannot open .*{told}"):
            RayEngine(spec, workers="1")
    monkeypatch.setattr(os, "getcwd", lambda: str(tmp_path / "away"))
    with pytest.raises(
        UserError, match=r"relative paths start elsewhere there: .*away, where the command runs: No such"
    ):
        RayEngine("./judge", workers="1")
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_failed_requests_come_back_with_their_errors(cluster: Any) -> None:
    with RayEngine("http://127.0.0.1:9/v1#m,retries=0,backoff=0.01", workers="1") as engine:
        found = list(engine.stream([ask(i) for i in range(3)]))
    assert sorted(each.key for each in found) == ["key-0", "key-1", "key-2"]
    assert all(each.error is not None and each.error.kind in ("connection", "unreachable") for each in found)


@pytest.mark.slow
def test_no_key_is_in_a_run_a_message_or_a_log_of_workers(cluster: Any, tmp_path: Path) -> None:
    """The server repeats the key in every place of its replies; workers have it from their own environment."""
    places = [PLACES[name] for name in sorted(PLACES) for _ in range(2)]
    with FaultServer() as server:
        turns = itertools.cycle(itertools.product(places, (SPELT["plain"], SPELT["json"], SPELT["base64"])))

        def spoil(value: dict[str, Any], bearer: str) -> Any:
            place, spell = next(turns)
            return place(value, spell(bearer))

        server.spoil = spoil
        spec = f"{server.spec},timeout=2,retries=1,backoff=0.001,concurrency=2,key_env={KEY_ENV}"
        with RayEngine(spec, workers="1") as engine:
            grade_file(Judge(engine, "helpfulness"), str(items(tmp_path / "items.jsonl", 120)), tmp_path / "run")
    assert server.seen_keys[KEY]
    for wrong in (f"http://127.0.0.1:9/v1?token={KEY}#m", f"http://me:{KEY}@127.0.0.1:9/v1#m"):
        with pytest.raises(UserError, match="cannot open") as refused:
            RayEngine(wrong, workers="1")
        assert not leaks(KEY, str(refused.value))
    logs = Path(cluster._private.worker._global_node.get_session_dir_path())
    files = [path for folder in (tmp_path / "run", logs) for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.startswith("worker-") for path in files)
    for path in files:
        assert not leaks(KEY, path.read_bytes().decode(errors="replace")), path


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
@pytest.mark.parametrize("runner", ["ray://127.0.0.1:9", "ray:127.0.0.1:9", "ray://127.0.0.2", "ray://127.0.0.2/"])
def test_an_address_that_nobody_answers_at_is_told_at_once(tmp_path: Path, runner: str) -> None:
    pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    arguments = ["grade", items(tmp_path / "items.jsonl", 2), "--judge", JUDGE, "--rubric", "helpfulness"]
    began = time.monotonic()
    done = dikast(*arguments, "--out", tmp_path / "run", "--runner", runner)
    assert time.monotonic() - began < 20  # Ray itself waits for 30 and more
    assert (done.returncode, "no Ray cluster at" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("says", "told"), [(b"", "does not answer"), (b"HTTP/1.1 400 Bad\r\n\r\n", "is not Ray")])
@pytest.mark.parametrize("runner", ["ray:127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_a_port_of_something_else_is_told_at_once(tmp_path: Path, runner: str, says: bytes, told: str) -> None:
    pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    taken: list[socket.socket] = []

    def answer() -> None:
        taken.append(listening.accept()[0])
        taken[0].sendall(says)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, daemon=True).start()
        arguments = ["grade", items(tmp_path / "items.jsonl", 2), "--judge", JUDGE, "--rubric", "helpfulness"]
        at = runner.format(listening.getsockname()[1])
        began = time.monotonic()
        done = dikast(*arguments, "--out", tmp_path / "run", "--runner", at)
        assert time.monotonic() - began < 20
    taken[0].close()
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
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
