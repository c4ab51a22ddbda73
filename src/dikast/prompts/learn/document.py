"""From a named skeleton to the YAML of a format."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from dikast.core.errors import UserError
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.skeleton import Skeleton

SLOT_NAMES = ("instruction", "response", "first", "second", "reference", "context", "criterion", "levels")
_OPTIONAL = ("reference", "context", "criterion", "levels")
_OWN = re.compile(r"[{\r]")
_LINE_END = re.compile(r"[ \t]+(?=\n|\Z)")  # escaped, as YAML blocks cannot show it and editors remove it
_SPELT = {"{": '{{ "{" }}', "\r": '{{ "\\r" }}'}
IMAGES_FIRST = '{%+ if images +%}{{ images }}{{ "\\n" }}{%+ endif +%}'


def kind_of(skeleton: Skeleton) -> str:
    """`absolute` or `pairwise` by the names of the slots; UserError when they fit neither."""
    names = set(skeleton.slots)
    unknown = sorted(n for n in names if n not in SLOT_NAMES and not n.startswith(LEVEL))
    if unknown:
        raise UserError(f"slots without a name: {', '.join(unknown)}; names are {', '.join(SLOT_NAMES)}")
    if "response" in names and not names & {"first", "second"}:
        return "absolute"
    if {"first", "second"} <= names and "response" not in names:
        return "pairwise"
    raise UserError(
        "a format shows one 'response' (absolute), or a 'first' and a 'second' (pairwise); the slots are called"
        f" {', '.join(folded(skeleton))}: give the column (--field response=COLUMN) or the slot (--name SLOT=response)"
    )


def folded(skeleton: Skeleton) -> list[str]:
    """The slots with all levels of a rubric counted as one."""
    return list(dict.fromkeys("levels" if slot.startswith(LEVEL) else slot for slot in skeleton.slots))


def labels_of(skeleton: Skeleton) -> list[str]:
    """The labels of the levels in the skeleton, in its order."""
    return [slot.removeprefix(LEVEL) for slot in skeleton.slots if slot.startswith(LEVEL)]


def template_of(skeleton: Skeleton, *, images_first: bool = False) -> str:
    """The Jinja template that renders exactly what the skeleton renders."""
    text = _LINE_END.sub(lambda match: f'{{{{ "{match[0]}" }}}}', "".join(_pieces(skeleton)))
    if text.endswith("\n"):  # Jinja drops the last line break of a template
        text = text[:-1] + '{{ "\\n" }}'
    return (IMAGES_FIRST if images_first else "") + text


def document_of(
    name: str, skeletons: Mapping[str, Skeleton], *, dialect: str, marker: str, scale: str, words: Mapping[str, str],
    images_first: bool = False, system: str = "", about: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The values of the format's YAML."""
    one = next(iter(skeletons.values()))
    kind = kind_of(one)
    if len(skeletons) == 1:
        user = template_of(one, images_first=images_first)
    else:
        parts = {key: template_of(each) for key, each in skeletons.items()}
        user = (IMAGES_FIRST if images_first else "") + (
            "{%+ if reference +%}" + parts["with"] + "{%+ else +%}" + parts["without"] + "{%+ endif +%}"
        )
    shown = set.intersection(*(set(folded(each)) for each in skeletons.values()))
    document: dict[str, Any] = {"name": name, "about": about, "kind": kind, "dialect": dialect, "marker": marker}
    document["exact"] = True
    needs = [each for each in ("instruction", *_OPTIONAL) if each in shown and each != "criterion"]
    document |= {"needs": needs} if needs else {}
    document |= {"scale": scale} if scale else {}
    document |= {"words": dict(words)} if kind == "pairwise" and words else {}
    document |= {"system": _literal(system)} if system else {}
    return {**document, "user": user}


def to_yaml(document: Mapping[str, Any], comment: str = "") -> str:
    """The document as YAML, with templates as block scalars if possible."""
    text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def _pieces(skeleton: Skeleton) -> Iterator[str]:
    labels = labels_of(skeleton)
    loop = _loop(skeleton, labels) if labels else None
    yield _literal(skeleton.literals[0].removesuffix(loop[0]) if loop and _opens(skeleton, 0) else skeleton.literals[0])
    for i, slot in enumerate(skeleton.slots):
        literal = skeleton.literals[i + 1]
        if not slot.startswith(LEVEL):
            yield f"{{{{ {slot} }}}}"
            yield _literal(literal.removesuffix(loop[0]) if loop and _opens(skeleton, i + 1) else literal)
        elif slot == LEVEL + labels[-1]:
            if loop is None:
                raise UserError("the levels of the rubric differ in form: they cannot be a list")
            yield loop[1]
            yield _literal(literal)


def _opens(skeleton: Skeleton, literal: int) -> bool:
    """Whether the first level follows that literal."""
    slots = skeleton.slots
    return literal < len(slots) and slots[literal].startswith(LEVEL) and not (
        literal and slots[literal - 1].startswith(LEVEL)
    )  # fmt: skip


def _loop(skeleton: Skeleton, labels: list[str]) -> tuple[str, str] | None:
    """The text before the first level's text, and the Jinja loop that makes all of them; None if they differ."""
    places = [skeleton.slots.index(LEVEL + label) for label in labels]
    if places != list(range(places[0], places[0] + len(places))):
        return None
    inner = [skeleton.literals[i] for i in places[1:]]
    label = labels[1] if len(labels) > 1 else labels[0]
    for lead_size in [m for m in range(len(inner[0])) if inner[0].startswith(label, m)] if inner else []:
        lead, tail = inner[0][:lead_size], inner[0][lead_size + len(label) :]
        same = all(each == f"{lead}{n}{tail}" for each, n in zip(inner, labels[1:], strict=True))
        for cut in range(len(lead) + 1):
            start = f"{lead[cut:]}{labels[0]}{tail}"
            if same and skeleton.literals[places[0]].endswith(start) and (cut == 0 or lead[:cut].isspace()):
                gap = f"{{%+ if not loop.first +%}}{_literal(lead[:cut])}{{%+ endif +%}}" if cut else ""
                each = f"{_literal(lead[cut:])}{{{{ level.label }}}}{_literal(tail)}{{{{ level.text }}}}"
                return start, f"{{%+ for level in levels +%}}{gap}{each}{{%+ endfor +%}}"
    return None


def _literal(text: str) -> str:
    """Text escaped for a template: text that Jinja would interpret or change becomes an expression."""
    return _OWN.sub(lambda match: _SPELT[match[0]], text)
