"""Worlds of text alone: their ten aspects, and the days of events that version 4 has."""

from itertools import islice

import pytest
from benchmarks.independent_gold.text import TextReader

from dikast.core.errors import UserError
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.domains.text_only import DAYS, GivenText, days_off
from dikast.worlds.make import make
from dikast.worlds.settings import FORM_ASPECTS, Settings
from dikast.worlds.truths import corrected


def test_texts_have_ten_aspects_that_rubrics_weigh() -> None:
    kinds = DOMAINS["text"].kinds
    assert len({*kinds, *FORM_ASPECTS}) == 10
    weighed = set[str]()
    for sample in make(Settings("text", "all", seed=1, version=4, form=100), 400):
        weighed |= {term.kind for term in sample.spec.terms} | {name for name, _ in sample.spec.weights}
    assert {*kinds, *FORM_ASPECTS} - {"consistency"} <= weighed  # which only the split 'operators' forces
    forced = make(Settings("text", "operators", seed=1, version=4), 8)
    assert any(name == "consistency" for sample in forced for name, _ in sample.spec.weights)


def test_a_day_is_measured_in_days_of_one_week() -> None:
    notes = GivenText(days={"market": "Tuesday"})
    text = DOMAINS["text"]
    off = [text.measure(Claim("day", "day", ("market", day)), notes).metric for day in DAYS]
    assert off == [1, 0, 1, 2, 3, 4, 5]  # Monday is a day from Tuesday, and six from Sunday
    assert days_off("Monday", "Sunday") == 6
    gone = text.measure(Claim("day", "day", ("exam", "Monday")), notes)
    assert (gone.metric, gone.gone) == (9, True)
    assert corrected(Claim("day", "day", ("market", "Friday")), notes) == Claim("day", "day", ("market", "Tuesday"))
    assert corrected(Claim("day", "day", ("exam", "Friday")), notes) is None
    assert "The market is on Tuesday." in text.prompt(notes)


@pytest.mark.parametrize("voice", range(6))
def test_days_are_read_back_in_every_voice(voice: int) -> None:
    reader = TextReader({"days": {"market": "Tuesday"}, "people": {}, "numbers": {}})
    said = DOMAINS["text"].say(Claim("day", "day", ("market", "Friday")), voice)
    assert reader.off(*reader.read(said.lower().rstrip("."))) == ("day", 3)


def test_earlier_versions_know_no_days() -> None:
    """Their items stay byte by byte what they were (`golden.json`), in splits without anything held out, too."""
    for split in ("fresh", "all"):
        for sample in islice(make(Settings("text", split, seed=2), 60), 60):
            assert "days" not in sample.graph.to_json()
            assert all(claim.aspect != "day" for claim in sample.responses[0].claims)
    with pytest.raises(UserError, match="'day' came with version 4"):
        Settings("text", aspects=("day",))
    assert Settings("text", version=4).generator == "worlds/4.5"
    assert (Settings("clips", version=4).generator, Settings("text").generator) == ("worlds/4.5", "worlds/3")
    assert Settings("charts", "domain", version=4).generator == "worlds/4.6"
