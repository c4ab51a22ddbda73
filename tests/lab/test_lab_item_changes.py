"""What experiments change in items."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.lab.item_changes import ATTACKS, FILLER, Change, changed
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson
from dikast.worlds.write import write_world


def scale_of(item: Item) -> Scale:
    assert isinstance(item.rubric, Rubric)
    return item.rubric.scale


ITEMS = [lesson(sample) for sample in make(Settings(domain="text", split="train", seed=3), 120)]


def test_nothing_changes_by_itself_and_draws_are_of_the_item() -> None:
    assert changed(ITEMS, Change(), 0) == ITEMS
    once = changed(ITEMS, Change(noise=0.5), 0)
    assert once == changed(ITEMS, Change(noise=0.5), 0) != changed(ITEMS, Change(noise=0.5), 1)
    assert changed(ITEMS[60:], Change(noise=0.5), 0) == once[60:]


def test_references_say_what_they_should() -> None:
    for item, true, wrong in zip(
        ITEMS, changed(ITEMS, Change(reference="true"), 0), changed(ITEMS, Change(reference="wrong"), 0), strict=True
    ):
        assert true.reference is not None
        assert wrong.reference is not None
        assert text_of(wrong.reference) == " ".join(claim["text"] for claim in item.gold["claims"])
        false = [claim for claim in item.gold["claims"] if claim["verdict"] != "right"]
        assert (text_of(true.reference) == text_of(wrong.reference)) == (not false)
        assert all(claim["correction"].lower() in text_of(true.reference).lower() for claim in false)
    assert all(item.reference is None for item in changed(ITEMS, Change(reference="none"), 0))


def test_words_change_places_everywhere() -> None:
    names = {"Ann": "Bob", "Bob": "Ann", "Cleo": "Yasmin"}
    told = 0
    for before, after in zip(ITEMS, changed(ITEMS, Change(words=names), 0), strict=True):
        notes = before.instruction[0].content, after.instruction[0].content
        for one, other in ((before.response, after.response), notes):
            swapped = [names.get(word, word) for word in re.findall(r"\w+|\W", text_of(one))]
            assert re.findall(r"\w+|\W", text_of(other)) == swapped
        assert isinstance(before.rubric, Rubric)
        assert isinstance(after.rubric, Rubric)
        assert ("Ann" in before.rubric.criterion) == ("Bob" in after.rubric.criterion)
        assert after.gold == before.gold
        told += before.response != after.response
    assert told > 20
    exchange = Change(words={"Ann": "Bob", "Bob": "Ann"})
    assert changed(changed(ITEMS, exchange, 0), exchange, 0) == ITEMS


def test_criteria_in_other_words_keep_what_a_mistake_costs() -> None:
    own = changed(ITEMS, Change(criterion="{own}"), 0)
    prose = changed(ITEMS, Change(criterion="A mistake takes {cost} off. {{x}}"), 0)
    assert 10 < len(own) < len(ITEMS)
    assert [item.id for item in own] == [item.id for item in prose]
    before = {item.id: item for item in ITEMS}
    for kept, told in zip(own, prose, strict=True):
        assert kept == before[kept.id]
        assert isinstance(told.rubric, Rubric)
        assert isinstance(kept.rubric, Rubric)
        [cost] = {*kept.meta["spec"]["weights"].values()}
        assert told.rubric.criterion == f"A mistake takes {cost} off. {{{{x}}}}"
        assert str(cost) in kept.rubric.criterion
        assert told.rubric.levels == kept.rubric.levels
    with pytest.raises(UserError, match="criterion: no item is left"):
        changed([replace(ITEMS[0], meta={})], Change(criterion="{own}"), 0)


def test_gold_of_a_poor_teacher() -> None:
    noisy = changed(ITEMS, Change(noise=0.3), 0)
    wrong = sum(before.gold["label"] != after.gold["label"] for before, after in zip(ITEMS, noisy, strict=True))
    assert 20 <= wrong <= 55  # 36 of 120 are expected; the standard deviation is 5
    assert all(item.gold["score"] == scale_of(item).value(item.gold["label"]) for item in noisy)
    biased = changed(ITEMS, Change(bias=1), 0)
    assert all(after.gold["score"] >= before.gold["score"] for before, after in zip(ITEMS, biased, strict=True))


def test_length_follows_gold_as_much_as_asked() -> None:
    import numpy as np

    def correlation(share: float) -> float:
        items = changed(ITEMS, Change(lengthen=share), 0)
        added = [text_of(item.response).count(FILLER) for item in items]
        before = [text_of(item.response).count(FILLER) for item in ITEMS]
        good = [scale_of(item).goodness(item.gold["score"]) for item in items]
        return float(np.corrcoef(np.subtract(added, before), good)[0, 1])

    assert correlation(1.0) > 0.98
    assert 0.2 < correlation(0.5) < 0.8


def test_leaks_attacks_feedback_and_rubrics() -> None:
    leaked = changed(ITEMS, Change(leak=1), 0)
    for item in leaked:
        assert text_of(item.instruction[0].content).endswith(f"Verdict: {item.gold['label']}")
    attacked = changed(ITEMS, Change(attack=1, attacks=("praise",)), 0)
    assert all(text_of(item.response).endswith(ATTACKS["praise"]) for item in attacked)
    assert all("feedback" not in item.gold for item in changed(ITEMS, Change(feedback="none"), 0))
    shuffled = changed(ITEMS, Change(feedback="shuffled"), 0)
    assert [item.gold["feedback"] for item in shuffled[:-1]] == [item.gold["feedback"] for item in ITEMS[1:]]
    few = changed(ITEMS, Change(rubrics=5), 0)
    assert len({item.rubric for item in few}) == 5
    assert len(few) >= 5
    with pytest.raises(UserError, match="no family 'flattery'"):
        changed(ITEMS, Change(attack=1, attacks=("flattery",)), 0)


def test_praise_finds_nothing_wrong() -> None:
    for before, after in zip(ITEMS, changed(ITEMS, Change(feedback="praise"), 0), strict=True):
        told = after.gold["feedback"].splitlines()
        assert len(told) == len(before.gold["feedback"].splitlines())
        assert {line for line in told if line.startswith("Finding: ")} == {"Finding: right"}
        assert told[-1] == "Lost: 0"
        assert not any(line.endswith(" in all") for line in told)
        assert {**after.gold, "feedback": ""} == {**before.gold, "feedback": ""}  # gold is what it was
    bare = replace(ITEMS[0], gold={"score": 1.0, "label": "1"})
    with pytest.raises(UserError, match="has no gold feedback to change"):
        changed([bare], Change(feedback="praise"), 0)


def test_prose_says_what_the_gold_says() -> None:
    plain = Settings(domain="text", split="language", seed=3, form=0, aspects=("fact",))
    items = [lesson(sample) for sample in make(plain, 40)]
    for before, after in zip(items, changed(items, Change(feedback="prose"), 0), strict=True):
        told, claims = after.gold["feedback"], before.gold["claims"]
        assert all(f'"{claim["text"]}" is ' in told for claim in claims)
        assert told.count(" is right.") == sum(claim["verdict"] == "right" for claim in claims)
        assert f"In all the answer loses {before.gold['penalty']} point" in told
        assert told.endswith(f"the grade is {before.gold['label']}.")
        assert {**after.gold, "feedback": ""} == {**before.gold, "feedback": ""}
    formal = [lesson(sample) for sample in make(Settings(domain="text", seed=3, form=100), 40)]
    with pytest.raises(UserError, match=r"does not follow from its claims alone.*\(form: 0"):
        changed(formal, Change(feedback="prose"), 0)


def test_a_share_of_the_items_is_shown_grey_pictures(tmp_path: Path) -> None:
    file = write_world(Settings(domain="scenes", seed=3), 60, tmp_path / "world").files[0]
    items = list(read_items(str(file)))
    after = changed(items, Change(blank=0.5), 0)
    grey = 0
    for one, other in zip(items, after, strict=True):
        assert replace(other, instruction=one.instruction) == one  # gold, too, is what it was
        (seen,), (shown,) = one.images, other.images
        if shown != seen:
            grey += 1
            assert load_image(shown).size == load_image(seen).size
            assert load_image(shown).picture.getcolors() == [(96 * 96, (128, 128, 128))]
    assert 18 <= grey <= 42  # 30 are expected; the standard deviation is 3.9
