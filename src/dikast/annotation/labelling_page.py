"""The labelling pages: one question with its buttons, and the owner's figures; they work without JavaScript."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from dikast.annotation.label_store import Done, Due
from dikast.annotation.labelling_questions import Kind, ToLabel
from dikast.annotation.marks import words_of
from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.core.part import Content, Video, images_of, text_of

_ROOM = "dikast.annotation"
_SHOWN = {"a": "Left is better", "b": "Right is better", "tie": "About equal"}
_FOUND = {"right": "Right", "wrong": "Wrong", "unclear": "Cannot tell"}
_ASKED = {
    "pairwise": "Which response is better?",
    "claims": "Is this claim right?",
    "spans": "Mark the words that are wrong.",
    "boxes": "Draw a box around each place where the picture shows that the response is wrong.",
    "feedback": "Which feedback on the response is better?",
}

_MEANS: dict[Kind, str] = {  # what the mean of the owner's page is
    "absolute": "that of the labels on their scale, 0 the worst and 1 the best",
    "pairwise": "what the first response of each pair earns: 1 a win, 0.5 a tie",
    "claims": "the share of claims that are right",
    "spans": "the share of responses in which nothing is marked",
    "boxes": "the share of responses in which nothing is marked",
    "feedback": "what the first of two feedbacks earns: 1 a win, 0.5 a tie",
}


class Button(NamedTuple):
    """A possible answer: the value sent, the text shown, the keyboard shortcut."""

    value: str
    text: str
    key: str


class Block(NamedTuple):
    """A part of a question: its heading, its text, the addresses of its pictures and clips, and words to mark."""

    title: str
    text: str
    pictures: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


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


def clips_of(content: Content) -> list[Video]:
    """The clips that are files; frames that stand by themselves are pictures."""
    return [part for part in content if isinstance(part, Video) and part.source and not part.frames]


def render_question(question: ToLabel, due: Due, of: int, base: str, *, can_undo: int | None, said: str = "") -> str:
    """The page of one task; `can_undo` is the task whose label can be taken back."""
    blocks, number, clip = [], 0, 0
    for title, content in contents(question):
        shown, played = images_of(content), clips_of(content)
        pictures = tuple(f"{base}/picture/{due.id}/{number + i}" for i in range(len(shown)))
        clips = tuple(f"{base}/clip/{due.id}/{clip + i}" for i in range(len(played)))
        number, clip = number + len(shown), clip + len(played)
        blocks.append(Block(title, text_of(content), pictures, clips))
    many = len(question.responses)
    before, responses = blocks[:-many], blocks[-many:]
    if question.kind == "feedback":
        before, responses = blocks, [Block("Feedback", each) for each in question.about]
    elif question.kind == "claims":
        before, responses = blocks, [Block("Claim", question.about[0])]
    elif question.kind == "spans":
        text = text_of(question.item.responses[question.responses[0]])
        responses = [responses[0]._replace(words=tuple(text[start:end] for start, end in words_of(text)))]
    if question.paired:
        responses = responses[::-1] if due.swapped else responses
        responses = [each._replace(title=title) for each, title in zip(responses, ("Left", "Right"), strict=True)]
    return _page(
        "question", question=question, due=due, of=of, base=base, before=before, responses=responses, drawn=number,
        buttons=buttons(question), can_undo=can_undo, said=said, asked=_ASKED.get(question.kind, ""),
        levels=dict(question.rubric.levels) if question.kind == "absolute" else {},
    )  # fmt: skip


def render_done(base: str, *, can_undo: int | None, said: str = "") -> str:
    """The page after the last task."""
    return _page("done", base=base, can_undo=can_undo, said=said)


def render_owner(
    counts: Mapping[str, Done], figures: Sequence[tuple[str, str]], rule: str, name: str, kind: Kind
) -> str:
    """The owner's page: progress of each rater, results so far, and how many more labels are needed."""
    whole = Done(*(sum(each) for each in zip(*counts.values(), strict=True))) if counts else Done(0, 0, 0)
    return _page("owner", counts=counts, figures=figures, rule=rule, name=name, whole=whole, mean=_MEANS[kind])


def buttons(question: ToLabel) -> list[Button]:
    """The answers with their keyboard shortcuts, from 1."""
    if question.paired:
        return [Button(each, _SHOWN[each], each[0]) for each in ("a", "tie", "b")]
    if question.kind == "claims":
        return [Button(each, _FOUND[each], key) for each, key in zip(question.labels, "rwc", strict=True)]
    labels = question.labels
    keys = list(labels) if all(len(each) == 1 for each in labels) else [str(i + 1) for i in range(len(labels))]
    return [Button(each, each, key if len(key) == 1 else "") for each, key in zip(labels, keys, strict=True)]


def policy() -> str:
    """The content security policy of the pages: their own style, script, pictures and forms, and nothing else."""
    style, script = (asset_hash(_asset(name)) for name in ("annotate.css", "annotate.js"))
    return (
        f"default-src 'none'; img-src 'self'; media-src 'self'; style-src '{style}'; script-src '{script}'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _page(kind: str, **values: object) -> str:
    style, script = Markup(_asset("annotate.css")), Markup(_asset("annotate.js"))
    return _template().render(kind=kind, style=style, script=script, **values)


@cache
def _template() -> jinja2.Template:
    """Compiled once: that takes longer than a page."""
    return template_environment(_ROOM).get_template("annotate.html.j2")


@cache
def _asset(name: str) -> str:
    return asset(_ROOM, name)
