"""A contact sheet of a world: pictures, rubrics, responses with wrong claims marked, and gold step by step.

It reads the records from disk, so that a person checks exactly what a judge will get. One response under several
rubrics is shown once, with its rubrics side by side.
"""

import base64
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dikast.core.errors import UserError
from dikast.core.media.decoding import decode
from dikast.core.records import read_records, write_file
from dikast.core.text import counted, in_shell
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.terms import Term

if TYPE_CHECKING:
    from PIL.Image import Image as Canvas

_COLOURS = {"right": "#1b6e3c", "wrong": "#b3261e", "unsupported": "#9a5b00"}


class _Line(NamedTuple):
    """One sentence: its verdict and correction ("" for what is no claim), the points it costs, and by which rule."""

    text: str
    verdict: str = ""
    note: str = ""
    cost: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True)
class _Card:
    """One response of one record, ready to be shown."""

    title: str
    pictures: tuple[Path, ...]
    instruction: str
    lines: tuple[_Line, ...]
    gold: str
    rubric: str
    counted: tuple[tuple[str, int], ...]  # what the response as a whole loses, and how many points
    levels: tuple[tuple[str, str, bool], ...]  # best first: label, description, whether gold is this one
    shared: str = ""  # names the response, where it stands under several rubrics


def peek(world: str | Path, out: str | Path, *, n: int = 24) -> list[Path]:
    """Write `OUT.html` and `OUT.png` of the first `n` records of a world's folder; returns both paths."""
    folder = Path(world)
    shards = sorted(folder.glob("items-*"))
    if not shards:
        raise UserError(
            f"{folder}: there are no items-*.jsonl here; make some with `dikast world make --out {in_shell(folder)}`"
        )
    records = (record.value for shard in shards for record in read_records(shard))
    cards = [card for value in itertools.islice(records, n) for card in _cards(value, folder)]
    base = Path(out).with_suffix("")
    html, png = base.with_suffix(".html"), base.with_suffix(".png")
    drawn = BytesIO()
    _sheet(cards).save(drawn, "PNG")
    write_file(html, _html(cards, str(folder)).encode())
    write_file(png, drawn.getvalue())
    return [html, png]


def _cards(value: dict[str, Any], folder: Path) -> list[_Card]:
    gold, rubric, meta = value["gold"], value["rubric"], value.get("meta", {})
    spec = meta.get("spec", {})
    instruction, shown = _split(value["instruction"], folder)
    lower = " Lower is better." if rubric.get("lower_is_better") else ""
    answers = value["responses"] if "responses" in value else [value["response"]]
    found = []
    for i, answer in enumerate(answers):
        one = gold["responses"][i] if "responses" in gold else gold
        text, own = _split(answer, folder)
        name = value["id"] + (f" {'abcdefghijklmnop'[i]}" if len(answers) > 1 else "")
        score = f"gold {one['label']}" + (f"  (preferred: {gold['preference']})" if "preference" in gold else "")
        found.append(
            _Card(
                name,
                tuple(shown + own),
                instruction,
                _lines(text, one, spec),
                score,
                f"{rubric['criterion']}{lower}",
                tuple(_counted(spec, one)),
                tuple(_levels(rubric, one["label"])),
                meta.get("response", ""),
            )
        )
    return found


def _counted(spec: Mapping[str, Any], gold: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """What the response as a whole loses, by the rubric's names where it has its own."""
    names = dict(zip(spec.get("weights", {}), spec.get("names", ()), strict=False))
    for aspect, weight in {} if spec.get("entries") else spec.get("weights", {}).items():
        count = gold.get("counts", {}).get(aspect)
        if count is not None:
            lost = weight * points(ASPECTS[aspect], count, spec["graded"])
            yield f"{names.get(aspect, ASPECTS[aspect].names[0])}: {count}", lost


def _levels(rubric: Mapping[str, Any], label: str) -> Iterator[tuple[str, str, bool]]:
    told = list(rubric["levels"].items())
    for name, text in told if rubric.get("lower_is_better") else reversed(told):
        yield name, text, name == str(label)


def _split(content: Any, folder: Path) -> tuple[str, list[Path]]:
    """The text and the pictures of a content."""
    if isinstance(content, str):
        return content, []
    if isinstance(content, dict):
        content = [content]
    text = "\n".join(part["text"] for part in content if part.get("type") == "text")
    paths = [part["image"] for part in content if part.get("type") == "image"]
    for part in content:
        if part.get("type") == "video":
            paths += [frame if isinstance(frame, str) else frame["image"] for frame in part["frames"]]
    return text, [folder / path for path in paths]


def _lines(text: str, gold: dict[str, Any], spec: Mapping[str, Any]) -> tuple[_Line, ...]:
    """The response claim by claim, each with its verdict; text between claims has none."""
    found: list[_Line] = []
    rest = text
    for claim in gold["claims"]:
        said, note = claim["text"], claim.get("correction", "")
        at = rest.find(said)
        if at >= 0:  # otherwise the response is in another language, or a picture
            *before, mark = rest[:at].rsplit("\n", 1) if "\n" in rest[:at] else ["", rest[:at]]
            if any(c.isalpha() for c in mark):
                before, mark = [*before, mark], ""
            found += [_Line(line.strip()) for line in before if any(c.isalpha() for c in line)]
            rest, said = rest[at + len(said) :], mark.lstrip("* ") + said
            if rest.startswith("**"):
                rest = rest[2:]
        found.append(_Line(said, claim["verdict"], note, claim.get("cost", 0), _rule(claim, spec)))
    if any(c.isalpha() for c in rest):
        found.append(_Line(rest.strip()))
    return tuple(found)


def _rule(claim: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """How the cost of a claim follows from the rubric: `sizes where a star is named: 2 x 2, since it is off by 2 ...`.

    A record does not say what its claims name. Of the sets of terms that add up to the cost, the one is meant whose
    words the sentence has; "" if that is not exactly one.
    """
    cost, off = claim.get("cost", 0), claim.get("severity", 0)
    if not cost or "aspect" not in claim:  # of lessons that compare with a reference
        return ""
    if spec.get("entries"):
        return "on the list: 1"
    if not spec.get("terms"):
        weight = spec.get("weights", {}).get(claim["aspect"], 0)
        return f"{ASPECTS[claim['aspect']].names[0]}: {weight}" + (_doubled(claim) if cost == 2 * weight else "")
    meant = Claim("", claim["aspect"], ())
    terms = [Term(**term) for term in spec["terms"]]
    each = {term: term._replace(word="").points(meant, off) for term in terms}
    paying = [term for term in terms if each[term]]
    sets = [some for n in range(1, len(paying) + 1) for some in itertools.combinations(paying, n)]
    fitting = [some for some in sets if sum(term.weight * each[term] for term in some) == cost]
    named = [some for some in fitting if all(_names(claim["text"], term.word) for term in some)] or fitting
    if len(named) != 1:
        return ""
    return "; ".join(f"{term.name}: {term.weight}{_doubled(claim) if each[term] == 2 else ''}" for term in named[0])


def _names(text: str, word: str) -> bool:
    """Whether a sentence has a word, or its plural; single letters as they are."""
    return not word or re.search(rf"\b{re.escape(word)}(e?s)?\b", text, re.I if len(word) > 1 else 0) is not None


def _doubled(claim: Mapping[str, Any]) -> str:
    if claim["verdict"] == "unsupported":
        return " x 2, since what it is about cannot be seen"
    return f" x 2, since it is off by {claim['severity']} {claim['unit']}"


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title><style>
:root{{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d8dee4;--card:#fff;--back:#f6f7f8;--good:#1b6e3c;
--bad:#b3261e;--gone:#8a5000;--mark:#eef4ff;--paid:#fdf0ee}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--card:#161b22;--back:#0d1117;
--good:#6cc58a;--bad:#ff8a80;--gone:#e5a54b;--mark:#1c2a44;--paid:#33191a}}}}
body{{font:15px/1.5 system-ui,sans-serif;margin:0 auto;padding:1.5rem 1rem;max-width:84rem;background:var(--back);
color:var(--ink);overflow-wrap:anywhere}}
h1{{font-size:1.3rem}} main{{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1rem}}
article{{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem;overflow-wrap:anywhere}}
h2{{font-size:.8rem;margin:0 0 .6rem;color:var(--soft);font-weight:500}}
h3{{font-size:.75rem;margin:.9rem 0 .2rem;color:var(--soft);font-weight:600}}
img{{image-rendering:pixelated;width:13rem;max-width:100%;border:1px solid var(--line);margin-right:.3rem}}
.clip img{{width:5.5rem}} p{{margin:.2rem 0;white-space:pre-line}}
section{{grid-column:1/-1;border:1px solid var(--line);border-radius:8px;padding:1rem;background:var(--card)}}
.shown{{display:flex;flex-wrap:wrap;gap:0 1rem}}
.shown>div:not(.clip) img{{width:18rem}} .shown>p{{flex:1 1 20rem;max-width:50rem}}
.rubrics{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,16rem),1fr));gap:1rem;margin-top:.8rem}}
ol{{list-style:none;margin:0;padding:0}} li{{border-left:3px solid var(--line);margin:.25rem 0;padding:.1rem .6rem}}
li small{{display:block;color:var(--soft);font-size:.85rem}} li em{{font-style:normal;font-weight:600}}
.right{{border-color:var(--good)}} .right em{{color:var(--good)}} .wrong{{border-color:var(--bad)}}
.wrong em{{color:var(--bad)}} .unsupported{{border-color:var(--gone)}} .unsupported em{{color:var(--gone)}}
.paid{{background:var(--paid)}} .paid b{{color:var(--bad)}}
.sum{{font-weight:600;margin:.6rem 0 .2rem}} dl{{display:grid;grid-template-columns:max-content 1fr;margin:0}}
dt,dd{{margin:0;padding:.05rem .6rem;color:var(--soft)}}
.gold{{background:var(--mark);color:var(--ink);font-weight:600}}
</style><h1>{title}</h1>
<p>Green: right; red: wrong; amber: about what cannot be seen; shaded: costs points.</p>
<main>{body}</main></html>
"""


def _html(cards: Sequence[_Card], title: str) -> str:
    families: dict[str, list[_Card]] = {}
    for card in cards:
        families.setdefault(card.shared or card.title, []).append(card)
    return _PAGE.format(title=escape(f"World {title}"), body="".join(map(_family, families.values())))


def _family(cards: Sequence[_Card]) -> str:
    """One response under each of its rubrics, side by side; an ordinary card if there is one rubric."""
    first = cards[0]
    if len(cards) == 1:
        return f"<article>{_heading(first)}{_shown(first)}{_worked(first)}</article>"
    under = "".join(f"<article>{_heading(card)}{_worked(card)}</article>" for card in cards)
    about = f"{first.shared}: one response under {len(cards)} rubrics"
    return (
        f"<section><h2>{escape(about)}</h2>"
        f'<div class="shown">{_pictures(first)}<p>{escape(first.instruction)}</p></div>'
        f'<div class="rubrics">{under}</div></section>'
    )


def _heading(card: _Card) -> str:
    return f"<h2>{escape(card.title)}</h2>"


def _pictures(card: _Card) -> str:
    clip = ' class="clip"' if len(card.pictures) > 2 else ""
    return f"<div{clip}>{''.join(map(_embedded, card.pictures, itertools.count(1)))}</div>" if card.pictures else ""


def _shown(card: _Card) -> str:
    return f"{_pictures(card)}<h3>Instruction</h3><p>{escape(card.instruction)}</p>"


def _worked(card: _Card) -> str:
    """The rubric, every claim with its points and the sum so far, and the level."""
    lost, steps = 0, []
    for line in card.lines:
        lost += line.cost
        told = f"<em>{line.verdict}</em>" if line.verdict else "no claim"
        if line.note:
            told += f": {escape(line.note)}; {_priced(line, lost)}"
        kind = f"{line.verdict} paid" if line.cost else line.verdict
        steps.append(f'<li class="{kind}">{escape(line.text)}<small>{told}</small>')
    for name, cost in card.counted:
        lost += cost
        paid = ' class="paid"' if cost else ""
        steps.append(f"<li{paid}>{escape(name)}<small>the response as a whole; {_cost(cost, lost)}</small>")
    levels = "".join(
        f"<dt{(mark := ' class=gold' if gold else '')}>{escape(label)}<dd{mark}>{escape(text)}"
        for label, text, gold in card.levels
    )
    return (
        f"<h3>Rubric</h3><p>{escape(card.rubric)}</p>"
        f"<h3>Response, claim by claim</h3><ol>{''.join(steps)}</ol>"
        f'<p class="sum">{_sum(card)}: {escape(card.gold)}</p>'
        f"<dl>{levels}</dl>"
    )


def _priced(line: _Line, lost: int) -> str:
    """What a wrong claim costs, and why."""
    if not line.cost:
        return _cost(0)
    return f"<b>{_cost(line.cost, lost)}</b>" + (f" ({escape(line.rule)})" if line.rule else "")


def _cost(cost: int, lost: int = 0) -> str:
    if not cost:
        return "costs nothing"
    return f"costs {counted(cost, 'point')}" + (f", {lost:,} so far" if lost > cost else "")


def _sum(card: _Card) -> str:
    return f"{counted(sum(line.cost for line in card.lines) + sum(n for _, n in card.counted), 'point')} lost"


def _embedded(path: Path, number: int) -> str:
    return f'<img alt="Picture {number}" src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}">'


_WIDE, _ACROSS = 420, 3


def _sheet(cards: Sequence[_Card]) -> "Canvas":
    """All cards on one picture, three in a row; a row is as high as its highest card."""
    from PIL import Image, ImageDraw

    drawn = [_drawn(card) for card in cards]
    rows = [drawn[i : i + _ACROSS] for i in range(0, len(drawn), _ACROSS)]
    heights = [max(card.height for card in row) + 8 for row in rows]
    sheet = Image.new("RGB", (_WIDE * _ACROSS, sum(heights)), "white")
    draw = ImageDraw.Draw(sheet)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for i, card in enumerate(row):
            sheet.paste(card, (_WIDE * i + 8, top + 4))
            draw.rectangle((_WIDE * i + 3, top + 1, _WIDE * (i + 1) - 3, top + height - 3), outline="#cccccc")
        top += height
    return sheet


def _drawn(card: _Card) -> "Canvas":
    """One card, as high as it needs to be."""
    from PIL import Image, ImageDraw, ImageFont

    font, small = ImageFont.load_default(12), ImageFont.load_default(10)
    canvas = Image.new("RGB", (_WIDE - 16, 1600), "white")
    draw = ImageDraw.Draw(canvas)
    draw.text((0, 0), card.title, fill="#777777", font=small)
    side = 150 if len(card.pictures) <= 2 else 396 // min(4, len(card.pictures)) - 4
    across = max(1, 400 // (side + 4))
    for i, path in enumerate(card.pictures):
        picture = decode(path.read_bytes(), str(path))
        picture = picture.resize((side, side * picture.height // picture.width), Image.Resampling.NEAREST)
        canvas.paste(picture, ((side + 4) * (i % across), 16 + (side + 4) * (i // across)))
    y = 18 + (side + 4) * -(-len(card.pictures) // across)
    for text, fill, face in [
        *((line, "#555555", font) for line in card.instruction.split("\n")),
        *(
            (f"{text}  ({verdict}: {note}; {_cost(cost)})" if note else text, _COLOURS.get(verdict, "#333333"), font)
            for text, verdict, note, cost, _ in card.lines
        ),
        *((f"{name}; {_cost(cost)}", "#333333", font) for name, cost in card.counted),
        (f"{_sum(card)}: {card.gold}", "#000000", font),
        (card.rubric, "#555555", small),
        *((f"{label}: {text}", "#000000" if gold else "#777777", small) for label, text, gold in card.levels),
    ]:
        for line in _wrapped(text, face, _WIDE - 30):
            draw.text((0, y), line, fill=fill, font=face)
            y += 15 if face is font else 13
    return canvas.crop((0, 0, canvas.width, y + 4))


def _wrapped(text: str, font: Any, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.replace("\n", " ").split(" "):
        if line and font.getlength(f"{line} {word}") > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]
