"""A server that keeps its verdicts, killed again and again: what it answered is on disk once, and not asked again."""

import json
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from runs import dikast_here, lines
from serving.serving_here import send, served


def item(n: int) -> dict[str, Any]:
    return {"id": f"i{n}", "instruction": f"Question {n}?", "response": f"Answer {n}."}


@pytest.mark.slow
@pytest.mark.soak(50)
def test_a_killed_server_has_kept_what_it_answered(tmp_path: Path, tries: int) -> None:
    rng, out, told = random.Random(3), tmp_path / "kept", list[str]()
    asking = ("--judge", "mock:random", "--rubric", "helpfulness", "--out", out)
    for number in range(tries):
        with served(*asking) as (url, process):
            for _ in range(rng.randint(1, 6)):
                told.append(send(f"{url}/v1/score", json.dumps(item(len(told))).encode()).text)
            port = int(url.rpartition(":")[2].strip("/"))
            with socket.create_connection(("127.0.0.1", port)) as client:  # one more question is on its way
                body = json.dumps(item(1000 + number)).encode()
                client.sendall(
                    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                )
                process.kill()
                process.wait()
        keys = [each["key"] for each in lines(out / "verdicts.jsonl")]
        answered = [each["key"] for text in told for each in json.loads(text)["verdicts"]]
        assert len(keys) == len(set(keys)), number
        assert set(answered) <= set(keys), number
    assert dikast_here("doctor", out).returncode == 0
    with served(*asking) as (url, _):
        assert [send(f"{url}/v1/score", json.dumps(item(n)).encode()).text for n in range(len(told))] == told
        assert f"dikast_known_total {len(told)}" in send(f"{url}/metrics").text
