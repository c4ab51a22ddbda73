"""What one form of a record says and another cannot, leaf by leaf, so that converting there and back loses nothing.

`difference(wanted, derived)` is kept beside the derived record; `restored(derived, difference)` gives `wanted` back.
A leaf that was replaced is put back only while the derived value is still the one it was taken against: once somebody
edits the record, the edit wins, and a prompt rendered from the old text does not come back.
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
    """`derived` with `delta` applied, as far as it still fits."""
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
    """Two objects, or two lists of one length: what differs is looked for inside."""
    if isinstance(a, dict):
        return isinstance(b, dict)
    return isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
