"""Proving a judge, and the page of the result: a conclusion, the abilities beside their floors, and one example set of
each.
"""

import base64
import math
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import orjson
from markupsafe import Markup

from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.core.item import Item
from dikast.core.media import resolved
from dikast.core.part import Content, Image, Video, text_of
from dikast.core.records import write_file
from dikast.core.rubric import Rubric
from dikast.core.text import counted
from dikast.judging.judge import Judge
from dikast.judging.watching import Watcher
from dikast.probes.abilities import ABOUT, BAR, FLOOR, TOLERANCE, Ability, goodness
from dikast.probes.judge_proof import Proof, prove
from dikast.probes.probe_options import ProveOptions
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.page import ROOM
from dikast.surface.report.subject import judged_on
from dikast.worlds.ability_items import write_abilities

_WIDE = 150  # of the drawn scale of an ability, in pixels
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
    return write_abilities(
        out / "suite", calls=asked.calls, seed=seed, split=asked.split, size=asked.size, domains=asked.domain
    )


def prove_judge(
    judge: Judge, out: Path, asked: ProveOptions, seed: int, *, name: str, watch: Watcher | None = None
) -> Proof:
    """What the judge can do.

    `out` gets the items, the runs, `prove.json` and `prove.html`; another call asks only what is missing.
    """
    proof = prove(judge, proof_items(out, asked, seed), out, name=name, watch=watch)
    write_file(out / "prove.json", orjson.dumps(proof.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    write_file(out / "prove.html", render(proof, judged_on(out / "singles")).encode())
    return proof


def render(proof: Proof, date: str = "") -> str:
    """The page as one HTML file: no script, no network, every text escaped. `date`: of the last verdict."""
    style = asset(ROOM, "page.css") + asset("dikast.surface", "prove.css")
    return template_environment("dikast.surface").get_template("prove.html.j2").render(
        proof=proof, found=proof_conclusion(proof), about=ABOUT, date=date, floor=FLOOR, bar=BAR, wide=_WIDE,
        rows=[(each, _ruler(each)) for each in proof.abilities],
        notes=[note for note in proof.table().notes if note.split(":")[0] not in ABOUT],  # those stand in the rows
        sets=[(each, _example(each, proof)) for each in proof.abilities if each.told != "not asked"],
        style=Markup(style), style_hash=asset_hash(style), version=version("dikast"),
    )  # fmt: skip


def proof_conclusion(proof: Proof) -> Conclusion:
    """What the judge can do in one sentence; green where every ability that was asked for is a yes, red where one is a
    no.
    """
    by_told: dict[str, list[str]] = {}
    for each in proof.abilities:
        by_told.setdefault(each.told, []).append(each.name)
    n = len(proof.abilities) - len(by_told.get("not asked", ()))
    if not n:
        return Conclusion("grey", "Nothing is known yet", "no ability was asked for")
    able, lacking, of = by_told.get("yes", []), by_told.get("no", []), counted(n, "ability", "abilities")
    shown = f"Shows {len(able)} of {of}" + (f": {', '.join(able)}" if 0 < len(able) < n else "")
    parts = [f"Lacks {len(lacking)} of {of}: {', '.join(lacking)}", f"shows {len(able)}"] if lacking else [shown]
    parts += [f"partly: {', '.join(by_told['partly'])}"] if "partly" in by_told else []
    parts += [f"{len(by_told['cannot tell'])} cannot be told"] if "cannot tell" in by_told else []
    text = "; ".join(parts)
    if lacking:
        return Conclusion("red", text, "the interval of at least one ability says no")
    if len(able) < n:
        return Conclusion(
            "amber", text, "no ability is missing, but not every one is shown; more calls narrow intervals"
        )
    return Conclusion("green", text, "every ability that was asked for is shown, by its whole interval")


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where an estimate, its interval, the floor and the bars lie on the drawn scale, in pixels; the `ends` and the
    middle of the scale with their labels and anchors.
    """

    value: float
    low: float
    high: float
    floor: float
    bars: tuple[float, ...]
    ends: tuple[tuple[float, str, str], ...]


def _ruler(each: Ability) -> Ruler | None:
    """Shares of right orders on 0 to 1, changes on -1 to 1; None without an interval."""
    if math.isnan(each.found.value) or math.isnan(each.found.low):
        return None
    least, span = (-1.0, 2.0) if each.name in TOLERANCE else (0.0, 1.0)

    def at(value: float) -> float:
        return round((value - least) / span * _WIDE, 1)

    tolerated = TOLERANCE.get(each.name)
    floor, bars = (FLOOR, (BAR,)) if tolerated is None else (0.0, (-tolerated, tolerated))
    ends = tuple(
        (at(least + span * share), f"{least + span * share:g}", anchor)
        for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    return Ruler(at(each.found.value), at(each.found.low), at(each.found.high), at(floor), tuple(map(at, bars)), ends)


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
