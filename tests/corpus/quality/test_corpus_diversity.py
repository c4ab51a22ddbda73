"""Diversity by words: counted by hand, the same in any order, and templates are told from free text."""

import math
import random
from pathlib import Path

import orjson

from dikast.core.item import Item
from dikast.corpus.observations import observed
from dikast.corpus.quality import diversity as measure
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.data_card import card
from dikast.corpus.quality.diversity import Sampled, diversity


def test_distinct_and_shared_runs_by_hand() -> None:
    found = diversity(["a b a b a", "a b a b a c", "x"])
    # 12 words: a b c x are 4 distinct; 9 pairs within texts: ab ba ac; 7 triples: aba bab bac
    assert (found.texts, found.words) == (3, 12)
    assert found.distinct == (4 / 12, 3 / 9, 3 / 7)
    # runs of five: (a b a b a) of the first, (a b a b a) and (b a b a c) of the second; two of three are shared
    assert found.shared == 2 / 3
    assert not found.templated  # 3 of 9 pairs
    assert diversity(["a b a b a", "a b a b a c d"]).templated is False  # 4 of 10
    assert diversity(["a b a b a b a", "a b a b a"]).templated  # 2 of 10
    empty = diversity(["x"])
    assert math.isnan(empty.shared)
    assert not empty.templated
    assert math.isnan(empty.distinct[1])


def test_distinct_is_counted_over_equal_numbers_of_words() -> None:
    few, many = diversity(["one two three"]), diversity([f"one two three {i}" for i in range(measure.WORDS)])
    assert few.words == 3
    assert many.words == measure.WORDS


def test_the_sample_is_of_distinct_texts_and_does_not_depend_on_their_order() -> None:
    texts = [f"text {i % 3000} of many" for i in range(6000)]
    found = []
    for order in (texts, random.Random(1).sample(texts, len(texts))):
        sampled = Sampled()
        for text in order:
            sampled.see(observed(Item.of("Say it.", text, id="x", rubric="helpfulness"), 1))
        assert len({text for _, text in sampled.kept["responses"]}) == measure.SAMPLE
        found.append(sampled.measured())
    assert str(found[0]) == str(found[1])  # NaN is no equal of itself
    assert found[0]["instructions"].texts == 1


def test_a_card_says_which_text_is_templated(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [f"w{i}" for i in range(400)]
    rows = [
        {"instruction": " ".join(rng.choices(words, k=20)), "rubric": "helpfulness",
         "response": f"The {i}. claim of this text is right, and nothing else in it is wrong."}
        for i in range(40)
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    check = check_file(tmp_path / "x.jsonl")
    assert {kind: each.templated for kind, each in check.diversity.items()} == {
        "criteria": False, "instructions": False, "responses": True,
    }  # fmt: skip
    assert check.to_dict()["diversity"]["responses"]["templated"] is True
    told = card(check)
    assert "## Diversity" in told
    assert "| responses | 40 |" in told
    line = next(line for line in told.splitlines() if line.startswith("| responses | 40"))
    assert line.endswith("| yes |")
