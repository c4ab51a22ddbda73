"""The line that shows how a run goes: on a terminal and in a notebook from the first second, elsewhere now and then."""

import os
import pty
import re
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import RunError, UserError
from dikast.engines.budget import Budget
from dikast.engines.mock import Constant
from dikast.judging.watching import Progress, Pulse
from dikast.surface.functions import grade as grade_rows
from dikast.surface.progress import ProgressLine, line_of
from dikast.testing.faults import Faults, FaultServer, Spoilt
from engines.http_servers import write_items
from stand_in import environment


def dikast(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "dikast", *map(str, arguments)]


def on_a_terminal(*arguments: object, **environment: str) -> tuple[int, str]:
    """The exit code and what a terminal of 80 columns gets on both outputs."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **environment}
    process = subprocess.Popen(dikast(*arguments), stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    return process.wait(), b"".join(chunks).decode()


def test_the_line_by_hand() -> None:
    # 30 answered of 100, 10 of them before this call: 20 in 5 s are 4/s, 70 are left and take 17.5 s; 20 cost .2, and
    # all 90 of this call will cost .9. 36 were sent in this call, 46 with the 10 before it.
    pulse = Pulse(36, "answers 429; try 2 of 31", "70 calls left")
    told = Progress(30, 100, 2, 5.0, 10, 1234, 0.2, False, lambda: pulse)
    assert line_of(told, 5.0) == (
        "30 of 100 verdicts, 46 asked, 2 failed, answers 429; try 2 of 31, 70 calls left, cost 0.2 of about 0.9, "
        "0:18 left, 4/s, 1,234 tokens"
    )
    # what matters least goes first: tokens, rate, questions asked, time left, cost, failures
    assert line_of(told, 5.0, 79) == ("30 of 100, 2 failed, answers 429; try 2 of 31, 70 calls left, cost 0.2 of ~0.9")
    assert line_of(Progress(0, 100, 0, 0.0, pulse=lambda: Pulse(16)), 1.0) == "0 of 100 verdicts, 16 asked"
    unknown = Progress(1, 2, 0, 1.0, tokens=50, unpriced=True)
    obeyed = Progress(0, 9, 0, 0.0, pulse=lambda: Pulse(0, "says \x1b[2J\u202e no; try 2 of 3"))
    assert line_of(obeyed, 1.0) == r"0 of 9 verdicts, says \u001b[2J\u202e no; try 2 of 3"
    assert "\x1b" not in line_of(obeyed, 1.0, 30)
    assert line_of(unknown, 1.0) == "1 of 2 verdicts, cost unknown (--price IN,OUT), 0:01 left, 1/s, 50 tokens"


@pytest.mark.parametrize("wide", [80, 60])
def test_what_matters_fits_a_narrow_terminal(wide: int) -> None:
    for reason in ("Connection refused", "answers 503 with a page of text that goes on for longer than the line is"):
        pulse = Pulse(36, f"{reason}; try 2 of 7", "960 calls left")
        told = Progress(1_030, 10_000, 12, 5.0, 10, 1_234_567, 0.2, False, partial(Pulse, *pulse))
        line = line_of(told, 5.0, wide - 1)
        assert len(line) < wide
        assert line.startswith("1,030 of 10,000, ")
        assert line.endswith("; try 2 of 7, 960 calls left")
        assert ("12 failed" in line) == (wide == 80)
    calm = line_of(
        Progress(1_030, 10_000, 12, 5.0, 10, 1_234_567, 0.2, False, lambda: Pulse(1030, "", "9 left")), 5.0, 79
    )
    assert calm == "1,030 of 10,000, 1,040 asked, 12 failed, 9 left, cost 0.2 of ~1.96, 0:44 left"


def test_what_is_left_of_a_budget() -> None:
    budget = Budget(Constant(), calls=1000, money=0.5)
    budget.spent.calls, budget.spent.money = 40, 0.08
    assert budget.left == "960 calls and 0.42 money left"
    assert Budget(Constant()).left == ""


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine(quiet=True) as line:
        line(Progress(1, 2, 0, 1.0))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("verb", ["grade", "compare"])
def test_a_terminal_sees_the_run_before_the_first_verdict(verb: str, tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", 6)
    if verb == "compare":
        rows = '{"id":"%d","instruction":"Q?","responses":["a","b"]}\n'
        items.write_text("".join(rows % i for i in range(6)))
    with FaultServer("Fine.\nVerdict: 4" if verb == "grade" else "Fine.\nVerdict: A", latency=1.5) as server:
        out = tmp_path / "out"
        spent = ("--budget", "calls=50", "--price", "1,2")
        code, seen = on_a_terminal(verb, items, "--judge", server.spec, "--rubric", "helpfulness", "--out", out, *spent)
    lines = [re.sub(r"\x1b\[K", "", line) for line in re.split(r"[\r\n]+", seen)]
    total = 6 if verb == "grade" else 12
    assert code == 0, seen
    assert f"0 of {total} verdicts, {total} asked, {50 - total} calls left" in lines
    assert all(len(line) < 80 for line in lines if line.startswith("0 of"))
    (last,) = [line for line in lines if line.startswith(f"{total} of {total} verdicts") and "left" in line][-1:]
    assert re.search(r"\d+ calls left, cost 0\.\d+, .*tokens$", last), last


def test_elsewhere_lines_are_few(tmp_path: Path) -> None:
    with FaultServer(latency=3.0) as server:
        arguments = ("grade", write_items(tmp_path / "items.jsonl", 4), "--judge", server.spec)
        done = subprocess.run(
            dikast(*arguments, "--rubric", "helpfulness", "--out", tmp_path / "out"), capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "verdicts" in line]
    assert lines[0] == "0 of 4 verdicts, 4 asked"
    assert 2 <= len(lines) <= 3
    assert "\r" not in done.stderr


_AGAIN, _CORRECTED = "then run the same command again", "then run the corrected command"  # where the cure is a spec


def refused_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("spec", "told", "then"),
    [
        ("http://127.0.0.1:{dead}/v1#judge", "tries); start the server, or correct its address", _AGAIN),
        ("vllm-server:judge,url=http://127.0.0.1:{dead}/v1", "start the server (vllm serve MODEL)", _AGAIN),
        ("http://127.0.0.1:{alive}/v1#jugde,key_env=RIGHT", "'jugde' does not exist model_not_found", _CORRECTED),
        ("http://127.0.0.1:{alive}/v1#judge,key_env=WRONG", "the key in WRONG is not accepted here", _AGAIN),
        ("http://127.0.0.1:{alive}/v1#judge", "name it behind the judge: ,key_env=NAME", _CORRECTED),
        ("http://127.0.0.1:{alive}/v2#judge,key_env=RIGHT", "check the address (it usually ends in /v1)", _CORRECTED),
        ("http://127.0.0.1:{other}/v1#judge", "#judge,served_as=another-model'", _CORRECTED),
    ],
)
def test_what_every_request_would_meet_ends_a_run_within_ten_seconds(
    spec: str, told: str, then: str, tmp_path: Path
) -> None:
    items = write_items(tmp_path / "items.jsonl", 300)
    keys = {"RIGHT": "sk-right-0123456789abcdef", "WRONG": "sk-wrong-0123456789abcdef"}
    with FaultServer(key=keys["RIGHT"]) as server, FaultServer(faults=Faults(wrong_model=1.0)) as other:
        judge = spec.format(dead=refused_port(), alive=server.port, other=other.port)
        arguments = ("grade", items, "--judge", judge, "--rubric", "helpfulness", "--out", tmp_path / "out")
        began = time.monotonic()
        done = subprocess.run(dikast(*arguments), capture_output=True, text=True, env={**os.environ, **keys})
        took = time.monotonic() - began
    assert done.returncode == 1, done.stderr
    assert took < 15, took  # 10 s and a machine that does other work
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("dikast: ")
    assert told in last
    assert last.endswith(then)
    assert "sk-" not in done.stdout + done.stderr


@pytest.mark.parametrize("n", [2, 7])
def test_a_small_table_is_not_asked_whole_of_another_model(n: int, tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", n)
    with FaultServer(faults=Faults(wrong_model=1.0)) as server:
        spec = f"{server.spec},concurrency=1,backoff=0.001"
        arguments = ("grade", items, "--judge", spec, "--rubric", "helpfulness", "--out", tmp_path / "out")
        done = subprocess.run(dikast(*arguments), capture_output=True, text=True)
        assert (
            sum(server.billed.values()) == 3
        )  # the first question twice, and another while it waited to be sent again
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "was answered by 'another-model'" in last
    assert ",served_as=another-model'" in last
    assert last.endswith(_CORRECTED)


@pytest.mark.parametrize(
    ("status", "told", "tries", "cure"),
    [
        (500, "answers 500: out of memory", 2, "the server is there and fails: read the server's log, and try one"),
        (502, "answers 502: out of memory", 2, "the server is there and fails: read the server's log, and try one"),
        (503, "answers 503: out of memory", 6, "the server is there and fails: read the server's log, and try one"),
        (429, "answers 429: out of memory", 6, "the server takes no request now: see the limits of your account"),
        (200, 'answers 200 with an error: {"message":"out of memory"}', 2, "read the server's log, and check that the"),
    ],
)
@pytest.mark.parametrize("n", [3, 20])
def test_a_server_that_fails_every_time_says_what_was_tried_and_what_to_do(
    status: int, told: str, tries: int, cure: str, n: int, tmp_path: Path
) -> None:
    rows = [{"id": str(i), "instruction": "Q?", "response": "A."} for i in range(n)]
    spoilt = Spoilt({"error": {"message": "out of memory"}}, status)
    with FaultServer(spoil=lambda value, key: spoilt) as server:
        spec = f"{server.spec},retries=1,backoff=0.001"
        if n < 8:  # too few to give the server up: each verdict says why there is none
            run = grade_rows(rows, spec, "helpfulness", out=tmp_path / "out")
            (said,) = {verdict.reason for verdict in run}
        else:
            with pytest.raises(RunError, match="8 requests in a row failed, the last: ") as raised:
                grade_rows(rows, spec, "helpfulness", out=tmp_path / "out")
            said = str(raised.value)
            assert "then run the same command again" in said
    assert f"{told} (after {tries} tries); {cure}" in said


def test_a_server_that_comes_back_is_asked_for_the_rest(tmp_path: Path) -> None:
    rows = [{"id": str(i), "instruction": "Q?", "response": "A."} for i in range(80)]
    port = refused_port()
    spec = f"http://127.0.0.1:{port}/v1#judge,backoff=0.01,retries=1"
    with pytest.raises(RunError, match=r"Connection refused \(after 2 tries\); start the server"):
        grade_rows(rows, spec, "helpfulness", out=tmp_path / "out")
    with FaultServer(port=port):
        run = grade_rows(rows, spec, "helpfulness", out=tmp_path / "out")
    assert run.summary["status"] == {"ok": 80}
    assert "gave_up" not in run.summary


def test_a_budget_of_money_needs_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    rows = [{"id": "1", "instruction": "Q?", "response": "A."}]
    with FaultServer() as server:
        with pytest.raises(UserError, match=r"budget='money=...' needs the price of .* add price=IN,OUT"):
            grade_rows(rows, server.spec, "helpfulness", budget="money=1")
        assert not server.tries
        run = grade_rows(rows, server.spec, "helpfulness", budget="money=1", price="1,2")
    usage = run.summary["usage"]
    assert usage["cost"] == pytest.approx((usage["tokens_in"] + 2 * usage["tokens_out"]) / 1e6)


GRADE = """
rows = [{{"question": f"q{{i}}", "answer": "a"}} for i in range({n})]
run = dikast.grade(rows, {spec!r}, "helpfulness"{more})
"""


def outputs(cells: list[str], variables: dict[str, str], folder: Path) -> list[list[dict[str, Any]]]:
    """What a kernel displays for each cell, without what goes to stderr."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbclient.NotebookClient(notebook, kernel_name="python3").execute(cwd=str(folder), env=variables)
    return [[each for each in cell.outputs if each.output_type != "stream"] for cell in notebook.cells]


def test_a_call_of_more_than_a_second_shows_one_line(tmp_path: Path) -> None:
    with FaultServer("Sound.\nVerdict: 4", model="judge", latency=0.5) as server:
        spec = f"{server.spec},concurrency=4"
        cells = [
            "import dikast",
            GRADE.format(n=20, spec=spec, more=""),
            GRADE.format(n=20, spec=spec, more=", watch=lambda progress: None"),
            GRADE.format(n=1, spec=spec, more=""),
        ]
        _, long, watched, brief = outputs(cells, environment(server, tmp_path), tmp_path)
    (line,) = [each["data"]["text/plain"] for each in long]
    assert line.startswith("20 of 20 verdicts, ")
    assert ", 0:00 left, " in line
    assert (watched, brief) == ([], [])
