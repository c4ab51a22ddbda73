"""Proving a judge, and the page of the result: a table of abilities beside their floors, and one example set
of each.
"""

import base64
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import jinja2
import orjson

from dikast.core.item import Item
from dikast.core.media import resolved
from dikast.core.part import Content, Image, Video, text_of
from dikast.core.records import write_file
from dikast.core.rubric import Rubric
from dikast.core.text import printable
from dikast.judging.judge import Judge
from dikast.judging.watching import Watcher
from dikast.probes.abilities import ABOUT, BAR, FLOOR, TOLERANCE, Ability, goodness
from dikast.probes.judge_proof import Proof, prove
from dikast.probes.probe_options import ProveOptions
from dikast.worlds.ability_items import write_abilities

_WIDE = 240  # of the drawn scale of an ability, in pixels
_SHOWN = 4  # pictures of one item
_LISTED = 4  # items of one set


@dataclass(frozen=True, slots=True)
class Shown:
    """One item of a set as the page shows it."""

    pictures: tuple[str, ...]  # data addresses
    asked: str
    answer: str
    reference: str
    rubric: str
    levels: str
    gold: str
    judge: str


def proof_items(out: Path, asked: ProveOptions, seed: int) -> list[Path]:
    """The files of items that a judge is asked, written to `out` once."""
    return write_abilities(out / "suite", calls=asked.calls, seed=seed, split=asked.split, size=asked.size)


def prove_judge(
    judge: Judge, out: Path, asked: ProveOptions, seed: int, *, name: str, watch: Watcher | None = None
) -> Proof:
    """What the judge can do.

    `out` gets the items, the runs, `prove.json` and `prove.html`; another call asks only what is missing.
    """
    proof = prove(judge, proof_items(out, asked, seed), out, name=name, watch=watch)
    write_file(out / "prove.json", orjson.dumps(proof.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    write_file(out / "prove.html", render(proof).encode())
    return proof


def render(proof: Proof) -> str:
    """The page as one HTML file: no network, no outside resource, every text escaped."""
    environment = jinja2.Environment(
        autoescape=True, finalize=_plain, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(files("dikast.surface").joinpath("prove.html.j2").read_text("utf-8"))
    return page.render(
        proof=proof,
        about=ABOUT,
        rows=[(each, _ruler(each)) for each in proof.abilities],
        sets=[(each, _example(each, proof)) for each in proof.abilities if each.told != "not asked"],
        notes=proof.table().notes,
        wide=_WIDE,
    )


def _plain(value: object) -> object:
    return printable(value) if type(value) is str else value


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where an estimate, its interval, the floor and the bar lie on the drawn scale, in pixels."""

    value: float
    low: float
    high: float
    floor: float
    bar: float


def _ruler(each: Ability) -> Ruler | None:
    """Shares of right orders on 0 to 1, changes on -1 to 1; None without an interval."""
    if math.isnan(each.found.value) or math.isnan(each.found.low):
        return None
    least, span = (-1.0, 2.0) if each.name in TOLERANCE else (0.0, 1.0)

    def at(value: float) -> float:
        return round((value - least) / span * _WIDE, 1)

    bar = TOLERANCE.get(each.name, BAR)
    floor = 0.0 if each.name in TOLERANCE else FLOOR
    return Ruler(at(each.found.value), at(each.found.low), at(each.found.high), at(floor), at(bar))


def _example(each: Ability, proof: Proof) -> list[Shown]:
    """The first set of the ability; items of pairs are shown without what the judge said of them."""
    part = {"resists length": "edits", "resists injection": "edits", "resists order": "pairs"}.get(each.name, each.name)
    members = [item for item in proof.items if item.meta["ability"] == part]
    first = [item for item in members if item.meta["set"] == members[0].meta["set"]] if members else []
    skipped = {"resists length": "injected", "resists injection": "longer"}.get(each.name)
    return [_shown(item, proof) for item in first if item.meta["variant"] != skipped][:_LISTED]


def _shown(item: Item, proof: Proof) -> Shown:
    rubric = item.rubric
    assert isinstance(rubric, Rubric)
    verdict = proof.verdicts.get(item.id)
    good = None if verdict is None else goodness(item, verdict)
    said = "" if verdict is None else f"{verdict.label}" if good is not None else f"none ({verdict.status.value})"
    if good is not None and verdict is not None and verdict.expected is not None:
        said += f" (expected {verdict.expected:.2f})"
    labels = item.gold.get("labels") or [item.gold["label"]]
    asked = item.instruction[0].content
    return Shown(
        tuple(_data(path) for path in _paths(asked)[:_SHOWN]),
        text_of(asked),
        "\n\n".join(text_of(response) for response in item.responses),
        text_of(item.reference) if item.reference is not None else "",
        rubric.criterion,
        "; ".join(f"{label}: {text}" for label, text in rubric.levels),
        " and ".join(map(str, labels)) + (f" (prefer {item.gold['preference']})" if "preference" in item.gold else ""),
        said,
    )


def _paths(content: Content) -> list[Path]:
    found = []
    for part in content:
        if isinstance(part, Image):
            found.append(Path(resolved(part)))
        elif isinstance(part, Video):
            found += [Path(resolved(frame)) for frame in part.frames if isinstance(frame, Image)]
    return found


def _data(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
