"""Lessons about responses that say nothing, and about agreement with a reference, have the gold that they should."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric
from dikast.probes import changes
from dikast.worlds.answer_lessons import _stated_of, _step, _true, agreement
from dikast.worlds.make import make
from dikast.worlds.peek import peek
from dikast.worlds.sampling.response import Sentence
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons


def lessons(folder: Path, settings: Settings, n: int = 40, **shares: Any) -> list[Item]:
    return [*read_items(str(write_lessons(settings, n, folder, quote=True, **shares).files[0]))]


@pytest.mark.parametrize("version", [3, 4])
def test_a_response_that_says_nothing_gets_the_worst_label(version: int, tmp_path: Path) -> None:
    settings = Settings(seed=4, version=version)
    every, some = (lessons(tmp_path / f"{share}", settings, silent=share) for share in (0, 50))
    changed = [(a, b) for a, b in zip(every, some, strict=True) if a.response != b.response]
    mute = [(a, b) for a, b in changed if b.gold["feedback"].endswith("Lost: all")]
    assert 10 < len(mute) < 30
    assert 0 < len(changed) - len(mute) < 20  # they begin with the same words
    assert all(a.gold == b.gold for a, b in changed if (a, b) not in mute)
    for before, after in mute:
        rubric = after.rubric
        assert isinstance(rubric, Rubric)
        assert (before.id, before.rubric) == (after.id, rubric)
        scale = rubric.scale
        worst = scale.labels[0 if not scale.lower_is_better else -1]
        assert after.gold["label"] == worst
        assert scale.goodness(after.gold["score"]) == 0
        (claim,) = after.gold["claims"]
        assert (claim["text"], claim["verdict"]) == (text_of(after.response), "unsupported")
        *rules, stated, evidence, finding, lost = after.gold["feedback"].splitlines()
        assert stated == f"Claim: {text_of(after.response)}"
        assert (evidence, finding, lost) == ("Evidence: nothing is stated", "Finding: unclear", "Lost: all")
        assert rules == [line for line in before.gold["feedback"].splitlines() if line.startswith("Rule: ")]
        assert bool(rules) == (version == 4)
    assert json.loads((tmp_path / "50" / "world.json").read_text())["silent"] == 50


def test_what_says_nothing_is_not_what_probes_say(tmp_path: Path) -> None:
    said = {text_of(each.response) for each in lessons(tmp_path, Settings(domain="text"), 300, silent=100)}
    assert len(said) > 30
    assert not said & set(changes.MASTER_KEYS)


def test_a_response_that_says_nothing_can_have_a_reference(tmp_path: Path) -> None:
    found = lessons(tmp_path, Settings(domain="text"), 60, silent=50, reference=50)
    assert len({(each.reference is None, each.gold["feedback"].endswith("Lost: all")) for each in found}) == 4


def test_agreement_follows_the_reference_and_nothing_else(tmp_path: Path) -> None:
    settings = Settings(domain="text", seed=4)
    shares, reworded, other = set(), 0, 0
    for each in lessons(tmp_path / "agree", settings, 200, agreement=100):
        assert each.reference is not None
        rubric = each.rubric
        assert isinstance(rubric, Rubric)
        assert rubric.criterion != changes.AGREEMENT.criterion
        claims, reference = each.gold["claims"], text_of(each.reference)
        assert text_of(each.response) == " ".join(claim["text"] for claim in claims)
        lines = each.gold["feedback"].splitlines()
        assert lines[0] == "Rule: the reference"
        stated = lines[1].removeprefix("Reference: ").split(", ")
        assert len(stated) == len(set(stated)) == reference.count(".")
        evidence = [line.removeprefix("Evidence: ") for line in lines if line.startswith("Evidence: ")]
        for claim, told in zip(claims, evidence, strict=True):
            named, _, found = told.partition(" against ")
            assert (claim["verdict"] == "right") == (named == found) == (named in stated)
            assert found in stated or found == f"{' '.join(named.split()[:2])} nothing"
            assert claim["verdict"] == "right" or claim["text"] not in reference
            other += named != found and found in stated
            reworded += named == found and claim["text"] not in reference
        right, steps = sum(claim["verdict"] == "right" for claim in claims), len(rubric.scale.labels) - 1
        assert each.gold["label"] == rubric.scale.labels[_step(right, len(claims), steps)]
        shares.add(right / len(claims))
        lost = [int(n) for n in re.findall(r"Finding: wrong, 1 lost, (\d+) in all", each.gold["feedback"])]
        assert lost == list(range(1, len(lost) + 1))
        assert lines[-1] == f"Lost: {len(lost)} of {len(claims)}"
        assert each.meta["needs"] == "reference"
    assert {0, 1} < shares
    assert reworded > 50
    assert other > 50  # the reference states something else of it


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("number Bob age 26", "number Bob age 55"),
        ("position star bottom left", "position star bottom right"),  # of two about the star, what is closest
        ("position ring top", "position ring nothing"),
        ("list fig 2", "list fig 2"),
        ("sum R S 4", "sum R nothing"),
    ],
)
def test_what_a_reference_states_of_a_claim(named: str, found: str) -> None:
    stated = ["number Bob age 55", "position star top", "position star bottom right", "number Ann age 26", "list fig 2"]
    assert _stated_of(named, stated) == found


@pytest.mark.parametrize(
    ("agreeing", "stated", "steps", "label"),
    [
        (0, 5, 4, 0), (5, 5, 4, 4),
        (2, 3, 4, 3),  # 2.67 steps
        (1, 3, 4, 1),  # 1.33 steps
        (1, 2, 10, 5), (1, 4, 10, 3),  # 2.5 steps: the better of two
        (3, 4, 2, 1),  # 1.5 steps: the best is for all of them
        (1, 9, 4, 1),  # .44 steps: the worst is for none
    ],
)  # fmt: skip
def test_the_label_of_some_agreement(agreeing: int, stated: int, steps: int, label: int) -> None:
    assert _step(agreeing, stated, steps) == label


def test_the_reference_decides_and_not_what_is_shown() -> None:
    one, other = make(Settings(domain="text", seed=8), 2)
    mine, theirs = (
        {one.domain.say(claim, voice) for claim in _true(each) for voice in range(4)} for each in (one, other)
    )
    found = [lesson for i in range(60) if (lesson := agreement(one, other, Stream(i)))]
    assert len(found) == 60
    said = {(claim["text"], claim["verdict"]) for lesson in found for claim in lesson.gold["claims"]}
    for verdict in ("right", "wrong"):  # whether it is true of what is shown or not
        assert {text for text, told in said if told == verdict} & mine
        assert {text for text, told in said if told == verdict} & theirs


def test_a_difference_is_not_taken_for_the_sum_of_the_same_letters() -> None:
    other, *samples = make(Settings(domain="text", seed=8), 60)
    tried = 0
    for sample in samples:
        (response,) = sample.responses
        for total in [claim for claim in _true(sample) if claim.kind == "plus"]:
            false = total._replace(kind="minus")  # by the name that findings have, `sum K S 40`, the same
            more = replace(response, sentences=(*response.sentences, Sentence("", "claim", false)))
            for i in range(20):
                lesson = agreement(replace(sample, responses=(more,)), other, Stream(i))
                assert lesson is not None
                said = {claim["text"]: claim["verdict"] for claim in lesson.gold["claims"]}
                assert {said.get(sample.domain.say(false, voice), "wrong") for voice in range(4)} == {"wrong"}
                tried += 1
    assert tried > 100


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"silent": 60, "agreement": 41}, "silent and agreement: 60 and 41 percent are more than all lessons"),
        ({"silent": 5, "instead": "talk"}, "silent: it needs lessons about one response in words"),
        ({"agreement": 5, "only": "colour"}, "agreement: it needs lessons about one response in words"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        write_lessons(Settings(form=0), 2, tmp_path, **shares)


def test_a_sheet_shows_lessons_of_agreement(tmp_path: Path) -> None:
    write_lessons(Settings(), 12, tmp_path / "world", agreement=100)
    page = peek(tmp_path / "world", tmp_path / "sheet", n=12)[0].read_text("utf-8")
    [file] = (tmp_path / "world").glob("items-*.jsonl")
    claims = [claim["text"] for item in read_items(str(file)) for claim in item.gold["claims"]]
    assert len(claims) > 24
    assert [text for text in claims if text not in page] == []


@pytest.mark.parametrize(
    "settings", [Settings(responses=2), *(Settings(domain=domain) for domain in ("pictures", "retouch"))]
)
@pytest.mark.parametrize("share", ["silent", "agreement"])
def test_responses_in_words_alone_say_nothing_or_agree(settings: Settings, share: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{share}: it needs lessons about one response in words"):
        write_lessons(settings, 2, tmp_path, **{share: 5})  # type: ignore[arg-type]
