"""From the spec of a model behind HTTP to its engine: one server, a provider by name, or several servers."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from dikast.engines.base import Engine
from dikast.engines.http.engine import HttpEngine, within_budget
from dikast.engines.http.providers import PLAIN, PROVIDERS, Provider
from dikast.engines.http.server_settings import ServerSettings, address_of, key_from
from dikast.engines.http.servers.several_servers import open_resolved, open_several
from dikast.engines.options import read_options, spec_with


def open_http(target: str, **options: Any) -> Engine:
    """`http://HOST[:PORT]/v1#MODEL`, from the spec's part after `http:`; several addresses are separated by commas."""
    return _open(f"http:{target}", options)


def open_https(target: str, **options: Any) -> Engine:
    """`https://HOST/v1#MODEL`, from the spec's part after `https:`; several addresses are separated by commas."""
    return _open(f"https:{target}", options)


def open_provider(scheme: str, target: str, **options: Any) -> Engine:
    """`SCHEME:MODEL` for a scheme of `PROVIDERS`; the option `url` replaces its base URL."""
    provider, name = PROVIDERS[scheme], f"{scheme}:{target}"
    spec = spec_with(name, options)
    base = provider.base(name, str(options.pop("url", "")))
    if provider.any_make and base != provider.url and os.environ.get(provider.url_env, "").strip().rstrip("/") == base:
        regional = _is_region(base, provider.url)  # which can cost more: the prices of the region are not known
        provider = replace(provider, prices="") if regional else replace(PLAIN, key_env=provider.key_env)
    held = provider.key_needed or os.environ.get(provider.key_env, "").strip()
    if held:
        options = {"key_env": provider.key_env, **options}
    return _open(f"{base}#{target}", options, name=name, provider=provider, spec=spec)


def _is_region(base: str, home: str) -> bool:
    """Whether an address is that of a region of the service: `https://eu.api.openai.com/v1`."""
    one, other = urlsplit(base), urlsplit(home)
    same = (one.scheme, one.path, one.port) == (other.scheme, other.path, other.port)
    return same and (one.hostname or "").endswith(f".{other.hostname}")


def _open(
    text: str, options: Mapping[str, Any], *, name: str = "", provider: Provider = PLAIN, spec: str = ""
) -> Engine:
    if "," in text.partition("#")[0] or ",http" in text:
        return open_several(text, options)
    address = address_of(text)  # first, as it refuses addresses with secrets, which must not appear in messages
    settings = ServerSettings(**read_options(options, ServerSettings.known(), where=name or str(address)))
    if settings.resolve:
        return open_resolved(address, settings, provider, spec_with(text, options))
    spec, key = spec or spec_with(text, options), key_from(settings.key_env)
    engine = HttpEngine(address, settings, key=key, name=name, provider=provider, spec=spec)
    return within_budget(engine, settings, engine.price)
