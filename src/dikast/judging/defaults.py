"""The default format of a judge: a released judge's own, else a built-in one."""

from typing import TYPE_CHECKING

from dikast.engines.spec import parse_spec
from dikast.prompts.format import Format, load_format
from dikast.prompts.released.catalog import find_released

if TYPE_CHECKING:
    from dikast.prompts.released.first_use import Own

BUILT_IN = {"absolute": "absolute", "pairwise": "pairwise"}
_LOCAL = ("", "hf", "vllm")
_SERVED = ("http", "https", "openai")


def model_of(spec: str) -> str:
    """The model that a spec names: a Hub id or a folder of a local engine, the model name of a server; else ""."""
    scheme, target, _ = parse_spec(spec.strip())
    if scheme in _LOCAL:
        return target.partition("@")[0]
    if scheme in _SERVED:
        return target.rpartition("#")[2] if "#" in target or scheme == "openai" else ""
    return ""


def default_format(spec: str, kind: str) -> Format:
    """The format for that kind of question. A released judge's own is learnt on first use (UserError if it cannot)."""
    own = _own_format(model_of(spec), kind)
    return own.format if own else load_format(BUILT_IN[kind])


def _own_format(model: str, kind: str) -> "Own | None":
    if find_released(model) is None:
        return None
    from dikast.prompts.released.first_use import own_format  # learning takes longest to import

    return own_format(model, kind)


def default_format_note(spec: str, kind: str) -> str:
    """For people: what the default format of a released judge is; "" for any other judge."""
    model = model_of(spec)
    released = find_released(model)
    if released is None:
        return ""
    own = _own_format(model, kind)
    if own is not None:
        settings = ", ".join(f"{name} {value}" for name, value in released.sampling.items())
        run = f"; its publishers sample with {settings}" if settings else ""
        return f"{model}: asked with {own.told} ({own.path}){run}"
    known = released.prompts.get(kind)
    why = known.without if known else f"it has no {kind} prompt"
    return f"{model}: asked with the built-in format {BUILT_IN[kind]!r}: {why}"
