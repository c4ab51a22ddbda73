"""Whatever a server does, the run ends, nothing is lost, no failure becomes a score, nothing answered is paid twice."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dikast
from dikast.engines.http.failure import retry_after
from dikast.testing.faults import Faults, FaultServer
from engines.http_servers import CERTIFICATE, FAST, grade, verdicts, write_items

EVERY = (
    "rate_limited", "rate_limited_wait", "server_error", "hang", "cut", "truncated_json", "invalid_json", "empty",
    "wrong_model", "drip", "ignored",
)  # fmt: skip
ALL = Faults(**dict.fromkeys(EVERY, 0.2 / len(EVERY)))


@pytest.mark.parametrize("fault", EVERY)
def test_each_fault_at_a_fifth_of_the_requests(fault: str, tmp_path: Path) -> None:
    n, timeout = 300, 0.6 if fault == "hang" else 20
    with FaultServer(faults=Faults(**{fault: 0.2}), latency=0.005) as server:
        spec = f"{server.spec},backoff=0.01,timeout={timeout}"
        _, summary = grade(write_items(tmp_path / "items.jsonl", n), spec, tmp_path / "run")
    assert server.faulted[fault] > n / 8, "the fault was not there to be met"
    assert summary["verdicts"] == n
    allowed = ("ok", "engine_error", "unparsed") if fault == "empty" else ("ok", "engine_error")
    assert sum(summary["status"].get(status, 0) for status in allowed) == n
    assert summary["status"].get("ok", 0) >= 0.97 * n
    assert max(server.answered.values()) == 1
    for verdict in verdicts(tmp_path / "run"):
        assert (verdict["score"] is None) == (verdict["status"] != "ok")
        if verdict["status"] == "ok" and fault != "empty":  # the score is the one the server gave
            (level,) = re.findall(r"Verdict: (\d)", verdict["attempts"][0]["raw"])
            assert verdict["score"] == float(level)


def test_an_empty_answer_is_followed_up_and_never_a_score_by_itself(tmp_path: Path) -> None:
    with FaultServer(faults=Faults(empty=1.0)) as server:
        code, summary = grade(write_items(tmp_path / "items.jsonl", 5), f"{server.spec},{FAST}", tmp_path / "run")
    assert (code, summary["status"]) == (3, {"unparsed": 5})
    assert {len(each["attempts"]) for each in verdicts(tmp_path / "run")} == {3}


def test_a_killed_run_goes_on_and_pays_only_for_what_was_on_the_wire(tmp_path: Path) -> None:
    n = 400
    items, out = write_items(tmp_path / "items.jsonl", n), tmp_path / "run"
    with FaultServer(faults=ALL, latency=0.05) as server:
        spec = f"{server.spec},backoff=0.01,timeout=1,concurrency=16"
        command: list[str | Path] = [
            sys.executable, "-m", "dikast", "grade", items, "--judge", spec, "--rubric", "helpfulness", "--out", out,
            "--quiet",
        ]  # fmt: skip
        path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            if (out / "verdicts.jsonl").exists() and (out / "verdicts.jsonl").read_bytes().count(b"\n") >= n // 4:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = len(verdicts(out)) if (out / "verdicts.jsonl").read_bytes().endswith(b"\n") else None
        assert kept is None or n // 4 <= kept < n
        _, summary = grade(items, spec, out)
        twice = [prompt for prompt, count in server.answered.items() if count > 1]
    assert summary["verdicts"] == n
    assert summary["status"] == {"ok": n}
    assert summary["answered_before"] >= n // 4
    assert len(twice) <= 2 * 16, "more was paid twice than can have been in flight"


def everything_written(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("right", [True, False])
def test_the_key_stands_nowhere(
    right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    secret = "sk-verysecretindeed-0123456789"
    monkeypatch.setenv("MY_KEY", secret)
    caplog.set_level("DEBUG")
    with FaultServer(faults=ALL, key=secret if right else "another") as server:
        spec = f"{server.spec},backoff=0.01,timeout=0.3,key_env=MY_KEY"
        _, summary = grade(write_items(tmp_path / "items.jsonl", 60), spec, tmp_path / "run")
        engine = dikast.open_engine(spec)
        told = f"{engine!r} {vars(engine)} {engine.identity()} {engine.versions()} {engine.name}"
        assert set(server.seen_keys) == {secret}
    if right:
        assert summary["status"] == {"ok": 60}
    else:
        assert summary["status"].keys() == {"engine_error"}  # of what was on its way; the rest is asked by the next run
        assert "MY_KEY is not accepted here" in summary["gave_up"]
        assert all(reason.startswith("engine_error: auth:") for reason in summary["failures"])
        assert sum(server.seen_keys.values()) < 40, "every item was sent although the key is wrong"
    out, err = capfd.readouterr()
    for text in (everything_written(tmp_path).decode(), out, err, caplog.text, told, str(summary)):
        assert "verysecret" not in text


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [("oversized", "too_large", "max_reply_mb"), ("redirect", "redirect", "elsewhere.invalid")],
)
def test_replies_that_are_refused(fault: str, kind: str, told: str, tmp_path: Path) -> None:
    with FaultServer(faults=Faults(**{fault: 1.0})) as server:
        code, summary = grade(write_items(tmp_path / "items.jsonl", 2), f"{server.spec},{FAST}", tmp_path / "run")
    assert (code, summary["status"]) == (1 if kind == "redirect" else 3, {"engine_error": 2})
    reasons = [each["reason"] for each in verdicts(tmp_path / "run")]
    assert any(reason.startswith(kind) and told in reason for reason in reasons), reasons


def test_a_certificate_nobody_signed_is_refused_unless_trusted(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", 2)
    with FaultServer(tls=CERTIFICATE) as server:
        _, refused = grade(items, f"{server.spec},{FAST}", tmp_path / "refused")
        assert sum(server.tries.values()) == 0
        _, trusted = grade(items, f"{server.spec},{FAST},ca={CERTIFICATE}", tmp_path / "trusted")
    assert refused["status"] == {"engine_error": 2}
    assert "certificate" in next(iter(refused["failures"]))
    assert trusted["status"] == {"ok": 2}


def test_a_server_that_is_not_there_ends_the_run_soon(tmp_path: Path) -> None:
    with FaultServer() as server:
        spec = server.spec
    code, summary = grade(
        write_items(tmp_path / "items.jsonl", 500), f"{spec},backoff=0.01,retries=2,concurrency=16", tmp_path / "run"
    )
    assert (code, summary["status"].keys()) == (1, {"engine_error"})
    assert "Connection refused (after 3 tries); start the server, or correct its address" in summary["gave_up"]
    kept = verdicts(tmp_path / "run")
    assert all(each["reason"].startswith(("connection:", "unreachable:")) for each in kept)
    assert all(each["attempts"] for each in kept)
    assert 1 <= len(kept) <= 16  # those that failed by themselves; no other was ever sent, and they stay unasked
    assert f"({500 - len(kept)} questions were not asked)" in summary["gave_up"]
    assert (summary["asked"], summary["verdicts"]) == (len(kept), len(kept))


def test_a_server_that_dies_in_the_middle_ends_the_run_and_the_next_run_asks_what_was_not_sent(tmp_path: Path) -> None:
    n, out = 800, tmp_path / "run"
    items = write_items(tmp_path / "items.jsonl", n)

    def dying(value: Any, _: Any) -> Any:
        if server.answered.total() >= 100:
            server.faults = Faults(server_error=1.0)
        return value

    with FaultServer(latency=0.005, spoil=dying) as server:
        spec = f"{server.spec},backoff=0.001,retries=1,concurrency=16"
        code, summary = grade(items, spec, out)
        kept = verdicts(out)
        good = [each for each in kept if each["status"] == "ok"]
        failed = [each for each in kept if each["status"] == "engine_error"]
        assert (code, len(good) + len(failed)) == (1, len(kept))
        assert good
        assert len(kept) < n
        assert all(each["reason"].startswith("server_error:") or each["attempts"] for each in failed)
        assert 64 <= len(failed) < 200  # 64 in a row, and what was on its way
        assert f"({n - len(kept):,} questions were not asked)" in summary["gave_up"]
        server.faults, server.spoil = Faults(), None
        code, summary = grade(items, spec, out)
    assert (code, summary["status"]) == (0, {"ok": n})
    assert summary["answered_before"] == len(good)
    assert max(server.answered.values()) == 1


def test_a_server_that_only_turns_away_ends_the_run(tmp_path: Path) -> None:
    with FaultServer(faults=Faults(rate_limited=1.0)) as server:
        spec = f"{server.spec},backoff=0.001,retries=1"
        code, summary = grade(write_items(tmp_path / "items.jsonl", 200), spec, tmp_path / "run")
    assert (code, summary["status"].keys()) == (1, {"engine_error"})
    assert "answers 429" in summary["gave_up"]
    kinds = {each["reason"].split(":")[0] for each in verdicts(tmp_path / "run")}
    assert "rate_limited" in kinds
    assert kinds <= {"rate_limited", "unreachable"}


def test_retry_after_in_every_spelling() -> None:
    assert retry_after({"Retry-After": "2"}) == 2.0
    assert retry_after({"Retry-After": "0.5"}) == 0.5
    assert retry_after({"retry-after-ms": "250", "Retry-After": "1"}) == 0.25
    # 1994-11-06 08:49:37 GMT is 784111777 s after the epoch
    assert retry_after({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, now=784111770.0) == 7.0
    assert retry_after({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, now=784111780.0) == 0.0
    other_clock = {"Date": "Sun, 06 Nov 1994 08:49:30 GMT", "Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert retry_after(other_clock) == 7.0  # whatever this machine's clock says
    assert retry_after({**other_clock, "Date": "now"}) == 0.0
    for nothing in ({}, {"Retry-After": "soon"}, {"Retry-After": "nan"}, {"Retry-After": "inf"}):
        assert retry_after(nothing) is None


@pytest.mark.parametrize("wait", [0.2, "date"])
def test_retry_after_is_obeyed(wait: float | str, tmp_path: Path) -> None:
    began = time.monotonic()
    with FaultServer(rate=50.0, burst=1, retry_after=wait) as server:  # type: ignore[arg-type]
        _, summary = grade(write_items(tmp_path / "items.jsonl", 3), f"{server.spec},{FAST}", tmp_path / "run")
    assert summary["status"] == {"ok": 3}
    assert server.faulted["limit"] >= 1
    if wait != "date":
        assert time.monotonic() - began >= 0.2


def test_a_wait_longer_than_allowed_is_an_error(tmp_path: Path) -> None:
    with FaultServer(rate=1e-9, burst=0, retry_after=3600.0) as server:
        _, summary = grade(write_items(tmp_path / "items.jsonl", 2), f"{server.spec},{FAST}", tmp_path / "run")
    assert summary["status"] == {"engine_error": 2}
    assert "max_wait" in next(iter(summary["failures"]))
