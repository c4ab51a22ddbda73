"""The page of an alignment: a one-sentence result, figures by round, replies before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup

from dikast.alignment.align import PLAN, REPORT
from dikast.alignment.round_pairs import SAMPLES
from dikast.alignment.round_report import HELD, MEASURES, read_measured
from dikast.core.errors import DataError, UserError
from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.core.item import Item
from dikast.core.part import Text, text_of
from dikast.core.records import read_items, write_file
from dikast.core.runs.last_verdict import LastVerdict, moment
from dikast.core.runs.run_files import AGAIN, check
from dikast.core.runs.schema import RateForm, fields_misfit, misfit
from dikast.core.text import markdown
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.contents import Thumb, Thumbs, clipped
from dikast.surface.report.subject import day_of

KINDS = (".html", ".md", ".json")
_ROOM = "dikast.surface.alignment_report"
_SHOWN = 10  # prompts whose replies stand side by side
_FIGURES = {
    "reward": "The judge's reward (goodness, 0 to 1)",
    "gold": "Held-out gold (goodness, 0 to 1)",
    "second": "The second judge's grade (goodness, 0 to 1)",
    "words": "Words of a reply",
    "kl": "Distance from the start, nats a reply",
    "wins": "Preferred to the start's reply (a tie, or orders that disagree: half)",
}
_SHARES = {"empty": "Empty replies", "cut": "Replies cut off", "unreadable": "Replies with an unreadable sentence"}
_FORMS: Mapping[str, Any] = {  # of the fields of reports that the page shows
    "round": int, "held_out": Mapping[str, RateForm], "pairs": int, "prompts": int, "calls": int, "stopped": str,
    "dropped": Mapping[str, int], "policy": str, "judge": str, "model": str, "overlap_with_held_out": int,
}  # fmt: skip
_DECIDING = {"gold": "gold", "second": "the second judge's grade", "reward": "the judge's own reward"}
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 320, 170, 46, 14, 138


class Point(NamedTuple):
    """One round's figure; `low` and `high` are None if the interval is unknown."""

    round: int
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Beside:
    """One prompt with the reply of the first model and of the last that was measured."""

    name: str
    asked: str
    thumbs: Sequence[Thumb]
    start: str
    end: str
    start_said: str
    end_said: str


def is_alignment(folder: Path) -> bool:
    """Whether a folder is what `dikast align` writes."""
    return (folder / PLAN).is_file()


def write_alignment_report(folder: Path, out: Sequence[Path], title: str = "") -> dict[str, Any]:
    """Write the page of an alignment to each file of `out` (.html, .md or .json); returns what `report.json` holds.

    UserError where it has no finished state yet, and for other forms.
    """
    for path in out:
        if path.suffix not in KINDS:
            raise UserError(f"{path}: the report of an alignment is a file NAME{', NAME'.join(KINDS)}")
    report, rounds = _read(folder)
    heading = title or f"Alignment: {folder.name}"
    for path in out:
        if path.suffix == ".html":
            text = _html(folder, report, rounds, heading)
        elif path.suffix == ".md":
            text = _markdown(report, rounds, heading)
        else:
            text = orjson.dumps({**report, "rounds": rounds}, option=orjson.OPT_INDENT_2).decode() + "\n"
        write_file(path, text.encode())
    return {**report, "rounds": rounds}


def _read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The report of the alignment ({} while it runs), and of each measured state, the start first."""
    paths = [folder / "start" / REPORT, *sorted(folder.glob(f"round-*/{REPORT}"), key=_number)]
    whole = _report(folder / REPORT) if (folder / REPORT).is_file() else {}
    rounds = [_report(path, "round", "held_out") for path in paths if path.is_file()]
    if not rounds or not rounds[0]["held_out"].keys() & _DECIDING:
        raise UserError(f"{folder}: nothing is measured yet: wait for the first figures of `dikast align`")
    return whole, rounds


def _report(path: Path, *needed: str) -> dict[str, Any]:
    """What a report holds; DataError where it has changed since it was written, or holds what no alignment writes."""
    check(path.parent, path.name)
    try:
        value: dict[str, Any] = orjson.loads(path.read_bytes())
        told = _wrong(value, needed)
    except ValueError as error:
        told = f" cannot be read ({error})"
    if told:
        raise DataError(f"the report{told}: {AGAIN}", path=str(path))
    return value


def _wrong(value: Any, needed: Sequence[str]) -> str:
    """How a report differs from what an alignment writes; "" if it does not."""
    if told := fields_misfit(value, _FORMS, *needed):
        return told
    figures: Mapping[str, Any] = value.get("held_out", {})
    for name, each in figures.items():
        if told := misfit(RateForm | None)(each.get("change")):
            return f", field 'held_out.{name}.change'{told}"
    return ""


def _number(path: Path) -> int:
    number = path.parent.name.rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def sentence(report: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> str:
    """What happened, in one sentence."""
    first, measured = rounds[0], [each for each in rounds if each["held_out"]]
    last, done = measured[-1], len(measured) - 1
    name, told = next(each for each in _DECIDING.items() if each[0] in first["held_out"])
    before, after = first["held_out"][name], last["held_out"].get(name)
    stopped = report.get("stopped") or next((each["stopped"] for each in rounds if each.get("stopped")), "")
    end = f"; it was stopped: {stopped}." if stopped else "." if report else "; it is not finished."
    if done == 0 or after is None:
        number = _number_of(before["value"])
        return f"No round has been measured; {told} on {before['n']} held-out prompts is {number}{end}"
    change = after.get("change") or {}
    low, high = change.get("low"), change.get("high")
    unclear = low is None or high is None or low <= 0 <= high
    way = "did not clearly change" if unclear else "rose" if low is not None and low > 0 else "fell"
    ends = f", by {by} in pairs" if (by := _change(change)) else ""
    rounds_told = f"{done} round{'s' if done > 1 else ''}"
    text = (
        f"In {rounds_told} {told} on {after['n']} held-out prompts {way}: from {_number_of(before['value'])} to"
        f" {_number_of(after['value'])}{ends}"
    )
    return text + end


def verdict(report: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> Conclusion:
    """The sentence with its light, by the rules of docs/alignment.md."""
    text = sentence(report, rounds).removesuffix(".")
    measured = [each for each in rounds if each["held_out"]]
    if len(measured) < 2:
        return Conclusion("grey", text, "nothing has been measured after the start")
    name = next(each for each in _DECIDING if each in rounds[0]["held_out"])
    kept = _kept(report, measured)
    change = (measured[-1] if kept is measured[0] else kept)["held_out"].get(name, {}).get("change") or {}
    low, high = change.get("low"), change.get("high")
    if kept not in (measured[0], measured[-1]):
        text += f"; the model of round {kept['round']} is kept, whose change is {_change(change) or 'undefined'}"
    if high is not None and high < 0:
        return Conclusion("red", text, "the interval of the change lies below 0: use the model of the start")
    if kept is measured[0]:
        return Conclusion("amber", text, "it was stopped, and the model of the start is kept")
    if low is None or low <= 0:
        return Conclusion("amber", text, "the interval of the change does not lie above 0")
    if name != "gold":
        by = "the judge that taught it" if name == "reward" else "a second judge"
        return Conclusion("amber", text, f"only {by} says so: people or gold have not been asked")
    return Conclusion("green", text, "the interval of the change in gold on held-out prompts lies above 0")


def _kept(report: Mapping[str, Any], measured: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The state whose model the alignment keeps: one before the last where that was the reason to stop."""
    model = report.get("model")
    return next((each for each in measured if model and each.get("model") == model), measured[-1])


def _change(change: Mapping[str, Any]) -> str:
    """A paired change with its interval; "" where it has none."""
    value, low, high = (change.get(name) for name in ("value", "low", "high"))
    return "" if None in (value, low, high) else f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _number_of(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _points(rounds: Sequence[Mapping[str, Any]], name: str) -> list[Point]:
    return [
        Point(each["round"], found["value"], found["low"], found["high"], found["n"])
        for each in rounds
        if (found := each["held_out"].get(name)) is not None and found["value"] is not None
    ]


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    ends = "" if point.low is None or point.high is None else f" [{point.low:.3f}, {point.high:.3f}]"
    return f"{point.value:.3f}{ends}"


def _table(rounds: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """A table with a column per state and a row per figure; figures that no state has are left out."""
    numbers = [each["round"] for each in rounds]
    head = ["", *("start" if number == 0 else f"round {number}" for number in numbers), "n"]
    rows = []
    for name, told in {**_FIGURES, **_SHARES}.items():
        points = {point.round: point for point in _points(rounds, name)}
        if points:
            n = {point.n for point in points.values()}
            counts = str(n.pop()) if len(n) == 1 else " to ".join(map(str, (min(n), max(n))))
            rows.append([told, *(_cell(points.get(number)) for number in numbers), counts])
    for name, told in (("pairs", "Pairs learnt from"), ("prompts", "Prompts"), ("calls", "Questions to the judge")):
        rows.append([told, *(f"{each[name]:,}" if name in each else "" for each in rounds), ""])
    return head, rows


def _short(value: float) -> str:
    """A number of at most six characters, up to 100,000: longer ones would be cut off at the edge of the figure."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{round(value, 3):.3g}"


def _figure(points: Sequence[Point], label: str) -> Markup:
    """A curve by round with intervals as bars."""
    ends = [end for point in points for end in (point.value, point.low, point.high) if end is not None]
    low, high = min(ends), max(ends)
    spread = (high - low) or max(abs(high), 1.0) * 0.1
    low, high = low - 0.05 * spread, high + 0.05 * spread
    last = max(point.round for point in points) or 1

    def x(point: Point) -> float:
        return _LEFT + 14 + (_WIDTH - _LEFT - 34) * point.round / last

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low)

    parts = []
    for value in (low + 0.05 * spread, high - 0.05 * spread):
        parts.append(
            Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="axis"/><text x="{}" y="{:.1f}" '
                   'text-anchor="end" class="small">{}</text>').format(
                _LEFT, _WIDTH - 8, y(value), y(value), _LEFT - 5, y(value) + 4, _short(value))
        )  # fmt: skip
    path = " ".join(f"{x(point):.1f},{y(point.value):.1f}" for point in points)
    parts.append(Markup('<polyline points="{}" class="curve"/>').format(path))
    for point in points:
        if point.low is not None and point.high is not None:
            parts.append(
                Markup('<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" class="whisker"/>').format(
                    x(point), y(point.low), y(point.high))
            )  # fmt: skip
        name = "start" if point.round == 0 else str(point.round)
        parts.append(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="dot"><title>{}: {} (n {:,})</title></circle><text '
                   'x="{:.1f}" y="{}" text-anchor="middle" class="small">{}</text>').format(
                x(point), y(point.value), name, _cell(point), point.n, x(point), _BOTTOM + 20, name)
        )  # fmt: skip
    said = f"{label}: " + ", ".join(f"{'start' if p.round == 0 else f'round {p.round}'} {_cell(p)}" for p in points)
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(_WIDTH, _HEIGHT, said)
    return head + Markup("").join(parts) + Markup("</svg>")


def _beside(folder: Path, rounds: Sequence[Mapping[str, Any]]) -> tuple[str, list[Beside]]:
    """Ten prompts (all, if there are fewer), evenly spread over the file, with both replies."""
    last = next((each["round"] for each in reversed(rounds) if each["held_out"]), 0)
    places = [folder / "start" / HELD / SAMPLES, folder / f"round-{last}" / HELD / SAMPLES]
    if last == 0 or not all(path.is_file() for path in places):
        return "", []
    first, now = ({item.id: item for item in read_items(str(path))} for path in places)
    both = [name for name in first if name in now]
    n = min(len(both), _SHOWN)
    chosen = [both[i * len(both) // n] for i in range(n)]
    measures = [_measures(path.parent) for path in places]
    thumbs = Thumbs()
    found = []
    for name in chosen:
        content = [part for turn in first[name].instruction for part in turn.content]
        words = clipped("\n".join(part.text for part in content if isinstance(part, Text)))
        said = [_said(each.get(name, {})) for each in measures]
        texts = [_reply(items[name]) for items in (first, now)]
        found.append(Beside(name, words, thumbs.of(tuple(content)), *texts, *said))
    return f"round {last}", found


def _reply(item: Item) -> str:
    return clipped(text_of(item.responses[0])) or "(empty)"


def _measures(folder: Path) -> dict[str, dict[str, float | None]]:
    if not (folder / MEASURES).is_file():
        return {}
    found = read_measured(folder)
    return {key: {name: column[i] for name, column in found.columns.items()} for i, key in enumerate(found.ids)}


def _said(row: Mapping[str, Any]) -> str:
    told = {"gold": "gold", "reward": "reward", "second": "second judge"}
    return ", ".join(f"{name} {row[key]:.2f}" for key, name in told.items() if row.get(key) is not None)


def _html(folder: Path, report: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]], title: str) -> str:
    style = asset("dikast.surface.report", "page.css") + "\n" + asset(_ROOM, "alignment.css")
    head, rows = _table(rounds)
    figures = [(told, _figure(points, told)) for name, told in _FIGURES.items() if (points := _points(rounds, name))]
    name, beside = _beside(folder, rounds)
    return template_environment(_ROOM).get_template("alignment.html.j2").render(
        title=title, version=version("dikast"), style=Markup(style), style_hash=asset_hash(style),
        found=verdict(report, rounds), who=_who(report), date=_date(folder, rounds[-1]), facts=_facts(report, rounds),
        head=head, rows=rows, figures=figures,
        dropped=_dropped(rounds), last=name, beside=beside,
    )  # fmt: skip


def _who(report: Mapping[str, Any]) -> dict[str, str]:
    """What was aligned by which judge, as far as it is known yet."""
    return {name: str(report[name]) for name in ("policy", "judge", "model") if report.get(name)}


def _date(folder: Path, last: Mapping[str, Any]) -> str:
    """When the figures of the last round were written, in UTC."""
    if (at := moment(last)) is not None:
        return day_of(LastVerdict(at, True))
    files = [folder / REPORT, folder / "start" / REPORT, *folder.glob(f"round-*/{REPORT}")]
    return day_of(LastVerdict(max(path.stat().st_mtime for path in files if path.is_file()), False))


def _facts(report: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    if any(each.get("judge_is_policy") for each in rounds):
        found.append("The judge is the policy itself: its reward measures its preference for its own replies.")
    if report.get("overlap_with_held_out"):
        found.append(f"{report['overlap_with_held_out']:,} prompts also stand in the held-out file.")
    if "gold" not in rounds[0]["held_out"] and "second" not in rounds[0]["held_out"]:
        found.append(
            "There is neither gold nor a second judge: the judge's own reward may rise without an improvement."
        )
    return found


def _dropped(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"Round {each['round']}: {n:,} of {each['prompts']:,} prompts gave no pair, {reason}"
        for each in rounds
        for reason, n in each.get("dropped", {}).items()
    ]


def _markdown(report: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]], title: str) -> str:
    head, rows = _table(rounds)
    found, who = verdict(report, rounds), [f"{name}: {told}" for name, told in _who(report).items()]
    lines = [f"# {markdown(title)}", "", f"**{found.light.capitalize()}**: {markdown(found.text)} ({found.why}).", ""]
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return (
        "\n".join([*lines, *(f"- {markdown(each)}" for each in (*who, *_facts(report, rounds), *_dropped(rounds)))])
        + "\n"
    )
