from dataclasses import replace

import pytest

from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.make import make
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings
from dikast.worlds.truths import corrected, reference_text


@pytest.mark.parametrize("domain", ["scenes", "text", "charts", "plates", "clips"])
def test_what_is_corrected_is_true_and_of_the_same_subject(domain: str) -> None:
    told = wrong = 0
    for sample in make(Settings(domain=domain, split="all", form=0), 150):
        for claim in sample.responses[0].claims:
            true, finding = corrected(claim, sample.graph), sample.domain.measure(claim, sample.graph)
            wrong += finding.metric > 0
            if true is None:
                assert finding.metric, f"{claim} holds, so it is true of its subject"
            else:
                told += 1
                assert sample.domain.measure(true, sample.graph).metric == 0, (claim, true)
                assert finding.metric or true == claim or claim.kind == "count", (claim, true)
    assert told > 300
    assert wrong > 100


def test_corrections_by_hand() -> None:
    scene = Scene(4, [Thing("star", "red", "small", "plain", 0, 0), Thing("ring", "blue", "large", "plain", 3, 2)])
    for said, args in (
        (("colour", "colour", ("star", "pink")), ("star", "red")),
        (("position", "position", ("ring", "top left")), ("ring", "right")),
        (("relation", "relation", ("star", "ring", "right of")), ("star", "ring", "left of")),
        (("larger", "comparison", ("star", "ring")), ("ring", "star")),
        (("sure", "certainty", ("top left", "heart")), ("top left", "star")),
    ):
        assert corrected(Claim(*said), scene) == Claim(*said[:2], args)
    assert corrected(Claim("count", "count", ("star", 3)), scene) == Claim("exists", "existence", ("star", "red"))
    assert corrected(Claim("more", "comparison", ("star", "ring")), scene) is None  # one of each
    assert corrected(Claim("colour", "colour", ("heart", "red")), scene) is None


def test_a_reference_does_not_depend_on_what_a_response_states() -> None:
    for sample in make(Settings(domain="text", split="fresh", responses=2, form=0, edits=False), 40):
        texts = {
            reference_text(sample.but(name="one", responses=(each,)), Stream(5), voice=0) for each in sample.responses
        }
        assert len({frozenset(text.split(". ")) for text in texts}) <= 2
        one, other = (
            (set(text.rstrip(".").split(". ")) for text in sorted(texts)[:2]) if len(texts) > 1 else ({""}, {""})
        )
        assert one == other


def test_a_reference_keeps_its_answer_where_several_are_true_of_a_scene() -> None:
    ways, other = ("left of", "right of", "above", "below"), {"relation": 0, "colour": 0, "position": 0, "shape": 0}
    for sample in make(Settings(split="fresh", seed=5, version=4), 120):
        (response,) = sample.responses
        for i, said in enumerate(response.sentences):
            if said.claim is None or said.claim.kind not in other:
                continue
            texts = set()
            for args in {*((*said.claim.args[:-1], way) for way in ways), said.claim.args}:
                claims = [*response.sentences]
                claims[i] = said._replace(claim=said.claim._replace(args=args))
                changed = sample.but(name="said", responses=(replace(response, sentences=tuple(claims)),))
                texts.add(reference_text(changed, Stream(5), voice=0))
            other[said.claim.kind] += len(texts) == 1
            assert len(texts) == 1, (said.claim, texts)
    assert min(other.values()) > 10
