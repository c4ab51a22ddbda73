import pytest

from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing, measure, missed
from dikast.worlds.domains.text_only import percent_off
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import Entry, Spec, cost, extra_cost, label_of, level_of

SCENE = Scene(4, [Thing("star", "red", "small", "plain", 0, 0), Thing("circle", "blue", "large", "dotted", 2, 3)])
SPEC = Spec((("colour", 2), ("completeness", 1), ("count", 1)), True, (0, 2, 4, 6), "1-5", False, (0, 0, 0, 0))


def test_gold_by_hand() -> None:
    # "The star is yellow": the star is red, two steps off on the wheel, far off, weight 2 -> 2 * 2 = 4 points.
    claim = Claim("colour", "colour", ("star", "yellow"))
    assert measure(claim, SCENE).metric == 2
    assert cost(claim, 2, SPEC) == 4
    # The circle is not named: one thing left out, weight 1 -> 1 point. 5 points exceed the cuts 0, 2 and 4: level 3.
    assert missed([claim], SCENE) == 1
    assert extra_cost({"completeness": 1}, SPEC) == 1
    assert level_of(5, SPEC.cuts) == 3
    assert label_of(3, SPEC) == "2"
    # Where low is good, level 3 of 0..4 is the fourth label from below.
    lower = Spec(SPEC.weights, True, SPEC.cuts, "1-5", True, SPEC.wording)
    assert label_of(3, lower) == "4"


def test_only_listed_claims_count_in_a_checklist() -> None:
    entries = (Entry("colour", ("star",), "the colour of the star"),)
    spec = Spec((("colour", 3),), True, (0,), "pass/fail", False, (0, 0, 0, 0), entries)
    assert cost(Claim("colour", "colour", ("star", "teal")), 4, spec) == 1
    assert cost(Claim("colour", "colour", ("circle", "red")), 3, spec) == 0


def test_points() -> None:
    assert points(ASPECTS["count"], 0, True) == 0
    assert points(ASPECTS["count"], 1, True) == 1
    assert points(ASPECTS["count"], 2, True) == 2
    assert points(ASPECTS["count"], 2, False) == 1
    assert points(ASPECTS["completeness"], 9, False) == 3


@pytest.mark.parametrize(
    ("stated", "true", "due"),
    [(7, 7, 0), (8, 7, 14), (1001, 1000, 1), (10, 20, 50), (0, 0, 0), (3, 0, 300), (-8, -10, 20)],
)
def test_percent_off_by_hand(stated: int, true: int, due: int) -> None:
    assert percent_off(stated, true) == due


def test_measures_by_hand() -> None:
    def off(kind: str, *args: str | int) -> int:
        return measure(Claim(kind, kind, args), SCENE).metric

    assert off("exists", "star", "red") == 0
    assert off("exists", "star", "blue") == 1
    assert off("exists", "ring", "blue") == 2
    assert off("size", "star", "large") == 2
    assert off("texture", "circle", "plain") == 1
    assert off("shape", "blue", "circle") == 0
    assert off("position", "star", "top left") == 0
    assert off("position", "circle", "top left") == 3  # bottom, one column in: two down, one across
    assert off("relation", "star", "circle", "left of") == 0
    assert off("relation", "star", "circle", "below") == 4  # three above: four cells to go to be below
    assert off("count", "star", 3) == 2
    assert off("binding", "star", "circle", "blue", "red") == 2
    assert off("more", "star", "circle") == 1
    assert off("larger", "star", "circle") == 3
    assert off("sure", "top left", "star") == 0
    gone = measure(Claim("colour", "colour", ("heart", "red")), SCENE)
    assert gone.gone
    assert gone.metric == 9
