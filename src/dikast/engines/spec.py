"""Engines by name: the values of `--judge`."""

import importlib
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, cast, overload

from dikast.core.errors import DikastError, UserError
from dikast.core.secrets import looks_secret, names_a_secret, without_secrets
from dikast.core.text import near_miss
from dikast.engines.base import ClosingEngine, Engine
from dikast.engines.http.providers import PROVIDERS
from dikast.engines.options import options_of, read_options
from dikast.engines.spec_spelling import of_page, spelling

GROUP = "dikast.engines"
_BUILT_IN = {
    "decision": "dikast.engines.decision:open_decision",
    "hf": "dikast.engines.local.engine:LocalEngine",
    "http": "dikast.engines.http.servers.http_specs:open_http",
    "https": "dikast.engines.http.servers.http_specs:open_https",
    "mock": "dikast.engines.mock:open_mock",
    "replay": "dikast.engines.replay:ReplayEngine",
    "scout": "dikast.engines.scout:Scout",
    "servers": "dikast.engines.http.servers.several_servers:open_servers",
    "vllm": "dikast.engines.vllm.engine:VllmEngine",
}
ALONE = ("scout",)  # schemes that are the whole name
_HOW = {
    "decision": "decision:http://HOST/v1/systemone#MODEL",
    "hf": "hf:ORG/NAME[@REVISION]",
    "http": "http://HOST:PORT/v1#MODEL",
    "https": "https://HOST/v1#MODEL",
    "mock": "mock:NAME",
    "replay": "replay:FILE",
    "scout": "scout",
    "servers": "servers:FILE#MODEL",
    "vllm": "vllm:ORG/NAME[@REVISION]",
    **{scheme: f"{scheme}:{provider.model}" for scheme, provider in PROVIDERS.items()},
}
_VARIABLES = {
    "decision": "OPENAI_API_KEY",
    "hf": "HF_TOKEN",
    "vllm": "HF_TOKEN",
    **{scheme: provider.key_env for scheme, provider in PROVIDERS.items() if provider.key_env},
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]*):(.*)", re.DOTALL)
_OPTION = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=(.*)", re.DOTALL)


class Spec(NamedTuple):
    """A spec taken apart: `hf:org/name@main,batch_size=4` has scheme `hf`, target `org/name@main`, one option."""

    scheme: str
    target: str
    options: Mapping[str, str]


def parse_spec(text: str) -> Spec:
    """Read `SCHEME:TARGET[,NAME=VALUE]...`; a bare TARGET has the scheme "".

    Options come last. A comma that is not followed by `NAME=` belongs to the target, and so does any comma of a path
    that exists as it is written. UserError for an option that holds a secret.
    """
    options: dict[str, str] = {}
    rest = text
    while not _exists(rest) and (match := _OPTION.fullmatch(rest.rpartition(",")[2])) and "," in rest:
        name = match[1].replace("-", "_")
        if name in options:
            raise UserError(f"engine {without_secrets(text)!r}: the option {name!r} is given twice")
        options[name] = match[2].strip()
        rest = rest.rpartition(",")[0]
    options = dict(reversed(options.items()))
    parts = None if os.path.isdir(rest) else _SCHEME.fullmatch(rest)
    spec = Spec(parts[1], parts[2], options) if parts else Spec("", rest, options)
    _refuse_secrets(*spec)
    return spec


@overload
def open_engine(spec: str, **options: Any) -> ClosingEngine: ...


@overload
def open_engine(spec: Engine, **options: Any) -> Engine: ...


def open_engine(spec: str | Engine, **options: Any) -> Engine:
    """The engine that `spec` names; an engine is passed through.

    `options` take precedence over those written in the spec. `scout` (the bundled judge), `mock:NAME`, `replay:FILE`,
    `hf:ORG/NAME[@REVISION]`, the folder of a model, `vllm:ORG/NAME[@REVISION]`, `http(s)://HOST/v1#MODEL` (several
    addresses parted by commas, or `servers:FILE#MODEL`), `openai:MODEL` and the other providers of
    `engines.http.providers`, `decision:URL#MODEL`, or the scheme of an installed package (entry point group
    `dikast.engines`, a callable `(target, **options) -> Engine`), each with `,NAME=VALUE` options. `with
    open_engine(...) as engine:` closes it at the end. Raises UserError for anything else, with the near miss and the
    list of what there is.
    """
    try:
        return _opened(spec, options)
    except DikastError as error:
        told = without_secrets(str(error))
        if told != str(error):
            error.args = (told,)
        raise


def _opened(spec: str | Engine, options: Mapping[str, Any]) -> Engine:
    if not isinstance(spec, str):
        if options:
            raise UserError(f"options ({', '.join(options)}) apply to a spec; this engine is already open")
        if not hasattr(spec, "stream"):
            raise UserError(f"expected an engine or its spec, got {type(spec).__name__}: {_offered()}")
        return spec
    if page := of_page(spec):
        raise UserError(f"engine {spec!r}: the page of a model of the Hub: write {page}")
    scheme, target, written = parse_spec(spec.strip())
    given: dict[str, Any] = {**written, **options}
    if not scheme and target and os.path.isdir(target):
        scheme = "hf"
    elif not scheme and target in ALONE:
        scheme, target = target, ""
    elif scheme in ("hf", "vllm") and not os.path.isdir(target):
        target, given = _revision(spec, target, given)
    factory = _factory(spec, scheme)
    if not target and scheme not in ALONE:
        raise UserError(f"engine {spec!r} does not name a target: write {_HOW.get(scheme, scheme + ':TARGET')}")
    known = options_of(factory)
    return cast(Engine, factory(target, **(given if known is None else read_options(given, known, where=spec))))


def _refuse_secrets(scheme: str, target: str, written: Mapping[str, str]) -> None:
    """UserError for a secret that is typed: command lines are visible to others and saved by shells."""
    for name, value in written.items():
        if value and (names_a_secret(name) or (looks_secret(value) and name not in ("extra", "key_env"))):
            variable = _VARIABLES.get(scheme) if not target.startswith(("http://", "https://")) else None
            how = f"export {variable}=..., which is read from there"
            if variable is None:
                how = "export JUDGE_KEY=... and write key_env=JUDGE_KEY"
            raise UserError(
                f"engine {scheme}: the option {without_secrets(name)!r} holds a secret, and command lines are"
                f" visible to other users and saved by shells; put it into an environment variable: {how}"
            )


def engine_schemes() -> list[str]:
    """Every scheme that `open_engine` knows here, those of installed packages included."""
    return sorted({*_BUILT_IN, *PROVIDERS, *_installed()})


def _exists(path: str) -> bool:
    found = _SCHEME.fullmatch(path)
    try:
        return Path(path).exists() or (found is not None and bool(found[2]) and Path(found[2]).exists())
    except (OSError, ValueError):  # too long for a path, or a NUL in it
        return False


def _revision(spec: str, target: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name, at, revision = target.partition("@")
    if not at:
        return target, given
    if "revision" in given:
        raise UserError(f"engine {spec!r}: the revision is given twice, as '@{revision}' and as an option")
    return name, {**given, "revision": revision}


def _is_file(spec: str) -> bool:
    try:
        return Path(spec).is_file()
    except (OSError, ValueError):
        return False


def _factory(spec: str, scheme: str) -> Callable[..., Any]:
    if scheme in _BUILT_IN:
        module, _, name = _BUILT_IN[scheme].partition(":")
        return cast(Callable[..., Any], getattr(importlib.import_module(module), name))
    if scheme in PROVIDERS:
        opener = importlib.import_module("dikast.engines.http.servers.http_specs").open_provider
        return partial(cast(Callable[..., Any], opener), scheme)
    installed = _installed()
    if scheme in installed:
        return cast(Callable[..., Any], installed[scheme].load())
    meant = spelling(spec, engine_schemes())
    if not scheme and _is_file(spec):
        raise UserError(
            f"engine {spec!r}: is a file; a judge is a spec (openai:MODEL, hf:ORG/NAME, http://HOST:PORT/v1#MODEL) or"
            f" the folder of a model; replay:{spec} gives recorded replies"
        )
    if not scheme:
        near = near_miss(spec, engine_schemes())
        hint = f"did you mean {_HOW.get(near, near + ':TARGET')}? " if near else ""
        hint = f"did you mean {meant!r}? " if meant else hint
        raise UserError(f"engine {spec!r}: there is no such folder and it names no scheme; {hint}{_offered()}")
    near = near_miss(scheme, engine_schemes())
    hint = f"did you mean {meant!r}? " if meant else f"did you mean {near!r}? " if near else ""
    raise UserError(f"engine {spec!r}: unknown scheme {scheme!r}; {hint}{_offered()}")


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _offered() -> str:
    known = [_HOW.get(scheme, f"{scheme}:TARGET") for scheme in engine_schemes()]
    return f"known are {', '.join(known)} and the folder of a model"
