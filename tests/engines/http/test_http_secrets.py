"""A key goes to its own server and nowhere else: no file, message, traceback or other host, whatever a server does."""

import base64
import json
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dikast.core.errors import UserError
from dikast.engines.http.engine import HttpEngine
from dikast.engines.http.server_settings import ServerSettings, address_of
from dikast.engines.spec import open_engine
from dikast.testing.faults import FaultServer, Spoilt
from engines.http_servers import FAST, grade, verdicts, write_items
from engines.provider_servers import AnthropicServer, GeminiServer, ProviderServer, Reply

SPELT: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda key: json.dumps(key)[1:-1].replace("/", "\\/").replace("+", "\\u002b"),
    "percent": lambda key: quote(key, safe=""),
    "every byte": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "base64": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
}
ALPHABET = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789/+=-_.\"'\\&%<>"


def in_text(value: dict[str, Any], told: str) -> Any:
    value["choices"][0]["message"]["content"] = f"I was sent {told}.\nVerdict: 4"
    return value


def in_refusal(value: dict[str, Any], told: str) -> Any:
    value["choices"][0]["message"]["refusal"] = f"No, {told}"
    return value


def in_every_field(value: Any, told: str) -> Any:
    """Keys and values alike; choices stay choices, so that the reply can be read."""
    if isinstance(value, dict):
        return {name: in_every_field(each, told) for name, each in value.items()} | {told: told}
    if isinstance(value, list):
        return [in_every_field(each, told) for each in value]
    return f"{told} {value}" if isinstance(value, str) else value


def in_logprobs(value: dict[str, Any], told: str) -> Any:
    """The token before the label is the key, twice and at odds with itself: the reason quotes it."""
    entry = {
        "token": f"Verdict: {told}",
        "logprob": -0.1,
        "top_logprobs": [{"token": f"Verdict: {told}", "logprob": -4}],
    }
    value["choices"][0]["message"]["content"] = f"Verdict: {told}"
    value["choices"][0]["logprobs"] = {"content": [entry]}
    return value


PLACES: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "text": in_text,
    "refusal": in_refusal,
    "every field": in_every_field,
    "logprobs": in_logprobs,
    "model": lambda value, told: value | {"model": f"{told}-model"},
    "error": lambda value, told: {"error": {"message": f"bad key {told}", "code": told}},
    "error beside choices": lambda value, told: value | {"error": told},
    "error far in": lambda value, told: Spoilt({"error": {"message": "." * 280 + told}}, 401),
    "401": lambda value, told: Spoilt({"error": {"message": f"Incorrect API key provided: {told}"}}, 401),
    "400 as text": lambda value, told: Spoilt(f"no {told} here".encode(), 400),
    "400 about a parameter": lambda value, told: Spoilt({"detail": [{"loc": ["logprobs"], "input": told}]}, 400),
    "500 as a page": lambda value, told: Spoilt(f"<html>{told}</html>".encode(), 500),
    "redirect": lambda value, told: Spoilt(
        b"", 307, {"Location": f"https://{quote(told)}@elsewhere.invalid/?k={told}"}
    ),
    "redirect by path": lambda value, told: Spoilt(b"", 302, {"Location": f"/v1/{told}"}),
    "retry after": lambda value, told: Spoilt({"error": told}, 429, {"Retry-After": told}),
    "no json": lambda value, told: f'{{"choices": [{told}'.encode(),
    "finish": lambda value, told: value | {"choices": [value["choices"][0] | {"finish_reason": "error " + told}]},
}


def key_of(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(8, 60)))


def leaks(key: str, text: str) -> list[str]:
    """The spellings in which the key stands in a text, by plain search."""
    spelt = {name: spell(key) for name, spell in SPELT.items()}
    spelt["base64"] = base64.b64encode(key.encode()).decode()[: len(key) * 8 // 6 // 4 * 4]
    spelt["json twice"] = json.dumps(json.dumps(key)[1:-1])[1:-1]
    spelt["json plain"] = json.dumps(key)[1:-1]
    return [name for name, each in spelt.items() if each in text]


@pytest.mark.soak(2000)
def test_a_server_that_repeats_the_key_in_any_field_and_spelling_gets_it_written_nowhere(
    tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    places, spellings = sorted(PLACES), sorted(SPELT)
    with FaultServer() as server:
        for number in range(max(tries, len(places))):
            rng = random.Random(number)
            key, place, spelling = key_of(rng), places[number % len(places)], rng.choice(spellings)
            server.spoil = lambda value, bearer, p=place, s=spelling: PLACES[p](value, SPELT[s](bearer))
            monkeypatch.setenv("JUDGE_KEY", key)
            out = tmp_path / str(number)
            spec = f"{server.spec},timeout=2,retries=1,backoff=0.001,key_env=JUDGE_KEY"
            grade(write_items(tmp_path / "items.jsonl", 1), spec, out)
            assert server.seen_keys[key], "the key was not sent, so that it could not come back"
            said, err = capfd.readouterr()
            written = [path.read_text("utf-8") for path in out.rglob("*") if path.is_file()]
            for text in (*written, said, err, caplog.text):
                assert not leaks(key, text), (number, place, spelling, leaks(key, text), text[-2000:])
            (verdict,) = verdicts(out)
            assert (verdict["score"] is None) == (verdict["status"] != "ok")
            caplog.clear()


def repeating(make: type[ProviderServer], told: str, place: str) -> ProviderServer:
    """A server with the provider's own format that repeats what it was told in one place of its reply."""

    class Repeating(make):  # type: ignore[misc, valid-type]
        def message(self, body: dict[str, Any]) -> Any:
            self.text = f"I was sent {told}.\nVerdict: 4"
            return in_every_field(super().message(body), told) if place == "every field" else super().message(body)

        def listed(self, path: str) -> Reply:
            return Reply({"data": [{"id": told}], "models": [{"name": f"models/{told}"}]})

    error = {"type": "error", "error": {"type": told, "status": told, "message": f"no: {told}", "details": [told]}}
    status = {"401": 401, "404 and the models": 404, "500": 500, "429": 429}.get(place)
    return Repeating(script=[Reply(error, status, {"Retry-After": quote(told)})] * 9 if status else None)


@pytest.mark.soak(1000)
@pytest.mark.parametrize(("name", "make"), [("anthropic", AnthropicServer), ("gemini", GeminiServer)])
def test_providers_that_repeat_the_key_get_it_written_nowhere(
    name: str, make: type[ProviderServer], tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    places = ("text", "every field", "401", "404 and the models", "429", "500")
    for number in range(max(tries, 2 * len(places))):
        rng = random.Random(f"{name} {number}")
        key, place, spelling = key_of(rng), places[number % len(places)], rng.choice(sorted(SPELT))
        with repeating(make, SPELT[spelling](key), place) as server:
            server.key = key
            monkeypatch.setenv("JUDGE_KEY", key)
            out = tmp_path / str(number)
            options = "timeout=2,retries=1,backoff=0.001,key_env=JUDGE_KEY"
            spec = f"{name}:{server.model},url={server.url},{options}"
            grade(write_items(tmp_path / "items.jsonl", 1), spec, out)
            assert server.bodies, "the key was not taken, so that it could not come back"
        said, err = capfd.readouterr()
        written = [path.read_text("utf-8") for path in out.rglob("*") if path.is_file()]
        for text in (*written, said, err, caplog.text):
            assert not leaks(key, text), (number, place, spelling, leaks(key, text), text[-2000:])
        caplog.clear()


def test_a_redirect_to_another_host_carries_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-0123456789abcdef")
    for status in (301, 302, 303, 307, 308):
        with FaultServer() as other, FaultServer() as server:
            moved = f"{other.url.replace('127.0.0.1', 'localhost')}/chat/completions"
            server.spoil = lambda value, bearer: Spoilt(b"", status, {"Location": moved})  # noqa: B023
            _, summary = grade(
                write_items(tmp_path / "items.jsonl", 2),
                f"{server.spec},{FAST},key_env=JUDGE_KEY",
                tmp_path / str(status),
            )
            assert set(server.seen_keys) == {"sk-0123456789abcdef"}
            assert not other.seen_keys, "the other host was asked"
        assert summary["status"] == {"engine_error": 2}


TYPED = "hunter2-0123456789abcdef"


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("http://localhost:1/v1#m,api_key={}", "key_env=JUDGE_KEY"),
        ("http://localhost:1/v1#m,key={}", "key_env=JUDGE_KEY"),
        ("http://localhost:1/v1#m,key_env=sk-{}", "key_env=JUDGE_KEY"),
        ("http://localhost:1/v1#m,key_env={}", "key_env=JUDGE_KEY"),
        ("http://user:{}@localhost:1/v1#m", "key_env=JUDGE_KEY"),
        ("http://{}@localhost:1/v1#m", "key_env=JUDGE_KEY"),
        ("https://localhost:1/v1?code={}#m", "key_env=JUDGE_KEY"),
        ("https://localhost:1/v1?unknown={}#m", "key_env=JUDGE_KEY"),
        ("https://localhost:1/v1?subscription-key={}#m", "key_env=JUDGE_KEY"),
        ("https://localhost:1/sk-{}/v1#m", "key_env=JUDGE_KEY"),
        ('http://localhost:1/v1#m,extra={{"api_key":"{}"}}', "key_env=JUDGE_KEY"),
        ('http://localhost:1/v1#m,extra={{"a":[{{"headers":{{"Authorization":"Bearer {}"}}}}]}}', "key_env=JUDGE_KEY"),
        ("http://localhost:1/v1#m,server=http://u:{}@host", "key_env=JUDGE_KEY"),
        ("openai:gpt,api_key={}", "OPENAI_API_KEY"),
        ("openai:gpt,token={}", "OPENAI_API_KEY"),
        ("decision:m,api_key={}", "OPENAI_API_KEY"),
        ("decision:http://u:{}@localhost:1/v1/decisions#m", "key_env=JUDGE_KEY"),
        ("hf:org/name,token={}", "HF_TOKEN"),
    ],
)
def test_a_secret_that_is_typed_is_refused_and_the_variable_named(spec: str, variable: str) -> None:
    with pytest.raises(UserError) as raised:
        open_engine(spec.format(TYPED))
    told = "".join(traceback.format_exception(raised.value))
    assert variable in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in told


@pytest.mark.parametrize(
    "spec",
    [
        "htp://user:{}@localhost/v1#m", "http:/user:{}@localhost/v1#m", "http://user:{}/x@localhost/v1#m",
        "http://user:{}@localhost/v1", "http://user:{}@[::1/v1#m", 'http://localhost:1/v1#m,extra={{"api_key":"{}"',
        "http://localhost:1/v1#m,bogus=1,password={}", "nothing:x?token={}", "openai:,api_key={}",
    ],
)  # fmt: skip
def test_a_spec_that_cannot_be_read_is_not_repeated_with_its_secret(spec: str) -> None:
    with pytest.raises(UserError) as raised:
        open_engine(spec.format(TYPED))
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_an_extra_file_with_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "extra.json"
    path.write_text(json.dumps({"top_k": 5, "api_key": TYPED}))
    with pytest.raises(UserError, match="'api_key' looks like a secret") as raised:
        open_engine(f"http://localhost:1/v1#m,extra={path}")
    assert "hunter2" not in str(raised.value)
    path.write_bytes(b"\x89PNG hunter2")
    with pytest.raises(UserError, match="it is no text file of at most 1 MiB") as raised:
        open_engine(f"http://localhost:1/v1#m,extra={path}")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
    path.write_text(json.dumps({"top_k": 5, "stop": ["key"], "prompt_cache_key": "judge", "max_completion_tokens": 9}))
    open_engine(f"http://localhost:1/v1#m,extra={path}")


@pytest.mark.parametrize(
    "key", ["schlüssel-0123456789", "sk-0123456789\r\nX-Evil: 1", "sk-\ud8000123456789", "sk-€0123456"]
)
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(UserError) as raised:
        HttpEngine(address_of("http://localhost:1/v1#m"), ServerSettings(), key=key)
    assert "0123456" not in "".join(traceback.format_exception(raised.value))


def test_values_of_unknown_parameters_are_sent_and_not_told() -> None:
    engine = open_engine("http://localhost:1/v1?tenant=blue&api-version=2024-06-01#m")
    assert engine.name == "http://localhost:1/v1?tenant=[hidden]&api-version=2024-06-01#m"
    assert isinstance(engine, HttpEngine)
    assert engine.address.chat.endswith("?tenant=blue&api-version=2024-06-01")


def test_a_password_in_an_images_address_is_not_written_into_verdicts(tmp_path: Path) -> None:
    row = {
        "id": "i",
        "instruction": "What is it?",
        "response": "A cat.",
        "image": f"http://u:{TYPED}@127.0.0.1:1/a.png",
    }
    (tmp_path / "items.jsonl").write_text(json.dumps(row))
    with FaultServer() as server:
        grade(tmp_path / "items.jsonl", f"{server.spec},{FAST}", tmp_path / "run")
    for path in (tmp_path / "run").rglob("*"):
        assert "hunter2" not in path.read_text("utf-8"), path
