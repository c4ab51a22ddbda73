"""JSON that fits a JSON schema and states a verdict: the reply of a mock under constrained decoding."""

from collections.abc import Mapping
from typing import Any

VERDICT_FIELDS = ("score", "rating", "grade", "label", "verdict", "result", "choice", "winner", "preference", "answer")


def fitting(schema: Mapping[str, Any], verdict: str, prose: str) -> Any:
    """A value that fits `schema` (objects, arrays, enums, bounds, unions, local references), stating `verdict`.

    The verdict goes into every enum that offers it, every number whose bounds allow it, and every free string whose
    name is one of `VERDICT_FIELDS`; other free strings get `prose`.
    """
    return _value(schema, _Wish(verdict, prose, schema), "")


class _Wish:
    def __init__(self, verdict: str, prose: str, root: Mapping[str, Any]) -> None:
        self.verdict, self.prose, self.root = verdict, prose, root

    def number(self) -> float | None:
        try:
            return float(self.verdict)
        except ValueError:
            return None

    def among(self, values: list[Any]) -> Any:
        """The value that states the verdict, else the first."""
        for value in values:
            if isinstance(value, str) and value.strip().casefold() == self.verdict.casefold():
                return value
            if isinstance(value, int | float) and not isinstance(value, bool) and value == self.number():
                return value
        return values[0]


def _value(node: Mapping[str, Any], wish: _Wish, name: str) -> Any:
    node = _resolved(node, wish.root)
    if "const" in node:
        return node["const"]
    if node.get("enum"):
        return wish.among(node["enum"])
    for union in ("anyOf", "oneOf"):
        if node.get(union):
            return _value(node[union][0], wish, name)
    kind = node.get("type", "object" if "properties" in node else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {key: _value(child, wish, key) for key, child in node.get("properties", {}).items()}
    if kind == "array":
        return [_value(node.get("items", {}), wish, name) for _ in range(max(node.get("minItems", 0), 1))]
    if kind in ("integer", "number"):
        return _number(node, wish, whole=kind == "integer")
    if kind == "boolean":
        return wish.verdict.casefold() in ("true", "yes", "pass")
    return None if kind == "null" else _text(node, wish, name)


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(32):  # a reference to a reference; a circle ends as an empty schema
        if "$ref" not in node:
            return node
        found: Any = root
        for step in str(node["$ref"]).removeprefix("#").strip("/").split("/"):
            found = found.get(step, {}) if isinstance(found, Mapping) else {}
        node = found
    return {}


def _number(node: Mapping[str, Any], wish: _Wish, *, whole: bool) -> float | int:
    low, high = node.get("minimum"), node.get("maximum")
    number = wish.number()
    if number is None or (low is not None and number < low) or (high is not None and number > high):
        number = low if low is not None else high if high is not None else 0
    return int(number) if whole or number == int(number) else number


def _text(node: Mapping[str, Any], wish: _Wish, name: str) -> str:
    text = wish.verdict if name.casefold() in VERDICT_FIELDS else wish.prose or wish.verdict
    text = text.ljust(node.get("minLength", 0), ".")
    return text[: node["maxLength"]] if "maxLength" in node else text
