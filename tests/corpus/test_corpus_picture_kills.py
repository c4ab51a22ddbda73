"""Recipes of pictures as real processes, a real server that fails as told, and SIGKILL: nothing lost or paid twice."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image as Pillow

from dikast.core.media import check_image
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
KILLS = 3


def said(body: Mapping[str, Any]) -> str:
    content = body["messages"][0]["content"]
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "".join(parts)


def teach(body: Mapping[str, Any]) -> str:
    """What a teacher of pictures would say; one reply in ten is of no use, one rubric in five does not fit."""
    text, mark = said(body), prompt_of(body)
    words = [f"w{mark[i : i + 3]}" for i in range(0, 30, 3)] * 2
    if int(mark[:2], 16) < 26:
        return "Let me think about that for a while."
    if "You write rubrics" in text:
        count = int(re.search(r"write (\d+) new", text)[1])  # type: ignore[index]
        made = [
            {"criterion": f"Does it speak of {words[i]} and of {mark[:5]}?", "levels": LEVELS} for i in range(count)
        ]
        return orjson.dumps({"rubrics": made}).decode()
    if "Inspect it" in text:
        return orjson.dumps({"reason": "Look at it.", "fits": int(mark[2:4], 16) > 51}).decode()
    if "Write an answer to the request" in text:
        score = re.search(r"would give the score (\d)", text)[1]  # type: ignore[index]
        return orjson.dumps({"response": f"{' '.join(words)} {score}", "feedback": "It goes on and on."}).decode()
    if "who shows this picture" in text:
        found = [{"instruction": " ".join(words[i:] + words[:i]), "reference": "Yes."} for i in (0, 1)]
        return orjson.dumps({"instructions": found}).decode()
    if "others are to be measured by" in text:
        return orjson.dumps({"reference": f"It is {words[0]}."}).decode()
    if "[[A>>B]]" in text:
        return f"Both tell of it.\n[[{('A>B', 'B>>A', 'A=B')[int(mark[4], 16) % 3]}]]"
    if "Your judgement" in text and "You grade one response" not in text:
        marker = "[RESULT]" if "[RESULT]" in text else "Verdict:"
        return f"It tells of it.\n{marker} 1"
    if "Your judgement" in text:
        return f"As it is.\nVerdict: {re.findall(r' ([1-5])$', text, re.M)[0]}"
    return " ".join(words)


def photos(folder: Path, n: int) -> None:
    folder.mkdir()
    for i in range(n):
        noise = np.random.default_rng(i).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Pillow.fromarray(noise).save(folder / f"{i}.png")


@pytest.mark.parametrize("name", ["perception", "critic-pointwise"])
def test_kills_under_faults(tmp_path: Path, name: str) -> None:
    photos(tmp_path / "photos", 12)
    rows = [{"id": str(i), "image": f"photos/{i}.png", "instruction": f"What is thing {i}?"} for i in range(12)]
    (tmp_path / "asked.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    out = tmp_path / "out"
    with FaultServer(teach, faults=FAULTS, seed=3, latency=0.02, structured=False, continues=False) as server:
        spec = f"{server.spec},timeout=5"
        told: dict[str, Any] = {"recipe": name, "teacher": spec, "near": False}
        if name == "perception":
            told |= {"images": "photos", "per_image": 2, "words": 20, "complete": False, "rounds": 3}
        else:
            told |= {"sources": ["asked.jsonl"], "responders": [spec], "samples": 12}
        (tmp_path / "recipe.yaml").write_bytes(orjson.dumps(told))
        command = [
            sys.executable, "-m", "dikast", "corpus", "build", str(tmp_path / "recipe.yaml"), "--out", str(out), "-q",
        ]  # fmt: skip
        for kill in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, deadline = sum(server.answered.values()), time.monotonic() + 240
            while sum(server.answered.values()) < before + 15 + 10 * kill and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        for _ in range(5):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
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
        # a kill loses what was answered and not yet written: at most what was in flight, each time
        twice = sum(server.answered.values()) - attempts
        assert 0 <= twice <= KILLS * server.most_seen, (twice, server.most_seen)
        assert sum(server.faulted.values()) > 0.1 * sum(server.tries.values())
    items = list(read_items(out / "items.jsonl"))
    assert len(items) == report["items"] > 60
    for item in items:
        assert check_image(item.images[0])
