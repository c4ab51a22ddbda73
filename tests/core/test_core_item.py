import io
import pickle
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from, item_to
from dikast.core.part import Image, Text, Turn, Video, images_of, text_of
from dikast.core.rubric import Rubric, load_rubric
from dikast.judging.judge import Judge


def test_the_plain_item() -> None:
    item = item_from(
        {"id": "a", "instruction": "Why?", "response": "Because.", "gold": 4, "source": "x"}, path="f", line=3
    )
    assert item.instruction == (Turn("user", (Text("Why?"),)),)
    assert item.response == (Text("Because."),)
    assert (item.gold, item.meta, item.origin) == (4, {"source": "x"}, "f:3")
    assert item == item_from({"id": "a", "instruction": "Why?", "response": "Because.", "gold": 4, "source": "x"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": 7}, "7"),
        ({"id": "x"}, "x"),
        ({}, "12"),  # no id: its line
    ],
)
def test_ids(given: dict[str, Any], expected: str) -> None:
    assert item_from(given, line=12).id == expected


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ([1], "", "a record is an object .* got a list"),
        (None, "", "got nothing"),
        ("text", "", "got text"),
        ({"id": 1.5}, "id", "expected text or a whole number, got a number"),
        ({"id": True}, "id", "got true/false"),
        ({"id": ""}, "id", "expected text or a whole number, got empty text"),
        ({"id": {"a": 1}}, "id", "got an object"),
        ({"respnse": "x"}, "respnse", "did you mean 'response'.*under 'meta'"),
        ({"Instruction": "x"}, "Instruction", "did you mean 'instruction'"),
        ({"refernce": "x"}, "refernce", "did you mean 'reference'"),
        ({"response": 5}, "response", "expected text or a list of parts, got a number"),
        ({"response": True}, "response", "got true/false"),
        ({"response": ["a", 5]}, "response[1]", "got a number"),
        ({"response": "a", "responses": ["b"]}, "responses", "not both"),
        ({"responses": "a"}, "responses", "expected a list of responses, got text"),
        ({"responses": ["a", 5]}, "responses[1]", "got a number"),
        ({"instruction": 5}, "instruction", "got a number"),
        ({"instruction": [{"role": "robot", "content": "x"}]}, "instruction[0].role", "'robot' is not a role"),
        ({"instruction": [{"role": "user"}]}, "instruction[0]", "an object with 'role' and 'content'"),
        ({"instruction": [{"role": "user", "content": "x"}, "y"]}, "instruction[1]", "an object with 'role'"),
        ({"instruction": [{"role": "user", "content": None}]}, "instruction[0].content", "expected text"),
        ({"instruction": [{"type": "sound", "sound": "x"}]}, "instruction[0]", "unknown part 'sound'"),
        ({"instruction": [{"type": "text"}]}, "instruction[0]", "unknown part 'text'"),
        ({"image": 5}, "image", "expected an image: a path"),
        ({"image": ""}, "image", "expected an image: a path"),
        ({"images": ["a.png", None]}, "images[1]", "expected an image: a path"),
        ({"response": [{"type": "video", "frames": []}]}, "response[0]", "its sampled frames"),
        ({"response": [{"type": "video", "frames": [3]}]}, "response[0].frames[0]", "expected an image"),
        ({"response": [{"type": "video", "frames": ["a"], "seconds": [1, 2]}]}, "response[0]", "each of the 1 frames"),
        ({"reference": 3}, "reference", "got a number"),
        ({"context": 3}, "context", "got a number"),
        ({"meta": 3}, "meta", "expected an object, got a number"),
        ({"rubric": 3}, "rubric", "expected a rubric"),
        ({"rubric": "no-such"}, "rubric", "no such rubric file"),
        ({"rubric": {"criterion": "c?", "levels": {"9": "x"}, "scale": "1-5"}}, "rubric", "not on the scale"),
        ({5: "x"}, "", "keys must be text"),
    ],
)  # fmt: skip
def test_mistakes_name_file_line_and_field(value: Any, field: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        item_from({"id": "a", **value} if isinstance(value, dict) else value, path="f.jsonl", line=3)
    assert (caught.value.path, caught.value.line, caught.value.field) == ("f.jsonl", 3, field)
    assert str(caught.value).startswith(f"f.jsonl:3: field {field!r}: " if field else "f.jsonl:3: ")
    assert str(caught.value).count("f.jsonl") == 1


def test_unknown_keys_are_kept() -> None:
    item = item_from({"id": "a", "source": "web", "split": 3, "meta": {"own": 1, "split": 4}})
    assert item.meta == {"source": "web", "own": 1, "split": 4}  # what stands under meta is meant


def test_keys_beside_the_known_one_are_no_slips() -> None:
    value = {
        "response": "x",
        "response_time": 3,
        "images": ["a.png"],
        "image_id": 5,
        "instruction": "Q",
        "instruction_id": 1,
    }
    assert item_from({"id": "a", **value}).meta == {"response_time": 3, "image_id": 5, "instruction_id": 1}


def test_parts_anywhere_and_an_image_as_the_response() -> None:
    item = item_from(
        {
            "id": "a",
            "instruction": ["Draw", {"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
            "response": {"type": "image", "image": "out.png"},
            "reference": [{"image": "ref.png"}, {"text": "like so"}],
            "context": [{"type": "video", "frames": ["f0.png", "f1.png"], "seconds": [0, 1.5]}],
        },
        root="data",
    )
    assert item.instruction[0].content == (Text("Draw"), Image("https://x/y.png"))
    assert item.response == (Image("out.png", "data"),)
    assert item.reference == (Image("ref.png", "data"), Text("like so"))
    assert item.context == (Video((Image("f0.png", "data"), Image("f1.png", "data")), (0.0, 1.5)),)
    assert [image.source for image in item.images] == ["https://x/y.png", "f0.png", "f1.png", "ref.png", "out.png"]
    assert len(images_of(item.context or ())) == 2
    assert text_of(item.reference or ()) == "like so"
    assert item_from(item_to(item), root="data") == item


def test_media_beside_records_that_an_address_names_are_addresses() -> None:
    def shown(source: str, root: str) -> tuple[Image, ...]:
        return tuple(item_from({"id": "a", "image": source, "response": "r"}, root=root).images)

    assert shown("./red/a b.png", "s3://bucket/june") == (Image("s3://bucket/june/red/a b.png"),)
    assert shown("red/a b.png", "https://host/june") == (Image("https://host/june/red/a%20b.png"),)
    assert shown("/here.png", "s3://bucket/june") == (Image("/here.png", "s3://bucket/june"),)
    for address in ("gs://other/a.png", "https://host/a.png", "data:image/png;base64,AA=="):
        assert shown(address, "s3://bucket/june") == shown(address, "data") == (Image(address),)
    clip = item_from({"id": "a", "instruction": [{"video": "c.mp4"}], "response": "r"}, root="az://box/x").videos
    assert [(each.source, each.root) for each in clip] == [("az://box/x/c.mp4", "")]


def test_images_go_to_the_head_of_the_last_user_turn() -> None:
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "What is this?"},
        {"role": "assistant", "content": "Let me see."},
    ]
    item = item_from({"id": "a", "instruction": talk, "image": "a.png", "images": ["b.png"]})
    assert item.instruction[3].content == (Image("a.png"), Image("b.png"), Text("What is this?"))
    assert [turn.role for turn in item.instruction] == [turn["role"] for turn in talk]
    assert item_from(item_to(item)) == item
    assert item_from({"id": "a", "image": "a.png"}).instruction == (Turn("user", (Image("a.png"),)),)
    system = item_from({"id": "a", "instruction": talk[:1], "image": "a.png"})
    assert [turn.role for turn in system.instruction] == ["system", "user"]


def test_items_from_python(tmp_path: Path) -> None:
    picture = PIL.Image.new("RGB", (32, 32), "red")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(buffer.getvalue())
    for image in (picture, buffer.getvalue(), path, str(path)):
        item = Item.of("What is this?", "A square.", image=image)
        assert isinstance(item.instruction[0].content[0], Image)
        assert Item.of("Draw", image).response == (item.instruction[0].content[0],) or isinstance(image, str)
    assert Item.of("Q", responses=["a", "b"], id="x").responses == ((Text("a"),), (Text("b"),))
    assert Item.of("Q").id == "item"
    assert Item.of("6 times 7?", 42) == Item.of("6 times 7?", "42")
    assert Item.of("6 times 7?", responses=[42, 1.5]) == Item.of("6 times 7?", responses=["42", "1.5"])
    assert Item.of("Q", 10**400) == Item.of("Q", str(10**400))  # larger than any float
    assert Item.of("Q", source="album").meta == {"source": "album"}
    known = {"label": 3, "question": "the task's", "answer": "the key"}
    assert Item.of("Q", response="4", **known).meta == Item.of("Q", responses=["4"], **known).meta == known
    with pytest.raises(DataError, match="did you mean 'response'"):
        Item.of("Q", respons="a")
    for name, field in (("question", "instruction"), ("answer", "response")):
        with pytest.raises(UserError, match=f"unknown keyword '{name}': did you mean '{field}'"):
            Item.of(**{name: "a"})
    with pytest.raises(DataError, match="nan"):
        Item.of("Q", float("nan"))


def test_one_response_where_one_is_due() -> None:
    assert item_from({"id": "a", "response": ""}).response == (Text(""),)  # empty is an answer; a format refuses it
    for responses in ([], ["a", "b"]):
        with pytest.raises(DataError, match=f"item 'a' has {len(responses)} responses where one is needed"):
            _ = item_from({"id": "a", "responses": responses}).response


def test_equal_items_hash_alike() -> None:
    value = {"id": "a", "instruction": "Q", "response": "A", "gold": [1], "meta": {"x": {}}, "rubric": "helpfulness"}
    assert hash(item_from(value)) == hash(item_from(dict(reversed(value.items()))))
    assert item_from(value) == item_from(value, path="elsewhere", line=9)
    assert item_from(value) != item_from({**value, "gold": [2]})


def test_rubrics_of_items(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("criterion: Is it kind?\n")
    own = item_from({"id": "a", "rubric": "own.yaml"}, root=str(tmp_path)).rubric  # beside the record's file
    assert isinstance(own, Rubric)
    assert own.criterion == "Is it kind?"
    assert item_from({"id": "a", "rubric": "honesty"}).rubric == load_rubric("honesty")
    inline = item_from({"id": "a", "rubric": {"criterion": "Is it kind?", "name": "own"}})
    assert inline.rubric == own
    sheet = item_from({"id": "a", "rubric": {"criteria": [own.to_dict()]}})
    assert item_from(item_to(sheet)) == sheet
    assert item_from(item_to(inline)) == inline


@pytest.mark.parametrize(
    "value",
    [
        {"instruction": [{"role": "user", "content": ""}]},
        {"instruction": [{"type": "text", "text": ""}]},
        {"instruction": []},
        {"reference": [{"type": "text", "text": ""}]},
        {"context": []},
        {"responses": []},
        {"responses": [[], ""]},
        {"instruction": [{"role": "assistant", "content": "x"}]},
    ],
)
def test_empty_contents_come_back(value: dict[str, Any]) -> None:
    item = item_from({"id": "a", **value})
    assert item_from(item_to(item)) == item


def test_an_item_prints_in_one_line() -> None:
    item = Item.of("Why is the sky blue,\nand why is it red at dawn?", "Because.", id="sky")
    assert repr(item) == "<Item 'sky': 1 response to 'Why is the sky blue, and why is it red at dawn?'>"
    assert len(repr(Item.of("Why? " * 100, responses=["a", "b"]))) < 120


@pytest.mark.parametrize("fields", [{"response": ["a", "b"]}, {"responses": ["a", ["b", "c"]]}])
def test_a_list_of_texts_is_asked_about_as_in_files(fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"responses=\[...\] if each is one, \[Text\(...\), ...\] if they are parts"):
        Item.of("q", **fields)
    with pytest.raises(UserError, match="a list of texts stands where one response is needed"):
        Judge("mock:constant", "helpfulness").grade(instruction="q", **fields)
    assert text_of(Item.of("q", [Text("a"), Text("b")]).response) == "a\nb"
    assert len(Item.of("q", responses=["a", "b"]).responses) == 2


def test_a_pickled_item_is_the_same() -> None:
    turns = [{"role": "system", "content": "S"}, {"role": "user", "content": ["x", "y"]}]
    said = ["", "c", [Text("p"), Text("q")]]
    several = Item.of(turns, responses=said, image="a.png", rubric="helpfulness", reference="r", gold=[1, 2, 3])
    for item in (Item.of("Q?", "A.", gold=3, model="m"), several, Item("x", (Turn("user", ()),), ((),), origin="f:1")):
        copy = pickle.loads(pickle.dumps(item))
        assert (copy, copy.gold, copy.meta, copy.origin) == (item, item.gold, item.meta, item.origin)
