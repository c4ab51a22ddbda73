"""Specs of judges as people and other programs write them, and what each was most likely meant to be."""

import re

from dikast.core.text import near_miss
from dikast.engines.http.providers import PROVIDERS

_ALSO = {
    "azure-openai": "azure", "azure_openai": "azure", "chatgpt": "openai", "claude": "anthropic", "google": "gemini",
    "googleai": "gemini", "google-gla": "gemini", "llamacpp": "llama.cpp", "llama-cpp": "llama.cpp",
    "llama_cpp": "llama.cpp", "llama-server": "llama.cpp", "ollama_chat": "ollama", "openai-chat": "openai",
    "open-router": "openrouter", "togetherai": "together", "together_ai": "together", "vertex_ai": "gemini",
    "hosted_vllm": "vllm-server", "vllm_server": "vllm-server", "huggingface": "hf", "transformers": "hf",
}  # fmt: skip
_SERVED = {  # others that speak as OpenAI's API does: the address, and the variable that usually holds the key
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
}
_MODELS = {  # how names of models begin, and who serves them
    "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic", "gemini": "gemini",
    "deepseek-r1": "ollama", "deepseek": "deepseek", "grok": "xai", "mistral-": "mistral", "mistral": "ollama",
    "llama": "ollama", "qwen": "ollama", "gemma": "ollama", "phi": "ollama",
}  # fmt: skip
_PAGE = re.compile(
    r"(?:(hf|vllm):)?(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)(?:/(?:tree|blob)/([^/?#]+))?"
)
_HOST = re.compile(
    r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)+):\d{1,5}(?:[/#,]|$)"
)  # an address without http://
_KINDS = ("chat:", "messages:", "completion:", "responses:")  # between provider and model, as others write it


def of_page(spec: str) -> str:
    """The spec of the model whose page on the Hugging Face Hub was given as one; "" for other specs."""
    match = _PAGE.match(spec.strip())
    return f"{match[1] or 'hf'}:{match[2]}{f'@{match[3]}' if match[3] else ''}" if match else ""


def _who_serves(model: str) -> str:
    return next((who for begin, who in _MODELS.items() if model.startswith(begin)), "")


def _by(name: str, model: str) -> str:
    """The spec of a model that a provider serves, whether the provider is known by name or by its address."""
    if name in _SERVED:
        url, key = _SERVED[name]
        return f"{url}#{model},key_env={key}"
    return f"{name}:{model}"


def spelling(spec: str, schemes: list[str]) -> str:
    """How a spec that names no scheme here was probably meant: `openai/gpt-4o` is `openai:gpt-4o`; "" unknown."""
    text = spec.strip()
    if _HOST.match(text):
        return f"http://{text}"
    head, mark, rest = text.partition(":")
    if "/" in head or not mark:
        head, mark, rest = text.partition("/")
    if mark and rest:
        for kind in _KINDS:
            rest = rest.removeprefix(kind)
        folded = head.casefold()
        if folded in _SERVED:
            return _by(folded, rest)
        known = _ALSO.get(folded) or (folded if folded in schemes else None)
        if known is None and ":" in text and _who_serves(folded) == "ollama":  # a model and its tag: llama3:8b
            return _by("ollama", text)
        known = known or near_miss(folded, [*PROVIDERS, *_ALSO])
        if known is not None and (found := _ALSO.get(known, known)) in schemes:
            return f"{found}:{rest}"
        plain = ":" not in text and rest.count("/") == 0 and not text.startswith(("/", ".", "~"))
        return f"hf:{text}" if plain else ""
    folded = re.sub(r"^gpt(?=\d)", "gpt-", text.casefold())
    if folded in _ALSO or folded in _MODELS:
        return _by(_ALSO.get(folded) or _MODELS[folded], "MODEL")
    who = _who_serves(folded)
    return _by(who, folded) if who else ""
