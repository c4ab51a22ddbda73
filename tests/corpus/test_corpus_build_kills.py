"""A real process, a real server that fails as told, and SIGKILL: nothing is lost and next to nothing asked twice."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.records import read_items
from dikast.testing.faults import Faults, FaultServer, prompt_of

pytestmark = pytest.mark.slow

LEVELS = {
    "1": "None of it is there.",
    "2": "A little is there.",
    "3": "Half of it is there.",
    "4": "Most is there.",
    "5": "All of it.",
}
FAULTS = Faults(rate_limited=0.04, server_error=0.04, cut=0.04, truncated_json=0.03, invalid_json=0.03, empty=0.02)
KILLS = 4


def teach(body: Mapping[str, Any]) -> str:
    """What a teacher that reads its prompt would say; one reply in ten is of no use."""
    text, mark = str(body["messages"][0]["content"]), prompt_of(body)
    words = [f"w{mark[i : i + 3]}" for i in range(0, 30, 3)] * 2
    if int(mark[:2], 16) < 26:
        return "Let me think about that for a while."
    if "You write rubrics" in text:
        count = int(re.search(r"(?:Write|Say) (\d+)", text)[1])  # type: ignore[index]
        made = [
            {"criterion": f"Does it speak of {words[i]} and of {mark[:5]}?", "levels": LEVELS} for i in range(count)
        ]
        return orjson.dumps({"rubrics": made}).decode()
    if "Write an answer to the request" in text:
        score = re.search(r"would give the score (\d)", text)[1]  # type: ignore[index]
        return orjson.dumps({"response": f"{' '.join(words)} {score}", "feedback": "It goes on and on."}).decode()
    if "requests that a person might send" in text:
        found = [{"instruction": " ".join(words[i:] + words[:i]), "reference": "Yes."} for i in (0, 1)]
        return orjson.dumps({"instructions": found}).decode()
    return f"As it is.\nVerdict: {re.findall(r' ([1-5])$', text, re.M)[0]}"


def test_kills_under_faults(tmp_path: Path) -> None:
    (tmp_path / "seeds.yaml").write_bytes(
        orjson.dumps([{"criterion": "Does the answer name its sources?", "levels": LEVELS}])
    )
    told = {"recipe": "feedback", "seeds": "seeds.yaml", "rubrics": 24, "instructions": 2, "words": 20, "near": False}
    out = tmp_path / "out"
    with FaultServer(teach, faults=FAULTS, seed=3, latency=0.02, structured=False, continues=False) as server:
        (tmp_path / "recipe.yaml").write_bytes(
            orjson.dumps({**told, "teacher": f"{server.spec},timeout=5", "complete": False})
        )
        command = [
            sys.executable,
            "-m",
            "dikast",
            "corpus",
            "build",
            str(tmp_path / "recipe.yaml"),
            "--out",
            str(out),
            "-q",
        ]
        for kill in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, deadline = sum(server.answered.values()), time.monotonic() + 60
            while sum(server.answered.values()) < before + 30 + 20 * kill and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        for _ in range(5):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stdout + done.stderr
        report = orjson.loads((out / "report.json").read_bytes())
        for stage in report["stages"]:
            assert stage["accepted"] + sum(stage["rejected"].values()) == stage["tasks"], stage
        settled: Counter[str] = Counter()
        for journal in out.glob("[1-4]-*.jsonl"):
            settled.update(
                orjson.loads(line)["key"] for line in journal.read_bytes().splitlines() if b'"error"' not in line
            )
        assert max(settled.values()) == 1
        attempts = sum(stage["attempts"] for stage in report["stages"])
        # a kill loses what was answered and not yet written: at most what was in flight, four times
        twice = sum(server.answered.values()) - attempts
        assert 0 <= twice <= KILLS * server.most_seen, (twice, server.most_seen)
        assert sum(server.faulted.values()) > 0.1 * sum(server.tries.values())
    items = list(read_items(out / "items.jsonl"))
    assert len(items) == report["items"] > 150
    assert {item.gold["score"] for item in items} == {1, 2, 3, 4, 5}
