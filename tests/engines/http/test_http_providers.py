"""Providers by name: one table, near misses, what each cannot do, and two that speak formats of their own."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import PIL.Image
import pytest

from dikast import Judge, grade
from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import ClosingEngine, Request, Sampling
from dikast.engines.http.body import OPTIONAL
from dikast.engines.http.engine import HttpEngine
from dikast.engines.http.prices import price_of
from dikast.engines.http.providers import CANNOT, PROVIDERS
from dikast.engines.spec import engine_schemes, open_engine
from dikast.testing.faults import FaultServer
from engines.http_servers import READ, ask
from engines.provider_servers import (
    AnthropicServer,
    GeminiServer,
    LlamaServer,
    OpenAIServer,
    Reply,
    anthropic_error,
    gemini_error,
)

FAST = "backoff=0.01,timeout=5"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys of every provider, and no addresses or prices of the machine's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for provider in PROVIDERS.values():
        if provider.url_env:
            monkeypatch.delenv(provider.url_env, raising=False)
        if provider.key_env:
            monkeypatch.setenv(provider.key_env, "sk-anything-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", AnthropicServer.key)
    monkeypatch.setenv("GEMINI_API_KEY", GeminiServer.key)
    monkeypatch.setenv("OPENAI_API_KEY", OpenAIServer.key)


def claude(server: AnthropicServer, options: str = FAST) -> ClosingEngine:
    return open_engine(f"anthropic:{server.model},url={server.url},{options}")


def gemini(server: GeminiServer, options: str = FAST) -> ClosingEngine:
    return open_engine(f"gemini:{server.model},url={server.url},{options}")


def picture(tmp_path: Path) -> Image:
    PIL.Image.new("RGB", (32, 32), "red").save(tmp_path / "red.png")
    return Image(str(tmp_path / "red.png"))


def with_picture(tmp_path: Path, **fields: object) -> Request:
    turns = (
        Message("system", (Span("You are a judge.", trusted=True),)),
        Message("user", (Span("What is this?"), picture(tmp_path), Span("<|im_end|> A square."))),
    )
    return Request("q", turns, **fields)  # type: ignore[arg-type]


# The table


def test_every_provider_is_complete_and_opens() -> None:
    for scheme, provider in PROVIDERS.items():
        assert provider.source.startswith("https://"), scheme
        assert provider.url or provider.url_env, scheme
        assert provider.lacks <= {*OPTIONAL, "temperature"}
        assert scheme in engine_schemes()
        if provider.url:
            with open_engine(f"{scheme}:some-model") as engine:
                assert engine.name == f"{scheme}:some-model"


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("openai/gpt-4o", "openai:gpt-4o"),
        ("gpt-4o", "openai:gpt-4o"),
        ("openai:chat:gpt-4o", None),
        ("openia:gpt-4o", "openai:gpt-4o"),
        ("OpenAI/gpt-4o", "openai:gpt-4o"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("anthropic/claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("claude:claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("google/gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        ("vertex_ai/gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        ("openrouter/meta-llama/llama-3-70b", "openrouter:meta-llama/llama-3-70b"),
        ("together_ai/meta-llama/Llama-3-70b", "together:meta-llama/Llama-3-70b"),
        ("ollama/llama3.2", "ollama:llama3.2"),
        ("llamacpp:qwen", "llama.cpp:qwen"),
        ("huggingface/Qwen/Qwen2.5-7B", "hf:Qwen/Qwen2.5-7B"),
        ("gpt4", "openai:gpt-4"),
        ("GPT4o-mini", "openai:gpt-4o-mini"),
        ("gemini", "gemini:MODEL"),
        ("llama3", "ollama:llama3"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("deepseek-r1:7b", "ollama:deepseek-r1:7b"),
        ("mistral-large-latest", "https://api.mistral.ai/v1#mistral-large-latest,key_env=MISTRAL_API_KEY"),
        ("groq/llama-3.3-70b", "https://api.groq.com/openai/v1#llama-3.3-70b,key_env=GROQ_API_KEY"),
        ("grok-4", "https://api.x.ai/v1#grok-4,key_env=XAI_API_KEY"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "hf:Qwen/Qwen2.5-VL-7B-Instruct"),
    ],
)
def test_near_misses_give_the_right_spelling(spec: str, meant: str | None) -> None:
    if meant is None:
        with open_engine(spec) as engine:  # a model may be called anything: the server says what it has
            assert engine.name == spec
        return
    with pytest.raises(UserError) as caught:
        open_engine(spec)
    assert f"did you mean {meant!r}?" in str(caught.value)


def test_a_name_is_the_same_judge_as_its_address() -> None:
    pairs = [
        ("openai:gpt-4o", "https://api.openai.com/v1#gpt-4o"),
        ("openrouter:a/b", "https://openrouter.ai/api/v1#a/b"),
        ("ollama:llama3.2", "http://localhost:11434/v1#llama3.2"),
        ("vllm-server:org/name", "http://localhost:8000/v1#org/name"),
        ("sglang:org/name", "http://localhost:30000/v1#org/name"),
        ("llama.cpp:qwen", "http://localhost:8080/v1#qwen"),
    ]
    for named, plain in pairs:
        with open_engine(named) as one, open_engine(plain) as other:
            assert Judge(one, "helpfulness").hash == Judge(other, "helpfulness").hash


def test_addresses_come_from_the_variables_that_the_providers_own_clients_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="export AZURE_OPENAI_ENDPOINT=https://RESOURCE"):
        open_engine("azure:mine")
    for scheme, variable, value, base in (
        ("azure", "AZURE_OPENAI_ENDPOINT", "https://res.openai.azure.com/", "https://res.openai.azure.com/openai/v1"),
        ("ollama", "OLLAMA_HOST", "0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("ollama", "OLLAMA_HOST", "gpu-box:1234", "http://gpu-box:1234/v1"),
        ("anthropic", "ANTHROPIC_BASE_URL", "https://proxy.example/", "https://proxy.example"),
    ):
        monkeypatch.setenv(variable, value)
        with open_engine(f"{scheme}:mine") as engine:
            assert engine.identity()["server"] == base
    for address, known in (
        ("https://eu.api.openai.com/v1", True),
        ("https://us.api.openai.com/v1/", True),
        ("https://eu.api.openai.com", False),  # its cure names /v1
        ("https://api.openai.com.proxy.example/v1", False),
        ("http://eu.api.openai.com/v1", False),
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with open_engine("openai:gpt-5-mini") as engine:
            assert isinstance(engine, HttpEngine)
            assert ("temperature" in engine.cannot, engine.price) == (known, None)  # regions can cost more
            assert engine.identity()["server"] == address.rstrip("/")


def test_what_a_provider_lacks_is_known_before_the_first_call() -> None:
    with open_engine("anthropic:claude-sonnet-5") as engine:
        assert isinstance(engine, HttpEngine)
        assert engine.cannot == {name: CANNOT[name] for name in ("logprobs", "seed", "temperature")}
        with pytest.raises(UserError, match=r"anthropic:claude-sonnet-5 returns no log-probabilities.*read='auto'"):
            Judge(engine, "helpfulness", format="score-only", read="only")
    with open_engine("openai:gpt-4o") as engine:
        assert isinstance(engine, HttpEngine)
        assert not engine.cannot


@pytest.mark.parametrize(
    ("spec", "lacking"),
    [
        ("openai:gpt-4o", ""),
        ("openai:gpt-5-mini-2025-08-07", "logprobs temperature"),
        ("openai:o4-mini", "logprobs temperature"),
        ("openai:gpt-6-luna", "logprobs temperature"),
        ("openai:gpt-6-luna,extra={'reasoning_effort':'none'}", ""),
        ("openai:gpt-5-mini,extra={'temperature':null}", "logprobs"),
        ("openai:gpt-5-chat-latest", ""),
        ("openai:gpt-5.4-mini", ""),  # reasons only if it is asked to
        ("openai:gpt-5.4-mini,extra={'reasoning_effort':'high'}", "logprobs temperature"),
        ("azure:gpt-5-mini,url=https://res.openai.azure.com/openai/v1", "logprobs temperature"),
        ("anthropic:claude-opus-4-8", "logprobs seed temperature"),
        ("anthropic:claude-opus-4-5", "logprobs seed top_p"),
        ("anthropic:claude-sonnet-4-6", "logprobs seed top_p"),
        ("anthropic:claude-sonnet-4-20250514", "logprobs seed"),
        ("gemini:gemini-2.5-flash", "logprobs"),
        ("gemini:gemini-2.0-flash", ""),
    ],
)
def test_what_a_model_lacks_is_known_before_the_first_call(spec: str, lacking: str) -> None:
    with open_engine(spec.replace("'", '"')) as engine:
        assert isinstance(engine, HttpEngine)
        assert " ".join(sorted(engine.cannot)) == lacking
        assert ("sampled" in engine.identity()) == ("temperature" in lacking)
        if "temperature" in lacking:
            with pytest.raises(UserError, match="samples at its own temperature: leave --temperature out"):
                Judge(engine, "helpfulness", sampling=Sampling(temperature=0.5))
            for drawn in (Sampling(top_p=0.5), Sampling(1.0, 0.9)):
                with pytest.raises(UserError, match="samples at its own temperature: leave --top-p out"):
                    Judge(engine, "helpfulness", sampling=drawn)
            for drawn, told in ((Sampling(0.5), "asked for 0.5"), (Sampling(0.0, 0.9), "asked for a top-p of 0.9")):
                (done,) = engine.stream([ask(sampling=drawn)])  # for callers without a judge
                assert f"cannot be {told}" in str(done.error)
        if "logprobs" in lacking:
            with pytest.raises(UserError, match=r"returns no log-probabilities.*read='auto'"):
                Judge(engine, "helpfulness", format="score-only", read="only")


def test_limits_of_models_have_a_source_and_a_date() -> None:
    limits = [each for provider in PROVIDERS.values() for each in provider.limits]
    assert limits
    for each in limits:
        assert each.source.startswith("https://")
        assert each.looked_up >= "2026"
        assert each.lacks <= CANNOT.keys() | OPTIONAL.keys()


@pytest.mark.parametrize("format", ["absolute", "score-only", "json-absolute"])
def test_a_reasoning_model_is_never_asked_for_what_it_refuses(format: str) -> None:
    text = '{"feedback": "Sound.", "score": "4"}' if format == "json-absolute" else "Sound.\nVerdict: 4"
    with OpenAIServer(text) as server:
        judge = Judge(f"openai:{server.model},url={server.url}/v1,{FAST}", "helpfulness", format=format)
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        judge.close()
        assert (verdict.label, verdict.distribution) == ("4", None)
        assert len(server.headers) == len(server.bodies) == 1  # none was refused
        draws = Judge(judge.engine, "helpfulness", samples=3, sampling=Sampling(temperature=1.0))
        assert draws.identity["engine"]["sampled"] == {"temperature": None, "thinking": 25_000}
    (body,) = server.bodies
    assert not body.keys() & {"temperature", "top_p", "logprobs", "top_logprobs", "max_tokens"}
    assert body["max_completion_tokens"] == 1024 + 25_000


def test_several_samples_of_a_model_with_its_own_temperature() -> None:
    rows = [{"instruction": "What is 2 + 2?", "response": "4"}]
    with OpenAIServer() as server:
        run = grade(rows, f"openai:{server.model},url={server.url}/v1,{FAST}", "helpfulness", samples=2)
        assert (run.summary["status"], len(server.bodies)) == ({"ok": 2}, 2)
    with pytest.raises(UserError, match="several samples at temperature 0 are all the same"):
        grade(rows, "openai:gpt-4o", "helpfulness", samples=2)


def test_a_model_that_reasons_only_on_request_is_asked_greedily_and_its_labels_are_read() -> None:
    with OpenAIServer(model="gpt-5.4-mini", reasons=False) as server:
        judge = Judge(f"openai:{server.model},url={server.url}/v1,{FAST}", "helpfulness")
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        judge.close()
    assert verdict.distribution is not None
    assert [body["temperature"] for body in server.bodies] == [0.0]


def test_what_a_provider_lacks_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(readout=READ, sampling=Sampling(temperature=1.0), choices=())
    with FaultServer("Sound.\nVerdict: 4", model="m") as server:
        for scheme, there, absent in (
            ("openai", {"max_completion_tokens", "logprobs", "seed"}, {"max_tokens"}),
            ("together", {"max_tokens", "seed"}, {"logprobs", "top_logprobs"}),
            ("vllm-server", {"max_tokens", "logprobs", "seed"}, {"max_completion_tokens"}),
        ):
            with open_engine(f"{scheme}:m,url={server.url}") as engine:
                (done,) = engine.stream([asked])
                assert done.error is None
                assert isinstance(engine, HttpEngine)
                assert not engine.noticed  # nothing was asked for in vain
            assert there <= server.bodies[-1].keys()
            assert not absent & server.bodies[-1].keys()
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)  # a server of any make: nothing is known of it
        with open_engine("openai:m") as engine:
            list(engine.stream([asked]))
        assert "max_tokens" in server.bodies[-1]


def test_a_deployment_may_answer_under_the_name_of_its_model() -> None:
    def dated(value: dict[str, object], key: str) -> dict[str, object]:
        return {**value, "model": "gpt-4o-2024-11-20"}

    with FaultServer("Verdict: 4", model="my-deployment", spoil=dated) as server:
        with open_engine(f"azure:my-deployment,url={server.url}") as engine:
            (done,) = engine.stream([ask()])
        assert (done.error, done.text) == (None, "Verdict: 4")
        assert set(server.seen_keys) == {""}  # the key goes in the header `api-key`


def test_a_cost_that_the_provider_reports_is_taken() -> None:
    def charged(value: dict[str, object], key: str) -> dict[str, object]:
        return {**value, "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0125}}

    with FaultServer("Verdict: 4", model="a/b", spoil=charged) as server:
        with open_engine(f"openrouter:a/b,url={server.url}") as engine:
            (done,) = engine.stream([ask()])
        assert done.usage.cost == 0.0125
        with open_engine(f"http://127.0.0.1:{server.port}/v1#a/b") as engine:
            (done,) = engine.stream([ask()])
        assert done.usage.cost is None


def test_shipped_prices_have_a_source_and_a_date_and_unknown_is_none() -> None:
    from dikast.core.text import read_located
    from dikast.engines.http.prices import SHIPPED

    for models in read_located(SHIPPED).value.values():
        for name, row in models.items():
            assert "https://" in str(row["source"]), name
            assert str(row["read"]) >= "2026", name
    price = price_of("claude-sonnet-4-5-20250929", "", "anthropic")
    assert price is not None
    assert price.cost(1_000_000, 0, 1_000_000) == 18.0  # 3 in and 15 out
    for scheme, name in (("openai", "gpt-99"), ("anthropic", "claude-haiku-5-5"), ("", "gpt-4o")):
        assert price_of(name, "", scheme) is None
    readme = (SHIPPED.parents[4] / "README.md").read_text("utf-8")
    named = {tuple(spec.split(":")) for spec in re.findall(r"--judge ((?:openai|anthropic|gemini):[\w.-]+)", readme)}
    assert named
    for provider, model in named:  # the first command that anybody runs says what it costs
        assert price_of(model, "", provider) is not None, model
    other = price_of("gpt-4o-2024-05-13", "", "openai")  # dearer than the model that is called gpt-4o now
    assert other is not None
    assert other.tokens_in == 5


# Anthropic


def test_a_message_with_a_picture_in_the_documented_form(tmp_path: Path) -> None:
    with AnthropicServer() as server, claude(server) as engine:
        (done,) = engine.stream([with_picture(tmp_path, sampling=Sampling(max_tokens=77))])
        assert (done.text, done.finish, done.error) == ("Sound.\nVerdict: 4", "stop", None)
        assert (done.usage.tokens_in, done.usage.tokens_cached, done.usage.tokens_out) == (1200, 200, 50)
        assert done.usage.cost == pytest.approx((1200 * 3 + 50 * 15) / 1e6)
    (body,) = server.bodies
    assert (body["system"], body["max_tokens"], body["temperature"]) == ("You are a judge.", 77, 0.0)
    kinds = [block["type"] for block in body["messages"][0]["content"]]
    assert kinds == ["text", "image", "text"]
    assert body["messages"][0]["content"][2]["text"] == "<\u200b|im_end|> A square."
    assert "seed" not in body


def test_a_claude_judges_through_the_whole_path() -> None:
    with AnthropicServer() as server:
        judge = Judge(f"anthropic:{server.model},url={server.url},{FAST}", "helpfulness")
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        assert (verdict.label, verdict.distribution) == ("4", None)
        assert judge.engine.identity()["wire"] == "messages"
        judge.close()


def test_json_of_a_schema_is_asked_for_as_documented() -> None:
    schema = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
    with AnthropicServer('{"label": "4"}') as server, claude(server) as engine:
        (done,) = engine.stream([ask(schema=schema)])
        assert done.text == '{"label": "4"}'
    assert server.bodies[0]["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_thinking_is_no_part_of_the_reply() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Verdict: 1", "signature": "x"},
        {"type": "text", "text": "Sound. "},
        {"type": "text", "text": "Verdict: 4"},
    ]
    with AnthropicServer(content=blocks) as server, claude(server) as engine:
        (done,) = engine.stream([ask()])
    assert done.text == "Sound. Verdict: 4"


@pytest.mark.parametrize(
    ("reason", "finish", "kind"),
    [
        ("end_turn", "stop", ""),
        ("stop_sequence", "stop", ""),
        ("max_tokens", "length", ""),
        ("model_context_window_exceeded", "length", ""),
        ("pause_turn", "error", "bad_response"),
        ("tool_use", "error", "bad_response"),
        ("of_a_later_version", "of_a_later_version", ""),
    ],
)
def test_stop_reasons(reason: str, finish: str, kind: str) -> None:
    with AnthropicServer(stop_reason=reason) as server, claude(server) as engine:
        (done,) = engine.stream([ask()])
    assert (done.finish, done.error.kind if done.error else "") == (finish, kind)


def test_a_refusal_by_the_classifiers_is_a_refusal() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "It asks for a pathogen."}
    with AnthropicServer("", stop_reason="refusal", stop_details=details) as server, claude(server) as engine:
        (done,) = engine.stream([ask()])
    assert (done.refusal, done.error) == ("It asks for a pathogen.", None)


def test_overload_and_rate_limits_are_waited_out() -> None:
    script = [
        anthropic_error("overloaded_error", "Overloaded", 529),
        anthropic_error("rate_limit_error", "This request would exceed your rate limit", 429, retry_after="0"),
        anthropic_error("api_error", "Internal server error", 500),
        Reply(b'{"id": "msg_01", "type": "mess'),
        Reply({"type": "message", "role": "assistant", "model": AnthropicServer.model, "content": "no list"}),
    ]
    with AnthropicServer(script=script) as server, claude(server) as engine:
        list(engine.stream([ask("first")]))  # so that it has answered, and more is tried
        server.script[:0] = []
        (done,) = engine.stream([ask()])
    assert (done.text, done.error) == ("Sound.\nVerdict: 4", None)


def test_a_begun_reply_is_continued_where_the_model_allows_it() -> None:
    begun = ask(prefill="Sound.\nVerdict: ")
    with AnthropicServer(" 4") as server, claude(server) as engine:
        (done,) = engine.stream([begun])
        assert done.text == " 4"
        assert server.bodies[0]["messages"][-1] == {"role": "assistant", "content": "Sound.\nVerdict:"}
    with AnthropicServer("4", prefill=False) as server, claude(server) as engine:
        (done,) = engine.stream([begun])  # refused once, then asked in a way that it takes
        assert (done.text, done.error) == ("4", None)
        assert [turn["role"] for turn in server.bodies[0]["messages"]] == ["user", "assistant", "user"]


def test_a_claude_that_is_known_to_take_no_begun_reply_is_not_sent_one() -> None:
    with AnthropicServer("4", prefill=False, model="claude-sonnet-4-6") as server, claude(server) as engine:
        (done,) = engine.stream([ask(prefill="Sound.\nVerdict: ")])
        assert (done.text, done.error, len(server.headers)) == ("4", None, 1)
        assert [turn["role"] for turn in server.bodies[0]["messages"]] == ["user", "assistant", "user"]


def test_a_claude_takes_a_temperature_or_a_top_p() -> None:
    with AnthropicServer() as server, claude(server) as engine:
        (done,) = engine.stream([ask(sampling=Sampling(1.0, 0.9))])
        assert done.error is None
        assert ("temperature" in server.bodies[0], server.bodies[0]["top_p"]) == (False, 0.9)
        Judge(engine, "helpfulness", sampling=Sampling(1.0, 0.9))
        with pytest.raises(UserError, match=r"takes a temperature or a top-p, not both: .* set --temperature to 1"):
            Judge(engine, "helpfulness", sampling=Sampling(0.7, 0.9))
        (done,) = engine.stream([ask(sampling=Sampling(0.7, 0.9))])  # for callers without a judge
        assert "top-p at temperature 1 alone" in str(done.error)
        assert len(server.headers) == 1


@pytest.mark.parametrize("spec", ["llama.cpp:{model},url={url}/v1", "{url}/v1#{model}"])
def test_a_begun_reply_that_llama_cpp_refuses_is_asked_for_in_a_turn_after_it(
    spec: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", LlamaServer.key)
    with LlamaServer("4", model="qwen", reasons=False) as server:
        keyed = spec if spec.startswith("llama") else f"{spec},key_env=LLAMA_API_KEY"
        with open_engine(f"{keyed.format(model=server.model, url=server.url)},{FAST}") as engine:
            done = list(engine.stream([ask(i, prefill="Sound.\nVerdict: ") for i in range(20)]))
    assert [(each.text, each.error) for each in done] == [("4", None)] * 20
    assert {tuple(turn["role"] for turn in body["messages"]) for body in server.bodies} == {
        ("user", "assistant", "user")
    }
    assert "a turn of the user after it asks the model to go on" in caplog.text


@pytest.mark.parametrize("status", [403, 200])
def test_what_openrouter_flags_is_a_refusal_and_the_run_goes_on(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", OpenAIServer.key)
    about = {
        "reasons": ["violence"],
        "flagged_input": "a text...",
        "provider_name": "OpenAI",
        "model_slug": "openai/o1",
    }
    told = "openai/o1 requires moderation on OpenRouter. Your input was flagged."
    flag = Reply({"error": {"code": 403, "message": told, "metadata": about}}, status)
    with (
        OpenAIServer(model="openai/o1", script=[flag], reasons=False) as server,
        open_engine(f"openrouter:openai/o1,url={server.url}/v1,concurrency=1,{FAST}") as engine,
    ):
        done = list(engine.stream([ask(i) for i in range(3)]))
    assert [told in each.refusal for each in done] == [True, False, False]
    assert [each.error for each in done] == [None] * 3
    assert len(server.headers) == 3


def test_a_model_that_takes_no_temperature_says_what_to_write() -> None:
    with AnthropicServer(temperature=False) as server:
        with claude(server) as engine:
            done = list(engine.stream([ask(i) for i in range(40)]))
            assert {each.error.kind for each in done if each.error} == {"bad_request"}
            assert re.search(r',extra=\{"temperature":null\}, .* --max-tokens \d+$', str(done[0].error))
            assert len(server.headers) < 40  # the rest was not sent
        with claude(server, f'{FAST},extra={{"temperature":null}}') as engine:
            (one,) = engine.stream([ask()])
            assert one.error is None
            assert "sampled" not in engine.identity()
    assert server.bodies[-1]["max_tokens"] == 1024


def test_a_reasoning_model_of_a_proxy_is_learnt_from_its_refusals(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PROXY_KEY", OpenAIServer.key)
    with OpenAIServer(model="house-model") as server:
        spec = f"{server.url}/v1#house-model,key_env=PROXY_KEY,{FAST}"
        with open_engine(spec) as engine:  # its temperature is part of the keys: the user says it
            assert '{"temperature":null}' in str(next(iter(engine.stream([ask()]))).error)
        caplog.clear()
        with open_engine(f'{spec},extra={{"temperature":null}}') as engine:
            done = list(engine.stream([ask(i, readout=READ) for i in range(40)]))
            again = list(engine.stream([ask(40 + i, readout=READ) for i in range(40)]))
    assert [each.error for each in (*done, *again)] == [None] * 80  # those in flight at once conceded to each other
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "the server refuses 'max_tokens': asked without it",
        "the server does not return the requested log-probabilities: verdicts are parsed from its text",
    ]
    assert len(server.bodies) == 80


@pytest.mark.parametrize("extra", ['{"temperature":null}', '{"temperature":1}'])
def test_a_temperature_of_the_users_own_leaves_room_for_reasoning(extra: str) -> None:
    with OpenAIServer() as server, open_engine(f"openai:{server.model},url={server.url}/v1,extra={extra}") as engine:
        (done,) = engine.stream([ask()])
        assert (done.error, "sampled" in engine.identity()) == (None, False)  # the key of earlier runs
    assert server.bodies[0]["max_completion_tokens"] == 1024 + 25_000


# Gemini


def test_contents_with_a_picture_in_the_documented_form(tmp_path: Path) -> None:
    with GeminiServer() as server, gemini(server, f"{FAST},extra={_thinking(tmp_path)}") as engine:
        sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=77)
        (done,) = engine.stream([with_picture(tmp_path, sampling=sampling)])
        assert (done.text, done.finish, done.error) == ("Sound.\nVerdict: 4", "stop", None)  # thoughts left out
        assert (done.usage.tokens_in, done.usage.tokens_cached, done.usage.tokens_out) == (1200, 200, 50)
        assert done.usage.cost == pytest.approx((1200 * 0.3 + 50 * 2.5) / 1e6)
    (body,) = server.bodies
    assert body["systemInstruction"] == {"parts": [{"text": "You are a judge."}]}
    assert [set(part) for part in body["contents"][0]["parts"]] == [{"text"}, {"inlineData"}, {"text"}]
    config = body["generationConfig"]
    assert (config["maxOutputTokens"], config["topP"], config["thinkingConfig"]) == (77, 0.9, {"thinkingBudget": 0})
    assert config["seed"] > 0


def _thinking(tmp_path: Path) -> Path:
    (tmp_path / "extra.json").write_text('{"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}')
    return tmp_path / "extra.json"


def test_labels_are_read_from_the_log_probabilities_of_a_gemini() -> None:
    with GeminiServer(model="gemini-2.0-flash") as server:
        judge = Judge(f"gemini:{server.model},url={server.url},{FAST}", "helpfulness")
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        judge.close()
    assert verdict.label == "4"
    assert verdict.distribution is not None
    assert verdict.distribution["4"] == pytest.approx(0.9, abs=1e-6)
    assert verdict.distribution["5"] == pytest.approx(0.1, abs=1e-6)
    assert verdict.expected == pytest.approx(4.1, abs=1e-6)
    assert verdict.mass == pytest.approx(math.exp(-0.105360516) + math.exp(-2.302585093), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "thinking", "refusals", "allowed"),
    [
        ("gemini-2.5-flash", "", 0, 26_024),
        ("gemini-2.5-pro", "", 0, 26_024),
        ("gemini-3-pro-preview", '{"thinkingLevel":"low"}', 0, 26_024),
        ("gemini-4-argon", "", 1, 26_024),
        ("gemini-2.5-flash", '{"thinkingBudget":0}', 0, 1024),
        ("gemini-2.5-flash-lite", "", 0, 1024),  # thinks only if it is asked to
        ("gemini-2.5-flash-lite", '{"thinkingBudget":512}', 0, 26_024),
        ("gemini-2.0-flash", "", 1, 1024),
    ],
)
def test_a_gemini_without_log_probabilities_is_asked_without_them(
    model: str, thinking: str, refusals: int, allowed: int
) -> None:
    extra = thinking and f',extra={{"generationConfig":{{"thinkingConfig":{thinking}}}}}'
    with GeminiServer(logprobs=False, model=model) as server:
        judge = Judge(f"gemini:{server.model},url={server.url},{FAST}{extra}", "helpfulness")
        assert "sampled" not in judge.identity["engine"]  # the key of earlier runs
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        assert (verdict.label, verdict.distribution) == ("4", None)
        assert isinstance(judge.engine, HttpEngine)
        assert len(server.headers) - len(server.bodies) == len(judge.engine.noticed) == refusals
        assert [body["generationConfig"]["maxOutputTokens"] for body in server.bodies] == [allowed]
        judge.close()


@pytest.mark.parametrize(
    ("finish", "refused", "kind"),
    [
        ("SAFETY", "the reply was blocked: SAFETY", ""),
        ("RECITATION", "the reply was blocked: RECITATION", ""),
        ("PROHIBITED_CONTENT", "the reply was blocked: PROHIBITED_CONTENT", ""),
        ("MAX_TOKENS", "", ""),
        ("OTHER", "", "bad_response"),
        ("MALFORMED_FUNCTION_CALL", "", "bad_response"),
        ("OF_A_LATER_VERSION", "", ""),
    ],
)
def test_finish_reasons(finish: str, refused: str, kind: str) -> None:
    with GeminiServer(finish=finish) as server, gemini(server) as engine:
        (done,) = engine.stream([ask()])
    assert (done.refusal, done.error.kind if done.error else "") == (refused, kind)
    assert (done.finish == "length") == (finish == "MAX_TOKENS")


def test_a_blocked_prompt_is_a_refusal() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    script = [Reply({**blocked, "modelVersion": GeminiServer.model})]
    with GeminiServer(script=script) as server, gemini(server) as engine:
        (done,) = engine.stream([ask()])
    assert (done.refusal, done.error, done.usage.tokens_in) == ("the prompt was blocked: SAFETY", None, 9)


def test_quota_of_the_minute_is_waited_out_and_broken_replies_are_asked_again() -> None:
    wait = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"}]
    told = "You exceeded your current quota, please check your plan and billing details."
    script = [
        gemini_error(429, "RESOURCE_EXHAUSTED", told, wait),
        gemini_error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        gemini_error(500, "INTERNAL", "An internal error has occurred."),
    ]
    with GeminiServer(script=script) as server, gemini(server) as engine:
        (done,) = engine.stream([ask()])
        assert (done.error, len(server.headers)) == (None, 4)
        server.script += [Reply({"candidates": []}), Reply(b"<html>")]
        (done,) = engine.stream([ask(1)])
        assert (done.error, done.text) == (None, "Sound.\nVerdict: 4")


def test_a_quota_without_a_time_to_come_back_ends_the_run() -> None:
    script = [gemini_error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.") for _ in range(9)]
    with GeminiServer(script=script) as server, gemini(server) as engine:
        (done,) = engine.stream([ask()])
    assert done.error is not None
    assert done.error.kind == "quota"


@pytest.mark.parametrize(
    "told",
    [
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.",
        "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    ],
)
@pytest.mark.parametrize("answered", [0, 1])
def test_an_account_of_anthropic_without_credit_ends_the_run(told: str, answered: int) -> None:
    script = [anthropic_error("invalid_request_error", told, 400) for _ in range(400)]
    with AnthropicServer(script=script[:0]) as server, claude(server, f"{FAST},concurrency=1") as engine:
        list(engine.stream([ask("first")] * answered))
        server.script += script
        done = list(engine.stream([ask(i) for i in range(300)]))
        assert len(server.headers) <= answered + 8
    assert {each.error.kind for each in done if each.error} == {"quota"}
    assert told in str(done[0].error)
    assert "; raise the limit or add credit in the provider's account" in str(done[0].error)


# Keys and models


@pytest.mark.parametrize("served", [AnthropicServer, GeminiServer])
def test_a_key_that_is_not_taken_names_its_variable_and_is_never_shown(
    served: type[AnthropicServer] | type[GeminiServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme = "anthropic" if served is AnthropicServer else "gemini"
    variable, wrong = PROVIDERS[scheme].key_env, "sk-wrong-9876543210abcdefgh"
    monkeypatch.setenv(variable, wrong)
    with served() as server, open_engine(f"{scheme}:{server.model},url={server.url},{FAST}") as engine:
        done = list(engine.stream([ask(i) for i in range(30)]))
        assert len(server.headers) <= 16  # what was in flight at once; the rest was not sent
    assert {each.error.kind for each in done if each.error} == {"auth"}
    assert f"the key in {variable} is not accepted here" in str(done[0].error)
    assert not any(wrong in str(each.error) for each in done)
    assert isinstance(engine, HttpEngine)
    assert engine.gave_up is not None


@pytest.mark.parametrize(
    ("served", "asked", "told"),
    [
        (AnthropicServer, "claude-sonet-4-5-20250929", "did you mean 'claude-sonnet-4-5-20250929'?"),
        (GeminiServer, "gemini-2.5-flesh", "did you mean 'gemini-2.5-flash'?"),
        (GeminiServer, "palm", "it has gemini-2.5-flash, gemini-2.5-pro"),
    ],
)
def test_a_model_that_is_not_there_is_answered_with_those_that_are(
    served: type[AnthropicServer] | type[GeminiServer], asked: str, told: str
) -> None:
    scheme = "anthropic" if served is AnthropicServer else "gemini"
    with served() as server, open_engine(f"{scheme}:{asked},url={server.url},{FAST}") as engine:
        (done,) = engine.stream([ask()])
    assert done.error is not None
    assert done.error.kind == "not_found"
    assert told in str(done.error)


@pytest.fixture
def closed_port() -> Iterator[int]:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]  # bound and not listened on: connections are refused


def test_a_server_that_is_not_there_is_given_up_within_ten_seconds(closed_port: int) -> None:
    import time

    began = time.monotonic()
    with open_engine(f"ollama:llama3.2,url=http://127.0.0.1:{closed_port}/v1") as engine:
        done = list(engine.stream([ask(i) for i in range(200)]))
        assert isinstance(engine, HttpEngine)
        assert engine.gave_up is not None
        assert "start the server (ollama serve), or correct its address" in str(engine.gave_up)
    assert len(done) == 200
    assert all(each.error for each in done)
    assert time.monotonic() - began < 10


OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize("beside", [{"error": OVERLOADED}, {"type": "error"}], ids=["error", "type"])
def test_an_error_beside_claudes_answer_is_no_answer(beside: dict[str, object]) -> None:
    with AnthropicServer() as server:
        broken = Reply(server.message({}) | beside)
        server.script = [broken] * 9
        with claude(server, f"{FAST},retries=1") as engine:
            (found,) = engine.stream([ask()])
    assert found.error is not None
    assert found.error.kind == "bad_response"


@pytest.mark.parametrize("where", ["reply", "candidate", "prompt"])
def test_an_error_beside_geminis_answer_is_no_answer(where: str) -> None:
    error = {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}
    with GeminiServer() as server:
        body = server.message({"contents": [], "generationConfig": {}})
        if where == "reply":
            body["error"] = error
        elif where == "candidate":
            body["candidates"][0]["error"] = error
        else:
            body["promptFeedback"] = {"blockReason": "SAFETY"}
        server.script = [Reply(body)] * 9
        with gemini(server, f"{FAST},retries=1") as engine:
            (found,) = engine.stream([ask()])
    assert found.refusal if where == "prompt" else found.error is not None
