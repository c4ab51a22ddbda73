"""Claims are marked in the response, which stays the text that it was."""

import random

from dikast.surface.report.claim_places import kind_of, stretches
from dikast.testing.hostile import HOSTILE


def test_claims_are_found_at_their_first_free_place() -> None:
    said = [("it is RED", "right"), ("It is red", "wrong"), ("a cat", "unclear"), ("not there", "wrong"), ("", "wrong")]
    claims = [{"text": text, "verdict": verdict} for text, verdict in said]
    found = stretches("It is  red. It is red, a cat.", claims)
    assert [part.text for part in found] == ["It is  red", ". ", "It is red", ", ", "a cat", "."]
    assert [part.kind for part in found] == ["holds", "", "fails", "", "unsure", ""]
    assert [part.sign for part in found] == ["✓", "", "✗", "", "?", ""]
    assert stretches("", claims) == []
    assert kind_of("Supported") == "holds"


def test_the_text_stays_whole() -> None:
    draw = random.Random(3)
    for text in HOSTILE:
        cuts = sorted(draw.choices(range(len(text) + 1), k=4))
        claims = [
            {"text": text[cuts[0] : cuts[1]], "verdict": "wrong"},
            {"text": text[cuts[2] : cuts[3]], "verdict": "x"},
        ]
        assert "".join(part.text for part in stretches(text, claims)) == text
