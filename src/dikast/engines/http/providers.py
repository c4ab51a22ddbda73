"""Providers by name, as data: address, variable of the key, unsupported parameters. No engine code."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from dikast.core.errors import UserError

Wire = Literal["chat", "messages", "gemini"]
CANNOT: Mapping[str, str] = {
    "logprobs": "returns no log-probabilities that can be read: verdicts are parsed from its text, without a"
    " distribution or an expected score",
    "seed": "takes no seed: samples cannot be drawn again",
    "temperature": "takes no temperature: it samples at its own, so its verdicts can differ from one run to the next",
    "response_format": "takes no JSON schema: replies may not parse",
    "top_p": "takes a temperature or a top-p, not both",
}
"""What follows for a user from what a provider lacks, by the name of the part of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """What some models of a provider do not support, in addition to what the provider does not.

    models: how their names begin, except those that begin as in `but`. lacks: as in `Provider`. reasoning: "on" for
    models that reason unless a request says `reasoning_effort: none` (to Gemini `thinkingBudget: 0`), "off" for those
    that reason only if it names another effort; the limits hold while they reason. "" where that does not
    matter. thinking: tokens that a request allows for reasoning, in addition to those of the reply. source: the page
    that is quoted for it, `looked_up` on that day.
    """

    models: tuple[str, ...]
    but: tuple[str, ...] = ()
    lacks: frozenset[str]
    reasoning: Literal["", "on", "off"] = ""
    thinking: int = 0
    source: str
    looked_up: str

    def hold(self, model: str, extra: Mapping[str, Any]) -> bool:
        """Whether they hold for a model, given the fields that the user adds to every request."""
        if not model.startswith(self.models) or (self.but and model.startswith(self.but)):
            return False
        effort = _effort(extra)
        return effort not in (None, "none") if self.reasoning == "off" else not (self.reasoning and effort == "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One service or server.

    url: its base URL, replaced by the variable `url_env`; with `path` behind what that holds. key_env: the variable
    that holds the key, sent in the header `key_header` (as a bearer token in `Authorization`); a key that is not
    `key_needed` is sent if it is set. wire: the format that it speaks. lacks: parts of requests that are never sent to
    it, by their names in `body.OPTIONAL` (without `max_tokens` goes `max_completion_tokens`). own_names: models are
    called by names of the user's own, so that the model named in a reply is another. any_make: the variable often names
    a server of another kind, about which nothing is then known. prices: its section of the price table. start: the
    command that starts a server, `get` the one that downloads a model. source: the documentation of these facts.
    limits: what some of its models do not support; the first that hold count. thinking: as in `ModelLimits`.
    """

    url: str = ""
    url_env: str = ""
    path: str = ""
    key_env: str = ""
    key_needed: bool = True
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)
    wire: Wire = "chat"
    lacks: frozenset[str] = frozenset()
    own_names: bool = False
    any_make: bool = False
    reports_cost: bool = False
    prices: str = ""
    start: str = ""
    get: str = ""
    model: str = "MODEL"
    source: str = ""
    limits: tuple[ModelLimits, ...] = ()
    thinking: int = 0

    def for_model(self, model: str, extra: Mapping[str, Any]) -> Self:
        """The provider as far as one model goes. A temperature in `extra`, also null, is the user's own decision."""
        found = next((each for each in self.limits if each.hold(model, extra)), None)
        if found is None:
            return self
        lacks = found.lacks - ({"temperature"} if "temperature" in extra else set())
        return replace(self, lacks=self.lacks | lacks, thinking=found.thinking)

    def cannot(self) -> dict[str, str]:
        """What it does not support that matters to verdicts, by name, each with the consequence."""
        return {name: told for name, told in CANNOT.items() if name in self.lacks}

    def base(self, name: str, given: str = "") -> str:
        """The base URL: `given`, or the one in its variable, or its own; UserError where there is none."""
        if given:
            return given.rstrip("/")
        found = os.environ.get(self.url_env, "").strip().rstrip("/") if self.url_env else ""
        if not found:
            if not self.url:
                raise UserError(
                    f"engine {name!r} needs the address of your resource: export {self.url_env}=https://RESOURCE"
                    ".openai.azure.com"
                )
            return self.url
        if "://" not in found:  # OLLAMA_HOST is HOST or HOST:PORT, and 0.0.0.0 where the server listens everywhere
            host, _, port = found.replace("0.0.0.0", "127.0.0.1").partition(":")
            found = f"http://{host}:{port or urlsplit(self.url).port}"
        return found if found.endswith(self.path) else found + self.path


def _effort(extra: Mapping[str, Any]) -> object:
    """The effort of reasoning that is asked for, "none" for no reasoning; None if nothing is said about it."""
    config = extra.get("generationConfig")
    thinking = config.get("thinkingConfig") if isinstance(config, Mapping) else None
    if not isinstance(thinking, Mapping):
        return extra.get("reasoning_effort")
    budget = thinking.get("thinkingBudget")
    return "none" if budget == 0 else budget or thinking.get("thinkingLevel")


def cure(kind: str, provider: Provider, *, key_env: str = "", model: str = "") -> str:
    """The cure for a failure that would affect every request, or has affected all so far; "" if none is known."""
    if kind in ("connection", "unreachable"):
        return f"start the server ({provider.start}), or correct its address" if provider.start else _ADDRESS
    if kind in ("server_error", "overloaded"):
        where = "see the provider's status page" if provider.url.startswith("https:") else "read the server's log"
        return f"the server is there and fails: {where}, and try one request by hand"
    if kind == "rate_limited":
        return "the server takes no request now: see the limits of your account, or wait"
    if kind == "timeout":
        return "allow longer answers (,timeout=SECONDS behind the judge) or fewer at once (,concurrency=N)"
    if kind == "bad_response":
        where = " (it usually ends in /v1)" if provider is PLAIN else ""
        return f"read the server's log, and check that the address{where} is that of a chat API"
    if kind == "auth" and key_env:
        return f"the key in {key_env} is not accepted here: export {key_env}=... with one that is"
    if kind == "auth":
        return "put the key into an environment variable and name it behind the judge: ,key_env=NAME"
    if kind == "quota":
        return "raise the limit or add credit in the provider's account"
    if kind == "not_found":
        get = f"; `{provider.get} {model}` brings it" if provider.get else ""
        where = " the address (it usually ends in /v1) and" if provider is PLAIN else ""
        return f"check{where} the model's name{get}"
    return ""


def is_respelt(kind: str, key_env: str) -> bool:
    """Whether the cure of a failure is another spec."""
    return kind in ("wrong_model", "not_found", "redirect", "bad_request", "timeout") or (
        kind == "auth" and not key_env
    )


_ADDRESS = "start the server, or correct its address"
PLAIN = Provider()
"""An OpenAI-compatible server of which nothing is known."""

_UNSAMPLED = frozenset({"temperature", "logprobs"})
_THINKING = 25_000  # what OpenAI's guide to reasoning advises to reserve at first; for other makes no figure was found
_OPENAI_MODELS = (
    ModelLimits(
        models=("gpt-5.1", "gpt-5.2", "gpt-5.4"),
        lacks=_UNSAMPLED,
        reasoning="off",
        thinking=_THINKING,
        source="https://developers.openai.com/api/docs/guides/latest-model#gpt-54-parameter-compatibility",
        looked_up="2026-11-25",
    ),
    ModelLimits(
        models=("o1", "o3", "o4", "gpt-5", "gpt-6"),
        but=("gpt-5-chat", "gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-5.4"),
        lacks=_UNSAMPLED,
        reasoning="on",
        thinking=_THINKING,
        source="https://platform.openai.com/docs/guides/reasoning",
        looked_up="2026-11-25",
    ),
)
_CLAUDE_MODELS = (
    ModelLimits(
        models=(
            "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable",
            "claude-mythos",
        ),
        lacks=frozenset({"temperature", "continuation"}),
        thinking=_THINKING,
        source="https://platform.claude.com/docs/en/about-claude/models/migration-guide",
        looked_up="2026-11-28",
    ),
    ModelLimits(
        models=("claude-opus-4-6", "claude-sonnet-4-6"),
        lacks=frozenset({"top_p", "continuation"}),
        source="https://platform.claude.com/docs/en/about-claude/models/migration-guide",
        looked_up="2026-11-28",
    ),
    ModelLimits(
        models=("claude-opus-4-1", "claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"),
        lacks=frozenset({"top_p"}),
        source="https://platform.claude.com/docs/en/about-claude/models/migration-guide",
        looked_up="2026-11-28",
    ),
)  # fmt: skip
_NO_LOGPROBS = "https://discuss.ai.google.dev/t/logprobs-is-not-enabled-for-gemini-models/107989"
_COUNTED = "https://github.com/googleapis/python-genai/issues/2062"  # thoughts count against maxOutputTokens
_GEMINI_MODELS = (
    ModelLimits(
        models=("gemini-2.5-flash-lite",),
        lacks=frozenset({"logprobs"}),
        reasoning="off",
        thinking=_THINKING,
        source="https://ai.google.dev/gemini-api/docs/thinking",
        looked_up="2026-11-25",
    ),
    ModelLimits(
        models=("gemini-2.5", "gemini-3"),
        but=("gemini-2.5-flash-lite",),
        lacks=frozenset({"logprobs"}),
        reasoning="on",
        thinking=_THINKING,
        source=_COUNTED,
        looked_up="2026-11-25",
    ),
    ModelLimits(
        models=("gemini-2.5", "gemini-3"),
        lacks=frozenset({"logprobs"}),
        source=_NO_LOGPROBS,
        looked_up="2026-11-25",
    ),
    ModelLimits(
        models=("gemini-4", "gemini-pro-latest", "gemini-flash-latest"),
        lacks=frozenset(),
        reasoning="on",
        thinking=_THINKING,
        source=_COUNTED,
        looked_up="2026-11-25",
    ),
)
_OPENAI = frozenset({"choices", "continuation", "max_tokens"})
_CHAT = frozenset({"choices", "continuation"})
PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        url="https://api.anthropic.com",
        url_env="ANTHROPIC_BASE_URL",
        key_env="ANTHROPIC_API_KEY",
        key_header="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        wire="messages",
        lacks=frozenset({"logprobs", "seed", "choices"}),
        prices="anthropic",
        limits=_CLAUDE_MODELS,
        source="https://platform.claude.com/docs/en/api/messages",
    ),
    "azure": Provider(
        url_env="AZURE_OPENAI_ENDPOINT",
        path="/openai/v1",
        key_env="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        lacks=_OPENAI,
        own_names=True,
        model="DEPLOYMENT",
        limits=_OPENAI_MODELS,  # of deployments that go by the name of their model
        source="https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle",
    ),
    "gemini": Provider(
        url="https://generativelanguage.googleapis.com",
        url_env="GOOGLE_GEMINI_BASE_URL",
        key_env="GEMINI_API_KEY",
        key_header="x-goog-api-key",
        wire="gemini",
        lacks=_CHAT,
        prices="gemini",
        limits=_GEMINI_MODELS,
        source="https://ai.google.dev/api/generate-content",
    ),
    "llama.cpp": Provider(
        url="http://localhost:8080/v1",
        key_env="LLAMA_API_KEY",
        key_needed=False,
        lacks=_CHAT,
        start="llama-server -m MODEL.gguf",
        source="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    ),
    "ollama": Provider(
        url="http://localhost:11434/v1",
        url_env="OLLAMA_HOST",
        path="/v1",
        key_env="OLLAMA_API_KEY",
        key_needed=False,
        lacks=_CHAT,
        start="ollama serve",
        get="ollama pull",
        source="https://docs.ollama.com/api/openai-compatibility",
    ),
    "openai": Provider(
        url="https://api.openai.com/v1",
        url_env="OPENAI_BASE_URL",
        key_env="OPENAI_API_KEY",
        lacks=_OPENAI,
        any_make=True,
        prices="openai",
        limits=_OPENAI_MODELS,
        source="https://platform.openai.com/docs/api-reference/chat/create",
    ),
    "openrouter": Provider(
        url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        lacks=_CHAT,
        reports_cost=True,
        model="VENDOR/MODEL",
        source="https://openrouter.ai/docs/api-reference/overview",
    ),
    "sglang": Provider(
        url="http://localhost:30000/v1",
        key_needed=False,
        lacks=frozenset({"choices"}),
        start="python -m sglang.launch_server --model-path MODEL",
        source="https://docs.sglang.io/basic_usage/openai_api_completions.html",
    ),
    "together": Provider(
        url="https://api.together.ai/v1",
        key_env="TOGETHER_API_KEY",
        lacks=frozenset({"logprobs", "choices", "continuation"}),  # its log-probabilities have a form of their own
        model="VENDOR/MODEL",
        source="https://docs.together.ai/docs/inference/openai-compatibility",
    ),
    "vllm-server": Provider(
        url="http://localhost:8000/v1",
        key_env="VLLM_API_KEY",
        key_needed=False,
        start="vllm serve MODEL",
        source="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    ),
}
