"""The server over real connections: answers, refusals, batching, memory of verdicts, and the way it stops."""

import asyncio
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image as Pictures

from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.core.errors import DataError, EngineError, UserError
from dikast.core.item import Item
from dikast.core.part import Image
from dikast.core.rubric import load_rubric
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.decision import DecisionEngine
from dikast.engines.mock import Failures, Random
from dikast.judging.judge import Judge
from dikast.rewards import Reward
from dikast.rewards.trainers import openrlhf
from dikast.serving import contracts
from dikast.serving.delivery import tell_once
from dikast.serving.known import KnownVerdicts
from dikast.serving.messages import Refused
from dikast.serving.server import Door
from runs import dikast_here
from serving.serving_here import Here, send, served, serving


class Slow(Random):
    """A mock whose rounds take a while, and which keeps how many questions each had."""

    def __init__(self, seconds: float = 0.05, **settings: Any) -> None:
        super().__init__(**settings)
        self.seconds, self.sizes = seconds, list[int]()

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        together = list(requests)
        self.sizes.append(len(together))
        time.sleep(self.seconds)
        yield from super().stream(together)


def item(n: int) -> dict[str, Any]:
    return {"id": f"i{n}", "instruction": f"Question {n}?", "response": f"Answer {n}."}


PAIR: dict[str, Any] = {"instruction": "Q?", "responses": ["A.", "B."]}


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    with serving(Judge(Random(), "helpfulness"), most_bytes=100_000) as found:
        yield found


def test_a_score_is_what_grade_says(here: Here) -> None:
    told = here.post("/v1/score", item(1)).json()
    verdict = Judge(Random(), "helpfulness").grade(item(1))
    (shown,) = told["verdicts"]
    assert (shown["key"], shown["score"], shown["expected"]) == (verdict.key, verdict.score, verdict.expected)
    assert told["goodness"] == pytest.approx(((verdict.expected or 0) - 1) / 4)
    several = here.post("/v1/score", {"items": [item(1), item(2)]}).json()["results"]
    assert several[0] == told
    assert [each["id"] for each in several] == ["i1", "i2"]
    one = here.post("/v1/score", {"instruction": "Q?", "responses": ["A.", "B."]}).json()
    assert len(one["goodness"]) == len(one["verdicts"]) == 2


def test_a_comparison_is_what_compare_says(here: Here) -> None:
    pair = {"id": "p", "instruction": "Q?", "responses": ["A.", "B.", "C."]}
    told = here.post("/v1/compare", pair).json()["preferences"]
    plain = {each.pair: each for each in Judge(Random(), "helpfulness").compare_many([pair])}
    assert len(told) == 3
    for each in told:
        own = plain[tuple(each["pair"])]
        assert (each["choice"], each["consistent"], each["logit_a"]) == (own.choice, own.consistent, own.logit_a)
    one_order = here.post("/v1/compare", {**pair, "both_orders": False}).json()["preferences"]
    assert all(len(each["orders"]) == 1 for each in one_order)


def test_an_order_is_what_rank_says(here: Here) -> None:
    several = {"id": "r", "instruction": "Q?", "responses": ["A.", "B.", "C.", ""]}
    told = here.post("/v1/rank", several).json()
    own = Judge(Random(), "helpfulness").rank(several)
    assert (told["order"], told["rewards"]) == (list(own.order), list(own.rewards))
    assert told["left_out"] == {"3": "empty"}
    assert [each["order"] for each in here.post("/v1/rank", {"items": [several]}).json()["results"]] == [told["order"]]
    hard = here.post("/v1/rank", {**several, "values": "verdict"}).json()
    assert (hard["values"], hard["rewards"]) != (told["values"], told["rewards"])
    for body, said, field in (
        ({"schedule": "made up"}, "knockout", "schedule"),
        ({"schedule": ["full"]}, "knockout", "schedule"),
        ({"schedule": "auto"}, "a pilot of a file's items", "schedule"),
        ({"schedule": "knock-out"}, "did you mean 'knockout'", "schedule"),
        ({"schedule": ["full"]}, "full", "schedule"),
        ({"values": "logits"}, "did you mean 'logit'", "values"),
        ({"responses": ["A."]}, "2 or more", "responses"),
        ({"responses": ["A.", "A.", ""]}, "1 different response, empty ones left out", "responses"),
        ({"schedule": "ends"}, "needs 5", "responses"),
    ):
        refused = here.post("/v1/rank", {**several, **body})
        assert refused.status_code == 422
        assert said in refused.json()["error"]["message"]
        assert refused.json()["error"]["field"] == field


def test_columns_of_an_item_are_no_options(here: Here) -> None:
    mine = {**PAIR, "source": "web", "difficulty": 3, "meta": {"value": 1}}
    for path in ("/v1/compare", "/v1/rank"):
        assert here.post(path, mine).status_code == 200
        assert here.post(path, {"items": [mine], "rubric": "honesty"}).status_code == 200
    assert here.post("/v1/score", {**item(1), "values": 3, "schedule": "none of its options"}).status_code == 200
    near = here.post("/v1/rank", {**PAIR, "scedule": "half"}).json()["error"]["message"]
    assert near == "unknown option 'scedule': did you mean 'schedule'? A column of yours goes into 'meta'"


@pytest.mark.parametrize(
    ("path", "body", "field", "meant"),
    [
        ("/v1/score", {"question": "What is 2 + 2?", "response": "4"}, "question", "instruction"),
        ("/v1/score", {"instruction": "What is 2 + 2?", "answer": "4"}, "answer", "response"),
        ("/v1/score", {"instruction": "Q?", "response": "4", "expected_output": "5"}, "expected_output", "reference"),
        ("/v1/score", {"items": [item(1), {"prompt": "Q?", "response": "4"}]}, "items[1].prompt", "instruction"),
        ("/v1/compare", {"prompt": "Q?", "responses": ["A.", "B."]}, "prompt", "instruction"),
        ("/v1/rank", {"query": "Q?", "responses": ["A.", "B."]}, "query", "instruction"),
    ],
)
def test_a_field_under_the_name_of_a_column_is_refused_not_left_out(
    here: Here, path: str, body: dict[str, Any], field: str, meant: str
) -> None:
    told = here.post(path, body)
    assert told.status_code == 422
    error = told.json()["error"]
    assert (error["field"], f"did you mean {meant!r}?" in error["message"]) == (field, True)
    beside = {**item(1), "prompt": "a column of mine, since the instruction is given", "meta": {"question": "q7"}}
    assert here.post("/v1/score", beside).status_code == 200


def test_a_judge_without_a_model_says_that_it_does_not_chat(here: Here) -> None:
    refused = here.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]})
    told = "completions are those of a local model (hf:...), and this server's judge is mock:random"
    assert (refused.status_code, refused.json()["error"]["message"]) == (404, told)


def test_rubrics_by_name_by_object_and_not_at_all() -> None:
    mine = load_rubric({"name": "mine", "criterion": "Is it short?", "scale": "0-10"})
    with serving(Judge(Random()), rubrics=[mine]) as here:
        for rubric in ("mine", "honesty", {"name": "own", "criterion": "Is it kind?", "scale": "1-3"}):
            told = here.post("/v1/score", {**item(1), "rubric": rubric})
            assert told.status_code == 200, told.text
        made_up = here.post("/v1/score", {**item(1), "rubric": "helpfullness"})
        assert made_up.status_code == 404
        assert "did you mean 'helpfulness'" in made_up.json()["error"]["message"]
        assert made_up.json()["error"]["field"] == "rubric"
        assert here.post("/v1/score", {**item(1), "rubric": "/etc/passwd"}).status_code == 404
        assert here.post("/v1/score", item(1)).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/v1/score", b"{", 422, None),
        ("/v1/score", b"[]", 422, None),
        ("/v1/score", {"items": []}, 422, "items"),
        ("/v1/score", {"items": [3]}, 422, "items[0]"),
        ("/v1/score", {"items": [item(1), {"instruction": "Q?", "response": 7}]}, 422, "items[1].response"),
        ("/v1/score", {"instruction": "Q?"}, 422, "responses"),
        ("/v1/score", {"instruction": "Q?", "respons": "A."}, 422, "respons"),
        ("/v1/score", {**item(1), "rubric": 3}, 422, "rubric"),
        ("/v1/score", {**item(1), "rubric": {"criterion": 3}}, 422, "rubric"),
        ("/v1/score", {**item(1), "image": "/etc/hostname"}, 422, "images"),
        ("/v1/score", {**item(1), "image": "x.png"}, 422, "images"),
        ("/v1/compare", item(1), 422, "responses"),
        ("/v1/compare", {"instruction": "Q?", "responses": ["A.", "B."], "both_orders": "yes"}, 422, "both_orders"),
        ("/v1/compare", {**PAIR, "both_order": False}, 422, "both_order"),
        ("/v1/compare", {"items": [PAIR, {**PAIR, "both_orders": False}]}, 422, "items[1].both_orders"),
        ("/v1/compare", {"items": [PAIR], "bothorders": False}, 422, "bothorders"),
        ("/v1/rank", {**PAIR, "scedule": "half"}, 422, "scedule"),
        ("/v1/rank", {"items": [{**PAIR, "value": "verdict"}]}, 422, "items[0].value"),
        ("/v1/score", {"items": [item(1)], "rubrik": "honesty"}, 422, "rubrik"),
        ("/v1/score", {"items": [item(1)], "instruction": "for all?"}, 422, "instruction"),
        ("/get_reward", {"query": "x"}, 422, "query"),
        ("/get_reward", {"query": ["x", 3], "prompts": ["x", "x"]}, 422, "query[1]"),
        ("/get_reward", {"query": ["x"], "prompts": "x"}, 422, "prompts"),
        ("/get_reward", {"query": ["x"], "prompts": [None]}, 422, "prompts[0]"),
        ("/get_reward", {"query": ["x"], "prompts": ["x"], "labels": "x"}, 422, "labels"),
        ("/get_reward", {"query": ["x"], "prompts": ["x"], "labels": []}, 422, "labels"),
        ("/get_reward", {"queries": ["x"], "prompts": ["x"]}, 422, "queries"),
        ("/get_reward", {"query": ["x"], "prompt": ["x"]}, 422, "prompt"),
        ("/get_reward", {"query": ["x"]}, 422, "prompts"),
        ("/get_reward", {"query": ["ab", "x"], "prompts": ["a", "y"]}, 422, "query[1]"),
        ("/get_reward", {"query": ["x"], "prompts": ["x", "y"]}, 422, "prompts"),
        ("/v1/decisions", {"input": "x"}, 422, "questions"),
        ("/v1/decisions", {"input": "x", "questions": [{"type": "essay"}]}, 422, "questions[0].type"),
        ("/v1/systemone", {"state": "x", "questions": {}}, 422, "questions"),
        (
            "/v1/systemone",
            {"state": "x", "assets": {"": {"data_base64": "AAAA"}}, "questions": {"a": {}}},
            422,
            "assets",
        ),
        ("/v1/score", b'{"instruction": "Q?", "response": "A.", "gold": %b}' % (b"[" * 300 + b"]" * 300), 422, None),
        ("/v1/chat/completions", {"messages": []}, 404, None),
        ("/v1/score", b"x" * 200_000, 413, None),
        ("/v1/compare", {"instruction": "Q?", "responses": list(map(str, range(330)))}, 413, None),  # 108,570 questions
        ("/v1/rank", {"instruction": "Q?", "responses": list(map(str, range(330)))}, 413, None),
        (
            "/v1/rank",
            {"instruction": "Q?", "responses": list(map(str, range(9000))), "schedule": "swiss"},
            422,
            "responses",
        ),
        (  # 50 items of 64 responses: 97,600 comparisons and 3,200 grades
            "/v1/rank",
            {"items": [{"instruction": "Q?", "responses": list(map(str, range(64)))}] * 50, "schedule": "graded"},
            413,
            None,
        ),
        ("/nowhere", {}, 404, None),
    ],
)
def test_what_is_refused_and_why(here: Here, path: str, body: Any, status: int, field: str | None) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = send(here.url + path, raw)
    assert told.status_code == status, told.text
    if field is not None:
        assert told.json()["error"]["field"] == field
    assert here.post("/v1/score", item(1)).status_code == 200  # it goes on


def test_a_chunked_body_that_is_too_large_is_refused(here: Here) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 10_000

    with suppress(OSError):  # it may close while the rest is sent
        assert send(here.url + "/v1/score", chunks()).status_code == 413
    assert here.get("/health").json()["status"] == "ok"


def test_what_is_no_http_is_refused_in_one_line_that_repeats_nothing(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    told = send(here.url + "/v1/score", b"not gzip", {"Content-Encoding": "gzip"})
    assert (told.status_code, "cannot be decoded" in told.text) == (400, True)
    for head in (b"GET /secret HTTP/9.9", b"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer secret\x00"):
        with socket.create_connection(("127.0.0.1", here.server.port), 10) as client:
            client.sendall(head + b"\r\n\r\n")
            assert b" 400 " in client.recv(1000)
    assert here.get("/health").json()["status"] == "ok"
    assert caplog.text.count("a request that is not HTTP was refused") >= 2
    loop = asyncio.new_event_loop()
    tell_once(loop)
    for _ in range(3):  # a thousand a second by more connections than files may be open
        loop.call_exception_handler(
            {"message": "socket.accept() out of system resource", "exception": OSError(24, "!")}
        )
    loop.close()
    assert caplog.text.count("too many connections") == 1
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text


def test_pictures_are_data_urls() -> None:
    image = Item.of("x", image=Pictures.new("RGB", (32, 32), "red")).images[0].source
    with serving(Judge(Random(), "helpfulness")) as here:
        told = here.post("/v1/score", {**item(1), "image": image}).json()
    plain = Judge(Random(), "helpfulness").grade({**item(1), "image": image})
    assert told["verdicts"][0]["key"] == plain.key


def test_a_missing_verdict_is_no_number() -> None:
    with serving(Judge(Random(failures=Failures(refused=1.0)), "helpfulness")) as here:
        told = here.post("/v1/score", item(1)).json()
        assert told["goodness"] is None
        assert told["verdicts"][0]["status"] == "refused"
        reward = here.post("/get_reward", {"query": ["Q?A."], "prompts": ["Q?"], "labels": [""]})
        assert reward.status_code == 502
        assert "or start the server with --missing NUMBER" in reward.json()["error"]["message"]
        assert reward.json()["error"]["field"].startswith("query[")
        assert "no verdict" in reward.json()["error"]["message"]
    with serving(Judge(Random(failures=Failures(refused=1.0)), "helpfulness"), missing=-1.0) as here:
        reward = here.post("/get_reward", {"query": ["Q?A."], "prompts": ["Q?"], "labels": [""]})
        assert reward.json() == {"rewards": [-1.0], "scores": [-1.0], "extra_logs": {"no_verdict": [1.0]}}


def test_rewards_as_openrlhf_asks_for_them() -> None:
    """One query a request, many at once, each over a connection of its own; and older clients with a separator."""
    pytest.importorskip("torch")
    prompts = [f"Question {n}?" for n in range(24)]
    queries = [f"{prompt} Answer {n}.</s>" for n, prompt in enumerate(prompts)]
    plain = openrlhf(Reward(Random(), "helpfulness"))(queries, prompts, None)["rewards"].tolist()

    async def ask(url: str, query: str, prompt: str) -> Any:
        payload = {"query": [query], "prompts": [prompt], "labels": [None]}
        async with aiohttp.ClientSession() as session, session.post(url, json=payload) as response:
            response.raise_for_status()
            return await response.json()

    async def all_at_once(url: str) -> Any:
        return await asyncio.gather(*(ask(url, q, p) for q, p in zip(queries, prompts, strict=True)))

    with serving(Judge(Random(), "helpfulness"), separator="?") as here:
        told = asyncio.run(all_at_once(f"{here.url}/get_reward"))
        assert [each["rewards"][0] for each in told] == pytest.approx(plain)
        older = here.post("/get_reward", {"query": queries}).json()
        assert older["rewards"] == pytest.approx(plain)
        for query, why in {"no mark": "lacks the separator", "Why? So? Yes.": "more than once"}.items():
            refused = here.post("/get_reward", {"query": [queries[0], query]})
            assert (refused.status_code, refused.json()["error"]["field"]) == (422, "query[1]")
            assert why in refused.json()["error"]["message"]


def test_clients_that_wait_are_asked_together_and_each_gets_its_own() -> None:
    engine = Slow()
    with serving(Judge(engine, "helpfulness")) as here, ThreadPoolExecutor(40) as pool:
        told = list(pool.map(lambda n: here.post("/v1/score", item(n)).json(), range(80)))
    assert [each["id"] for each in told] == [f"i{n}" for n in range(80)]
    alone = {v.question.item: v.key for v in Judge(engine, "helpfulness").grade_many(map(item, range(80)))}
    assert all(each["verdicts"][0]["key"] == alone[each["id"]] for each in told)
    assert sum(engine.sizes[:-1]) == 80
    assert max(engine.sizes) > 10


def test_a_full_queue_turns_clients_away_and_says_when_to_come_again() -> None:
    with serving(Judge(Slow(0.5), "helpfulness"), queue=10) as here, ThreadPoolExecutor(40) as pool:
        told = list(pool.map(lambda n: here.post("/v1/score", item(n)), range(40)))
        turned = [each for each in told if each.status_code == 429]
        assert len(turned) >= 20
        assert all(int(each.headers["Retry-After"]) >= 1 for each in turned)
        assert {each.status_code for each in told} == {200, 429}
        assert here.post("/v1/score", item(99)).status_code == 200


def test_a_client_that_hangs_and_one_that_goes_away_disturb_no_one() -> None:
    engine = Slow(0.2)
    with serving(Judge(engine, "helpfulness"), body_seconds=1.0) as here:
        port = here.server.port
        silent = socket.create_connection(("127.0.0.1", port))
        half = socket.create_connection(("127.0.0.1", port))
        half.settimeout(30)
        half.sendall(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{")
        body = json.dumps(item(1)).encode()
        for _ in range(5):
            gone = socket.create_connection(("127.0.0.1", port))
            gone.sendall(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            gone.close()
        began = time.monotonic()
        assert here.post("/v1/score", item(2)).status_code == 200
        assert time.monotonic() - began < 2
        assert half.recv(100).startswith(b"HTTP/1.1 408")
        deadline = time.monotonic() + 5
        while here.desk.pending and time.monotonic() < deadline:
            time.sleep(0.02)
        assert here.desk.pending == 0
        silent.close()
        half.close()


def test_a_connection_that_never_sends_a_complete_request_is_closed() -> None:
    """One that is silent, one that drips its headers, one that has been answered and then says nothing."""
    with serving(Judge(Slow(0), "helpfulness"), idle_seconds=1.0) as here:
        silent, drips, answered = (socket.create_connection(("127.0.0.1", here.server.port)) for _ in range(3))
        answered.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answered.recv(1000).startswith(b"HTTP/1.1 200")
        drips.sendall(b"POST /v1/score HTTP/1.1\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 10:
                drips.sendall(b"X-More: 1\r\n")
                drips.settimeout(0.1)
                with suppress(TimeoutError):
                    assert not drips.recv(1)
                    break
        assert 0.5 < time.monotonic() - began < 5
        for each in (silent, answered):
            each.settimeout(5)
            assert each.recv(1) == b""
        assert here.post("/v1/score", item(1)).status_code == 200
        for each in (silent, drips, answered):
            each.close()


def test_a_client_that_never_reads_its_answer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is larger than what the system keeps for it; the next request on the connection is not looked at."""
    gone, abort = threading.Event(), asyncio.selector_events._SelectorTransport.abort  # type: ignore[attr-defined]

    def aborted(transport: Any) -> None:
        abort(transport)
        gone.set()

    monkeypatch.setattr(asyncio.selector_events._SelectorTransport, "abort", aborted)  # type: ignore[attr-defined]
    question = {"type": "predicate", "instructions": "Is it even?"}
    body = json.dumps({"input": "2", "questions": [question], "model": "m" * 30_000_000}).encode()
    head = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with (
        serving(Judge(Random(), "helpfulness"), take_seconds=0.2) as here,
        socket.create_connection(("127.0.0.1", here.server.port)) as client,
    ):
        client.sendall(head + body + b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert gone.wait(60)
        got = 0
        with suppress(ConnectionError):
            while more := client.recv(2**20):
                got += len(more)
        assert got < len(body)
        assert here.server.requests == {("/v1/decisions", 200): 1}
        assert here.get("/health").json()["status"] == "ok"


def test_known_questions_are_answered_without_the_model(tmp_path: Path) -> None:
    engine = Slow(0)
    with serving(Judge(engine, "helpfulness"), out=tmp_path / "kept") as here:
        first = [here.post("/v1/score", item(n)).json() for n in range(5)]
        again = [here.post("/v1/score", item(n)).json() for n in range(5)]
        assert again == first
        assert sum(engine.sizes) == 5
    other = Slow(0)
    with serving(Judge(other, "helpfulness"), out=tmp_path / "kept") as here:
        assert [here.post("/v1/score", item(n)).json() for n in range(5)] == first
        assert here.post("/v1/score", item(6)).status_code == 200
        assert sum(other.sizes) == 1
        ledger = tmp_path / "kept" / "verdicts.jsonl"
        whole = ledger.read_bytes()
        for harm in (whole.replace(b'"score":', b'"scorf":'), whole[:100], b""):  # while it is served
            ledger.write_bytes(harm)
            told = here.post("/v1/score", item(1))
            assert told.status_code == 503, told.text
            assert "doctor FOLDER --repair" in told.text
        ledger.write_bytes(whole)
        assert here.post("/v1/score", item(1)).json() == first[1]
    found = audit_file(AuditPlan(tmp_path / "kept"))
    assert "6" in str(found)


def test_what_stops_the_server_names_its_folders_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = tmp_path / "kept"
    with serving(Judge(Random(), "helpfulness"), out=kept) as here:
        assert here.post("/v1/score", item(1)).status_code == 200
        kept.rename(tmp_path / "moved")
        told = here.post("/v1/score", item(2))
        (tmp_path / "moved").rename(kept)
        (kept / "verdicts.jsonl").write_bytes(b"")
        also = here.post("/v1/score", item(1))
    for each in (told, also):
        assert each.status_code == 503
        assert "its log says why" in each.text
        assert "kept" not in each.text, "no path of the server"
        assert str(tmp_path) not in each.text
    assert f"{kept}: the run folder was removed or replaced" in caplog.text
    assert f"{kept / 'verdicts.jsonl'}: a verdict in it has changed" in caplog.text
    assert "Traceback" not in caplog.text


def test_no_answer_names_a_folder_of_the_server(tmp_path: Path) -> None:
    """Pictures that cannot be read: `dikast serve` tells their names as the client gave them."""
    root = tmp_path / "pictures"
    (root / "folder").mkdir(parents=True)
    (root / "bad.png").write_text("no picture")
    asking = ("--judge", "mock:random", "--rubric", "helpfulness", "--media-root", root)
    with served(*asking) as (url, _):
        for name, said in (
            ("none.png", "image none.png"), ("../x.png", "outside the folder that may be read"),
            ("~/x.png", "image ~/x"),
            ("bad.png", "image bad.png"), ("/etc/passwd", "outside the folder"), ("~root/x.png", "image ~root/x.png"),
            ("a\0b.png", "outside the folder"), (str(root / "folder"), "is a folder"),
            (str(root / "none.png"), "does not exist: fix the path"),
        ):  # fmt: skip
            told = send(f"{url}/v1/score", json.dumps({**item(1), "images": [name]}).encode())
            (verdict,) = told.json()["verdicts"]
            assert verdict["status"] == "bad_item", name
            assert said in verdict["reason"], name
            rest = verdict["reason"].replace(name, "")
            assert not re.search(r"(?<!\w)/\w", rest), verdict["reason"]


def test_a_damaged_file_of_a_kept_folder_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with serving(Judge(Random(), "helpfulness"), out=kept) as here:
        assert here.post("/v1/score", item(1)).status_code == 200
    assert dikast_here("doctor", kept).returncode == 0
    whole = (kept / "rubrics.jsonl").read_bytes()
    for damaged in (whole.replace(b"helpful", b"hopeful", 1), whole[:-9], b"{}\n", b""):
        (kept / "rubrics.jsonl").write_bytes(damaged)
        assert dikast_here("doctor", kept).returncode == 1
        with pytest.raises(DataError, match=r"rubrics.jsonl: the file has changed.*restore a copy of it, or name"):
            KnownVerdicts(kept)
    (kept / "checksums.json").unlink()  # as folders of earlier versions are
    (kept / "rubrics.jsonl").write_bytes(whole[:-9])
    with pytest.raises(DataError, match=r"rubrics.jsonl"):
        KnownVerdicts(kept)
    (kept / "rubrics.jsonl").write_bytes(whole)
    KnownVerdicts(kept).close()


def test_what_rank_asks_is_kept_and_known(tmp_path: Path) -> None:
    engine, several = Slow(0), {"id": "r", "instruction": "Q?", "responses": ["A.", "B.", "C."]}
    with serving(Judge(engine, "helpfulness"), out=tmp_path / "kept") as here:
        first = here.post("/v1/rank", several).json()
        assert sum(engine.sizes) == 6
        assert here.post("/v1/rank", several).json() == first
        here.post("/v1/compare", several)
        assert sum(engine.sizes) == 6
        duel = here.post("/v1/rank", {**several, "schedule": "duel"}).json()
        assert sum(engine.sizes) == 9  # three grades; the duel was fought before
    assert duel["order"] == list(Judge(Slow(0), "helpfulness").rank(several, schedule="duel").order)
    with serving(Judge(Slow(0), "helpfulness"), out=tmp_path / "kept") as here:
        assert here.post("/v1/rank", several).json() == first
        assert here.desk.counts["known"] == 6


def test_a_failed_call_is_asked_again(tmp_path: Path) -> None:
    engine = Slow(0, failures=Failures(errors=1.0))
    with serving(Judge(engine, "helpfulness"), out=tmp_path / "kept") as here:
        for _ in range(3):
            assert here.post("/v1/score", item(1)).json()["verdicts"][0]["status"] == "engine_error"
    assert sum(engine.sizes) == 3


def test_the_token(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--token-env"):
        Door("0.0.0.0")
    with serving(Judge(Random(), "helpfulness"), token="s3cret") as here:
        assert here.get("/health").status_code == 200
        for given in (None, "Bearer wrong", "Bearer s3crét", "s3cret2"):
            told = here.post("/v1/score", item(1), headers={"Authorization": given} if given else {})
            assert told.status_code == 401
            assert "s3cret" not in told.text
        assert here.get("/metrics").status_code == 401
        right = {"Authorization": "Bearer s3cret"}
        assert here.post("/v1/score", item(1), headers=right).status_code == 200
        assert here.get("/metrics", headers=right).status_code == 200


def test_a_page_of_another_site_may_not_ask_a_server_without_a_token() -> None:
    page = {"Origin": "https://elsewhere.example", "Content-Type": "text/plain"}  # what a browser sends unasked
    engine = Slow(0)
    with serving(Judge(engine, "helpfulness")) as here:
        told = here.post("/v1/score", item(1), headers=page)
        assert (told.status_code, engine.sizes) == (403, [])
        assert "--token-env" in told.text
        for host, status in (("elsewhere.example", 403), ("localhost:1", 200), ("[::1]:1", 200)):  # DNS rebinding
            assert here.get("/v1/models", headers={"Host": host}).status_code == status
    with serving(Judge(Random(), "helpfulness"), token="s3cret") as here:
        right = {**page, "Authorization": "Bearer s3cret"}
        assert here.post("/v1/score", item(1), headers=right).status_code == 200


def test_metrics_count_what_happened() -> None:
    with serving(Judge(Random(), "helpfulness")) as here:
        for n in range(3):
            here.post("/v1/score", item(n))
        here.post("/v1/score", {})
        told = here.get("/metrics").text
    assert 'dikast_requests_total{path="/v1/score",status="200"} 3' in told
    assert 'dikast_requests_total{path="/v1/score",status="422"} 1' in told
    assert 'dikast_verdicts_total{status="ok"} 3' in told
    assert "dikast_pending 0" in told


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/score", {**item(1), "rubric": "ab" * 4_000_000}, 404),
        ("/v1/score", {**item(1), "rubric": {"criterion": "Good?", "ab" * 4_000_000: 1}}, 422),
        ("/v1/score", {**item(1), "ab" * 4_000_000: 1}, 200),  # a column, which stays with the item
        ("/v1/rank", {"instruction": "Q?", "responses": ["A.", "B."], "schedule": "ab" * 4_000_000}, 422),
        ("/v1/score", {**item(1), **{f"responze{n}": 1 for n in range(100_000)}}, 413),
        ("/v1/score", {"items": [{**item(1), **{f"responze{n}": 1 for n in range(100_000)}}]}, 413),
        ("/get_reward", {"query": ["x"], **{f"promt{n}": 1 for n in range(100_000)}}, 413),
    ],
)
def test_names_without_end_hold_nobody_up(path: str, body: Any, status: int) -> None:
    """Names that are not known are compared with those that are, which took minutes, and answers quoted them whole."""
    with serving(Judge(Random(), "helpfulness")) as here:
        began = time.process_time()
        told = here.post(path, body)
        assert (told.status_code, time.process_time() - began < 15) == (status, True), told.text[:300]
        assert len(told.text) < 10_000


def test_a_text_may_name_its_pictures_thousands_of_times() -> None:
    yes_no = {"type": "noul", "criteria": {"true": "yes", "false": "no"}, "instructions": "Is it red?"}
    assets = {"<a>": {"data_base64": "AAAA"}, "<a>2": {"data_base64": "BBBB"}}
    (message,), _ = contracts.systemone_asked(
        {"state": "<a> and <a>2, " * 3_000 + "that is all", "assets": assets, "questions": {"red": yes_no}}
    )
    shown = ["data:image/png;base64,AAAA", " and ", "data:image/png;base64,BBBB", ", "]
    told = [each.source if isinstance(each, Image) else getattr(each, "text", None) for each in message.parts]
    assert told[:-1] == (shown * 3_000)[:-1]
    assert told[-1] == ", that is all"


def test_markers_of_pictures_that_begin_alike_take_no_time() -> None:
    """A pattern of all of them held every other client up for hours."""
    yes_no = {"type": "noul", "criteria": {"true": "yes", "false": "no"}, "instructions": "Is it red?"}
    assets = {"a" * n + "b": {"data_base64": "AAAA"} for n in range(1, 3000)}
    asked = {"state": "a" * 10_000_000, "questions": {"red": yes_no}}
    with pytest.raises(Refused, match="2,999 assets, and a request has at most 64"):
        contracts.systemone_asked({**asked, "assets": assets})
    began = time.process_time()
    contracts.systemone_asked({**asked, "assets": dict(list(assets.items())[-64:])})
    assert time.process_time() - began < 20


def test_a_picture_that_cannot_be_read_is_the_mistake_of_the_client() -> None:
    pytest.importorskip("torch")
    yes_no = {"type": "noul", "criteria": {"true": "yes", "false": "no"}, "instructions": "Is it red?"}
    asked = {"state": "<a>", "assets": {"<a>": {"data_base64": "AAAA"}}, "questions": {"red": yes_no}}
    with serving(Judge("scout")) as here:
        told = here.post("/v1/systemone", asked)
    assert (told.status_code, "is not an image" in told.text) == (400, True)


def test_decisions_by_our_own_client() -> None:
    """Our engine of typed decisions asks a served judge, in both contracts."""
    pytest.importorskip("torch")
    with serving(Judge("scout")) as here:
        for contract in ("decisions", "systemone"):
            judge = Judge(f"decision:{here.url}/v1/{contract}#scout", "helpfulness", format="score-only")
            assert isinstance(judge.engine, DecisionEngine)
            verdict = judge.grade(instruction="What is here?", response="a red square")
            assert verdict.status.value == "ok", verdict.reason
            assert verdict.distribution is not None
            assert sum(verdict.distribution.values()) == pytest.approx(1)
            pair = Judge(judge.engine, "helpfulness", compare_format="choice-only").compare(
                instruction="What is here?", responses=["a red square", "a blue square"]
            )
            assert pair.logit_a is not None
            judge.close()


def test_chat_completions_and_decisions_by_the_openai_client() -> None:
    pytest.importorskip("torch")
    import openai

    with serving(Judge("scout")) as here:
        client = openai.OpenAI(base_url=f"{here.url}/v1", api_key="none", max_retries=0)
        told = client.chat.completions.create(
            model="scout", messages=[{"role": "user", "content": "Hello"}], max_tokens=5
        )
        assert told.choices[0].finish_reason in ("stop", "length")
        assert (told.usage.completion_tokens if told.usage else 0) <= 5
        drawn: Any = {"model": "scout", "messages": [{"role": "user", "content": "Hello"}], "temperature": 1.5}
        first, again = (client.chat.completions.create(**drawn, max_tokens=6, n=3, seed=7) for _ in range(2))
        texts = [choice.message.content or "" for choice in first.choices]
        assert [choice.index for choice in first.choices] == [0, 1, 2]
        assert texts == [choice.message.content for choice in again.choices]  # as the seed is given
        assert len(set(texts)) > 1
        assert first.usage is not None
        assert first.usage.completion_tokens > 6
        end = texts[0][3:5]
        cut = client.chat.completions.create(**drawn, max_tokens=6, n=3, seed=7, stop=["never", end])
        assert len(end) == 2
        for text, choice in zip(texts, cut.choices, strict=True):
            assert choice.message.content == text.partition(end)[0] or end not in text
        assert (cut.choices[0].message.content, cut.choices[0].finish_reason) == (texts[0].partition(end)[0], "stop")
        shape = {"type": "object", "properties": {"grade": {"enum": [1, 2]}}, "required": ["grade"],
                 "additionalProperties": False}  # fmt: skip
        formed: Any = {"type": "json_schema", "json_schema": {"name": "grade", "schema": shape}}
        told = client.chat.completions.create(**drawn, max_tokens=40, response_format=formed)
        assert json.loads(told.choices[0].message.content or "") in ({"grade": 1}, {"grade": 2})
        formed["json_schema"]["schema"] = {"type": "no such type"}
        with pytest.raises(openai.UnprocessableEntityError, match="no such type") as refused:
            client.chat.completions.create(**drawn, response_format=formed)
        assert refused.value.param == "response_format"
        decision = client.decisions.create(
            model="scout",
            input=[{"role": "user", "content": [{"type": "input_text", "text": "a red square"}]}],
            questions=[
                {"type": "predicate", "instructions": "It is red."},
                {"type": "choice", "instructions": "Which?", "choices": [{"value": "red"}, {"value": "blue"}]},
                {"type": "score", "instructions": "How red?", "levels": [{"label": "not"}, {"label": "very"}]},
            ],
        )
        assert [each.type for each in decision.answers] == ["predicate", "choice", "score"]
        assert client.models.list().data[0].id == "scout"
        client.close()


HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"max_tokens": -1}, "max_tokens", "one token or more"),
        ({"max_completion_tokens": 0}, "max_completion_tokens", "one token or more"),
        ({"temperature": -0.5}, "temperature", "temperature of 0 or more"),
        ({"top_p": 1.5}, "top_p", "from 0 to 1"),
        ({"seed": "x"}, "seed", "expected a number"),
        ({"n": 0}, "n", "from 1 to 128"),
        ({"n": True}, "n", "from 1 to 128"),
        ({"stop": ["a", ""]}, "stop", "not empty"),
        ({"stop": 3}, "stop", "not empty"),
        ({"stream": True}, "stream", "does not support 'stream'"),
        ({"logprobs": True, "top_logprobs": 3}, "logprobs", "does not support 'logprobs'"),
        ({"tools": [{"type": "function"}]}, "tools", "does not support 'tools'"),
        ({"logit_bias": {"5": -100}}, "logit_bias", "does not support"),
        ({"presence_penalty": 0.5}, "presence_penalty", "does not support"),
        ({"maxtokens": 5}, "maxtokens", "did you mean 'max_tokens'"),
        ({"top_k": 5}, "top_k", "does not know 'top_k'"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "use text, json_object or json_schema"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "expected an object"),
        (
            {"messages": [{"role": "assistant", "content": "x", "tool_calls": [{}]}]},
            "messages[0].tool_calls",
            "'tool_calls'",
        ),
    ],
)
def test_what_a_chat_asks_is_done_or_refused_by_name(body: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        contracts.chat_asked({**HELLO, **body})
    assert (refused.value.status, refused.value.field) == (422, field)


def test_what_asks_for_nothing_is_no_reason_to_refuse() -> None:
    nothing: dict[str, Any] = {"stream": False, "logprobs": False, "tools": [], "tool_choice": "none", "stop": None}
    nothing |= {"n": None, "presence_penalty": 0.0, "response_format": {"type": "text"}, "functions": None, "user": "a"}
    (request,), stop = contracts.chat_asked({**HELLO, **nothing})
    assert (request.schema, request.sampling, stop) == (None, Sampling(), [])


@pytest.mark.parametrize(
    ("kind", "status", "field"),
    [("schema", 422, "response_format"), ("context_length", 400, "messages"), ("no_vision", 400, "messages"),
     ("bad_media", 400, "messages"), ("chat_template", 400, "messages"), ("model", 502, "")],
)  # fmt: skip
def test_a_chat_that_fails_by_its_request_names_the_field(kind: str, status: int, field: str) -> None:
    failed = Completion("key", finish="error", error=EngineError("told", kind=kind))
    with pytest.raises(Refused, match="told") as refused:
        contracts.chat_told([failed], [], "scout")
    assert (refused.value.status, refused.value.field) == (status, field)


COUNTED = ("dikast_pending", "dikast_verdicts_total")


def test_sigterm_answers_what_was_asked_and_ends_in_order(tmp_path: Path) -> None:
    told: list[int] = []
    with served("--judge", "mock:random,latency=0.05", "--rubric", "helpfulness", "--out", tmp_path / "kept") as (
        url,
        process,
    ):

        def ask(n: int) -> None:
            try:
                told.append(send(f"{url}/v1/score", json.dumps(item(n)).encode()).status_code)
            except OSError:
                told.append(0)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(30)]
        for each in threads:
            each.start()
        deadline = time.monotonic() + 60
        while True:  # until all have arrived and some have no answer yet
            text = send(f"{url}/metrics").text
            pending, answered = (sum(map(int, re.findall(rf"^{name}\b.* (\d+)$", text, re.M))) for name in COUNTED)
            if pending and pending + answered == 30:
                break
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        for each in threads:
            each.join()
        assert process.wait(30) == 0
    assert told == [200] * 30
    assert len((tmp_path / "kept" / "verdicts.jsonl").read_text().splitlines()) == 30


@pytest.mark.parametrize(("clients", "each"), [(40, 10), pytest.param(200, 50, marks=pytest.mark.slow)])
def test_many_clients_lose_nothing_and_swap_nothing(clients: int, each: int) -> None:
    """Real clients on connections of their own; malformed and oversized requests among them are refused meanwhile."""
    judge = Judge(Random(), "helpfulness")
    due = {v.question.item: v.key for v in judge.grade_many(item(n) for n in range(clients * each))}

    async def client(url: str, number: int) -> tuple[int, int, int]:
        right = wrong = refused = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
            for k in range(each):
                n = number * each + k
                async with session.post(f"{url}/v1/score", json=item(n)) as response:
                    told = await response.json()
                right += response.status == 200 and told["id"] == f"i{n}" and told["verdicts"][0]["key"] == due[f"i{n}"]
                wrong += response.status != 200
                if k % 10 == 5:
                    bad = b"{" if number % 2 else b"x" * 200_000
                    async with session.post(f"{url}/v1/score", data=bad) as response:
                        refused += response.status == (422 if number % 2 else 413)
        return right, wrong, refused

    async def all_of_them(url: str) -> Any:
        return await asyncio.gather(*(client(url, number) for number in range(clients)))

    with serving(judge, queue=10_000, most_bytes=100_000) as here:
        found = asyncio.run(all_of_them(here.url))
    assert sum(right for right, _, _ in found) == clients * each
    assert sum(wrong for _, wrong, _ in found) == 0
    assert sum(refused for _, _, refused in found) == clients * sum(k % 10 == 5 for k in range(each))
