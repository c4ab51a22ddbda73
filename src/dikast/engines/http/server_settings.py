"""What a user may set about a server, and how its address is written."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import orjson

from dikast.core.errors import UserError
from dikast.core.secrets import looks_secret, names_a_secret, secret_parameter, without_secrets

KEY_ENV = "put the key into an environment variable and name that: export JUDGE_KEY=... and key_env=JUDGE_KEY"


_MOST_EXTRA = 2**20  # bytes of a file of fields
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Options of an HTTP engine; times in seconds.

    key_env: the environment variable that holds the key; without it no key is sent (`openai:` takes OPENAI_API_KEY).
    concurrency: the most requests in flight; the engine finds what the server can take below it.
    timeout: for one try, from sending to the last byte. retries: further tries after a failure, with `backoff` seconds
    before the first (doubled each time, with jitter); five times as many after rejections. max_wait: the longest
    `Retry-After` that is obeyed.
    max_reply_mb: a larger reply is refused unread. top_logprobs: alternatives asked for at each token.
    served_as: the name under which the server answers, where that is not the model's. continues: whether the server
    continues an assistant's last message (`continue_final_message`); `auto` finds out.
    extra: a JSON object, or a file with one, whose fields are added to every request (null takes a field out).
    ca: a PEM file with the certificate authority to trust. prices: a table of prices (see `docs/servers.md`).
    server: the name that stands for the server's address in keys of verdicts, for servers that move.
    resolve: whether every machine that the host's name leads to is a server of its own; it is looked up again.
    calls, tokens, money: the budget of this process; see `engines.budget`.
    """

    key_env: str = ""
    concurrency: int = 1024
    timeout: float = 600.0
    connect_timeout: float = 10.0
    retries: int = 6
    backoff: float = 0.5
    max_wait: float = 300.0
    max_reply_mb: float = 16.0
    top_logprobs: int = 20
    served_as: str = ""
    continues: Literal["auto", "yes", "no"] = "auto"
    extra: str = ""
    ca: str = ""
    prices: str = ""
    server: str = ""
    resolve: bool = False
    calls: int | None = None
    tokens: int | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        wrong = []
        for name in ("concurrency", "timeout", "connect_timeout", "max_reply_mb"):
            if not getattr(self, name) > 0:
                wrong.append(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("retries", "backoff", "max_wait", "top_logprobs", "calls", "tokens", "money"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                wrong.append(f"{name} must not be negative, got {value}")
        for name in ("served_as", "server"):
            value = getattr(self, name)
            if without_secrets(value) != value:
                wrong.append(f"{name} holds what looks like a secret, and is written down with every run; {KEY_ENV}")
        if wrong:
            raise UserError("HTTP engine: " + "; ".join(wrong))

    @classmethod
    def known(cls) -> Mapping[str, Any]:
        """Every option with its type."""
        return {each.name: each.type for each in fields(cls)}


class Address(NamedTuple):
    """Where a model is: the base URL (ends without a slash) and the model's name there."""

    url: str
    query: str
    model: str

    @property
    def chat(self) -> str:
        """The URL of chat completions."""
        return f"{self.url}/chat/completions" + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        return without_secrets(f"{self.url}{'?' + self.query if self.query else ''}#{self.model}")


def address_of(text: str) -> Address:
    """Take `http://HOST[:PORT]/v1#MODEL` apart; UserError says what is missing or must not be there."""
    url, _, model = text.partition("#")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # as it is when its name is looked up: a label has 1 to 63 characters
        if not url.isprintable() or " " in url:
            raise ValueError
    except ValueError:  # its message repeats the text in place of the port, such as half a password
        raise UserError(f"engine {without_secrets(url)!r}: not a URL: write http://HOST:PORT/v1#MODEL") from None
    if parts.username is not None or parts.password is not None:
        raise UserError(
            f"engine http(s)://...@{host}: a name or password in the address would be written down with every run;"
            f" {KEY_ENV}"
        )
    if name := secret_parameter(parts.query):
        raise UserError(
            f"engine {parts.scheme}://{host}: {name[:40]!r} in the address looks like a secret, and addresses are"
            f" written down; {KEY_ENV}"
        )
    if looks_secret(text):
        raise UserError(
            f"engine {parts.scheme}://{host}: something in the address has the form of a key, and addresses are written"
            f" down; {KEY_ENV}"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"engine {text!r}: write http://HOST:PORT/v1#MODEL or https://HOST/v1#MODEL")
    if not model:
        raise UserError(f"engine {text!r} does not say which model: write {url.rstrip('/')}#MODEL")
    base = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/").removesuffix("/chat/completions")
    return Address(base, parts.query, model)


def extra_fields(text: str, name: str = "extra") -> dict[str, Any]:
    """The object that the option `name` spells, or the file it names holds."""
    if not text:
        return {}
    raw = text
    if not text.lstrip().startswith("{"):
        try:
            path = Path(text)
            if path.exists() and (not path.is_file() or path.stat().st_size > _MOST_EXTRA):
                raise ValueError
            raw = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text file of at most 1 MiB"
            raise UserError(f"{name}={text}: neither a JSON object nor a file with one ({why})") from None
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{name}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: a JSON object is needed")
    if found := _secret_in(value):
        raise UserError(
            f"{name}: the field {found[:80]!r} looks like a secret, and these fields are written down with every run;"
            f" {KEY_ENV}"
        )
    return value


def _secret_in(value: object, name: str = "") -> str:
    """The path of a field that holds a secret, by its name or by its form; "" if none does."""
    if isinstance(value, str):
        named = bool(value) and names_a_secret(name.rpartition(".")[2])
        return name if named or without_secrets(value) != value else ""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (_secret_in(each, f"{name}.{key}" if isinstance(value, dict) else name) for key, each in inner)
    return next((each.removeprefix(".") for each in found if each), "")


def key_from(variable: str, option: str = "key_env=") -> str:
    """The key in the environment variable that an option names, or "" where none is named.

    UserError for a variable that is not set, and for what can be no name of one, which is not repeated.
    """
    if not variable:
        return ""
    if not _VARIABLE.fullmatch(variable) or looks_secret(variable):
        raise UserError(
            f"{option.strip(' =')} takes the name of an environment variable (capitals, digits and _), not the key"
            f" itself: export JUDGE_KEY=... and write {option}JUDGE_KEY"
        )
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"the environment variable {variable} is not set: export {variable}=... with the server's key")
    check_key(key, f"the environment variable {variable}")
    return key


def check_key(key: str, where: str = "the key") -> None:
    """UserError, without the key in it, for one that no header can carry."""
    if not key.isascii() or (key and not key.isprintable()):
        raise UserError(f"{where} holds characters that no key has (a line break, or a letter that is not ASCII)")
