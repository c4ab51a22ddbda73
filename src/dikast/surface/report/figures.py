"""Figures as inline SVG. They take their colours from the page, so that dark mode and print reach them.

Every figure is a pure function of numbers to markup; words that came from data are escaped here.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NewType

from markupsafe import Markup, escape

from dikast.core.text import printable

WIDTH = 640
Drawn = NewType("Drawn", str)  # a mark of a figure, its words escaped; pages beside a report have a million of them
_SEEN = 0.005  # of a line from 0 to 1, what can be seen
_LETTER = 10.3  # units of it that a letter takes on a phone, where it is widest


class Row(NamedTuple):
    """One line of a forest plot: a name, a value with its interval (NaN where unknown), and its n."""

    name: str
    value: float
    low: float
    high: float
    n: int


class Ruler(NamedTuple):
    """A statistic of the judge between a baseline and a ceiling (None where there is none)."""

    name: str
    value: float
    low: float
    high: float
    baseline: float | None
    ceiling: float | None


def histogram(labels: Mapping[str, tuple[int, int]], told: str = "How often each label was given") -> Markup:
    """Shares of labels: the judge's as bars, and gold's next to them where there are any. Labels whose names would
    run into each other stand below each other, and their bars lie.
    """
    totals = [max(1, sum(each[i] for each in labels.values())) for i in (0, 1)]
    shares = {name: (count / totals[0], true / totals[1]) for name, (count, true) in labels.items()}
    most = max((max(pair) for pair in shares.values()), default=0) or 1.0
    has_gold = any(true for _, true in labels.values())
    height, bottom, step = 190, 160, WIDTH / max(1, len(labels))
    if any(_LETTER * len(name) > step for name in labels):
        return _lying(labels, shares, most, told, has_gold=has_gold)
    parts = []
    for i, (name, (said, true)) in enumerate(shares.items()):
        x, wide = i * step + step * 0.14, step * (0.34 if has_gold else 0.72)
        tall = 130 * said / most
        parts.append(_rect(x, bottom - tall, wide, tall, "judge", f"judge {name}: {said:.1%} ({labels[name][0]:,})"))
        if has_gold:
            tall = 130 * true / most
            title = f"gold {name}: {true:.1%} ({labels[name][1]:,})"
            parts.append(_rect(x + wide + step * 0.04, bottom - tall, wide, tall, "gold", title))
        parts.append(_text(i * step + step / 2, bottom + 16, name, "middle"))
        if said or step > 60:
            parts.append(_text(x + wide / 2, bottom - 130 * said / most - 4, f"{said:.0%}", "middle", "small"))
    return _svg(height, parts, told)


def _lying(
    labels: Mapping[str, tuple[int, int]], shares: Mapping[str, tuple[float, float]], most: float, told: str, *,
    has_gold: bool,
) -> Markup:  # fmt: skip
    """A label below the other, its bars to the right of its name."""
    left, right, tall = _margin(list(labels)), WIDTH - 60, 10 if has_gold else 16
    parts, step = [], 32
    for i, (name, pair) in enumerate(shares.items()):
        y = 6 + step * i
        parts.append(_text(left - 12, y + 15, _short(name), "end", title=name))
        parts.append(_text(left + (right - left) * max(pair) / most + 6, y + 15, f"{pair[0]:.0%}", "start", "small"))
        for kind, share, count, at in zip(("judge", "gold"), pair, labels[name], (0, tall + 2), strict=True):
            if kind == "judge" or has_gold:
                title = f"{kind} {name}: {share:.1%} ({count:,})"
                parts.append(_rect(left, y + at, (right - left) * share / most, tall, kind, title))
    return _svg(step * len(labels) + 10, parts, told)


def rulers(rows: Sequence[Ruler]) -> Markup:
    """Each statistic on a line from 0 to 1, between baseline and ceiling; from -1 where any lies below 0."""
    left, right = _margin([row.name for row in rows]), WIDTH - 90
    parts, y = [], 24.0
    told = [each for row in rows for each in (row.value, row.low, row.baseline, row.ceiling) if each is not None]
    start = -1.0 if any(each < -_SEEN for each in told) else 0.0

    def x(value: float) -> float:
        return left + (right - left) * (min(1.0, max(start, value)) - start) / (1 - start)

    for row in rows:
        parts.append(_text(left - 12, y + 4, _short(row.name), "end", title=row.name))
        parts.append(_line(left, y, right, y, "axis"))
        if row.baseline is not None:
            parts.append(_mark(x(row.baseline), y, "baseline", f"best baseline {row.baseline:z.3f}"))
        if row.ceiling is not None:
            parts.append(_mark(x(row.ceiling), y, "ceiling", f"ceiling {row.ceiling:z.3f}"))
        if not math.isnan(row.low):
            parts.append(_line(x(row.low), y, x(row.high), y, "interval"))
        if not math.isnan(row.value):
            parts.append(
                _dot(x(row.value), y, "judge", f"{row.name} {value_with_interval(row.value, row.low, row.high)}")
            )
        parts.append(_text(right + 12, y + 4, "undefined" if math.isnan(row.value) else f"{row.value:z.3f}", "start"))
        y += 30
    if start < 0:
        parts.append(_line(x(0.0), 10, x(0.0), y - 14, "grid"))
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = start + (1 - start) * tick
        parts.append(_text(x(at), y + 2, f"{at:g}", "middle", "small"))
    return _svg(int(y) + 12, parts, "The judge between baseline and ceiling")


def forest(
    rows: Sequence[Row], overall: float, low: float, high: float, *, beside: Sequence[Row] = (), name: str = "Slices"
) -> Markup:
    """A value with its interval for each slice, and a line at the value over all; `beside`: gold's, one for each."""
    known = [each for row in [*rows, *beside] for each in (row.low, row.high, row.value) if not math.isnan(each)]
    start, end = min([low, *known]), max([high, *known])
    pad = (end - start or 1.0) * 0.05
    told = [f"{'undefined' if math.isnan(row.value) else f'{row.value:z.3f}'} n {row.n:,}" for row in rows]
    start, end, left = start - pad, end + pad, _margin([row.name for row in rows])
    right = WIDTH - max(120.0, _LETTER * max(map(len, told), default=0) + 10)

    def x(value: float) -> float:
        return left + (right - left) * (value - start) / (end - start)

    bottom = 26 * len(rows) + 8
    parts = [] if math.isnan(overall) else [_line(x(overall), 4, x(overall), bottom, "overall")]
    for i, row in enumerate(rows):
        y = 20 + 26 * i
        parts.append(_text(left - 10, y + 4, _short(row.name), "end", title=row.name))
        if not math.isnan(row.low):
            parts.append(_line(x(row.low), y, x(row.high), y, "interval"))
        if not math.isnan(row.value):
            parts.append(
                _dot(x(row.value), y, "judge", f"{row.name}: {value_with_interval(row.value, row.low, row.high)}")
            )
        for gold in beside[i : i + 1]:
            if not math.isnan(gold.low):
                parts.append(_line(x(gold.low), y + 8, x(gold.high), y + 8, "interval goldline"))
            if not math.isnan(gold.value):
                title = f"{row.name}, gold: {value_with_interval(gold.value, gold.low, gold.high)}"
                parts.append(_rect(x(gold.value) - 4, y + 4, 8, 8, "gold", title))
        parts.append(_text(right + 10, y + 4, told[i], "start", "small"))
    parts += [_text(x(each), bottom + 16, f"{each:z.2f}", "middle", "small") for each in (start + pad, end - pad)]
    return _svg(bottom + 24, parts, name)


def curve(points: Sequence[tuple[float, float, float, float]], across: str, up: str, *, diagonal: bool) -> Markup:
    """Points (x, y, low, high) in the unit square, joined; `diagonal` is where a perfect one would lie."""
    left, top, side, bottom = 60, 14, 300, 314

    def x(value: float) -> float:
        return left + side * value

    def y(value: float) -> float:
        return bottom - side * value

    parts = [_line(left, bottom, left + side, bottom, "axis"), _line(left, top, left, bottom, "axis")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_text(x(tick), bottom + 18, f"{tick:g}", "middle", "small"))
        parts.append(_text(left - 8, y(tick) + 4, f"{tick:g}", "end", "small"))
        parts.append(_line(left, y(tick), left + side, y(tick), "grid"))
    if diagonal:
        parts.append(_line(x(0), y(0), x(1), y(1), "overall"))
    ordered = sorted(points)
    path = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py, *_ in ordered if not math.isnan(py))
    parts.append(Drawn(f'<polyline class="path" points="{path}"/>'))
    for px, py, low, high in ordered:
        if not math.isnan(low):
            parts.append(_line(x(px), y(low), x(px), y(high), "interval"))
        if not math.isnan(py):
            parts.append(_dot(x(px), y(py), "judge", f"{across} {px:z.2f}: {up} {value_with_interval(py, low, high)}"))
    parts.append(_text(left + side / 2, bottom + 36, across, "middle"))
    parts.append(_text(left, top - 2, up, "start", "small"))
    return _svg(bottom + 44, parts, f"{up} by {across}", width=left + side + 40)


def distribution(probabilities: Mapping[str, float], chosen: str, gold: str) -> Markup:
    """The probabilities of the labels as small bars; the verdict filled, gold underlined."""
    step, tall = 34, 44
    parts = []
    for i, (label, p) in enumerate(probabilities.items()):
        x, kind = i * step + 4, "judge" if label == chosen else "other"
        parts.append(_rect(x, 12 + tall * (1 - p), 26, max(tall * p, 0.75), kind, f"{label}: {p:.3f}"))
        parts.append(_text(x + 13, tall + 26, _short(label, 5), "middle", "small"))
        if label == gold:
            parts.append(_line(x + 2, tall + 30, x + 24, tall + 30, "goldline"))
    return _svg(tall + 34, parts, "Probabilities of the labels", width=max(60, step * len(probabilities) + 8))


def bar(value: float, low: float, high: float, ends: tuple[float, float], middle: float = math.nan) -> Markup:
    """A value with its interval on a line from the first of `ends` to the second, as a cell of a table shows it."""
    start, end = ends
    wide = (end - start) or 1.0

    def x(at: float) -> float:
        return 6 + 148 * min(1.0, max(0.0, (at - start) / wide))

    parts = [_line(6, 10, 154, 10, "axis")]
    parts += [] if math.isnan(middle) else [_line(x(middle), 1, x(middle), 19, "overall")]
    parts += [] if math.isnan(low) else [_line(x(low), 10, x(high), 10, "interval")]
    parts += [] if math.isnan(value) else [_dot(x(value), 10, "judge", value_with_interval(value, low, high))]
    return _svg(20, parts, f"interval {value_with_interval(value, low, high)}", width=160)


def value_with_interval(value: float, low: float, high: float) -> str:
    """A value with its interval, or without where it has none."""
    if math.isnan(value):
        return "undefined"
    return f"{value:z.3f}" if math.isnan(low) or math.isnan(high) else f"{value:z.3f} [{low:z.3f}, {high:z.3f}]"


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _margin(names: Sequence[str]) -> float:
    """The room that names need at the left."""
    return _LETTER * max((len(_short(name)) for name in names), default=0) + 20


def _svg(height: int, parts: Sequence[Drawn], label: str, *, width: int = WIDTH) -> Markup:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" style="max-width:{width}px">'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _text(x: float, y: float, text: str, anchor: str, kind: str = "", title: str = "") -> Drawn:
    inner = f"{escape(printable(text))}{_titled(title) if title else ''}"
    return Drawn(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{inner}</text>')


def _rect(x: float, y: float, wide: float, tall: float, kind: str, title: str) -> Drawn:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
    return Drawn(f'<rect {place} rx="2" class="{kind}">{_titled(title)}</rect>')


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Drawn:
    return Drawn(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')


def _dot(x: float, y: float, kind: str, title: str) -> Drawn:
    return Drawn(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{kind}">{_titled(title)}</circle>')


def _mark(x: float, y: float, kind: str, title: str) -> Drawn:
    return Drawn(f'<path d="M{x:.1f} {y - 8:.1f}v16" class="{kind}">{_titled(title)}</path>')


def _titled(text: str) -> Drawn:
    """What a figure tells of a mark that is pointed at, or read aloud."""
    return Drawn(f"<title>{escape(printable(text))}</title>")
