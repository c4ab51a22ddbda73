"""`--without rubric|reference|media`: what is left out of every question."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

import dikast
from dikast.core.errors import UserError
from dikast.surface.cli import app
from scripted import Scripted

OWN = {
    "instruction": "Name a river.", "response": "The Oder.", "reference": "The Elbe.",
    "rubric": {"name": "truth", "criterion": "Is it a river?", "scale": "1-5", "levels": {"1": "No.", "5": "Yes."}},
}  # fmt: skip
BARE = {"instruction": "Name a lake.", "response": "Como.", "reference": "Garda."}


@pytest.mark.parametrize("without", [(), ("rubric",), ("reference",), ("rubric", "reference")])
def test_parts_are_left_out_of_the_question(without: tuple[str, ...], tmp_path: Path) -> None:
    judge = Scripted(lambda request: "Fine.\nVerdict: 4")
    run = dikast.grade([OWN, BARE], judge, "Is it a lake?", out=tmp_path / "run", without=without)
    assert [verdict.score for verdict in run] == [4, 4]
    for request, criterion, reference in zip(
        judge.requests, ("Is it a river?", "Is it a lake?"), ("The Elbe.", "Garda."), strict=True
    ):
        text = request.messages[-1].text
        assert (criterion in text) == ("rubric" not in without)
        assert ("How good is the response?" in text) == ("rubric" in without)
        assert (reference in text) == ("reference" not in without)
        assert "1, 2, 3, 4, 5" in text


def test_another_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(orjson.dumps(OWN))
    args = ["grade", str(tmp_path / "items.jsonl"), "--judge", "mock:constant", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*args, "--without", "gold"])
    assert isinstance(done.exception, UserError)
    assert "what can be left out is rubric, reference or media" in str(done.exception)


def test_media_are_left_out_wherever_they_stand(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 40), "red").save(tmp_path / "a.png")
    picture = {"type": "image", "image": str(tmp_path / "a.png")}
    item = {
        "instruction": ["What is it?", picture],
        "response": ["Red, as here:", picture],
        "context": [picture, "Look."],
    }
    for without in ((), ("media",)):
        judge = Scripted(lambda request: "Fine.\nVerdict: 4")
        dikast.grade([item], judge, "Is it right?", out=tmp_path / "_".join(("run", *without)), without=without)
        message = judge.requests[0].messages[-1]
        assert len(message.images) == (0 if without else 3)
        assert all(words in message.text for words in ("What is it?", "Red, as here:", "Look."))
    alone = {"instruction": "Draw it.", "response": [picture]}
    with pytest.raises(UserError, match="a response of pictures alone"):
        dikast.grade([alone], judge, "Is it right?", out=tmp_path / "alone", without=("media",))
