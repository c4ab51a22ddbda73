"""A recipe cannot send a key of the environment to a server of its own choosing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.engines.http.providers import PROVIDERS
from dikast.engines.key_use import KeyUse, check_key_use, key_uses
from dikast.surface.cli import app
from dikast.testing.faults import FaultServer

VARIABLES = {name for each in PROVIDERS.values() for name in (each.key_env, each.url_env) if name}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "spec",
    [
        "openai:gpt-4o",
        "openai:gpt-4o,url=https://api.openai.com/v1/",
        "anthropic:claude",
        "https://api.openai.com/v1#gpt-4o,key_env=OPENAI_API_KEY",
        "decision:gpt-4o",
        "openrouter:a/b,concurrency=4",
    ],
)
def test_a_key_may_go_to_the_server_that_it_belongs_to(spec: str) -> None:
    (use,) = key_uses(spec)
    assert use.owned
    check_key_use(spec, ())


@pytest.mark.parametrize(
    "spec",
    [
        "world:text",
        "mock:oracle",
        "scout",
        "hf:a/b",
        "http://host:8000/v1#m",
        "vllm-server:m",
        "ollama:m,url=http://elsewhere:1/v1",
    ],
)
def test_no_key_is_no_use(spec: str) -> None:
    assert key_uses(spec) == ()
    check_key_use(spec, ())


@pytest.mark.parametrize(
    ("spec", "use"),
    [
        ("http://evil.example/v1#m,key_env=AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY@evil.example"),
        ("openai:gpt-4o,url=https://evil.example:8443/v1", "OPENAI_API_KEY@evil.example:8443"),
        ("openai:gpt-4o,url=http://api.openai.com/v1", "OPENAI_API_KEY@api.openai.com"),  # in plain text
        ("openai:gpt-4o,url=https://api.openai.com.evil.example/v1", "OPENAI_API_KEY@api.openai.com.evil.example"),
        ("openai:gpt-4o,url=https://api.openai.com@evil.example/v1", "OPENAI_API_KEY@evil.example"),
        ("openai:gpt-4o,ca=evil.pem", "OPENAI_API_KEY@api.openai.com"),
        ("openai:gpt-4o,key_env=HF_TOKEN", "HF_TOKEN@api.openai.com"),
        ("anthropic:m,key-env=OPENAI_API_KEY", "OPENAI_API_KEY@api.anthropic.com"),
        ("decision:https://evil.example/v1/systemone#m,key_env=OPENAI_API_KEY", "OPENAI_API_KEY@evil.example"),
        ("https://api.openai.com/v1,https://evil.example/v1#m,key_env=OPENAI_API_KEY", "OPENAI_API_KEY@evil.example"),
        ("https://api.openai.com/v1, https://b.example:1/v1#m,key_env=OPENAI_API_KEY", "OPENAI_API_KEY@b.example:1"),
        ("servers:list.txt#m,key_env=OPENAI_API_KEY", "OPENAI_API_KEY@servers"),
        ("installed:m,key_env=OPENAI_API_KEY", "OPENAI_API_KEY@installed"),
    ],
)
def test_a_key_may_go_elsewhere_only_where_the_user_allows_it(spec: str, use: str) -> None:
    with pytest.raises(UserError, match="--allow-key") as caught:
        check_key_use(spec, ())
    assert str(caught.value).endswith(f"--allow-key {use}")
    with pytest.raises(UserError):
        check_key_use(spec, (use.replace("@", "@other."),))
    check_key_use(spec, (use,))


def test_a_key_of_a_local_server_stays_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "sesame")
    check_key_use("ollama:m", ())
    with pytest.raises(UserError, match="--allow-key OLLAMA_API_KEY@evil"):
        check_key_use("ollama:m,url=http://evil/v1", ())


def test_the_address_that_the_user_has_set_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    check_key_use("openai:gpt-4o", ())
    check_key_use("openai:gpt-4o,url=https://api.openai.com/v1", ())
    with pytest.raises(UserError):
        check_key_use("openai:gpt-4o,url=https://evil.example/v1", ())


@pytest.mark.parametrize("wrong", ["JUDGE_KEY", "@host", "JUDGE_KEY@", "JUDGE_KEY@https://host"])
def test_what_is_allowed_is_a_name_and_a_host(wrong: str) -> None:
    with pytest.raises(UserError, match="NAME@HOST"):
        check_key_use("world:text", (wrong,))


def test_the_host_is_shown_without_user_and_path() -> None:
    assert str(KeyUse("K", "https://me:pw@host:1/v1/x")) == "K@host:1"


@pytest.mark.parametrize("field", ["teacher", "judge", "responders"])
def test_a_recipe_sends_no_key_to_a_server_of_its_own(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERY_PRIVATE", "sesame-open-4711")
    with FaultServer() as server:
        spec = f"{server.url}#judge,key_env=VERY_PRIVATE,retries=0"
        plain = {"teacher": "mock:oracle", "tries": 1}
        recipe = {
            "teacher": {"recipe": "feedback", **plain, "teacher": spec, "seeds": "seeds.json", "rubrics": 2},
            "judge": {"recipe": "self-improvement", **plain, "judge": spec, "held": "i.jsonl", "source": "i.jsonl",
                      "train": {"init": "."}},
            "responders": {"recipe": "critic-pointwise", **plain, "responders": [spec], "sources": ["i.jsonl"]},
        }[field]  # fmt: skip
        item = {"id": "a", "instruction": "Say hello.", "response": "hello", "gold": 3, "rubric": "helpfulness"}
        (tmp_path / "i.jsonl").write_text(json.dumps(item) + "\n")
        levels = {str(n): f"It says hello {n} times." for n in range(1, 6)}
        (tmp_path / "seeds.json").write_text(json.dumps([{"criterion": "Does it say hello?", "levels": levels}]))
        path = tmp_path / "recipe.yaml"
        path.write_text(json.dumps(recipe))
        line = ["corpus", "build", str(path), "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(app, line)
        assert isinstance(done.exception, UserError), done.output
        host = f"127.0.0.1:{server.port}"
        assert f"--allow-key VERY_PRIVATE@{host}" in str(done.exception)
        assert not server.seen_keys
        if field == "teacher":
            CliRunner().invoke(app, [*line, "--allow-key", f"VERY_PRIVATE@{host}"])
            seen = server.seen_keys.total()
            assert seen
            assert set(server.seen_keys) == {"sesame-open-4711"}
            CliRunner().invoke(app, [*line[:-1], str(tmp_path / "typed"), "--teacher", spec])  # typed: trusted
            assert server.seen_keys.total() > seen
