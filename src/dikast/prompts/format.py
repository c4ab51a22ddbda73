"""A format is a prompt template and an output parser in one object: item + rubric -> messages, reply -> verdict.

The built-in formats are zero-shot; a format that was learnt from a released judge keeps its few-shot examples.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from jinja2 import TemplateSyntaxError

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.message import Message
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.text import Located, near_miss, parse_located, read_located
from dikast.prompts.ask import NAMES, ROLES, as_given, check_item, names_for
from dikast.prompts.dialects import Dialect
from dikast.prompts.gold import Gold
from dikast.prompts.parse import get_dialect, parse_for
from dikast.prompts.parsed import PAIR_WORDS, SLOTS, Parsed, Target
from dikast.prompts.render import Piece, Slots, Words, headed, names_in, render
from dikast.prompts.target import Reply, target

RENDERING = 1  # increased when the same YAML would give another prompt (escaping, separators, spelling of a scale)
_KEYS = (
    "name", "about", "kind", "dialect", "marker", "feedback", "explains", "heading", "words", "verbatim", "exact",
    "needs", "scale", "system", "user",
)  # fmt: skip
_NEEDS = ("instruction", "reference", "context", "levels")
_FOLDER = resources.files("dikast.prompts").joinpath("formats")
_BLOCK_HEADING = re.compile(r"^==\[ (.+) \]==$", re.M)
_BLOCK = re.compile(r"\{%\s*include\s*[\"']([\w-]+)[\"']\s*%\}\n?")


@dataclass(frozen=True, slots=True)
class Format:
    """A way to ask for a verdict and to read it.

    `kind` says whether one response is graded or two are compared. `system` and `user` are Jinja templates; a format
    with `verbatim` has none and sends the item's turns as they are. `marker` is the text after which the verdict's
    label stands ("" if it cannot be read there). `feedback` says whether prose is asked for before the verdict,
    `explains` whether it is asked for after it. `heading` is the pattern of the headings ("{}" is replaced by the
    title), for escaping; "" escapes nothing. `words` spells the slots of a pair; a pair without a word for `tie` allows
    none. An `exact` format sends its text exactly as the template makes it, without escaping or stripping. `needs`
    names what an item must have, as the prompt has no form without it; `scale` is the only scale the prompt mentions,
    "" for any.
    """

    name: str
    kind: Literal["absolute", "pairwise"]
    dialect: str
    hash: str
    marker: str = ""
    feedback: bool = True
    about: str = ""
    system: str = ""
    user: str = ""
    verbatim: bool = False
    heading: str = ""
    words: tuple[tuple[str, str], ...] = ()
    exact: bool = False
    needs: tuple[str, ...] = ()
    scale: str = ""
    explains: bool = False

    @property
    def guards(self) -> tuple[str, ...]:
        """Strings that no line of user text may begin with in this format's prompts."""
        if not self.heading:
            return ()
        return tuple(guard for guard in (self.heading.split("{}")[0].strip(), self.marker) if guard)

    @property
    def lead(self) -> str:
        """The text between the prose and a marker that Dikast adds; bracketed results continue their line."""
        return " " if self.dialect == "bracketed" else "\n"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `format_from` reads back: everything that makes the prompt, blocks put in."""
        return {**asdict(self), "words": dict(self.words)}

    def ask(self, item: Item, rubric: Rubric, responses: tuple[int, ...]) -> tuple[Message, ...]:
        """The messages that ask about one response, or about two, shown in the order of `responses`.

        DataError, naming record, field and cure, for an item that cannot be shown.
        """
        if self.verbatim:
            return as_given(item, responses)
        where = f"format {self.name!r}"
        self.check_rubric(rubric, item.origin)
        check_item(self.needs, item, where)
        slots = Slots(self.guards, self.heading, rubric)
        apart = "images" in names_in(self.user)
        names = {**names_for(self.kind, slots, item, responses, apart=apart), "words": Words(self.words)}

        def parts(source: str) -> tuple[Piece, ...]:
            return render(source, slots, names, where, exact=self.exact, shared=True)

        system = (Message("system", parts(self.system)),) if self.system else ()
        return (*system, Message("user", parts(self.user)))

    def check_rubric(self, rubric: Rubric, path: str = "") -> None:
        """DataError if the prompt cannot be made with this rubric: another scale, or levels without a description."""
        if self.kind == "pairwise":
            return
        where, scale = f"format {self.name!r}", rubric.scale
        if self.scale and Scale.parse(self.scale).labels != scale.labels:
            raise DataError(
                f"{where} asks on the scale {self.scale}, rubric {rubric.name!r} is on {scale}: use a rubric on"
                f" {self.scale} (--scale), or another format (--format)",
                path=path,
                field="rubric",
            )
        if "levels" not in self.needs:
            return
        described = {label for label, _ in rubric.levels}
        if missing := [label for label in scale.labels if label not in described]:
            message = f"{where} shows what every level means, and rubric {rubric.name!r} does not say it for"
            raise DataError(f"{message} {', '.join(missing)}: add them to its 'levels'", path=path, field="rubric")

    def labels(self, rubric: Rubric) -> dict[str, str]:
        """Each verdict and the exact text that follows the marker for it, leading space included."""
        if self.kind == "pairwise":
            return {slot: f" {word}" for slot, word in self.words}
        return {label: f" {label}" for label in rubric.scale.labels}

    def schema(self, rubric: Rubric) -> dict[str, Any] | None:
        """A JSON schema that constrains the reply, prose before the verdict; None unless the dialect is `json`."""
        if self.dialect != "json":
            return None
        labels = [word for _, word in self.words] if self.kind == "pairwise" else list(rubric.scale.labels)
        properties: dict[str, Any] = {"feedback": {"type": "string", "maxLength": 4000}} if self.feedback else {}
        properties["verdict"] = {"type": "string", "enum": labels}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def target(self, gold: Gold, rubric: Rubric, *, where: str = "") -> Reply:
        """The reply that a perfect judge would give in this format; parsing it gives the gold back.

        DataError, with `where` in front, for a verdict that this format cannot express.
        """
        return target(self, gold, rubric, where=where)

    def parse(self, reply: str, rubric: Rubric, *, finish: str = "stop", refusal: str = "") -> Parsed:
        """The verdict of `reply`; `finish` is `length` if it was cut off, `refusal` the server's own refusal field."""
        scale = rubric.scale if self.kind == "absolute" else None
        target = Target(scale, self.marker, self.words)
        return parse_for(get_dialect(self.dialect), reply, target, finish=finish, refusal=refusal)


def load_format(source: "str | Path | Format") -> Format:
    """A format from a YAML file, or by the name of a built-in one; UserError or DataError for anything else."""
    if isinstance(source, Format):
        return source
    if str(source) in builtin_formats():
        path = f"{source}.yaml"
        return _read(parse_located(_FOLDER.joinpath(path).read_text("utf-8"), path))
    if not Path(source).exists():
        near = near_miss(str(source), builtin_formats())
        hint = f"did you mean {near!r}? " if near else ""
        raise UserError(
            f"{source}: there is no such format file, and no built-in format of that name:"
            f" {hint}built in: {', '.join(builtin_formats())}"
        )
    return _read(read_located(source))


def format_from(value: Mapping[str, Any], *, path: str) -> Format:
    """Read back what `Format.to_dict` wrote; its hash is computed again, with the current dialects and rendering."""
    return _read(Located({key: each for key, each in value.items() if key in _KEYS}, path))


def builtin_formats() -> list[str]:
    """The names of the formats that ship with Dikast."""
    return sorted(file.name.removesuffix(".yaml") for file in _FOLDER.iterdir() if file.name.endswith(".yaml"))


def _read(document: Located) -> Format:
    value = document.value
    if not isinstance(value, dict):
        raise document.error("a format is a mapping with at least 'kind', 'dialect' and 'user'")
    for key in value:
        if key not in _KEYS:
            near = near_miss(str(key), _KEYS)
            hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(_KEYS)}"
            raise document.error(f"unknown key {key!r}: {hint}", key)
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in ROLES:
        raise document.error(f"the kind is 'absolute' or 'pairwise', got {kind!r}", "kind")
    dialect = _dialect(document, value)
    verbatim = _flag(document, value, "verbatim", default=False)
    name = _text(document, value, "name", default=Path(document.path).stem)
    heading = _text(document, value, "heading")
    if heading and (heading.count("{}") != 1 or not heading.split("{}")[0].strip()):
        raise document.error("a heading begins with a sign and holds '{}' once, such as '==[ {} ]=='", "heading")
    templates = {key: _template(document, value, key, heading) for key in ("system", "user")}
    _check_slots(document, templates, kind, verbatim)
    words = _words(document, value) if kind == "pairwise" else ()
    spec: dict[str, Any] = {
        "kind": kind,
        "dialect": dialect.name,
        "marker": _text(document, value, "marker"),
        "feedback": _flag(document, value, "feedback", default=True),
        "verbatim": verbatim,
        "heading": heading,
        "words": words,
        **templates,
    }
    extra: dict[str, Any] = {
        "exact": _flag(document, value, "exact", default=False),
        "needs": _needs(document, value),
        "scale": _scale(document, value),
        "explains": _flag(document, value, "explains", default=False),
    }
    if extra["explains"] and (spec["feedback"] or not spec["marker"]):
        raise document.error("'explains' is prose after the verdict: set 'feedback: false' and a 'marker'", "explains")
    if extra["exact"] and (heading or verbatim):
        raise document.error("an exact format escapes nothing: leave out 'heading' and 'verbatim'", "exact")
    stated = {key: each for key, each in extra.items() if each}  # absent keys leave the hash of a format as it was
    digest = fingerprint({**spec, **stated, "dialect_version": dialect.version, "rendering": RENDERING})
    form = Format(name=name, hash=digest, about=_text(document, value, "about"), **spec, **extra)
    _try_out(document, form)
    return form


def _try_out(document: Located, form: Format) -> None:
    """Render once with all fields and once with as few as possible, so that mistakes show when it is loaded."""
    full = Item.of("q", responses=["one", "two"], reference="r", context="c")
    bare = Item.of(
        "q" if "instruction" in form.needs else (),
        responses=["one", "two"],
        **{need: "x" for need in form.needs if need in ("reference", "context")},
    )
    shown = (0, 1) if form.kind == "pairwise" else (0,)
    scale = Scale.parse(form.scale or "1-5")
    levels = tuple((label, "as it is") for label in scale.labels)
    try:
        form.ask(full, Rubric("try", "q", scale, levels), shown)
        form.ask(bare, Rubric("try", "q", scale, levels if "levels" in form.needs else ()), shown)
    except UserError as error:
        raise document.error(str(error), "user") from None


def _dialect(document: Located, value: dict[str, Any]) -> Dialect:
    try:
        return get_dialect(_text(document, value, "dialect"))
    except DataError:
        raise
    except UserError as error:
        raise document.error(str(error), "dialect") from None


def _text(document: Located, value: dict[str, Any], key: str, default: str = "") -> str:
    given = value.get(key, default)
    if not isinstance(given, str):
        raise document.error(f"{key!r} must be text, got {given!r}", key)
    return given


def _needs(document: Located, value: dict[str, Any]) -> tuple[str, ...]:
    given = value.get("needs", [])
    if not isinstance(given, list | tuple) or any(each not in _NEEDS for each in given):
        raise document.error(f"'needs' is a list of {', '.join(_NEEDS)}, got {given!r}", "needs")
    return tuple(given)


def _scale(document: Located, value: dict[str, Any]) -> str:
    given = _text(document, value, "scale")
    try:
        return str(Scale.parse(given)) if given else ""
    except UserError as error:
        raise document.error(str(error), "scale") from None


def _flag(document: Located, value: dict[str, Any], key: str, *, default: bool) -> bool:
    given = value.get(key, default)
    if not isinstance(given, bool):
        raise document.error(f"{key!r} is true or false, got {given!r}", key)
    return given


def _template(document: Located, value: dict[str, Any], key: str, heading: str) -> str:
    """The template with its blocks put in under its own headings, checked for syntax and for unknown names."""
    source = _text(document, value, key)
    for match in reversed(list(_BLOCK.finditer(source))):
        block = _FOLDER.joinpath("blocks", f"{match[1]}.j2")
        if not block.is_file():
            known = sorted(each.name.removesuffix(".j2") for each in _FOLDER.joinpath("blocks").iterdir())
            raise document.error(f"there is no block {match[1]!r}: known: {', '.join(known)}", key)
        text = _BLOCK_HEADING.sub(lambda found: headed(found[1], heading), block.read_text("utf-8"))
        source = source[: match.start()] + text + source[match.end() :]
    if "\x00" in source:
        raise document.error("a template cannot hold the character NUL", key)
    try:
        names = names_in(source)
    except TemplateSyntaxError as error:
        raise document.error(f"not a valid template, its line {error.lineno}: {error.message}", key) from None
    known_names = (*NAMES, *ROLES[value["kind"]])
    for unknown in sorted(names - set(known_names)):
        near = near_miss(unknown, known_names)
        hint = f"did you mean {near!r}?" if near else f"known names: {', '.join(known_names)}"
        raise document.error(f"the template uses {unknown!r}, which is unknown: {hint}", key)
    return source


def _check_slots(document: Located, templates: dict[str, str], kind: str, verbatim: bool) -> None:
    if verbatim:
        if kind != "absolute" or any(templates.values()):
            raise document.error("a verbatim format is of kind 'absolute' and has no templates", "verbatim")
        return
    names = names_in(templates["user"])
    for role in ROLES[kind]:
        if role not in names:
            raise document.error(f"the template of kind {kind!r} never shows {{{{ {role} }}}}: add it", "user")


def _words(document: Located, value: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    words = value.get("words", dict(PAIR_WORDS))
    plain = isinstance(words, dict) and all(isinstance(word, str) and word.strip() for word in words.values())
    if not plain or not {"first", "second"} <= set(words) <= set(SLOTS):
        raise document.error("words spell 'first', 'second' and, where ties are allowed, 'tie'", "words")
    if len({word.casefold() for word in words.values()}) < len(words):
        raise document.error(f"the words must differ, got {list(words.values())}", "words")
    return tuple((slot, words[slot]) for slot in SLOTS if slot in words)
