"""Reading small text files with line numbers, near misses, counts, and numbers in texts."""

import difflib
import itertools
import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.core.errors import DataError, UserError

if TYPE_CHECKING:
    from yaml import Node

_MOST_BYTES = 4 * 2**20
_LONGEST_NAME = 200
_MOST_NODES = 100_000
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d{1,2}")


def printable(text: str) -> str:
    r"""Text as it may be shown: control characters, and those that turn the direction of what follows, as `\u001b`.

    A terminal would obey the former, and the latter make text look different from what it is. Tabs and line breaks
    stay. The escapes are those of JSON, whose strings keep their meaning.
    """
    if text.isprintable():  # what is asked of most texts, and ten times as fast
        return text
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str, most: int = 200) -> str:
    """A name as it stands in a line or table: `printable`, without line breaks; of a longer one both ends."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-(most // 2) :]}"


def markdown(text: str) -> str:
    """One line that cannot break a table, add markup or open a link: Markdown's own characters are escaped."""
    text = one_line(text, 1000)
    for each in "\\`*_[]<>|#~":
        text = text.replace(each, "\\" + each)
    return text.replace("://", ":\u200b//").replace("@", "@\u200b")


def near_miss(name: str, known: Iterable[str], least: float = 0.75) -> str | None:
    """The known name that `name` is most likely a misspelling of, or None; `least` is how alike they are, up to 1.

    Nobody mistypes a name of more than 200 characters, and comparing longer ones takes seconds.
    """
    if len(name) > _LONGEST_NAME:
        return None
    folded = {each.casefold().replace("-", "_"): each for each in known}
    hits = difflib.get_close_matches(name.casefold().replace("-", "_"), folded, n=1, cutoff=least)
    return folded[hits[0]] if hits else None


def nearest(path: str) -> str:
    """The file of the same folder that was most likely meant; "" for none."""
    folder, name = os.path.split(path)
    try:
        near = near_miss(name, (each for each in os.listdir(folder or ".") if not each.startswith(".")))
    except (OSError, ValueError):
        return ""
    return os.path.join(folder, near) if near else ""


def changed_lines(one: str, other: str, around: int = 2) -> Iterator[tuple[str, str]]:
    """The lines that differ between two texts: ("-", of the first), ("+", of the second), (" ", around them), and
    ("…", "") before each place after the first; nothing where the texts are equal.
    """
    lines = difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=around)
    for line in itertools.islice(lines, 3, None):  # after the heads of the texts and of the first place
        yield ("…", "") if line.startswith("@@") else (line[0], line[1:])


def hint(name: str, known: Iterable[str]) -> str:
    """What to write in place of an unknown name: the near match, or all that is known."""
    names = list(known)
    near = near_miss(name, names)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(names) or 'none'}"


def listing(names: Sequence[str], most: int = 12) -> str:
    """The first names of many for a message: `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(n: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`; nouns that do not just take an s say their `plural`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


@dataclass
class Located:
    """A YAML or JSON document as plain values, with the line of every key: `lines[("levels", 3)]`."""

    value: Any
    path: str
    lines: dict[tuple[object, ...], int] = field(default_factory=dict)

    def find(self, *keys: Any) -> Any:
        """The value that `keys` lead to."""
        value = self.value
        for key in keys:
            value = value[key]
        return value

    def error(self, message: str, *keys: object) -> DataError:
        """A DataError at the line of `keys`, or of the nearest enclosing key that has one."""
        at = keys
        while at and at not in self.lines:
            at = at[:-1]
        return DataError(message, path=self.path, line=self.lines.get(at), field=".".join(map(str, keys)))


def read_located(path: str | Path) -> Located:
    """Read a YAML or JSON file (JSON is read as the YAML it is), keeping line numbers; duplicate keys are errors."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    if len(raw) > _MOST_BYTES:
        raise DataError(f"more than {_MOST_BYTES:,} bytes: is this the file you meant?", path=str(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"byte {error.start} is not UTF-8: save the file as UTF-8", path=str(path), line=line) from None
    return parse_located(text, str(path))


def in_shell(path: object) -> str:
    """A path as it stands in a command that somebody copies into a shell: quoted where its name needs that."""
    return shlex.quote(str(path))


def parse_located(text: str, path: str) -> Located:
    """As `read_located`, from text; `path` is only for messages."""
    import yaml  # only where a file is read, as help and completion read none

    if path.endswith(".json"):
        text = text.replace("\t", "  ")  # YAML refuses tabs as indentation, JSON allows them
    located = Located(None, path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise DataError("the file is empty", path=path)
        located.value = _plain(node, (), located)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a tag such as !!int on another value
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        if "'\\t'" in problem:
            problem += ": indent with spaces, not with tabs"
        raise DataError(
            f"not valid {'JSON' if path.endswith('.json') else 'YAML'}: {problem}", path=path, line=line
        ) from None
    except RecursionError:
        raise DataError("nested too deeply, or an alias (*name) is inside its own anchor", path=path) from None
    return located


def _plain(node: "Node", at: tuple[object, ...], into: Located) -> Any:
    import yaml

    into.lines.setdefault(at, node.start_mark.line + 1)
    if len(into.lines) > _MOST_NODES:  # aliases of aliases can expand to more than any memory holds
        raise into.error(f"more than {_MOST_NODES:,} values, aliases written out: is this the file you meant?")
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise DataError("a key must be one word or a line of text", path=into.path, line=line)
            key = _scalar(key_node)
            if key in found:
                into.lines[(*at, key)] = line
                raise into.error(f"the key {key!r} appears twice: keep one", *at, key)
            into.lines[(*at, key)] = line
            found[key] = _plain(value_node, (*at, key), into)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, (*at, i), into) for i, child in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: "Node") -> Any:
    """A scalar's plain value; words that YAML 1.1 reads as booleans or dates but people mean as words stay words."""
    import yaml

    tag = node.tag.rpartition(":")[2]
    if tag == "timestamp" or (tag == "bool" and node.value.lower() not in ("true", "false")):
        return node.value
    constructor = yaml.SafeLoader("")
    try:
        value = constructor.construct_object(node, deep=True)
    finally:
        constructor.dispose()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise yaml.MarkedYAMLError(problem="a number of more than 64 bits", problem_mark=node.start_mark)
    if isinstance(value, str) and not value.isascii():  # JSON spells characters beyond U+FFFF as two escapes
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def number_in(text: str) -> int | float | str:
    """The number that `text` writes, else `text`; `007` and numbers too large for a float stay text.

    A comma before one or two digits is a decimal comma; before three digits it may separate thousands, so the text
    stays.
    """
    if _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if not _NUMBER.fullmatch(text) or re.match(r"[+-]?0\d", text):
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text) if len(text) <= 18 else text
    number = float(text)
    return number if math.isfinite(number) else text
