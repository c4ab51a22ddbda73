"""A contact sheet of a world: pictures, responses with wrong claims marked, gold and rubrics.

It reads the records from disk, so that a person checks exactly what a judge will get.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.core.errors import UserError
from dikast.core.records import read_records, write_file
from dikast.core.text import in_shell

if TYPE_CHECKING:
    from PIL.Image import Image as Canvas

_COLOURS = {"right": "#1b6e3c", "wrong": "#b3261e", "unsupported": "#9a5b00"}


@dataclass(frozen=True, slots=True)
class _Card:
    """One response of one record, ready to be shown."""

    title: str
    pictures: tuple[Path, ...]
    instruction: str
    lines: tuple[tuple[str, str, str], ...]  # sentence, verdict, correction
    gold: str
    rubric: str


def peek(world: str | Path, out: str | Path, *, n: int = 24) -> list[Path]:
    """Write `OUT.html` and `OUT.png` of the first `n` records of a world's folder; returns both paths."""
    folder = Path(world)
    shards = sorted(folder.glob("items-*"))
    if not shards:
        raise UserError(
            f"{folder}: there are no items-*.jsonl here; make some with `dikast world make --out {in_shell(folder)}`"
        )
    records = (record.value for shard in shards for record in read_records(shard))
    cards = [card for value in islice(records, n) for card in _cards(value, folder)]
    base = Path(out).with_suffix("")
    html, png = base.with_suffix(".html"), base.with_suffix(".png")
    drawn = BytesIO()
    _sheet(cards).save(drawn, "PNG")
    write_file(html, _html(cards, str(folder)).encode())
    write_file(png, drawn.getvalue())
    return [html, png]


def _cards(value: dict[str, Any], folder: Path) -> list[_Card]:
    gold, rubric = value["gold"], value["rubric"]
    instruction, shown = _split(value["instruction"], folder)
    levels = "; ".join(f"{label}: {text}" for label, text in rubric["levels"].items())
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
                _lines(text, one),
                score,
                f"{rubric['criterion']} [{levels}]{lower}",
            )
        )
    return found


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


def _lines(text: str, gold: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """The response claim by claim, each with its verdict; text between claims has none."""
    found: list[tuple[str, str, str]] = []
    rest = text
    for claim in gold["claims"]:
        said, note = claim["text"], claim.get("correction", "")
        at = rest.find(said)
        if at >= 0:  # otherwise the response is in another language, or a picture
            *before, mark = rest[:at].rsplit("\n", 1) if "\n" in rest[:at] else ["", rest[:at]]
            if any(c.isalpha() for c in mark):
                before, mark = [*before, mark], ""
            found += [(line.strip(), "", "") for line in before if any(c.isalpha() for c in line)]
            rest, said = rest[at + len(said) :], mark.lstrip("* ") + said
            if rest.startswith("**"):
                rest = rest[2:]
        found.append((said, claim["verdict"], note))
    if any(c.isalpha() for c in rest):
        found.append((rest.strip(), "", ""))
    return tuple(found)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body{{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;background:#f4f4f2;color:#222}}
main{{display:grid;grid-template-columns:repeat(auto-fill,minmax(24rem,1fr));gap:1rem}}
article{{background:#fff;border:1px solid #ddd;border-radius:6px;padding:.8rem}}
h2{{font-size:.8rem;margin:0 0 .5rem;color:#666;font-weight:500}}
img{{image-rendering:pixelated;width:12rem;border:1px solid #ccc;margin-right:.3rem}} .clip img{{width:5.5rem}}
.right{{color:#1b6e3c}} .wrong{{color:#b3261e}} .wrong b,.unsupported b{{text-decoration:underline;font-weight:600}}
.unsupported{{color:#9a5b00}} .gold{{font-weight:600}}
.rubric,.ask{{color:#555;white-space:pre-line}} p{{margin:.35rem 0}}
</style><h1>{title}</h1><main>{body}</main></html>
"""


def _html(cards: Sequence[_Card], title: str) -> str:
    body = []
    for card in cards:
        clip = ' class="clip"' if len(card.pictures) > 2 else ""
        said = "".join(
            f'<p class="{verdict}"><b>{escape(text)}</b>{f" ({verdict}: {escape(note)})" if note else ""}</p>'
            for text, verdict, note in card.lines
        )
        body.append(
            f"<article><h2>{escape(card.title)}</h2><div{clip}>{''.join(map(_embedded, card.pictures))}</div>"
            f'<p class="ask">{escape(card.instruction)}</p>{said}<p class="gold">{escape(card.gold)}</p>'
            f'<p class="rubric">{escape(card.rubric)}</p></article>'
        )
    return _PAGE.format(title=escape(f"World {title}"), body="".join(body))


def _embedded(path: Path) -> str:
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}">'


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
        picture = Image.open(BytesIO(path.read_bytes())).convert("RGB")
        picture = picture.resize((side, side * picture.height // picture.width), Image.Resampling.NEAREST)
        canvas.paste(picture, ((side + 4) * (i % across), 16 + (side + 4) * (i // across)))
    y = 18 + (side + 4) * -(-len(card.pictures) // across)
    for text, fill, face in [
        *((line, "#555555", font) for line in card.instruction.split("\n")),
        *(
            (f"{text}  ({verdict}: {note})" if note else text, _COLOURS.get(verdict, "#333333"), font)
            for text, verdict, note in card.lines
        ),
        (card.gold, "#000000", font),
        (card.rubric, "#555555", small),
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
