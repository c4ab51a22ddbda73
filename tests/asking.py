"""Requests as a judge would send them to a mock."""

from typing import Any

from dikast.core.message import Message, Span
from dikast.engines.base import Readout, Request, Sampling

FIVE = {str(level): float(level) for level in range(1, 6)}
STRINGS = tuple(f" {level}" for level in FIVE)
READ = Readout(STRINGS, "[RESULT]")


def absolute(
    i: object = 0, gold: Any = 3, *, values: dict[str, float] | None = None, seed: int = 0, **about: Any
) -> Request:
    """Grading of one response; `readout` and other request fields may stand among `about`."""
    values = values or FIVE
    request = {name: about.pop(name) for name in ("readout", "schema", "choices", "prefill") if name in about}
    told = {
        "kind": "absolute",
        "item": f"item-{i}",
        "criterion": "helpfulness",
        "rubric": "r1",
        "responses": [0],
        "sample": 0,
        "labels": {label: f" {label}" for label in values},
        "values": values,
        "lower_is_better": False,
        "marker": "[RESULT]",
        "texts": ["x" * 400],
        "images": [],
        "gold": gold,
        **about,
    }
    text = Span(told["texts"][0])
    messages = (Message("user", (Span("Grade this.\n", True), text)),)
    return Request(f"key-{i}-{seed}", messages, Sampling(seed=seed), about=told, **request)


def pair(
    i: object = 0, gold: Any = (3, 3), *, turned: bool = False, ties: bool = False, seed: int = 0, **about: Any
) -> Request:
    """Comparison of responses 0 and 1, shown 1 first if `turned`."""
    labels = {"first": " A", "second": " B", **({"tie": " T"} if ties else {})}
    request = {name: about.pop(name) for name in ("readout", "choices") if name in about}
    texts = about.pop("texts", ["left " * 80, "right" * 80])
    told = {
        "kind": "pairwise",
        "item": f"item-{i}",
        "criterion": "helpfulness",
        "rubric": "r1",
        "responses": [1, 0] if turned else [0, 1],
        "sample": 0,
        "labels": labels,
        "lower_is_better": False,
        "marker": "[RESULT]",
        "texts": texts[::-1] if turned else texts,
        "images": [],
        "gold": list(gold) if isinstance(gold, tuple) else gold,
        **about,
    }
    messages = (Message("user", (Span("Compare these.", True),)),)
    return Request(f"key-{i}-{turned}-{seed}", messages, Sampling(seed=seed), about=told, **request)
