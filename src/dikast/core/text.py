"""Reading small text files with line numbers, and naming near misses."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dikast.core.errors import DataError, UserError


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a slip of, or None."""
    folded = {each.casefold().replace("-", "_"): each for each in known}
    hits = difflib.get_close_matches(name.casefold().replace("-", "_"), folded, n=1, cutoff=0.75)
    return folded[hits[0]] if hits else None


@dataclass
class Located:
    """A YAML or JSON document as plain values, with the line of every key: `lines[("levels", 3)]`."""

    value: Any
    path: str
    lines: dict[tuple[object, ...], int] = field(default_factory=dict)

    def error(self, message: str, *keys: object) -> DataError:
        """A DataError at the line of `keys`, or of the nearest enclosing key that has one."""
        at = keys
        while at and at not in self.lines:
            at = at[:-1]
        return DataError(message, path=self.path, line=self.lines.get(at), field=".".join(map(str, keys)))


def read_located(path: str | Path) -> Located:
    """Read a YAML or JSON file (JSON is read as the YAML it is), keeping line numbers; duplicate keys are errors."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"byte {error.start} is not UTF-8: save the file as UTF-8", path=str(path), line=line) from None
    return parse_located(text, str(path))


def parse_located(text: str, path: str) -> Located:
    """As `read_located`, from text; `path` is only for messages."""
    if path.endswith(".json"):
        text = text.replace("\t", "  ")  # YAML refuses tabs as indentation, JSON allows them
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise DataError(f"not valid YAML: {getattr(error, 'problem', error)}", path=path, line=line) from None
    if node is None:
        raise DataError("the file is empty", path=path)
    located = Located(None, path)
    located.value = _plain(node, (), located)
    return located


def _plain(node: yaml.Node, at: tuple[object, ...], into: Located) -> Any:
    into.lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node)
            if key in found:
                into.lines[(*at, key)] = key_node.start_mark.line + 1
                raise into.error(f"the key {key!r} stands here a second time: keep one", *at, key)
            into.lines[(*at, key)] = key_node.start_mark.line + 1
            found[key] = _plain(value_node, (*at, key), into)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, (*at, i), into) for i, child in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    """A scalar's plain value; words that YAML 1.1 reads as booleans but people mean as words stay words."""
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":bool") and node.value.lower() not in ("true", "false"):
        return node.value
    constructor = yaml.SafeLoader("")
    try:
        return constructor.construct_object(node, deep=True)
    finally:
        constructor.dispose()
