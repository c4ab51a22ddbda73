"""Templates to messages. User text never passes through the template engine: a slot renders as a number, and the
number is replaced by parts afterwards, so braces, tags and markers in it are text and its spans stay untrusted.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import pairwise
from typing import Any

from jinja2 import StrictUndefined, Template, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dikast.core.errors import UserError
from dikast.core.message import Span
from dikast.core.part import Content, Image, Text, Turn, Video
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.prompts.escape import escape

Piece = Span | Image | Video
_SLOT = re.compile("\x00([0-9]+)\x00")
_MOST_LISTED = 12
_SHOWING = (
    nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Const, nodes.If, nodes.CondExpr, nodes.For,
    nodes.Not, nodes.And, nodes.Or, nodes.Compare, nodes.Operand, nodes.Test,
)  # fmt: skip


class _Jinja(ImmutableSandboxedEnvironment):
    """Sandboxed; an unknown name is an error; block tags leave no blank lines."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As in any sandbox; the fields of a level, which are slots, are given at once."""
        if type(obj) is Level and attribute in Level.__slots__:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)


@lru_cache(maxsize=1)
def environment() -> _Jinja:
    """The one environment of all templates."""
    return _Jinja(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


@lru_cache(maxsize=256)
def compiled(source: str) -> Template:
    """The template, compiled once a process."""
    return environment().from_string(source)


@lru_cache(maxsize=256)
def names_in(source: str) -> frozenset[str]:
    """The names a template takes from outside. TemplateSyntaxError if it is none."""
    return frozenset(meta.find_undeclared_variables(environment().parse(source)))


def only_shows(source: str) -> bool:
    """Whether a template only shows, tests and repeats what it is given, so that it takes no time or memory of its own:
    no calculation, no call, no filter, and no loop over anything but a name.
    """
    tree = environment().parse(source)
    loops = list(tree.find_all(nodes.For))
    return all(isinstance(each, _SHOWING) for each in tree.find_all(nodes.Node)) and all(
        isinstance(each.iter, nodes.Name) and not list(each.find_all(nodes.For)) for each in loops
    )


@dataclass(frozen=True, slots=True, repr=False)
class Slot:
    """A place for user text or media in a template, which sees its number and nothing else."""

    number: int

    def __str__(self) -> str:
        return f"\x00{self.number}\x00"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the rubric, as a template sees it."""

    label: Slot
    text: Slot


class Words(dict[str, str]):
    """The words of a format's verdicts; hashable, since a format does not change them."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class Slots:
    """The slots of one prompt. `guards` are the line starts that user text must not show.

    `rubric` are the slots of its rubric, made once for all prompts that ask by it; they come first.
    """

    def __init__(self, guards: tuple[str, ...], heading: str, rubric: Rubric | None = None) -> None:
        self._guards, self._heading = guards, heading
        self._made: list[tuple[Piece, ...]] = []
        self.of_rubric: dict[str, Any] = {}
        if rubric is not None:
            made, self.of_rubric = _of_rubric(rubric, guards)
            self._made.extend(made)

    def __len__(self) -> int:
        return len(self._made)

    def pieces(self, number: int) -> tuple[Piece, ...]:
        """The text in the slot of that number."""
        return self._made[number]

    def of(self, pieces: tuple[Piece, ...]) -> Slot:
        """A slot of ready parts."""
        self._made.append(pieces)
        return Slot(len(self._made) - 1)

    def text(self, text: str) -> Slot:
        """A slot of a rubric's text."""
        return self.of((Span(escape(text, self._guards)),))

    def content(self, content: Content) -> Slot:
        """A slot of text and media in their order."""
        return self.of(content_pieces(content, self._guards))

    def turns(self, turns: tuple[Turn, ...]) -> Slot:
        """A slot of a conversation: each turn under a heading that names its number and role."""
        pieces: list[Piece] = []
        for number, turn in enumerate(turns, 1):
            title = f"Turn {number}: {turn.role}"
            head = ("\n\n" if number > 1 else "") + headed(title, self._heading) + "\n"
            pieces.append(Span(head, trusted=True))
            pieces.extend(content_pieces(turn.content, self._guards))
        return self.of(tuple(pieces))

    def scale(self, scale: Scale) -> Slot:
        """A slot with the labels: all of them, or the ends of a long even run of numbers."""
        step = _even_step(scale)
        if step is not None and len(scale.labels) > _MOST_LISTED:
            low, high = Span(scale.labels[0]), Span(scale.labels[-1])
            kind = "a whole number" if step == "1" else "a number"
            steps = () if step == "1" else (Span(f" in steps of {step}", trusted=True),)
            return self.of((Span(f"{kind} from ", True), low, Span(" to ", True), high, *steps))
        pieces: list[Piece] = []
        for i, label in enumerate(scale.labels):
            if i:
                pieces.append(Span(", ", trusted=True))
            pieces.append(Span(escape(label, self._guards)))
        return self.of(tuple(pieces))


@lru_cache(maxsize=256)
def _of_rubric(rubric: Rubric, guards: tuple[str, ...]) -> tuple[tuple[tuple[Piece, ...], ...], dict[str, Any]]:
    """The slots that are the same in every prompt of a rubric, and what a template calls them."""
    slots = Slots(guards, "")
    names = {
        "criterion": slots.text(rubric.criterion),
        "levels": tuple(Level(slots.text(label), slots.text(text)) for label, text in rubric.levels),
        "scale": slots.scale(rubric.scale),
        "low": slots.text(rubric.scale.labels[0]),
        "high": slots.text(rubric.scale.labels[-1]),
        "lower_is_better": rubric.scale.lower_is_better,
    }
    return tuple(slots.pieces(i) for i in range(len(slots))), names


def headed(title: str, heading: str) -> str:
    """A heading line in the format's own pattern; `title:` where it has none."""
    return heading.replace("{}", title) if heading else f"{title}:"


def content_pieces(content: Content, guards: tuple[str, ...]) -> tuple[Piece, ...]:
    """Text and media in their order, each on its own line, so that no two pieces join into a heading."""
    pieces: list[Piece] = []
    for part in content:
        if isinstance(part, Text) and not part.text:
            continue
        if pieces:
            pieces.append(Span("\n", trusted=True))
        pieces.append(Span(escape(part.text, guards)) if isinstance(part, Text) else part)
    return tuple(pieces)


def plain_pieces(content: Content) -> tuple[Piece, ...]:
    """Text and media exactly as they follow each other."""
    return tuple(Span(part.text) if isinstance(part, Text) else part for part in content if part != Text(""))


def render(
    source: str, slots: Slots, names: dict[str, Any], where: str, *, exact: bool = False, shared: bool = False
) -> tuple[Piece, ...]:
    """The parts of one message: template text as trusted spans, everything from slots unchanged.

    Line breaks at the ends are taken off unless `exact`. `shared` keeps the rendered template for prompts that fill the
    same slots; the values of `names` are then hashable.
    """
    try:
        outline = (_shared_outline if shared else _outline)(source, tuple(names.items()), exact)
    except Exception as error:  # a template is code: its author has to fix whatever it raises
        raise UserError(f"{where}: the template does not render: {error}") from None
    found: list[Piece] = []
    trusted: list[str] = []  # template text that has no user text between
    for each in outline:
        for piece in (each,) if isinstance(each, Span) else slots.pieces(each):
            if isinstance(piece, Span) and piece.trusted:
                trusted.append(piece.text)
                continue
            if trusted:
                found.append(Span("".join(trusted), trusted=True))
                trusted = []
            elif found and isinstance(piece, Span) and isinstance(found[-1], Span):
                raise UserError(f"{where}: two slots are adjacent in the template: put text or a line break between")
            found.append(piece)
    if trusted:
        found.append(Span("".join(trusted), trusted=True))
    return tuple(found)


def _outline(source: str, names: tuple[tuple[str, Any], ...], exact: bool) -> tuple[Span | int, ...]:
    """The rendered template: its own text, and the numbers of slots."""
    text = compiled(source).render(names)
    tokens = _SLOT.split(text if exact else text.strip("\n"))
    return tuple(int(each) if i % 2 else Span(each, trusted=True) for i, each in enumerate(tokens) if i % 2 or each)


_shared_outline = lru_cache(maxsize=1024)(_outline)


@lru_cache(maxsize=256)
def _even_step(scale: Scale) -> str | None:
    try:
        numbers = [Decimal(label) for label in scale.labels]
    except InvalidOperation:
        return None
    steps = {b - a for a, b in pairwise(numbers)}
    return f"{steps.pop().normalize():f}" if len(steps) == 1 else None
