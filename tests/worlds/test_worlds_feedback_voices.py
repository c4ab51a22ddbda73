import re

import pytest

from dikast.core.part import text_of
from dikast.worlds.feedback_voices import VOICES, Point, feedback_in
from dikast.worlds.make import make
from dikast.worlds.replies import claims_of_sentences, sentences_of
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson

POINTS = (
    Point("The star is red.", "right", "", 0),
    Point("The ring is large.", "wrong", "the ring is small", 2),
    Point("There are two hearts.", "unsupported", "no heart is there", 0),
    Point("off-topic sentences", "", "1 found", 1),
)


@pytest.mark.parametrize("voice", VOICES)
def test_every_voice_says_all_and_nothing_else(voice: str) -> None:
    text = feedback_in(voice, POINTS, "C")
    rest = text
    for each in POINTS:
        assert rest.count(each.said) == 1
        rest = rest.replace(each.said, "")
        if each.truth:
            assert rest.count(each.truth) == 1
            rest = rest.replace(each.truth, "")
    # What is left of numbers are the two costs and their sum, wherever the sum stands.
    assert sorted(re.findall(r"\d+ points?", rest)) == ["1 point", "2 points", "3 points"]
    assert re.search(r"\bC\b", rest)
    assert "nothing" in rest.lower() or "not charged" in rest


def test_by_hand() -> None:
    assert feedback_in("letter", POINTS[:2], "2") == (
        'You write "The star is red.", and so it is. You write "The ring is large.", but the ring is small; I take off'
        " 2 points for this. That makes 2 points, and my grade is 2."
    )


def drawn(domain: str, responses: int = 1) -> list[Sample]:
    return list(make(Settings(domain, "fresh", 5, responses, version=4), 12))


def test_items_of_version_4_have_feedback_in_all_voices_that_is_gold() -> None:
    assert len(VOICES) == 10
    met = set()
    for sample in [*drawn("scenes"), *drawn("text"), *drawn("clips"), *drawn("plates", 2)]:
        gold = sample.gold()
        for which, one in enumerate(gold.get("responses", [gold])):
            met.add(Stream("feedback", sample.id, which).pick(VOICES))
            assert f"{one['penalty']} point" in one["feedback"]
            assert all(claim["text"] in one["feedback"] for claim in one["claims"])
            assert all(claim["correction"] in one["feedback"] for claim in one["claims"] if "correction" in claim)
    assert met == set(VOICES)


def test_references_of_lessons_are_true_statement_by_statement() -> None:
    told = 0
    for sample in drawn("scenes"):
        reference = lesson(sample, reference=True).reference
        if reference is not None:
            for sentence in sentences_of(text_of(reference)):
                claim = claims_of_sentences()[sentence.casefold()]  # read back from its words
                assert sample.domain.measure(claim, sample.graph).metric == 0, sentence
                told += 1
    assert told > 40
