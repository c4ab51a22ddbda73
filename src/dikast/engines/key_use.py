"""To which server a spec sends which key, and whether a file may decide that.

A spec that a user types is trusted. One that is read from a file (a recipe, an experiment) may send the key of an
environment variable only to the server that the variable belongs to by the table of providers, unless the user allows
it by name.
"""

import os
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from dikast.core.errors import UserError
from dikast.core.secrets import without_secrets
from dikast.engines.http.providers import PROVIDERS
from dikast.engines.spec import parse_spec


class KeyUse(NamedTuple):
    """The environment variable whose key is sent, and the URL it is sent to; `own_ca`: whether the spec chooses who
    certifies that server.
    """

    variable: str
    url: str
    own_ca: bool = False

    @property
    def host(self) -> str:
        """The host, with its port if one is named; the scheme of an engine that names no server."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url

    def __str__(self) -> str:
        return f"{self.variable}@{self.host}"

    @property
    def owned(self) -> bool:
        """Whether the table of providers, or the address that the user has set for one, names this server for it."""
        owners = (each for each in PROVIDERS.values() if each.key_env == self.variable)
        urls = (url for each in owners for url in (each.url, os.environ.get(each.url_env, "") and each.base("")))
        return not self.own_ca and _origin(self.url) in {_origin(url) for url in urls if url}


def key_uses(spec: str) -> tuple[KeyUse, ...]:
    """Which key a spec sends to which servers; none where it sends none. Raises UserError where `parse_spec` does."""
    scheme, target, options = parse_spec(spec.strip())
    variable, url = options.get("key_env", ""), f"{scheme}:{target}".partition("#")[0]
    if scheme in PROVIDERS:
        provider = PROVIDERS[scheme]
        url = provider.base(spec, options.get("url", ""))
        if provider.key_needed or os.environ.get(provider.key_env, "").strip():
            variable = variable or provider.key_env
    elif scheme == "decision":
        url = target.partition("#")[0]
        if not target.startswith(("http://", "https://")):
            url, variable = PROVIDERS["openai"].base(spec), variable or "OPENAI_API_KEY"
    elif scheme not in ("http", "https"):
        url = scheme
    if not variable:
        return ()
    urls = [each.strip() for each in url.split(",")]  # several servers of one model
    return tuple(KeyUse(variable, each, own_ca=bool(options.get("ca"))) for each in urls)


def check_key_use(spec: str, allowed: Collection[str], file: str = "recipe") -> None:
    """UserError where a spec from a file sends a key to a server that the variable does not belong to.

    `allowed`: what the user allows, each as NAME@HOST, where HOST has the port that the address has. `file`: what the
    file is.
    """
    for each in allowed:
        name, at, host = each.partition("@")
        if not (name and at and host) or "/" in host:
            raise UserError(f"--allow-key {without_secrets(each)}: write NAME@HOST, such as JUDGE_KEY@gpu-box:8000")
    use = next((each for each in key_uses(spec) if not each.owned and str(each) not in allowed), None)
    if use is None:
        return
    ca = ", and chooses who certifies it" if use.own_ca else ""
    raise UserError(
        f"the {file} sends the key in {use.variable} to {use.host}{ca}: a file may send a key only to the server it"
        f" belongs to; if you trust that server with it, add --allow-key {without_secrets(str(use))}"
    )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:  # a port that is none; opening the engine tells
        return "", url, None
