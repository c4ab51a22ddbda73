"""One input of a judge hidden: the picture, the response or the rubric, in rows of items as in lessons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

SIDE = 96  # pixels
HIDDEN = "The answer is not shown."
CRITERION, LEVEL = "Grade the answer.", "as the answer deserves"
SHOWN = ("image", "instruction", "context", "response", "responses", "reference")  # where a row has pictures
Row = dict[str, Any]
Change = Callable[[Row], Row]


def greyed(row: Row) -> Row:
    """With `grey.png`, which lies beside the file, in the place of every picture and frame."""
    grey: Row = _greyed({key: row[key] for key in SHOWN if key in row})
    return row | grey


def _greyed(value: Any, key: str = "") -> Any:
    """The value of a row at this key, in which every picture and frame is the grey one."""
    if key == "image":
        return "grey.png"
    if isinstance(value, list):
        return ["grey.png" if key == "frames" else _greyed(each) for each in value]
    return {key: _greyed(each, key) for key, each in value.items()} if isinstance(value, dict) else value


def unanswered(row: Row) -> Row:
    """With one sentence in the place of every response."""
    hidden = {"responses": [HIDDEN for _ in row["responses"]]} if "responses" in row else {"response": HIDDEN}
    return row | hidden


def unruled(row: Row) -> Row:
    """With one rubric, whose levels say nothing, in the place of every rubric: its scale alone is as it was."""
    levels = dict.fromkeys(row["rubric"]["levels"], LEVEL)
    return row | {"rubric": row["rubric"] | {"name": "any", "criterion": CRITERION, "levels": levels}}


HIDE: dict[str, Change] = {"picture": greyed, "response": unanswered, "rubric": unruled}


def write_hidden(file: Path, change: Change, to: Path) -> None:
    """The rows of a file, each changed; beside them the grey picture if it is shown."""
    rows = map(json.loads, file.read_text("utf-8").splitlines())
    to.write_text("".join(json.dumps(change(row)) + "\n" for row in rows), "utf-8")
    if change is greyed:
        Image.new("RGB", (SIDE, SIDE), (128, 128, 128)).save(to.parent / "grey.png")
