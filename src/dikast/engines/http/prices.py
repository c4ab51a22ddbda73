"""What tokens cost, from a table in the user's own configuration; no prices ship with the package."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.text import Located, near_miss, read_located

_KEYS = ("in", "cached", "out")


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


def price_of(model: str, table: str) -> Price | None:
    """The price of a model; None if there is no table, or the table in its default place does not list it.

    The table maps names of models to `{in: ..., out: ..., cached: ...}`; `cached` is `in` where it is left out.
    """
    path = Path(table) if table else default_table()
    if not table and not path.is_file():
        return None
    document = read_located(path)
    if not isinstance(document.value, dict):
        raise document.error("a price table maps names of models to {in: ..., cached: ..., out: ...}")
    if model not in document.value:
        if not table:
            return None
        near = near_miss(model, map(str, document.value))
        raise UserError(f"{path}: no price for {model!r}" + (f"; did you mean {near!r}?" if near else ""))
    return _price(document, model, document.value[model])


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
