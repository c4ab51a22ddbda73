"""Examples of a record: orders, dropped references, permuted levels, grey images; draws are reproducible."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.part import Image, Video
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.prompts.format import load_format
from dikast.training.config import Augment, Config, Data
from dikast.training.data.examples import Asker, Example, ExampleRow

RUBRIC = Rubric("r", "Is it right?", Scale.parse("1-5"), (("1", "no"), ("3", "partly"), ("5", "yes")))
CLAIMS = [{"text": "A cat.", "verdict": "right"}]


def picture(size: tuple[int, int] = (40, 30)) -> Image:
    from PIL import Image as Pillow

    return Image.of(Pillow.new("RGB", size, (250, 10, 10)))


def one(i: int, **fields: Any) -> Item:
    gold = {"label": "4", "claims": CLAIMS, "feedback": "A cat it is."}
    return Item.of("What is it?", "A cat.", id=f"i{i}", rubric=RUBRIC, reference="The cat.", gold=gold, **fields)


def pair(i: int, said: str = "a", **fields: Any) -> Item:
    gold = {"preference": said, "responses": [{"score": 4, "claims": CLAIMS}, {"score": 2, "claims": CLAIMS}]}
    asked = fields.pop("instruction", "What?")
    return Item.of(asked, id=f"p{i}", responses=["A cat.", "A dog."], rubric=RUBRIC, gold=gold, **fields)


def made(items: list[Item], formats: tuple[str, ...], augment: Augment | None = None, **data: Any) -> list[Example]:
    config = Config("out", (Data(items=("x",), formats=formats, **data),), augment=augment or Augment(swap="none"))
    asker = Asker(config)
    return [example for item in items for example in asker.examples(ExampleRow(0, 0, item))]


def text(example: Example) -> str:
    return example.messages[-1].text


def test_an_example_knows_what_else_its_label_could_have_been() -> None:
    (graded,), (compared,) = made([one(0)], ("claims",)), made([pair(0)], ("pairwise",))
    assert (graded.reply.label, graded.others) == ("4", ("1", "2", "3", "5"))
    assert (compared.reply.label, compared.others) == ("A", ("B", "tie"))
    quoted = Rubric("q", "Is it so?", Scale(("bad", 'so-"so"', "good"), (1.0, 2.0, 3.0)))
    for label, spelt in (('so-"so"', ("bad", "good")), ("bad", ('so-\\"so\\"', "good"))):
        item = replace(one(0), rubric=quoted, gold={"label": label, "feedback": "So it is."})
        assert made([item], ("json-absolute",))[0].others == spelt


def test_swapping_shows_each_order_as_often_and_turns_the_verdict() -> None:
    pairs = [pair(i) for i in range(200)]
    assert {each.reply.label for each in made(pairs, ("pairwise",))} == {"A"}
    drawn = made(pairs, ("pairwise",), Augment(swap="random"))
    count = Counter(each.reply.label for each in drawn)
    assert 70 < count["B"] < 130  # 200 fair coins: 100 +- 4 standard deviations of 7.1
    for each in drawn:
        assert (text(each).index("A cat.") < text(each).index("A dog.")) == (each.reply.label == "A")
        assert each.reply.text.startswith("A: A cat.")
    both = made(pairs[:3], ("pairwise",), Augment(swap="both"))
    assert [each.reply.label for each in both] == ["A", "B"] * 3
    assert {each.reply.label for each in made([pair(0, "tie")], ("pairwise",), Augment(swap="both"))} == {"tie"}


def test_references_are_dropped_and_levels_permuted_as_often_as_asked() -> None:
    items = [one(i) for i in range(200)]
    assert all("The cat." in text(each) for each in made(items, ("absolute",)))
    dropped = sum("The cat." not in text(each) for each in made(items, ("absolute",), Augment(drop_reference=0.3)))
    assert 35 < dropped < 85  # 60 +- 4 x 6.5
    decisive = [one(i, meta={"needs": "reference"}) for i in range(20)]  # without it the label would be wrong
    assert all("The cat." in text(each) for each in made(decisive, ("absolute",), Augment(drop_reference=1.0)))
    orders = Counter(
        tuple(sorted(("- 1: no", "- 3: partly", "- 5: yes"), key=text(each).index))
        for each in made(items, ("absolute",), Augment(permute_levels=1.0))
    )
    assert len(orders) == 6
    assert {each.reply.label for each in made(items, ("absolute",), Augment(permute_levels=1.0))} == {"4"}


def test_levels_stand_in_other_words_as_often_as_asked_and_the_reply_stays() -> None:
    items = [one(i, meta={}) for i in range(200)]
    plain = made(items, ("absolute",))
    some = made(items, ("absolute",), Augment(swap="none", other_words=0.3))
    changed = sum(text(a) != text(b) for a, b in zip(plain, some, strict=True))
    assert 10 < changed < 80  # at most 60 + 4 x 6.5, fewer where no word of the drawn levels changed
    assert [each.reply for each in some] == [each.reply for each in plain]
    assert all("A cat." in text(each) for each in some)  # the response is as it was


def test_a_grey_image_has_the_worst_score_and_no_claim_that_is_clear() -> None:
    shown = [one(i, image=picture().source) for i in range(3)]
    examples = made(shown, ("claims",), Augment(blank=1.0))
    assert [each.id.endswith("/blank") for each in examples] == [False, True] * 3
    for true, blank in zip(examples[::2], examples[1::2], strict=True):
        assert (true.reply.label, blank.reply.label) == ("4", "1")
        assert "Finding: unclear" in blank.reply.text
        (image,) = [part for part in blank.messages[0].parts if isinstance(part, Image)]
        loaded = load_image(image)
        assert loaded.size == (40, 30)
        assert np.unique(np.asarray(loaded.picture)).tolist() == [128]
        assert text(blank) == text(true)
    clip = Video((picture(), picture()), (0.0, 1.0))
    (_, blank) = made([pair(0, instruction=["See", clip])], ("pairwise",), Augment(blank=1.0, swap="none"))
    assert blank.reply.label == "tie"
    assert len(made([one(0)], ("claims",), Augment(blank=1.0))) == 1  # nothing shown, nothing to blank
    assert len(made([one(0, image=picture().source, meta={"needs": "text"})], ("claims",), Augment(blank=1.0))) == 1
    low = replace(RUBRIC, scale=replace(RUBRIC.scale, lower_is_better=True))
    (_, blank) = made([replace(shown[0], rubric=low)], ("claims",), Augment(blank=1.0))
    assert blank.reply.label == "5"


def test_formats_of_each_kind_take_what_fits_them() -> None:
    formats = ("absolute", "score-only", "pairwise")
    assert [each.id for each in made([one(0)], formats)] == ["i0/absolute/0", "i0/score-only/0"]
    names = [each.id.split("/", 1)[1] for each in made([pair(0)], formats)]
    assert names == ["absolute/0", "absolute/1", "score-only/0", "score-only/1", "pairwise/0-1"]
    drawn = Counter(each.id.split("/")[1] for each in made([one(i) for i in range(60)], formats, one_format=True))
    assert set(drawn) == {"absolute", "score-only"}
    assert sum(drawn.values()) == 60


def test_draws_depend_on_seed_and_record_not_on_neighbours() -> None:
    augment = Augment(swap="random", permute_levels=0.5)
    whole = made([pair(i) for i in range(20)], ("pairwise",), augment)
    some = made([pair(i) for i in (3, 7)], ("pairwise",), augment)
    assert [each.messages for each in some] == [whole[3].messages, whole[7].messages]


def test_an_example_s_prompt_is_the_judge_s() -> None:
    item, form = one(0, image=picture().source), load_format("absolute")
    (example,) = made([item], ("absolute",))
    assert example.messages == form.ask(item, RUBRIC, (0,))


def test_a_world_s_pairs_and_items_mix(world: Path) -> None:
    """One configuration may have sources of both kinds."""
    from dikast.training.data.examples import rows_of_file

    config = Config(
        "out",
        (
            Data(items=(str(world / "scenes" / "items-00000.jsonl"),), formats=("claims",)),
            Data(items=(str(world / "pairs" / "items-00000.jsonl"),), formats=("choice-only",)),
        ),
    )
    asker = Asker(config)
    found = [
        example
        for source, data in enumerate(config.data)
        for item, _ in rows_of_file(data.items[0], talk=False)
        for example in asker.examples(ExampleRow(source, 0, item))
    ]
    assert Counter(each.id.split("/")[1] for each in found) == {"claims": 12, "choice-only": 12}
