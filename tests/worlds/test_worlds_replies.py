"""Replies about scenes read back: the gold of the worlds themselves, and what cannot be read."""

import pytest

from dikast.worlds.make import make
from dikast.worlds.replies import claims_of_sentences, reply_gold
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings

ASPECTS = ("colour", "shape", "size", "completeness")


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    made = make(Settings(domain="scenes", seed=7, aspects=ASPECTS, scales=("1-5",), edits=False), 60)
    return [sample for sample in made if not sample.spec.entries]


def test_the_gold_of_a_response_is_read_back_from_its_text(samples: list[Sample]) -> None:
    for sample in samples:
        found, gold = reply_gold(sample.responses[0].text, sample.meta()), sample.gold()
        assert found is not None
        assert (found.score, found.penalty, found.unreadable) == (gold["score"], gold["penalty"], 0)
        assert found.wrong == sum(claim["verdict"] != "right" for claim in gold["claims"])
        assert 0 <= found.goodness <= 1


def test_what_cannot_be_read_costs_as_much_as_the_worst_claim(samples: list[Sample]) -> None:
    sample = samples[0]
    said, heaviest = sample.responses[0].text, max(weight for _, weight in sample.spec.weights)
    plain, more = reply_gold(said, sample.meta()), reply_gold(f"{said} Moreover, it sings.", sample.meta())
    assert plain is not None
    assert more is not None
    assert (more.unreadable, more.penalty - plain.penalty) == (1, heaviest)
    twice = reply_gold(f"{said}\n{said}", sample.meta())
    assert twice is not None
    assert twice.penalty == plain.penalty  # the same claim again changes nothing
    silent = reply_gold("", sample.meta())
    assert silent is not None
    assert (silent.sentences, silent.claims) == (0, 0)


def test_other_worlds_and_rubrics_have_no_gold_of_this_kind(samples: list[Sample]) -> None:
    meta = samples[0].meta()
    assert reply_gold("x", {}) is None
    assert reply_gold("x", {**meta, "domain": "charts"}) is None
    assert reply_gold("x", {**meta, "spec": {**meta["spec"], "entries": [{"kind": "colour"}]}}) is None
    assert reply_gold("x", {**meta, "spec": {**meta["spec"], "weights": {"concision": 1}}}) is None


def test_no_sentence_makes_two_claims() -> None:
    known = claims_of_sentences()
    assert len(known) > 20_000
    assert known["the star is red."].args == ("star", "red")
    assert known["there are two stars."].kind == "count"
