from dataclasses import replace

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.core.part import Image, Text
from dikast.worlds.domains.image_edits import Retouch, Retouched
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.domains.vocabulary import HELD_OUT_PAIRS
from dikast.worlds.make import make
from dikast.worlds.settings import Settings

_STAR, _HEART = Thing("star", "red", "small", "plain", 0, 0), Thing("heart", "green", "large", "plain", 3, 3)
_RING = Thing("ring", "blue", "small", "striped", 1, 2)


def _pair(*after: Thing) -> Retouched:
    return Retouched(Scene(4, [_STAR, _HEART]), Scene(4, list(after)))


@pytest.mark.parametrize(
    ("claim", "after", "metric", "unasked"),
    [
        (("recolour", "star", "teal"), (replace(_STAR, colour="teal"), _HEART), 0, 0),
        (("recolour", "star", "teal"), (_STAR, _HEART), 1, 0),
        (("recolour", "star", "teal"), (replace(_STAR, colour="pink"), _HEART), 1, 0),
        (("recolour", "star", "teal"), (replace(_STAR, colour="teal", size="large"), _HEART), 0, 1),
        (("recolour", "star", "teal"), (replace(_STAR, colour="teal"), replace(_HEART, row=2)), 0, 1),
        (("recolour", "star", "teal"), (_HEART, _RING), 1, 2),  # the star went and a ring came
        (("shift", "star", "top right"), (replace(_STAR, col=3), _HEART), 0, 0),
        (("shift", "star", "top right"), (replace(_STAR, col=2), _HEART), 1, 0),
        (("remove", "star", "gone"), (_HEART,), 0, 0),
        (("remove", "star", "gone"), (_STAR, _HEART), 1, 0),
        (("remove", "ring", "gone"), (_STAR, _HEART), 1, 0),  # there was none
        (("add", "ring", "blue"), (_STAR, _HEART, _RING), 0, 0),
        (("add", "ring", "red"), (_STAR, _HEART, _RING), 1, 0),
        (("add", "ring", "blue"), (_STAR, _HEART), 1, 0),
    ],
)
def test_changes_are_measured(claim: tuple[str, str, str], after: tuple[Thing, ...], metric: int, unasked: int) -> None:
    kind, *args = claim
    asked = Claim(kind, "edit", tuple(args))
    assert Retouch().measure(asked, _pair(*after)).metric == metric
    assert Retouch().missed([asked], _pair(*after)) == unasked


def test_items_show_the_picture_before_and_judge_the_one_after() -> None:
    for sample in make(Settings(domain="retouch", responses=3, size=48), 3):
        item = sample.item()
        before, asked = item.instruction[0].content
        assert isinstance(before, Image)
        assert isinstance(asked, Text)
        assert asked.text.startswith("Change the picture like this. ")
        assert len(item.responses) == 3
        assert len(sample.files()) == len({before, *(part for response in item.responses for part in response)}) == 4
        assert all(graph.before == sample.graph[0].before for graph in sample.graph)


def test_nothing_asked_for_is_there_before() -> None:
    for sample in make(Settings(domain="retouch", split="all", seed=2), 100):
        graph = sample.graph
        untouched = Retouched(graph.before, graph.before)
        assert all(sample.domain.measure(claim, untouched).metric for claim in sample.responses[0].claims)
        assert sample.domain.missed(sample.responses[0].claims, untouched) == 0
        before, after = sample.pictures()
        assert np.array_equal(before, after) == (graph.before.things == graph.after.things)


def test_unasked_changes_occur_where_they_count() -> None:
    counts = {
        sample.graded[0].counts["preservation"]
        for sample in make(Settings(domain="retouch"), 200)
        if "preservation" in dict(sample.spec.weights)
    }
    assert counts == {0, 1, 2, 3}


def test_more_things_than_shapes_cannot_be() -> None:
    with pytest.raises(UserError, match=r"^split: 'objects' .*'retouch' tells its things apart by their shapes"):
        Settings(domain="retouch", split="objects")


def _asked(split: str) -> list[tuple[set[str], list[Claim]]]:
    samples = make(Settings(domain="retouch", split=split), 60)
    return [({name for name, _ in sample.spec.weights}, sample.responses[0].claims) for sample in samples]


def test_splits_hold_what_training_never_does() -> None:
    for weighed, claims in _asked("train"):
        assert not weighed & {"removal", "shift"}
        assert not {"addition", "edit"} <= weighed
        assert all(claim.kind != "shift" for claim in claims)
        assert not any((hue, claim.args[0]) in HELD_OUT_PAIRS for claim in claims for hue in claim.args[1:])
    assert all(weighed == {"removal"} for weighed, _ in _asked("aspects"))
    assert all({"addition", "edit"} <= weighed for weighed, _ in _asked("combinations"))
    assert all("shift" in weighed for weighed, _ in _asked("operators"))
    hues = [c for _, claims in _asked("attributes") for c in claims if c.kind in ("add", "recolour")]
    assert hues
    assert all((claim.args[1], claim.args[0]) in HELD_OUT_PAIRS for claim in hues)
