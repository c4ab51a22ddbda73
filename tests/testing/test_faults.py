"""The fault server does what it says; spoken to with the standard library alone."""

import http.client
import json
import time
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.testing.faults import Faults, FaultServer, prompt_of


def post(server: FaultServer, text: str = "Grade this.", *, timeout: float = 5, **fields: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        body = {"model": server.model, "messages": [{"role": "user", "content": text}], **fields}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Authorization": "Bearer k"})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def message(reply: Any) -> dict[str, Any]:
    choice: dict[str, Any] = json.loads(reply[2])["choices"][0]
    return choice


def test_a_right_reply_and_what_is_counted() -> None:
    with FaultServer() as server:
        first, again, other = post(server), post(server), post(server, "Another.")
    assert first[0] == 200
    assert message(first)["message"]["content"] == message(again)["message"]["content"]
    assert "Verdict: " in message(other)["message"]["content"]
    key = "ask " + prompt_of({"messages": [{"role": "user", "content": "Grade this."}]})
    assert (server.tries[key], server.billed[key], server.answered[key]) == (2, 2, 2)
    assert server.seen_keys == {"k": 3}


@pytest.mark.parametrize("name", ["rate_limited", "rate_limited_wait", "server_error", "redirect"])
def test_faults_by_status(name: str) -> None:
    with FaultServer(faults=Faults(**{name: 1.0})) as server:
        status, headers, _ = post(server)
    assert status == {"rate_limited": 429, "rate_limited_wait": 429, "server_error": 500, "redirect": 307}[name]
    assert ("Retry-After" in headers) == (name == "rate_limited_wait")
    assert (server.billed.total(), server.answered.total(), server.faulted[name]) == (0, 0, 1)


def test_faults_inside_a_reply_are_billed_and_not_answered() -> None:
    for name in ("truncated_json", "invalid_json", "wrong_model"):
        with FaultServer(faults=Faults(**{name: 1.0})) as server:
            status, _, raw = post(server)
        assert status == 200
        if name == "wrong_model":
            assert json.loads(raw)["model"] == "another-model"
        else:
            with pytest.raises(ValueError, match=r"."):
                json.loads(raw)
        assert (server.billed.total(), server.answered.total()) == (1, 0)


def test_cut_hang_drip_and_oversized() -> None:
    with FaultServer(faults=Faults(cut=1.0)) as server, pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(server)
    with FaultServer(faults=Faults(hang=1.0)) as server, pytest.raises(TimeoutError):
        post(server, timeout=0.2)
    with FaultServer(faults=Faults(drip=1.0)) as server:
        began = time.monotonic()
        assert "Verdict" in message(post(server))["message"]["content"]
        assert time.monotonic() - began >= 0.07
    with FaultServer(faults=Faults(oversized=1.0), oversize=3_000_000) as server:
        assert len(post(server)[2]) > 3_000_000


def test_the_same_seed_meets_the_same_faults_in_any_order() -> None:
    def fates(seed: int, order: list[int]) -> dict[int, list[int]]:
        with FaultServer(faults=Faults(server_error=0.5), seed=seed) as server:
            found: dict[int, list[int]] = {}
            for i in order:
                found.setdefault(i, []).append(post(server, str(i))[0])
            return found

    order = [*range(12), *range(12)]
    assert fates(1, order) == fates(1, order[::-1])
    assert fates(1, order) != fates(2, order)


def test_log_probabilities_continuation_schema_and_choices() -> None:
    with FaultServer("Well.\nVerdict: 4") as server:
        read = message(post(server, logprobs=True, top_logprobs=20))["logprobs"]["content"]
        assert "".join(entry["token"] for entry in read) == "Well.\nVerdict: 4"
        assert read[-1]["token"] == " 4"
        assert len(read[-1]["top_logprobs"]) == 10
        begun = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "Fine.\nVerdict:"}]
        on = message(post(server, messages=begun, continue_final_message=True, echo=True))
        assert on["message"]["content"] == "Fine.\nVerdict: 4"
        schema = {"schema": {"required": ["feedback", "verdict"]}}
        wanted = {"type": "json_schema", "json_schema": schema}
        assert json.loads(message(post(server, response_format=wanted))["message"]["content"])["verdict"] == "4"
        assert message(post(server, structured_outputs={"choice": ["yes", "no"]}))["message"]["content"] == "yes"
    with FaultServer(faults=Faults(ignored=1.0)) as server:
        assert message(post(server, logprobs=True, top_logprobs=20))["logprobs"] is None


def test_a_rate_limit_and_a_most_in_flight() -> None:
    with FaultServer(rate=1.0, burst=2) as server:
        assert [post(server)[0] for _ in range(3)] == [200, 200, 429]
    with FaultServer(most_in_flight=0) as server:
        assert post(server)[0] == 429


def test_a_wrong_key_and_an_unknown_model_are_refused() -> None:
    with FaultServer(key="other") as server:
        assert post(server)[0] == 401
    with FaultServer() as server:
        assert post(server, model="nobody")[0] == 404


def test_shares_must_fit_together() -> None:
    with pytest.raises(UserError, match="at most 1"):
        Faults(hang=0.6, cut=0.6)
