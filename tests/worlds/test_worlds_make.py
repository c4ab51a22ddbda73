from collections import Counter

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.core.item import item_from, item_to
from dikast.core.rubric import Rubric, load_rubric
from dikast.worlds.domains.protocol import Rules
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.domains.vocabulary import HELD_OUT_PAIRS
from dikast.worlds.make import Maker, make
from dikast.worlds.sampling.error_choice import choose, cut_points, ways
from dikast.worlds.sampling.held_out import HELD_OUT_ASPECTS
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.penalty import SCALES, Spec
from dikast.worlds.scoring.rubric_grammar import draw_aspects, draw_weights, draw_wording, held_together, rubric_of
from dikast.worlds.settings import Settings, range_of


def test_an_item_depends_on_settings_and_number_alone() -> None:
    settings = Settings(seed=3)
    one = [item_to(sample.item()) for sample in make(settings, 5, start=10)]
    assert one == [item_to(Maker(settings).sample(i).item()) for i in range(10, 15)]
    assert one != [item_to(sample.item()) for sample in make(Settings(seed=4), 5, start=10)]


def test_a_record_reads_back() -> None:
    for sample in make(Settings(split="all", responses=2), 20):
        item = sample.item()
        assert item_to(item_from(item_to(item))) == item_to(item)
        assert len(item.gold["scores"]) == 2
        assert item.gold["preference"] in ("a", "b", "tie")


def test_scores_are_uniform() -> None:
    levels = Counter(s.levels[0] for s in make(Settings(scales=("1-5",)), 3000))
    # 600 expected in each, standard deviation sqrt(3000 * .2 * .8) = 22; four of them is 88
    assert all(abs(levels[level] - 600) < 88 for level in range(5)), levels


def test_training_never_shows_what_is_held_out() -> None:
    for split in ("train", "fresh"):
        for sample in make(Settings(split=split, seed=1), 600):
            assert not any((t.colour, t.shape) in HELD_OUT_PAIRS for t in sample.graph.things)
            weighed = [name for name, _ in sample.spec.weights]
            assert not set(weighed) & {*HELD_OUT_ASPECTS, "binding", "consistency"}
            assert not any(held_together(a, b) for a in weighed for b in weighed if a < b)
            for response in sample.responses:
                assert response.voice < 4
                for claim in response.claims:
                    assert claim.kind != "binding"
                    words = [(c, s) for c in claim.args for s in claim.args]
                    assert not any(pair in HELD_OUT_PAIRS for pair in words), claim


def test_the_split_of_attributes_states_held_out_pairs() -> None:
    said = [
        (claim.args[1], claim.args[0])
        for sample in make(Settings(split="attributes"), 200)
        for claim in sample.responses[0].claims
        if claim.kind in ("colour", "exists")
    ]
    held = [pair in HELD_OUT_PAIRS for pair in said]
    assert np.mean(held) > 0.9
    right: Counter[bool] = Counter()
    for sample in make(Settings(split="attributes"), 600):
        for claim, finding in zip(sample.responses[0].claims, sample.graded[0].findings, strict=True):
            if claim.kind in ("colour", "exists"):
                right[finding.metric == 0] += 1
    assert 0.35 < right[True] / right.total() < 0.65  # held-out pairs are no sign of an error


@pytest.mark.slow
def test_fifty_thousand_rubrics() -> None:
    rng, rules, kinds = Stream("rubrics"), Rules(held_together=None, wordings="all"), list(Scenes.kinds)
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for _ in range(80_000):
        scale = rng.pick(list(SCALES))
        cuts = cut_points(range(len(SCALES[scale].labels) + rng.below(6)), len(SCALES[scale].labels), rng)
        weights = draw_weights(rng, draw_aspects(rng, rules, kinds))
        spec = Spec(weights, rng.chance(25), cuts, scale, False, draw_wording(rng, rules))
        rubric = rubric_of(spec)
        seen.add((rubric.criterion, rubric.levels))
        if len(seen) % 500 == 0:
            back = load_rubric(rubric.to_dict())
            assert isinstance(back, Rubric)
            assert back.hash == rubric.hash
    assert len(seen) >= 50_000


def test_twenty_aspects_and_sixteen_operators() -> None:
    assert len(ASPECTS) >= 20
    assert len({aspect.operator for aspect in ASPECTS.values()}) >= 16


def test_ways_by_hand() -> None:
    # Two slots that cost 0 or 1, one that costs 0 or 2: a total of 2 is 1+1+0 or 0+0+2.
    tables = ways([[0, 1], [0, 1], [0, 2]])
    assert tables[0] == {0: 1, 1: 2, 2: 2, 3: 2, 4: 1}
    drawn = Counter(tuple(choose([[0, 1], [0, 1], [0, 2]], tables, 2, Stream(i))) for i in range(400))
    assert set(drawn) == {(1, 1, 0), (0, 0, 2)}
    assert min(drawn.values()) > 150


@pytest.mark.parametrize(
    ("setting", "fields"),
    [
        ("objects", {"objects": (2, 40)}),
        ("split", {"split": "trian"}),
        ("domain", {"domain": "scene"}),
        ("aspects", {"aspects": ("reading",)}),
        ("aspects", {"aspects": ("texture",)}),
        ("aspects", {"aspects": ("colr",)}),
        ("size", {"size": 8}),
        ("responses", {"responses": 0}),
        ("claims", {"claims": (5, 3)}),
        ("scales", {"scales": ("1-6",)}),
        ("clutter", {"clutter": 101}),
        ("objects", {"split": "objects", "objects": (2, 6)}),
        ("grid", {"grid": 9}),
        ("aspects", {"aspects": ("completeness",)}),
        ("split", {"domain": "text", "split": "attributes"}),
        ("split", {"domain": "text", "split": "style"}),
        ("ties", {"ties": 101, "responses": 2}),
        ("ties", {"ties": 20}),
    ],
)
def test_settings_that_cannot_be_met_are_named(setting: str, fields: dict[str, object]) -> None:
    with pytest.raises(UserError, match=rf"^{setting}: "):
        Settings(**fields)  # type: ignore[arg-type]


def test_settings_that_leave_no_room_are_named() -> None:
    with pytest.raises(UserError, match=r"^scales, claims: "):
        Maker(Settings(domain="text", scales=("0-10",), claims=(1, 1), form=0)).sample(0)


def test_one_claim_is_not_said_again_twice() -> None:
    """Item 18 of this world ended it: two repetitions were planned of its one claim."""
    for sample in make(Settings(domain="text", claims=(1, 2), seed=1), 100):
        counts = sample.responses[0].counts()
        assert counts["concision"] <= len({s.claim for s in sample.responses[0].sentences if s.claim})


def test_one_point_is_not_points() -> None:
    for sample in make(Settings(form=0), 300):
        assert "1 points lost" not in [text for _, text in sample.rubric.levels]


def test_ranges() -> None:
    assert range_of("objects", "2-6") == (2, 6)
    assert range_of("objects", "4") == (4, 4)
    assert range_of("objects", "") is None
    for told in ("many", "3-", "-3", "²", "2-6-8"):
        with pytest.raises(UserError, match="objects: write a number or a range"):
            range_of("objects", told)


def test_no_filler_stands_twice_from_version_4_on() -> None:
    checked = 0
    for sample in make(Settings(version=4, seed=951, form=100), 400):
        [response] = sample.responses
        fillers = [sentence.text for sentence in response.sentences if sentence.role == "neutral"]
        assert len(set(fillers)) == len(fillers)
        repeated = len(response.sentences) - len({sentence.text for sentence in response.sentences})
        if "concision" in dict(sample.spec.weights):
            assert sample.graded[0].counts["concision"] == repeated
            checked += 1
    assert checked > 50


def test_four_rubrics_of_a_response_cannot_all_have_many_levels() -> None:
    with pytest.raises(UserError, match="scales: 4 rubrics of one response are not all even over 11 levels or more"):
        Settings(version=4, scales=("0-10",))
    for more in ({"rubrics": 2}, {"responses": 2}, {"scales": ("0-10", "1-5")}):
        assert len(list(make(Settings(**{"version": 4, "scales": ("0-10",), **more}), 2))) == 2  # type: ignore[arg-type]


def test_responses_need_claims_for_their_rubrics() -> None:
    with pytest.raises(
        UserError, match="needs 4 or more in version 4, got 3; 4 different rubrics need 4: ask for fewer"
    ):
        Settings(version=4, claims=(2, 3))
    with pytest.raises(UserError, match="needs 5 or more in version 4, got 4; 8 different rubrics need 5"):
        Settings(version=4, claims=(4, 4), rubrics=8)
    assert len({s.rubric.criterion for s in make(Settings(version=4, claims=(4, 4)), 4)}) == 4
    with pytest.raises(UserError, match=r"needs 2 or more in version 4, got 1$"):
        Settings(version=4, claims=(1, 1), responses=2)
    for sample in make(Settings(version=4, claims=(2, 3), rubrics=2), 20):
        assert 2 <= len(sample.responses[0].claims) <= 3
    with pytest.raises(UserError, match="no item 0 of 'text'"):  # all that is said may be contradicted
        next(iter(make(Settings("text", "operators", version=4, claims=(2, 2), rubrics=2), 1)))
