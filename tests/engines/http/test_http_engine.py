import asyncio
import base64
import gc
import hashlib
import shlex
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from dikast.core.errors import UserError
from dikast.core.media import media_files as media
from dikast.core.message import Message, Span
from dikast.engines.base import Completion, Engine, Readout, Request, Sampling
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.testing import check_engine, sample_requests
from dikast.testing.faults import Faults, FaultServer
from engines.http_servers import FAST, LABELS, READ, ask, opened

SERVERS: dict[str, dict[str, Any]] = {
    "does everything": {},
    "ignores parameters": {"logprobs": False, "structured": False, "continues": False},
    "cannot continue": {"continues": False},
    "spells labels in pieces": {"split": True},
    "writes the kit's marker": {"reply": "Fine.\n[RESULT] 4"},
    "fails now and then": {"faults": Faults(server_error=0.2, rate_limited=0.2)},
}


def one(engine: Engine, request: Request) -> Completion:
    (completion,) = engine.stream([request])
    return completion


@pytest.mark.parametrize("kind", SERVERS)
def test_the_engine_keeps_the_protocol(kind: str) -> None:
    with FaultServer(**SERVERS[kind]) as server, opened(server) as engine:
        check_engine(engine)


def test_it_works_inside_a_running_loop_and_while_another_stream_is_suspended() -> None:
    with FaultServer(latency=0.005) as server, opened(server) as engine:

        async def cell() -> list[str]:
            outer = engine.stream([ask(i) for i in range(20)])
            first = next(iter(outer))
            inner = [each.key for each in engine.stream([ask(f"inner-{i}") for i in range(5)])]
            return [first.key, *inner, *(each.key for each in outer)]

        keys = asyncio.run(cell())
    assert sorted(keys) == sorted([*(f"key-{i}" for i in range(20)), *(f"key-inner-{i}" for i in range(5))])


def test_requests_are_pulled_a_little_ahead_and_in_the_callers_thread() -> None:
    pulled: list[int] = []

    def endless() -> Iterator[Request]:
        for i in count():
            pulled.append(threading.get_ident())
            yield ask(i)

    with FaultServer(latency=0.01) as server, opened(server) as engine:
        assert len(list(islice(engine.stream(endless()), 3))) == 3
    assert len(pulled) < 200
    assert set(pulled) == {threading.get_ident()}


def test_requests_that_begin_alike_arrive_one_after_another() -> None:
    tasks = [f"Task {number}. " + "It is long. " * 40 for number in range(8)]
    mixed = [ask(f"{n}", tasks[n % 8]) for n in range(64)]
    arrived: list[str] = []

    def reply(body: Any) -> str:
        arrived.append(body["messages"][-1]["content"])
        return "Verdict: 3"

    with FaultServer(reply) as server, opened(server, f"{FAST},concurrency=16") as engine:
        keys = [done.key for done in engine.stream(mixed)]
    assert sorted(keys) == sorted(request.key for request in mixed)
    beginnings = [text.partition(". ")[0] for text in arrived]
    changes = sum(a != b for a, b in pairwise(beginnings))
    assert changes < 40  # 63 in the order that they were handed over


def test_a_slow_reply_holds_up_nothing_but_itself() -> None:
    class Uneven(FaultServer):
        async def _answer(self, request: Any, body: dict[str, Any], key: str) -> Any:
            if body["messages"][0]["content"] == "Grade this. 0":
                await asyncio.sleep(0.4)
            return await super()._answer(request, body, key)

    with Uneven(latency=0.001) as server, opened(server, f"{FAST},concurrency=4") as engine:
        order = [each.key for each in engine.stream(ask(i) for i in range(60))]
    assert order[-1] == "key-0"


def test_what_was_sent_is_answered_before_an_error_of_the_source_is_raised() -> None:
    def torn() -> Iterator[Request]:
        yield from (ask(i) for i in range(5))
        raise RuntimeError("no more")

    got: list[str] = []
    with FaultServer(latency=0.05) as server, opened(server) as engine:
        with pytest.raises(RuntimeError, match="no more"):
            got.extend(each.key for each in engine.stream(torn()))
        assert sum(server.answered.values()) == len(got) == 5


def test_the_thread_ends_with_the_engine() -> None:
    def threads() -> int:
        return sum(thread.name == "dikast-http" for thread in threading.enumerate())

    gc.collect()  # engines that other tests left
    with FaultServer() as server:
        before = threads()
        engine = open_engine(server.spec)
        assert threads() == before, "opening an engine starts nothing"
        one(engine, ask())
        assert threads() == before + 1
        del engine
        gc.collect()
        assert threads() == before


def test_a_closed_engine_says_so() -> None:
    with FaultServer() as server:
        engine = open_engine(server.spec)
        assert isinstance(engine, HttpEngine)
        engine.close()
        with pytest.raises(UserError, match="closed"):
            one(engine, ask())


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("http://localhost:1/v1", "#MODEL"),
        ("http://user:hunter2@localhost/v1#m", "key_env"),
        ("https://host/v1?api_key=hunter2#m", "key_env"),
        ("http://#m", "write http://HOST"),
        ("http://localhost:1/v1#m,timeot=3", "did you mean 'timeout'"),
        ("http://localhost:1/v1#m,timeout=0", "timeout must be above 0"),
        ("http://localhost:1/v1#m,key_env=NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("http://localhost:1/v1#m,extra={", "not valid JSON"),
        ("http://localhost:1/v1#m,extra=nowhere.json", "neither a JSON object nor a file"),
        ("http://localhost:1/v1#m,extra=/dev/zero", "it is no text file of at most 1 MiB"),
        ("http://localhost:1/v1#m,ca=nowhere.pem", "not a PEM file"),
        ("http://localhost:1/v1#m,money=1", "price"),
    ],
)
def test_specs_that_cannot_be_meant(spec: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(UserError, match=told) as raised:
        open_engine(spec)
    assert "hunter2" not in str(raised.value)


def test_openai_reads_its_variables_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        open_engine("openai:judge")
    with FaultServer(key="sk-mine") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
        engine = open_engine(f"openai:judge,{FAST}")
        assert engine.name == "openai:judge"
        assert one(engine, ask()).error is None
        assert engine.identity()["server"] == server.url
        assert isinstance(engine, HttpEngine)
        engine.close()


def test_a_key_for_one_server_is_not_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with FaultServer() as server, opened(server) as engine:
        one(engine, ask())
        assert set(server.seen_keys) == {""}


def test_identity_changes_with_what_changes_answers_and_with_nothing_else(tmp_path: Path) -> None:
    base = "http://localhost:1/v1#m"
    same = [base, f"{base},timeout=5,concurrency=3,calls=10", "http://localhost:1/v1/#m", f"{base},retries=1"]
    assert len({str(open_engine(spec).identity()) for spec in same}) == 1
    other = [base, "http://localhost:2/v1#m", "http://localhost:1/v1#n", base + ',extra={"top_k":1}']
    assert len({str(open_engine(spec).identity()) for spec in other}) == 4
    moved = [f"{base},server=ours", "http://localhost:2/v1#m,server=ours"]
    assert len({str(open_engine(spec).identity()) for spec in moved}) == 1


def test_a_verdict_is_read_at_the_models_own_marker() -> None:
    with FaultServer("Fine, mostly.\n**Verdict:** 4", sure=0.8) as server, opened(server) as engine:
        read = one(engine, ask(readout=READ))
        graded = Judge(engine, "helpfulness").grade(instruction="2 + 2?", response="4")
    assert read.marker == "own"
    assert read.label_logprobs is not None
    assert set(read.label_logprobs) == set(LABELS)
    assert read.label_logprobs[" 4"] == pytest.approx(-0.2231, abs=1e-4)  # ln 0.8
    assert (graded.label, graded.marker, graded.feedback) == ("4", "own", "Fine, mostly.")
    assert graded.expected == pytest.approx((0.8 * 4 + 0.2 / 9 * (1 + 2 + 3 + 5)) / (0.8 + 0.2 / 9 * 4))


@pytest.mark.parametrize("split", [False, True])
def test_score_only_goes_on_after_the_marker(split: bool) -> None:
    with FaultServer("Verdict: 2", split=split) as server, opened(server) as engine:
        read = one(engine, ask(readout=replace(READ, generate=False)))
        assert server.bodies[-1]["messages"][-1] == {"role": "assistant", "content": "Verdict:"}
    assert (read.text, read.marker) == ("", "forced")
    assert read.label_logprobs is not None
    assert max(read.label_logprobs, key=read.label_logprobs.__getitem__) == " 2"


def test_score_only_on_a_server_that_cannot_go_on_reads_the_models_own_marker() -> None:
    with FaultServer("Well.\nVerdict: 2", continues=False) as server, opened(server) as engine:
        read = [one(engine, ask(i, readout=replace(READ, generate=False))) for i in range(5)]
        assert isinstance(engine, HttpEngine)
        assert engine.noticed == {"continuation": 3}, "after three it is no longer tried"
        assert server.tries.total() == 5 + 3
    assert {each.marker for each in read} == {"own"}
    assert all(each.text == "Well.\nVerdict: 2" for each in read)


def test_what_was_ignored_is_counted_told_once_and_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "required": ["verdict"]}
    with FaultServer(logprobs=False, structured=False) as server, opened(server) as engine:
        for i in range(3):
            assert one(engine, ask(i, readout=READ)).label_logprobs is None
            one(engine, ask(i, schema=schema))
            one(engine, ask(i, choices=("yes", "no")))
        assert isinstance(engine, HttpEngine)
        assert engine.noticed == {"logprobs": 3, "response_format": 3, "choices": 3}
    assert len(caplog.records) == 3


def test_a_parameter_that_is_refused_is_left_out() -> None:
    """A server that answers 400 and names a parameter, as several do for continuation and for `max_tokens`."""
    with Picky() as server, opened(server) as engine:
        found = [one(engine, ask(i, readout=replace(READ, generate=False))) for i in range(3)]
        sent = server.bodies[-1]
        assert isinstance(engine, HttpEngine)
        noticed = engine.noticed
    assert [each.error for each in found] == [None] * 3
    assert {each.marker for each in found} == {"own"}
    assert noticed == {"continuation": 1, "max_tokens": 1}
    assert "max_completion_tokens" in sent
    assert sent["messages"][-1]["role"] == "user"


def test_log_probabilities_that_are_forbidden_are_not_asked_for_again() -> None:
    """OpenAI answers 403 for models that give none, which must not be taken for a refused key."""

    forbidden = count()

    class Forbidding(FaultServer):
        async def _chat(self, request: Any) -> Any:
            from aiohttp import web

            if "logprobs" in await request.json():
                next(forbidden)
                told = "You are not allowed to request logprobs from this model"
                return web.json_response({"error": {"message": told, "type": "invalid_request_error"}}, status=403)
            return await super()._chat(request)

    with Forbidding() as server, opened(server) as engine:
        found = [one(engine, ask(i, readout=READ)) for i in range(3)]
        assert isinstance(engine, HttpEngine)
        assert set(engine.noticed) == {"logprobs"}
    assert [(each.error, each.label_logprobs) for each in found] == [(None, None)] * 3
    assert next(forbidden) == 1


class Picky(FaultServer):
    """Refuses the fields that OpenAI's newer models refuse."""

    async def _chat(self, request: Any) -> Any:
        from aiohttp import web

        body = await request.json()
        for name in ("add_generation_prompt", "max_tokens"):
            if name in body:
                error = {"message": f"Unrecognized request argument supplied: {name}", "param": name}
                return web.json_response({"error": error}, status=400)
        return await super()._chat(request)


def test_a_wrong_model_is_an_error_unless_it_is_accepted() -> None:
    with FaultServer(faults=Faults(wrong_model=1.0)) as server:
        with opened(server) as engine:
            failed = one(engine, ask())
        with opened(server, f"{FAST},served_as=another-model") as engine:
            assert one(engine, ask()).error is None
    assert failed.error is not None
    assert failed.error.kind == "wrong_model"
    assert failed.text == ""


@pytest.mark.parametrize(
    "spec",
    [
        "{url}#judge,retries=1,backoff=0.01",
        "{url},{also}#judge,backoff=0.01,server=farm",
        "vllm-server:judge,url={url},retries=1,backoff=0.01",
        "openai:judge,url={url},key_env=OWN_KEY,backoff=0.01",
    ],
)
def test_the_cure_for_another_model_is_the_whole_spec(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-own-0123456789abcdef")
    with FaultServer(faults=Faults(wrong_model=1.0)) as server:
        written = spec.format(url=server.url, also=server.url.replace("127.0.0.1", "localhost"))
        for before in ("", ",served_as=some-other"):
            with open_engine(written + before) as engine:
                told = str(one(engine, ask()).error)
            assert f"--judge {shlex.quote(f'{written},served_as=another-model')}" in told
            assert "sk-own" not in told
        with open_engine(f"{written},served_as=another-model") as engine:
            assert one(engine, ask()).error is None


@pytest.mark.parametrize("name", ["judge,url=http://elsewhere.example/v1", "other --out x", "a'b", "other\u202e"])
def test_a_models_name_adds_nothing_to_the_spec_that_a_message_says_to_write(name: str) -> None:
    with FaultServer(spoil=lambda value, _: {**value, "model": name}) as server, opened(server, FAST) as engine:
        told = str(one(engine, ask()).error)
    assert "if that is the model you mean, say so behind the judge: served_as=NAME" in told
    assert "--judge" not in told


@pytest.mark.parametrize("named", ["judge-2026-01-01", "judge@main", "ORG/judge", "Judge", "judge:8b", "judge-large"])
def test_a_dated_or_pinned_name_is_the_same_model(named: str) -> None:
    class Renaming(FaultServer):
        def _completion(self, *about: Any, **more: Any) -> dict[str, Any]:
            return {**super()._completion(*about, **more), "model": named}

    with Renaming() as server, opened(server) as engine:
        assert (one(engine, ask()).error is None) == (named != "judge-large")


@pytest.mark.parametrize(
    ("asked", "named", "same"),
    [
        ("gemini-flash-latest", "gemini-2.5-flash-preview-09-2025", True),
        ("gemini-flash-latest", "models/gemini-3-flash", True),
        ("gemini-flash-latest", "gemini-2.5-flash-lite", False),
        ("gemini-flash-latest", "gemini-2.5-pro", False),
        ("gemini-flash-lite-latest", "gemini-2.5-flash-lite-preview-09-2025", True),
        ("gemini-flash-lite-latest", "gemini-2.5-flash", False),
        ("gemini-2.5-flash", "gemini-flash", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("claude-3-5-sonnet-latest", "claude-3-7-sonnet-20250219", False),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514", True),
        ("claude-sonnet-4-0", "claude-sonnet-4-5", False),
        ("mistral-large-latest", "mistral-large-2411", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
    ],
)
def test_an_alias_is_answered_by_a_model_of_its_family(asked: str, named: str, same: bool) -> None:
    class Renaming(FaultServer):
        def _completion(self, *about: Any, **more: Any) -> dict[str, Any]:
            return {**super()._completion(*about, **more), "model": named}

    with Renaming(model=asked) as server, opened(server) as engine:
        done = one(engine, ask())
    assert (done.error is None) == same
    assert same or f"--judge '{server.url}#{asked},{FAST},served_as={named}'" in str(done.error)


def test_refusals_are_answers() -> None:
    class Refusing(FaultServer):
        def _completion(self, *about: Any, **more: Any) -> dict[str, Any]:
            made = super()._completion(*about, **more)
            made["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "I will not."}
            return made

    with Refusing() as server, opened(server) as engine:
        completion = one(engine, ask())
    assert (completion.error, completion.refusal, completion.text) == (None, "I will not.", "")


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "This model's maximum context length is 4096 tokens", "context_length"),
        (400, "temperature does not support 0 with this model", "bad_request"),
        (404, "no such model", "not_found"),
        (405, "Method Not Allowed", "bad_response"),
        (501, "Unsupported method ('POST')", "bad_response"),
        (413, "too much", "too_large"),
        (429, "You exceeded your current quota (insufficient_quota)", "quota"),
    ],
)
def test_errors_are_typed_and_sent_once(status: int, message: str, kind: str) -> None:
    sent: list[int] = []

    class Failing(FaultServer):
        async def _chat(self, request: Any) -> Any:
            from aiohttp import web

            sent.append(1)
            return web.json_response({"error": {"message": message}}, status=status)

    with Failing() as server, opened(server) as engine:
        error = one(engine, ask()).error
    assert error is not None
    assert (error.kind, len(sent)) == (kind, 1)
    assert message in str(error)


def test_usage_and_cost_come_from_the_servers_counts(tmp_path: Path) -> None:
    table = tmp_path / "prices.yaml"
    table.write_text("judge: {in: 2.0, cached: 0.5, out: 10.0}\n")
    with FaultServer("one two three") as server, opened(server, f"{FAST},prices={table}") as engine:
        usage = one(engine, ask(text="x" * 388)).usage  # 390 characters, 97 tokens, half of them cached
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_out) == (97, 48, 3)
    assert usage.cost == pytest.approx((49 * 2.0 + 48 * 0.5 + 3 * 10.0) / 1e6)
    assert usage.seconds > 0


def test_sampling_reaches_the_server_with_a_seed_of_its_own_for_every_key() -> None:
    with FaultServer() as server, opened(server) as engine:
        warm = Sampling(temperature=0.7, top_p=0.9, max_tokens=77, seed=3)
        for i in (1, 1, 2):
            one(engine, ask(i, sampling=warm))
        first, again, other = server.bodies
        one(engine, ask(1))
        cold = server.bodies[-1]
    assert (first["temperature"], first["top_p"], first["max_tokens"]) == (0.7, 0.9, 77)
    assert first["seed"] == again["seed"] != other["seed"]
    assert cold["temperature"] == 0
    assert not {"seed", "top_p"} & set(cold)


def test_extra_fields_are_added_and_taken_out(tmp_path: Path) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text('{"reasoning_effort": "low", "temperature": null}')
    with FaultServer() as server, opened(server, f"{FAST},extra={extra}") as engine:
        one(engine, ask())
        assert server.bodies[-1]["reasoning_effort"] == "low"
        assert "temperature" not in server.bodies[-1]


def test_roles_and_order_are_kept() -> None:
    request = Request(
        "k",
        (Message("system", (Span("Judge.", True),)), Message("user", (Span("a", True), Span("b")))),
        prefill="So",
    )
    with FaultServer() as server, opened(server) as engine:
        one(engine, request)
        assert server.bodies[-1]["messages"] == [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": "ab"},
            {"role": "assistant", "content": "So"},
        ]


def test_the_kits_requests_are_answered_many_at_a_time() -> None:
    with FaultServer(latency=0.02) as server, opened(server) as engine:
        assert len(list(engine.stream(sample_requests(100)))) == 100
        assert server.most_seen > 8


def test_a_marker_the_model_wrote_twice_is_read_where_a_label_follows() -> None:
    reply = "Verdict: 2\nOn a second look.\nVerdict: 4\nThe line `Verdict:` ends it."
    with FaultServer(reply) as server, opened(server) as engine:
        read = one(engine, ask(readout=Readout(LABELS, "Verdict:")))
    assert read.label_logprobs is not None
    assert max(read.label_logprobs, key=read.label_logprobs.__getitem__) == " 4"


def test_an_image_in_a_data_url_is_hashed_once_for_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, hashed, plain = tmp_path / "a.png", [], hashlib.sha256
    PIL.Image.new("RGB", (40, 30), 137).save(path)
    url = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()

    def counted(raw: bytes = b"") -> Any:
        hashed.append(raw)
        return plain(raw)

    media.forget()
    monkeypatch.setattr(hashlib, "sha256", counted)
    with FaultServer() as server, opened(server) as engine:
        judge = Judge(engine, "helpfulness")
        assert judge.grade(instruction=["What is it?", {"type": "image", "image": url}], response="Grey.").score
        (content,) = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    assert [part["image_url"]["url"] for part in content if part["type"] == "image_url"] == [url]
    assert [each for each in hashed if each == path.read_bytes()] == [path.read_bytes()]
