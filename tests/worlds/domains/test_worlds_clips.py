from itertools import pairwise

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.core.part import Video
from dikast.worlds.domains.clip_graph import Clip, Event, measure
from dikast.worlds.domains.clips import Clips
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import GONE, Thing
from dikast.worlds.domains.vocabulary import HELD_OUT_PAIRS
from dikast.worlds.make import make
from dikast.worlds.scoring.rubric_grammar import held_together
from dikast.worlds.settings import Settings


def _clip() -> Clip:
    things = [
        Thing("star", "red", "small", "plain", 0, 0),
        Thing("heart", "green", "small", "plain", 3, 3),
        Thing("ring", "blue", "large", "plain", 1, 2),
        Thing("cross", "pink", "large", "plain", 3, 0),
    ]
    events = [
        Event(3, "move", "star", "right", 2),
        Event(4, "appear", "heart"),
        Event(4, "recolour", "ring", "purple"),
    ]
    return Clip(5, 4, things, events)


@pytest.mark.parametrize(
    ("kind", "args", "metric"),
    [
        ("motion", ("star", "right"), 0),
        ("motion", ("star", "down"), 1),
        ("motion", ("star", "left"), 2),
        ("motion", ("cross", "left"), GONE),  # it stays
        ("motion", ("circle", "left"), GONE),  # it is not there
        ("turns", ("ring", "purple"), 0),
        ("turns", ("ring", "teal"), 2),  # teal, blue, purple
        ("turns", ("cross", "pink"), GONE),  # pink it is, but it does not turn
        ("appears", ("heart", "green"), 0),
        ("appears", ("heart", "red"), 1),
        ("appears", ("cross", "pink"), 2),  # there from the start
        ("appears", ("circle", "pink"), 2),
        ("moment", ("star moves", 3), 0),
        ("moment", ("star moves", 5), 2),
        ("moment", ("star appears", 3), GONE),
        ("before", ("star moves", "heart appears"), 0),
        ("before", ("heart appears", "star moves"), 2),  # 4 would have to be 2
        ("before", ("heart appears", "ring changes colour"), 1),  # at once
        ("before", ("heart moves", "ring changes colour"), GONE),
    ],
)
def test_claims_are_measured(kind: str, args: tuple[str | int, ...], metric: int) -> None:
    assert measure(Claim(kind, "", args), _clip()).metric == metric


def test_frames_show_what_happens_when() -> None:
    scenes = _clip().scenes()
    seen = [{t.shape: (t.col, t.row, t.colour) for t in scene.things} for scene in scenes]
    assert [frame["star"][:2] for frame in seen] == [(0, 0), (0, 0), (2, 0), (2, 0), (2, 0)]
    assert ["heart" in frame for frame in seen] == [False, False, False, True, True]
    assert [frame["ring"][2] for frame in seen] == ["blue", "blue", "blue", "purple", "purple"]
    pictures = Clips().render(_clip(), 48)
    changed = [bool((a != b).any()) for a, b in pairwise(pictures)]
    assert changed == [False, True, True, False]


def test_items_hold_a_video_of_four_to_eight_frames() -> None:
    lengths = set()
    for sample in make(Settings(domain="clips", size=48), 60):
        [video, *_] = sample.item().instruction[0].content
        assert isinstance(video, Video)
        assert len(video.frames) == len(sample.pictures()) == len(sample.paths()) == sample.graph.frames
        lengths.add(len(video.frames))
    assert lengths == {4, 5, 6, 7, 8}


def test_no_two_things_meet_and_every_event_is_seen() -> None:
    for sample in make(Settings(domain="clips", split="all", clutter=0, noise=0, edits=False, size=48), 40):
        scenes, pictures = sample.graph.scenes(), sample.pictures()
        for scene in scenes:
            cells = [(t.col, t.row) for t in scene.things]
            assert len(cells) == len(set(cells))
            assert all(0 <= at < scene.grid for cell in cells for at in cell)
        frames = {event.frame for event in sample.graph.events}
        for i in range(1, len(pictures)):
            assert np.array_equal(pictures[i], pictures[i - 1]) == (i + 1 not in frames)


def test_training_never_shows_held_out_pairs() -> None:
    for sample in make(Settings(domain="clips", seed=1), 200):
        shown = {(t.colour, t.shape) for scene in sample.graph.scenes() for t in scene.things}
        said = {(c.args[1], c.args[0]) for c in sample.responses[0].claims}
        assert not (shown | said) & HELD_OUT_PAIRS


def test_more_things_than_shapes_cannot_be() -> None:
    with pytest.raises(UserError, match=r"^split: 'objects' .*'clips' tells its things apart by their shapes"):
        Settings(domain="clips", split="objects")


def test_combinations_are_apart_in_training() -> None:
    for split, together in (("train", False), ("combinations", True)):
        for sample in make(Settings(domain="clips", split=split), 60):
            weighed = {name for name, _ in sample.spec.weights}
            assert any(held_together(a, b) for a in weighed for b in weighed if a < b) is together
