"""What is known about released judges, from `catalog.yaml`: facts and fingerprints, none of their prompt text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

from dikast.core.text import parse_located

_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)")
WAYS = ("package", "github", "hub")


@dataclass(frozen=True, slots=True)
class Variant:
    """One prompt of a source: with a reference, without one, or "" for a prompt that is the same for all items.

    `file` holds its rows (of an origin with a module, `file` is the name of the template). `sha256` is the fingerprint
    of the skeleton, or of several that its publishers are known to have used; empty means that the first one learnt is
    trusted, and kept. `edges` says who owns the texts that all rows share beside a slot, if the prompt is learnt from
    rows alone (see `Reading`).
    """

    reference: Literal["with", "without", ""]
    file: str
    prompt: tuple[str, ...]
    names: Mapping[str, str]
    sha256: tuple[str, ...]
    edges: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Origin:
    """One place that a prompt can be had from: an installed `package`, a `github` or a `hub` repository.

    `revision` is a commit; "" is not known here, and is resolved and written down on first use. With a `module` the
    prompt is a template in that Python file, and `system` names the system prompt beside it; otherwise it is learnt
    from rows, by the columns in `fields`, or with the slots called as in the variant's `names`.
    """

    way: str
    repo: str
    revision: str
    variants: tuple[Variant, ...]
    fields: Mapping[str, str]
    module: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class Prompted:
    """How a judge is asked one kind of question, and where its prompt is published; no origin: it has no prompt of its
    own, and `without` says why. `cure` is the command that makes the prompt available here ({data} is the data folder).

    `shared` is the share of a prompt that lies before the response, measured on `shared_on`; None is not known.
    """

    kind: str
    dialect: str
    marker: str
    scale: str
    words: Mapping[str, str]
    origins: tuple[Origin, ...]
    images_first: bool
    without: str
    cure: str
    shared: float | None
    shared_on: str


@dataclass(frozen=True, slots=True)
class Released:
    """A family of released judges: its checkpoints, its prompts, and how its publishers run it."""

    name: str
    about: str
    models: tuple[str, ...]
    chat: str
    sampling: Mapping[str, Any]
    prompts: Mapping[str, Prompted]


@lru_cache(maxsize=1)
def catalog() -> tuple[Released, ...]:
    """Every family in the catalog."""
    text = resources.files("dikast.prompts.released").joinpath("catalog.yaml").read_text("utf-8")
    return tuple(_released(name, value) for name, value in parse_located(text, "catalog.yaml").value.items())


def find_released(model: str) -> Released | None:
    """The family that a checkpoint belongs to, by its Hub id (in any case) or by its folder in a Hub cache."""
    if match := _CACHED.search(model):
        model = f"{match[1]}/{match[2]}"
    wanted = model.casefold()
    return next((each for each in catalog() if wanted in map(str.casefold, each.models)), None)


def _released(name: str, value: Mapping[str, Any]) -> Released:
    prompts = {kind: _prompted(kind, each) for kind, each in value.get("prompts", {}).items()}
    return Released(name, value["about"], tuple(value["models"]), value["chat"], value["sampling"], prompts)


def _prompted(kind: str, value: Mapping[str, Any]) -> Prompted:
    return Prompted(
        kind=kind,
        dialect=value["dialect"],
        marker=value.get("marker", ""),
        scale=str(value.get("scale", "")),
        words=value.get("words", {}),
        origins=tuple(_origin(each) for each in value.get("origins", ())),
        images_first=bool(value.get("images_first", False)),
        without=value.get("without", ""),
        cure=value.get("cure", ""),
        shared=value.get("shared"),
        shared_on=value.get("shared_on", ""),
    )


def _origin(value: Mapping[str, Any]) -> Origin:
    way = next(each for each in WAYS if each in value)
    return Origin(
        way=way,
        repo=value[way],
        revision=value.get("revision") or "",
        variants=tuple(_variant(key, each) for key, each in value["variants"].items()),
        fields=value.get("fields", {}),
        module=value.get("module", ""),
        system=value.get("system", ""),
    )


def _variant(key: str, value: Mapping[str, Any]) -> Variant:
    prompt, digest = value.get("prompt", ()), value.get("sha256") or ()
    return Variant(
        reference=key if key in ("with", "without") else "",  # type: ignore[arg-type]
        file=value["file"],
        prompt=(prompt,) if isinstance(prompt, str) else tuple(prompt),
        names={str(number): name for number, name in value.get("names", {}).items()},
        sha256=(digest,) if isinstance(digest, str) else tuple(digest),
        edges={str(slot): owner for slot, owner in value.get("edges", {}).items()},
    )
