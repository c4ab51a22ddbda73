"""A released judge's own format: learnt on first use, checked against the catalog, kept in the user's cache."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from platformdirs import user_cache_path

from dikast.core.errors import UserError
from dikast.core.records.writing import write_file
from dikast.prompts.format import Format, format_from, load_format
from dikast.prompts.learn.document import document_of, to_yaml
from dikast.prompts.learn.learn import Reading, learn_format
from dikast.prompts.learn.skeleton import Skeleton
from dikast.prompts.released.catalog import Origin, Prompted, Released, Variant, find_released
from dikast.prompts.released.rows import data_folder, fetch_rows, template_skeleton

_SEED = 0


@dataclass(frozen=True, slots=True)
class Own:
    """A judge's own format and where it comes from: `path` in the cache, `told` in a sentence for people."""

    format: Format
    path: Path
    told: str


@dataclass(frozen=True, slots=True)
class _Taken:
    skeletons: dict[str, Skeleton]
    system: str
    at: str
    notes: list[str]


def cache_folder() -> Path:
    """Where learnt formats are kept."""
    return user_cache_path("dikast", appauthor=False) / "formats"


def own_format(model: str, kind: str) -> Own | None:
    """The format that a released judge was trained on, None for a model that is not in the catalog.

    Also None for a judge of the catalog that has no prompt of its own for that kind, where built-in formats are used.
    Learnt from the first available origin, in the catalog's order. UserError, with the command that cures it, if a
    fingerprint is not the catalog's or no origin is available.
    """
    released = find_released(model)
    prompted = released.prompts.get(kind) if released else None
    if released is None or prompted is None or not prompted.origins:
        return None
    path = cache_folder() / f"{released.name}-{kind}.yaml"
    kept = _kept(path)
    if kept is not None:
        return kept
    why: list[str] = []
    for origin in prompted.origins:
        try:
            taken = _take(origin, prompted)
        except UserError as error:
            why.append(f"{_called(origin)}: {error}")
            continue
        return _keep(path, released, prompted, origin, taken)
    reasons, command = "\n  ".join(why), prompted.cure.format(data=data_folder())
    raise UserError(
        f"{model} is a released judge ({released.name}): its own prompt is learnt on first use, but is not available:"
        f"\n  {reasons}\n  cure: {command}\n  (or --format {kind} for Dikast's own prompt, which this judge was not"
        " trained on)"
    )


def _take(origin: Origin, prompted: Prompted) -> _Taken:
    skeletons: dict[str, Skeleton] = {}
    notes: list[str] = []
    system = at = ""
    for variant in origin.variants:
        if origin.module:
            skeleton, system, at = template_skeleton(origin, variant)
        else:
            fetched = fetch_rows(origin, variant)
            skeleton, at = _learnt(fetched.rows, origin, variant, prompted, notes), fetched.at
        _check(skeleton, origin, variant, notes)
        skeletons[variant.reference] = skeleton
    return _Taken(skeletons, system, at, notes)


def _learnt(
    rows: list[tuple[int, dict[str, Any]]], origin: Origin, variant: Variant, prompted: Prompted, notes: list[str]
) -> Skeleton:
    reading = Reading(
        prompt=variant.prompt, fields=origin.fields or None, names=variant.names, seed=_SEED,
        by="fields" if origin.fields else "rows", edges=variant.edges,
    )  # fmt: skip
    learnt = learn_format(
        rows, reading, name=variant.file, dialect=prompted.dialect, marker=prompted.marker, scale=prompted.scale,
        words=prompted.words,
    )  # fmt: skip
    report = learnt.report
    if report.misfits:
        raise UserError(f"{len(report.misfits)} of {report.held_out} prompts do not fit: {report.misfits[0]}")
    notes.append(f"{variant.file}: learnt from {report.prompts_drawn} prompts, fits {report.held_out} others")
    return learnt.skeleton


def _check(skeleton: Skeleton, origin: Origin, variant: Variant, notes: list[str]) -> None:
    if not variant.sha256:
        notes.append(f"{variant.file}: skeleton sha256 {skeleton.sha256}, trusted on first use")
    elif skeleton.sha256 not in variant.sha256:
        raise UserError(
            f"the prompt in {variant.file} has sha256 {skeleton.sha256}, the catalog expects"
            f" {' or '.join(variant.sha256)}, so it is another prompt"
        )
    else:
        notes.append(f"{variant.file}: skeleton sha256 {skeleton.sha256}, as in the catalog")


def _keep(path: Path, released: Released, prompted: Prompted, origin: Origin, taken: _Taken) -> Own:
    words: Mapping[str, str] = prompted.words
    document = document_of(
        f"{released.name}-{prompted.kind}", taken.skeletons, dialect=prompted.dialect, marker=prompted.marker,
        scale=prompted.scale, words=words, images_first=prompted.images_first, system=taken.system,
        about=f"the prompt of {released.name}, from {_called(origin)}",
    )  # fmt: skip
    form = format_from(document, path=str(path))
    told = f"{released.name}'s own prompt, from {_called(origin)} at {taken.at}"
    report = {
        "format": form.hash, "from": _called(origin), "at": taken.at, "notes": taken.notes, "told": told,
        "skeleton_sha256": {key or "all": each.sha256 for key, each in taken.skeletons.items()},
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path.with_suffix(".report.json"), orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    write_file(path, to_yaml(document, f"Learnt by dikast on first use: {told}.").encode())
    return Own(form, path, told)


def _kept(path: Path) -> Own | None:
    """The cached format; it is learnt anew if the file no longer matches its report."""
    try:
        report = orjson.loads(path.with_suffix(".report.json").read_bytes())
        form = load_format(path)
    except (OSError, ValueError, UserError):
        return None
    return Own(form, path, str(report["told"])) if form.hash == report.get("format") else None


def _called(origin: Origin) -> str:
    where = {"package": "the installed package ", "github": "github.com/", "hub": "the data set "}
    return where[origin.way] + origin.repo
