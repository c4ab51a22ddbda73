"""Leaf-by-leaf differences between two forms of a record, so that a round trip of conversions loses nothing.

`difference(wanted, derived)` is stored beside the derived record; `restored(derived, difference)` gives `wanted` back.
A replaced leaf is restored only if the derived value is unchanged: after an edit the edited value stays, and a prompt
that was rendered from the old text is not restored.
"""

from typing import Any

from dikast.core.canonical import canonical_json, fingerprint


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: 3, 3.0 and true differ."""
    return a is b or canonical_json(a) == canonical_json(b)


def difference(wanted: dict[str, Any], derived: dict[str, Any]) -> dict[str, Any]:
    """What turns `derived` into `wanted`; empty when they are the same."""
    return _between(wanted, derived)


def restored(derived: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    """`derived` with `delta` applied, except where `derived` has been edited."""
    found = _applied(derived, delta)
    assert isinstance(found, dict)
    return found


def _between(wanted: Any, derived: Any) -> dict[str, Any]:
    left, right = _keyed(wanted), _keyed(derived)
    delta: dict[str, dict[str, Any]] = {}
    for key, value in left.items():
        if key not in right:
            delta.setdefault("add", {})[key] = value
        elif not same(value, right[key]):
            if _alike(value, right[key]):
                delta.setdefault("inside", {})[key] = _between(value, right[key])
            else:
                delta.setdefault("replace", {})[key] = {"was": fingerprint(right[key]), "value": value}
    for key, value in right.items():
        if key not in left:
            delta.setdefault("remove", {})[key] = fingerprint(value)
    return delta


def _applied(value: Any, delta: dict[str, Any]) -> Any:
    into = dict(_keyed(value))
    for key, was in delta.get("remove", {}).items():
        if key in into and fingerprint(into[key]) == was:
            del into[key]
    for key, change in delta.get("replace", {}).items():
        if key in into and fingerprint(into[key]) == change["was"]:
            into[key] = change["value"]
    for key, inner in delta.get("inside", {}).items():
        if isinstance(into.get(key), dict | list):
            into[key] = _applied(into[key], inner)
    for key, added in delta.get("add", {}).items():
        into.setdefault(key, added)
    return [into[str(i)] for i in range(len(into))] if isinstance(value, list) else into


def _keyed(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {str(i): each for i, each in enumerate(value)}


def _alike(a: Any, b: Any) -> bool:
    """Whether both are objects, or lists of equal length, so that differences are found inside them."""
    if isinstance(a, dict):
        return isinstance(b, dict)
    return isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
