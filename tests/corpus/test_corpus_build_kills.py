"""Recipes in a real process, a server that fails as told, and SIGKILL: nothing is lost, nothing settled paid twice."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from corpus.sources import LEVELS, graded, seeds
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.testing.faults import Faults, FaultServer, prompt_of

pytestmark = pytest.mark.slow

FAULTS = Faults(rate_limited=0.04, server_error=0.04, cut=0.04, truncated_json=0.03, invalid_json=0.03, empty=0.02)
KILLS = 4
AT_ONCE = 8
HELD = 3 * AT_ONCE + 32  # requests that are pulled ahead, in flight, or answered and waiting to be read


def json(**values: Any) -> str:
    return orjson.dumps(values).decode()


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
        return json(rubrics=made)
    if "Write an answer to the request" in text:
        score = re.search(r"would give the score (\d)", text)[1]  # type: ignore[index]
        return json(response=f"{' '.join(words)} {score}", feedback="It goes on and on.")
    if "requests that a person might send" in text:
        return json(
            instructions=[{"instruction": " ".join(words[i:] + words[:i]), "reference": "Yes."} for i in (0, 1)]
        )
    if "Compare both under the criterion" in text:
        a, b = (int(n) for n in re.findall(r"worth (\d)", text))
        return json(commonalities="Both go on.", differences="One holds more.", better="tie" if a == b else "ab"[b > a])
    return f"As it is.\nVerdict: {re.findall(r' ([1-5])$', text, re.M)[0]}"


@dataclass(frozen=True)
class Case:
    """A recipe as the server teaches it. `least` items are due, and what `seen` takes of them is exactly `all_of`."""

    options: Mapping[str, Any]
    prepare: Callable[[Path], None]
    least: int
    seen: Callable[[Item], Any]
    all_of: set[Any] = field(default_factory=set)


CASES = {
    "feedback": Case(
        {"seeds": "seeds.yaml", "rubrics": 24, "instructions": 2, "words": 20, "near": False, "complete": False},
        seeds, 150, lambda item: item.gold["score"], {1, 2, 3, 4, 5},
    ),
    "preference": Case(
        {"source": "graded.jsonl"}, graded, 200, lambda item: item.gold["preference"], {"a", "b"},
    ),
}  # fmt: skip


def journalled(out: Path) -> Counter[str]:
    """What the journals hold: tasks that are settled, replies that settled them, replies before an error."""
    found: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for journal in out.glob("[1-9]-*.jsonl"):
        for line in journal.read_bytes().split(b"\n")[:-1]:
            record = orjson.loads(line)
            if record["status"] == "error":  # asked from the start by the next run
                found["wasted"] += record["attempts"] - 1
            else:
                found["replies"] += record["attempts"]
                keys[record["key"]] += 1
    assert not keys or max(keys.values()) == 1, "a task was settled twice"
    found["settled"] = len(keys)
    return found


@pytest.mark.parametrize("recipe", CASES)
def test_kills_under_faults(recipe: str, tmp_path: Path) -> None:
    case, out = CASES[recipe], tmp_path / "out"
    case.prepare(tmp_path)
    with FaultServer(teach, faults=FAULTS, seed=3, latency=0.02, structured=False, continues=False) as server:

        def unwritten() -> int:
            held = journalled(out)
            return sum(server.answered.values()) - held["replies"] - held["wasted"]

        told = {"recipe": recipe, "teacher": f"{server.spec},timeout=5,concurrency={AT_ONCE}", **case.options}
        (tmp_path / "recipe.yaml").write_bytes(orjson.dumps(told))
        build = ["corpus", "build", str(tmp_path / "recipe.yaml"), "--out", str(out), "-q"]
        command = [sys.executable, "-m", "dikast", *build]
        lost, settled = 0, 0
        for kill in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, deadline = sum(server.answered.values()), time.monotonic() + 120
            while sum(server.answered.values()) < before + 30 + 20 * kill:
                assert process.poll() is None, "it ended before it was killed"
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            while server.in_flight:
                time.sleep(0.02)
            # a kill loses what was answered and not yet written, which is no more than a stream holds
            assert 0 <= unwritten() - lost <= HELD
            assert journalled(out)["settled"] >= settled, "what was written is gone"
            lost, settled = unwritten(), journalled(out)["settled"]
        for _ in range(5):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stdout + done.stderr
        assert unwritten() == lost, "more was paid twice than the kills lost"
        assert sum(server.faulted.values()) > 0.1 * sum(server.tries.values())
    report = orjson.loads((out / "report.json").read_bytes())
    for stage in report["stages"]:
        assert stage["accepted"] + sum(stage["rejected"].values()) == stage["tasks"], stage
    items = list(read_items(str(out / "items.jsonl")))
    assert len(items) == report["items"] > case.least
    assert {case.seen(item) for item in items} == case.all_of
