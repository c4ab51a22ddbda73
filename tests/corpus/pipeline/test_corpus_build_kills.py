"""Builds in a real process with a failing server and SIGKILL: no written answer is lost or paid for twice."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from corpus.sources import LEVELS, graded, photos, seeds
from dikast.core.media import check_image
from dikast.core.records import read_items
from dikast.testing.faults import Faults, FaultServer, prompt_of

pytestmark = pytest.mark.slow

FAULTS = Faults(rate_limited=0.04, server_error=0.04, cut=0.04, truncated_json=0.03, invalid_json=0.03, empty=0.02)
KILLS = 4
AT_ONCE = 8
HELD = 4 * AT_ONCE + 40  # the most requests that are queued, in flight, or answered and not yet read


def json(**values: Any) -> str:
    return orjson.dumps(values).decode()


def said(body: Mapping[str, Any]) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def teach(body: Mapping[str, Any]) -> str:
    """The reply of a teacher that reads its prompt; one reply in ten is unusable, one rubric in five does not fit."""
    text, mark = said(body), prompt_of(body)
    words = [f"w{mark[i : i + 3]}" for i in range(0, 30, 3)] * 2
    if int(mark[:2], 16) < 26:
        return "Let me think about that for a while."
    if "You write rubrics" in text:
        count = int(re.search(r"(?:[Ww]rite|Say) (\d+)", text)[1])  # type: ignore[index]
        made = [
            {"criterion": f"Does it speak of {words[i]} and of {mark[:5]}?", "levels": LEVELS} for i in range(count)
        ]
        return json(rubrics=made)
    if "Inspect it" in text:
        return json(reason="Look at it.", fits=int(mark[2:4], 16) > 51)
    if "Write an answer to the request" in text:
        score = re.search(r"would give the score (\d)", text)[1]  # type: ignore[index]
        return json(response=f"{' '.join(words)} {score}", feedback="It goes on and on.")
    if "requests that a person" in text:
        asked = [{"instruction": " ".join(words[i:] + words[:i]), "reference": "Yes."} for i in (0, 1)]
        return json(instructions=asked)
    if "Compare both under the criterion" in text:
        a, b = (int(n) for n in re.findall(r"worth (\d)", text))
        return json(commonalities="Both go on.", differences="One holds more.", better="tie" if a == b else "ab"[b > a])
    if "What is known of this pair" in text:
        first, second = re.search(r'"a" for (.+), "b" for (.+), or "tie"', text).groups()  # type: ignore[union-attr]
        winner = re.search(r"The better of the two is (.+)\.$", text, re.M)
        better = "tie" if winner is None else "a" if winner[1] == first else "b"
        return json(reasons=f"{first} and {second} go on and on.", better=better)
    if "others are to be measured by" in text:
        return json(reference=f"It is {words[0]}.")
    if "[[A>>B]]" in text:
        return f"Both tell of it.\n[[{('A>B', 'B>>A', 'A=B')[int(mark[4], 16) % 3]}]]"
    if "Your judgement" in text and "You grade one response" not in text:
        return f"It tells of it.\n{'[RESULT]' if '[RESULT]' in text else 'Verdict:'} 1"
    if "Your judgement" in text:
        return f"As it is.\nVerdict: {re.findall(r' ([1-5])$', text, re.M)[0]}"
    return " ".join(words)


@dataclass(frozen=True)
class Case:
    """A recipe with the server as teacher. It yields more than `least` items, at least one of each `kept`."""

    options: Mapping[str, Any]
    prepare: Callable[[Path], None]
    least: int
    kept: set[str]


CASES = {
    "feedback": Case(
        {"seeds": "seeds.yaml", "rubrics": 24, "instructions": 2, "words": 20, "complete": False},
        seeds, 150, set("12345"),
    ),
    "perception": Case(
        {"images": "photos", "per_image": 2, "words": 20, "complete": False, "rounds": 3}, photos, 60, set("12345")
    ),
    "critic-pointwise": Case(
        {"sources": ["asked.jsonl"], "responders": ["the teacher"], "samples": 16}, photos, 100, set()
    ),
    "critic-pairwise": Case({"source": "graded.jsonl", "ties": 0}, graded, 180, {"a", "b"}),
    "preference": Case({"source": "graded.jsonl"}, graded, 180, {"a", "b"}),
}  # fmt: skip


def journalled(out: Path) -> Counter[str]:
    """The content of the journals: finished tasks, the replies that finished them, replies before an error."""
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

        spec = f"{server.spec},timeout=5,concurrency={AT_ONCE}"
        told = {"recipe": recipe, "teacher": spec, "near": False, **case.options}
        if "responders" in told:
            told["responders"] = [spec]
        (tmp_path / "recipe.yaml").write_bytes(orjson.dumps(told))
        build = ["corpus", "build", str(tmp_path / "recipe.yaml"), "--out", str(out), "-q"]
        command = [sys.executable, "-m", "dikast", *build]
        lost, settled = 0, 0
        for kill in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, deadline = sum(server.answered.values()), time.monotonic() + 120
            while sum(server.answered.values()) < before + 15 + 15 * kill:
                assert process.poll() is None, "it ended before it was killed"
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            while server.in_flight:
                time.sleep(0.02)
            # a kill loses answers that were not yet written: at most what a stream holds
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
    assert report["kept"].keys() >= case.kept
    for item in items:
        assert not item.images or check_image(item.images[0])
