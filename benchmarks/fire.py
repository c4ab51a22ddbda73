"""Runs under fire: each fault at a share of all tries, killed in the middle and resumed, and what it costs in time.

    python -m benchmarks.fire                     every fault at 20 %, 5,000 items each, about 10 minutes
    python -m benchmarks.fire --n 500 cut hang    some faults, fewer items

For each fault there are three runs in processes of their own against `dikast.testing.faults.FaultServer` with 50 ms a
reply: without faults, with them, and with them but killed half way and run again. Checked after each: every item has a
verdict or a typed error, every score is the one that the server gave, nothing that was answered was asked for
again (after the kill: nothing whose verdict was on disk; what was on the wire is lost with the process). The time of
the run under fire may be twice that of the run without, plus the longest wait of any one request that the engine's
policy orders: its timeouts that ran out, its `Retry-After`, its back-off (`HttpEngine.waits`).

Engine options are the defaults, but for `timeout` = 2 s, so that hangs end. One JSON object a line on stdout; exits
with 1 when a rule is broken or a run takes longer than it may.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from dikast.testing.faults import Faults, FaultServer, graded, prompt_of

ROOT = Path(__file__).parent.parent
EVERY = (
    "rate_limited", "rate_limited_wait", "server_error", "hang", "cut", "truncated_json", "invalid_json", "empty",
    "wrong_model", "drip", "ignored",
)  # fmt: skip
MIXED = "all of them"
OPTIONS = "timeout=2"
RULES = ("a verdict for every item", "only typed failures", "every score is the server's", "nothing paid for twice")


def faults_of(name: str, share: float) -> Faults:
    """One fault at this share of tries, or all of them together at it."""
    return Faults(**(dict.fromkeys(EVERY, share / len(EVERY)) if name == MIXED else {name: share}))


class Server(FaultServer):
    """Remembers which item each prompt is about."""

    def __init__(self, **settings: Any) -> None:
        self.items: dict[str, str] = {}
        super().__init__(self.note, latency=0.05, **settings)

    def note(self, body: Mapping[str, Any]) -> str:
        """The reply."""
        found = re.search(r"Question (\d+)\?", str(body["messages"]))
        assert found is not None
        self.items[prompt_of(body)] = found[1]
        return graded(body)


def write_items(path: Path, n: int) -> Path:
    rows = ({"id": str(i), "instruction": f"Question {i}?", "response": f"Answer {i}."} for i in range(n))
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def grade(items: str, spec: str, out: str) -> None:
    """What the client's process does."""
    from dikast.judging.judge import Judge
    from dikast.judging.judge_file import grade_file
    from dikast.judging.run_plan import Source

    judge = Judge(spec, "helpfulness")
    began = time.perf_counter()
    summary = grade_file(judge, Source(items), Path(out))
    waits = judge.engine.waits  # type: ignore[attr-defined]
    told = {"seconds": time.perf_counter() - began, "longest_wait": waits.longest, "waited": waits.total}
    print(orjson.dumps({**told, "status": summary["status"]}).decode())


def client(items: Path, spec: str, out: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchmarks.fire", "--grade", str(items), f"{spec},{OPTIONS}", str(out)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})


def finished(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """What a client that runs to its end tells."""
    raw, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the client ended with {process.returncode}")
    told: dict[str, Any] = orjson.loads(raw)
    return told


def verdicts(out: Path) -> list[dict[str, Any]]:
    """The whole lines written so far; the last of each question counts."""
    path = out / "verdicts.jsonl"
    raw = path.read_bytes() if path.exists() else b""
    records = [orjson.loads(line) for line in raw[: raw.rfind(b"\n") + 1].splitlines()]
    return list({record["key"]: record for record in records}.values())


def broken_rules(found: Sequence[Mapping[str, Any]], n: int, fault: str) -> list[str]:
    """Which rules the verdicts of a run break."""
    allowed = {"ok", "engine_error", "unparsed"} if fault in ("empty", MIXED) else {"ok", "engine_error"}
    failures = [each for each in found if each["status"] != "ok"]
    wrong = []
    if {each["question"]["item"] for each in found} != {str(i) for i in range(n)} or len(found) != n:
        wrong.append(RULES[0])
    typed = [re.match(r"[a-z_]+: ." if each["status"] == "engine_error" else ".", each["reason"]) for each in failures]
    if not all(typed) or any(each["status"] not in allowed or each["score"] is not None for each in failures):
        wrong.append(RULES[1])
    for each in found:
        replies = [attempt["raw"] for attempt in each["attempts"] if attempt["raw"]]
        if each["status"] == "ok" and not any(said(each["score"], reply) for reply in replies):
            read = [attempt["label_logprobs"] for attempt in each["attempts"] if attempt["label_logprobs"]]
            if not read or max(read[-1], key=read[-1].__getitem__).strip() != each["label"]:
                wrong.append(RULES[2])
                break
    return wrong


def said(score: float, reply: str) -> bool:
    """Whether the reply of the server says this score."""
    found = re.search(r"Verdict: (\d)", reply) or re.fullmatch(r"\s*(\d)\s*", reply)
    return found is not None and float(found[1]) == score


def under_fire(fault: str, n: int, share: float, seed: int, folder: Path) -> dict[str, Any]:
    """Time of a run without and with the fault, and the rules that the second breaks."""
    items = write_items(folder / "items.jsonl", n)
    with Server() as server:
        calm = finished(client(items, server.spec, folder / "calm"))
    with Server(faults=faults_of(fault, share), seed=seed) as server:
        told = finished(client(items, server.spec, folder / "fire"))
        wrong = broken_rules(verdicts(folder / "fire"), n, fault)
        if max(server.answered.values()) > 1:
            wrong.append(RULES[3])
        met, tries = server.faulted.total(), server.tries.total()
    allowed = 2 * calm["seconds"] + told["longest_wait"]
    return {
        "fault": fault, "n": n, "met": met, "tries": tries, "status": told["status"], "broken": wrong,
        "calm_s": calm["seconds"], "fire_s": told["seconds"], "longest_wait_s": told["longest_wait"],
        "waited_s": told["waited"], "of_allowed": told["seconds"] / allowed,
        "ratio_less_wait": (told["seconds"] - told["longest_wait"]) / calm["seconds"],
    }  # fmt: skip


def killed(fault: str, n: int, share: float, seed: int, folder: Path) -> dict[str, Any]:
    """A run killed when half of its verdicts are written, and run again to its end."""
    items, out = write_items(folder / "items.jsonl", n), folder / "killed"
    with Server(faults=faults_of(fault, share), seed=seed) as server:
        first = client(items, server.spec, out)
        while first.poll() is None and len(verdicts(out)) < n // 2:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        time.sleep(0.2)  # the server notices
        kept = {each["question"]["item"]: each for each in verdicts(out)}
        tried = server.tries.copy()
        told = finished(client(items, server.spec, out))
        settled = {item for item, each in kept.items() if each["status"] != "engine_error"}
        again = {server.items.get(key.split()[1]) for key, count in server.tries.items() if count > tried[key]}
        twice = sum(count > 1 for count in server.answered.values())
    after = verdicts(out)
    wrong = broken_rules(after, n, fault)
    if again & settled or any(kept[item] != each for each in after if (item := each["question"]["item"]) in settled):
        wrong.append(RULES[3])
    return {
        "fault": fault, "n": n, "killed_at": len(kept), "status": told["status"], "broken": wrong,
        "lost_on_the_wire": twice,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", default=[*EVERY, MIXED], help=f"of {', '.join(EVERY)}, {MIXED!r}")
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-kill", action="store_true", help="leave the killed runs out")
    parser.add_argument("--grade", nargs=3, metavar=("ITEMS", "SPEC", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.grade:
        grade(*given.grade)
        return
    bad = False
    for fault in given.faults:
        for measure in (under_fire,) if given.no_kill else (under_fire, killed):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(fault, given.n, given.share, given.seed, Path(folder))
            bad |= bool(found["broken"]) or found.get("of_allowed", 0) > 1
            rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()}
            print(orjson.dumps({"what": measure.__name__.replace("_", " "), **rounded}).decode(), flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    main()
