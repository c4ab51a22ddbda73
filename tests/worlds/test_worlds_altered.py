"""Samples as lessons change them."""

import pytest

from dikast.core.part import text_of
from dikast.worlds.altered import EMPTY, opened, padded
from dikast.worlds.make import make
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson


@pytest.mark.parametrize(("domain", "responses"), [("scenes", 1), ("text", 1), ("clips", 1), ("scenes", 2)])
def test_padding_adds_sentences_and_changes_no_lesson(domain: str, responses: int) -> None:
    added, ends = set(), set()
    for sample in make(Settings(domain=domain, seed=5, responses=responses), 60):
        more = padded(sample, Stream("test", sample.index))
        assert lesson(more).gold["feedback"] == lesson(sample).gold["feedback"]
        assert [each.penalty for each in more.graded] == [each.penalty for each in sample.graded]
        for before, after in zip(sample.responses, more.responses, strict=True):
            new = [sentence for sentence in after.sentences if sentence not in before.sentences]
            assert len({sentence.text for sentence in new}) == len(new)
            assert [each for each in after.sentences if each not in new] == list(before.sentences)
            if before.limit:
                assert after == before
            else:
                added.add(len(new))
                ends.add(after.sentences[-len(new) :] == tuple(new))
    assert added == {1, 2, 3, 4}
    assert ends == {True, False}


@pytest.mark.parametrize(("domain", "version"), [("scenes", 4), ("text", 3)])
def test_an_empty_opening_costs_nothing(domain: str, version: int) -> None:
    limited = 0
    for sample in make(Settings(domain=domain, seed=5, version=version), 60):
        more = opened(sample, Stream("test", sample.index))
        assert lesson(more, quote=True).gold == lesson(sample, quote=True).gold
        if sample.responses[0].limit:
            assert more == sample
            limited += 1
        else:
            first, *others = more.responses[0].sentences
            assert (first.text in EMPTY, tuple(others)) == (True, sample.responses[0].sentences)
            assert first.text.rstrip(".") in text_of(lesson(more).response)
    assert limited < 60
