"""What tokens cost: from a table of the user's own, else from the dated one that ships with the package."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.text import Located, near_miss, read_located

SHIPPED = Path(__file__).with_name("prices.yaml")
_KEYS = ("in", "cached", "out")
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d\d-\d\d)$")


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens: read from the prompt, read from the server's cache, written."""

    tokens_in: float
    tokens_cached: float
    tokens_out: float

    def cost(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """Of one answer; `tokens_in` counts the cached ones too."""
        fresh = max(0, tokens_in - tokens_cached)
        total = fresh * self.tokens_in + tokens_cached * self.tokens_cached + tokens_out * self.tokens_out
        return total / 1e6


def default_table() -> Path:
    """Where the table is looked for: `dikast/prices.yaml` in $XDG_CONFIG_HOME, or in ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "dikast" / "prices.yaml"


def price_of(model: str, table: str, shipped: str = "") -> Price | None:
    """The price of a model; None where it is unknown.

    The user's table maps names of models to `{in: ..., out: ..., cached: ...}`; `cached` is `in` where it is left out.
    A model that it does not list has the price that is shipped for the provider `shipped`, if there is one.
    """
    path = Path(table) if table else default_table()
    if not table and not path.is_file():
        return shipped_price(shipped, model)
    document = read_located(path)
    if not isinstance(document.value, dict):
        raise document.error("a price table maps names of models to {in: ..., cached: ..., out: ...}")
    if model not in document.value:
        if not table:
            return shipped_price(shipped, model)
        near = near_miss(model, map(str, document.value))
        raise UserError(f"{path}: no price for {model!r}" + (f"; did you mean {near!r}?" if near else ""))
    return _price(document, model, document.value[model])


def shipped_price(provider: str, model: str) -> Price | None:
    """The price in `prices.yaml`, in US dollars; a dated version of a model costs what the model does."""
    if not provider:
        return None
    document = read_located(SHIPPED)
    known: Mapping[str, Mapping[str, Any]] = document.value.get(provider, {})
    found = known.get(model) or known.get(_DATE.sub("", model))
    return None if found is None else _price(document, model, {key: found[key] for key in _KEYS if key in found})


def _price(document: Located, model: str, value: Any) -> Price:
    if not isinstance(value, dict):
        raise document.error("write {in: ..., cached: ..., out: ...}, money per million tokens", model)
    for key in value:
        if key not in _KEYS:
            raise document.error(f"unknown key {key!r}: known are {', '.join(_KEYS)}", model, key)
    for key in ("in", "out"):
        if key not in value:
            raise document.error(f"the price has no {key!r}", model)
    for key, each in value.items():
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each < float("inf"):
            raise document.error(f"money per million tokens is a number from 0, got {each!r}", model, key)
    return Price(float(value["in"]), float({"cached": value["in"], **value}["cached"]), float(value["out"]))
