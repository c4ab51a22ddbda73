"""The labelling pages: one question with its buttons, and the owner's figures; they work without JavaScript."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from dikast.annotation.label_store import Due
from dikast.annotation.labelling_questions import ToLabel
from dikast.core.part import Content, images_of, text_of
from dikast.core.text import printable

_SHOWN = {"a": "Left is better", "b": "Right is better", "tie": "About equal"}


class Button(NamedTuple):
    """A possible answer: the value sent, the text shown, the keyboard shortcut."""

    value: str
    text: str
    key: str


class Block(NamedTuple):
    """A part of a question: its heading, its text, and the addresses of its pictures."""

    title: str
    text: str
    pictures: tuple[str, ...]


def contents(question: ToLabel) -> list[tuple[str, Content]]:
    """What a rater is shown, in the item's own order: headings and contents."""
    item = question.item
    found: list[tuple[str, Content]] = [
        ({"user": "Instruction", "assistant": "Earlier reply"}.get(turn.role, turn.role.capitalize()), turn.content)
        for turn in item.instruction
    ]
    found += [("Context", item.context)] if item.context is not None else []
    found += [("Reference answer", item.reference)] if item.reference is not None else []
    return found + [("Response", item.responses[index]) for index in question.responses]


def render_question(question: ToLabel, due: Due, of: int, base: str, *, can_undo: int | None, said: str = "") -> str:
    """The page of one task; `can_undo` is the task whose label can be taken back."""
    blocks, number = [], 0
    for title, content in contents(question):
        shown = images_of(content)
        pictures = tuple(f"{base}/picture/{due.id}/{number + i}" for i in range(len(shown)))
        number += len(shown)
        blocks.append(Block(title, text_of(content), pictures))
    many = len(question.responses)
    before, responses = blocks[:-many], blocks[-many:]
    if many == 2:
        responses = responses[::-1] if due.swapped else responses
        responses = [each._replace(title=title) for each, title in zip(responses, ("Left", "Right"), strict=True)]
    return _page(
        "question", question=question, due=due, of=of, base=base, before=before, responses=responses,
        buttons=buttons(question), can_undo=can_undo, said=said, levels=dict(question.rubric.levels),
    )  # fmt: skip


def render_done(base: str, *, can_undo: int | None) -> str:
    """The page after the last task."""
    return _page("done", base=base, can_undo=can_undo)


def render_owner(
    counts: Mapping[str, tuple[int, int]], figures: Sequence[tuple[str, str]], rule: str, name: str
) -> str:
    """The owner's page: progress of each rater, results so far, and how many more labels are needed."""
    return _page("owner", counts=counts, figures=figures, rule=rule, name=name)


def buttons(question: ToLabel) -> list[Button]:
    """The answers with their keyboard shortcuts, from 1."""
    if len(question.responses) == 2:
        return [Button(each, _SHOWN[each], each[0]) for each in ("a", "tie", "b")]
    labels = question.labels
    keys = list(labels) if all(len(each) == 1 for each in labels) else [str(i + 1) for i in range(len(labels))]
    return [Button(each, each, key if len(key) == 1 else "") for each, key in zip(labels, keys, strict=True)]


def policy() -> str:
    """The content security policy of the pages: their own style, script, pictures and forms, and nothing else."""
    style, script = (_sha256(_asset(name)) for name in ("annotate.css", "annotate.js"))
    return (
        f"default-src 'none'; img-src 'self'; style-src '{style}'; script-src '{script}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def _page(kind: str, **values: object) -> str:
    environment = jinja2.Environment(
        autoescape=True, finalize=_visible, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = Markup(_asset("annotate.css")), Markup(_asset("annotate.js"))
    return environment.from_string(_asset("annotate.html.j2")).render(kind=kind, style=style, script=script, **values)


def _visible(value: object) -> object:
    return printable(value) if type(value) is str else value


def _asset(name: str) -> str:
    return files("dikast.annotation").joinpath(name).read_text("utf-8")


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
