"""Judges with known faults, to test that they are found.

Public names: `Mock` (the base to subclass), `Constant`, `Random`, `Oracle`, `Failures`, `open_mock`, `MOCKS`.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dikast.core.errors import UserError
from dikast.core.text import near_miss
from dikast.engines.mock.judges import Constant, Oracle, Random
from dikast.engines.mock.mock_judge import Failures, Mock, labels_of, uniform
from dikast.engines.options import options_of, read_options

__all__ = ["MOCKS", "Constant", "Failures", "Mock", "Oracle", "Random", "labels_of", "open_mock", "uniform"]

MOCKS: Mapping[str, tuple[type[Mock], Mapping[str, Any]]] = {
    "constant": (Constant, {}),
    "failing": (Random, {"failing": 0.6}),
    "first-slot": (Oracle, {"r": 0.0, "nats": 60.0}),
    "injectable": (Oracle, {"obeys": 1.0}),
    "oracle": (Oracle, {}),
    "position-biased": (Oracle, {"nats": 1.0}),
    "prefers-long": (Oracle, {"per_doubling": 0.3}),
    "random": (Random, {}),
    "rubric-blind": (Oracle, {"ignores": "rubric"}),
    "text-only": (Oracle, {"ignores": "images", "r": 0.0}),
}


def open_mock(target: str, **options: Any) -> Mock:
    """The mock judge called `target`, its settings changed by `options`.

    Beside the fields of its class: `failing` (a share spread evenly over all ways to fail) or the share of each way
    by its name in `Failures`.
    """
    if target not in MOCKS:
        near = near_miss(target, MOCKS)
        hint = f"did you mean {near!r}? " if near else ""
        raise UserError(f"mock:{target}: there is no such mock judge; {hint}there are {', '.join(MOCKS)}")
    kind, preset = MOCKS[target]
    ways = {each.name: float for each in fields(Failures)}
    known = {**(options_of(kind) or {}), **ways, "failing": float}
    for inner in ("failures", "name"):
        known.pop(inner)
    given = read_options(options, known, where=f"mock:{target}")
    shares = {name: given.pop(name) for name in list(given) if name in ways}
    settings = {**preset, **given}
    failing = settings.pop("failing", 0.0)
    if shares and "failing" in given:
        raise UserError(f"mock:{target}: give 'failing' or the shares {', '.join(shares)}, not both")
    failures = Failures(**shares) if shares else Failures.evenly(failing)
    changes = [f"{key}={value}" for key, value in {**given, **shares}.items() if key not in ("latency", "log")]
    return kind(name=",".join([f"mock:{target}", *changes]), failures=failures, **settings)
