"""Lessons agree with the gold, and their points add up."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.part import Text
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric
from dikast.prompts.format import load_format
from dikast.prompts.gold import gold_of
from dikast.worlds import teach
from dikast.worlds.domains.vocabulary import SHAPES
from dikast.worlds.make import make
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson, padded, talk, write_lessons


@pytest.mark.parametrize("responses", [1, 2])
def test_the_short_formats_teach_lessons_as_they_stand(responses: int) -> None:
    form = load_format("scout" if responses == 1 else "scout-pairs")
    for sample in make(Settings(seed=6, responses=responses), 30):
        item = lesson(sample)
        shown = tuple(range(responses))
        reply = form.target(gold_of(item, sample.rubric, shown), sample.rubric)
        assert reply.text == f"{item.gold['feedback']}\nVerdict: {reply.label}"
        parsed = form.parse(reply.text, sample.rubric)
        assert parsed.label == reply.label
        if responses == 1:
            assert [c.text for c in parsed.claims] == [" ".join(c["text"].split()) for c in item.gold["claims"]]


def test_a_reference_says_what_is_true() -> None:
    sample = next(s for s in make(Settings(seed=3), 50) if s.gold()["claims"][0]["verdict"] == "wrong")
    reference = lesson(sample, reference=True).reference
    assert reference is not None
    assert isinstance(reference[0], Text)
    first = sample.gold()["claims"][0]["correction"]
    assert reference[0].text.startswith(first[0].upper() + first[1:])
    assert lesson(sample).reference is None


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


def test_talk_names_every_cell_that_is_not_empty() -> None:
    for sample in list(make(Settings(seed=2), 20))[::2]:
        said = talk(sample)["target"].split(", ")
        assert len(said) == len(sample.graph.things) + len(sample.graph.covers)
        assert said == sorted(said)
        for thing in sample.graph.things:
            assert _told(thing) in said


def test_every_other_talk_finds_each_shape_in_the_order_asked() -> None:
    orders = set()
    for sample in list(make(Settings(seed=2), 20))[1::2]:
        row = talk(sample)
        said = row["target"].split("; ")
        assert row["instruction"] == f"Find {', '.join(line.split()[0] for line in said)}."
        assert {line.split()[0] for line in said} == set(SHAPES)
        orders.add(row["instruction"])
        for thing in sample.graph.things:
            (line,) = [line for line in said if line.startswith(thing.shape)]
            assert _told(thing) in line
        absent = set(SHAPES) - {thing.shape for thing in sample.graph.things}
        assert absent == {line.removesuffix(" nothing") for line in said if line.endswith(" nothing")}
    assert len(orders) == 10


def test_every_patch_of_talk_has_its_words() -> None:
    for sample in make(Settings(seed=2), 20):
        patches = talk(sample)["meta"]["patches"]
        assert [patch[:3] for patch in patches] == [f"{row} {col}" for row in "abcd" for col in "1234"]
        inside = {_told(thing) for thing in sample.graph.things}
        assert inside == {patch for patch in patches if len(patch.split()) == 6}
        assert sum(patch.endswith(" covered") for patch in patches) == len(sample.graph.covers)
        assert sum(patch.endswith(" empty") for patch in patches) == 16 - len(inside) - len(sample.graph.covers)


def _told(thing: Any) -> str:
    return f"{'abcd'[thing.row]} {thing.col + 1} {thing.size} {thing.colour} {thing.texture} {thing.shape}"


def test_written_lessons_are_records_and_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    settings = Settings(seed=4)
    one = write_lessons(settings, 6, tmp_path / "one", reference=50, shard=3)
    two = write_lessons(settings, 6, tmp_path / "two", reference=50, shard=3, workers=2)
    assert [a.read_bytes() for a in one.files] == [b.read_bytes() for b in two.files]
    items = [item for file in one.files for item in read_items(str(file))]
    assert len(items) == 6
    assert {item.reference is None for item in items} == {True, False}
    longer = write_lessons(settings, 6, tmp_path / "padded", reference=50, padding=50)
    padded_items = [item for file in longer.files for item in read_items(str(file))]
    assert {a.responses == b.responses for a, b in zip(items, padded_items, strict=True)} == {True, False}
    assert all(Path(image.root, image.source).is_file() for item in items for image in item.images)


def test_on_an_empty_picture_no_evidence_names_a_thing(tmp_path: Path) -> None:
    settings = Settings(seed=4, version=4)
    full = [*read_items(str(write_lessons(settings, 24, tmp_path / "full", quote=True).files[0]))]
    some = [*read_items(str(write_lessons(settings, 24, tmp_path / "some", quote=True, blank=40).files[0]))]
    emptied = [(a, b) for a, b in zip(full, some, strict=True) if a.id != b.id]
    assert 0 < len(emptied) < 24
    for before, after in emptied:
        assert (after.id, after.response) == (f"{before.id}-blank", before.response)
        assert after.meta["scene"]["things"] == after.meta["scene"]["covers"] == []
        sizes = [Path(image.root, image.source).stat().st_size for image in (*before.images, *after.images)]
        assert sizes[1] < sizes[0]
        evidence = re.findall(r"^Evidence: (.*)", after.gold["feedback"], re.M)
        assert evidence
        assert all(part.endswith((" nothing", " empty")) for line in evidence for part in line.split(" against "))
    told = json.loads((tmp_path / "some" / "world.json").read_text())
    assert told["blank"] == 40


@pytest.mark.parametrize("kind", ["texture", "colour", "size"])
@pytest.mark.parametrize("version", [3, 4])
def test_responses_can_state_one_kind_of_claim_about_each_thing(kind: str, version: int, tmp_path: Path) -> None:
    settings = Settings(seed=4, version=version, form=0)
    items = [*read_items(str(write_lessons(settings, 60, tmp_path / "only", quote=True, only=kind).files[0]))]
    verdicts: list[str] = []
    for item in items:
        things = item.meta["scene"]["things"]
        claims = item.gold["claims"]
        assert {claim["aspect"] for claim in claims} == {kind}
        assert len(claims) == len({thing["shape"] for thing in things})
        feedback = item.gold["feedback"]
        told = re.findall(rf"^Finding: (right|wrong)(?: far)?, {kind} (\w+) (\w+)", feedback, re.M)
        assert [verdict for verdict, _, _ in told] == [claim["verdict"] for claim in claims]
        for verdict, shape, value in told:
            there = {thing[kind] for thing in things if thing["shape"] == shape}
            assert verdict == ("right" if value in there else "wrong")
        verdicts += [verdict for verdict, _, _ in told]
    assert 0.4 < verdicts.count("wrong") / len(verdicts) < 0.6
    assert json.loads((tmp_path / "only" / "world.json").read_text())["only"] == kind


@pytest.mark.parametrize("domain", ["scenes", "text"])
def test_lessons_can_be_about_form_alone(domain: str, tmp_path: Path) -> None:
    settings = Settings(domain, seed=4, version=4, claims=(2, 3), rubrics=2)
    items = [*read_items(str(write_lessons(settings, 120, tmp_path / "form", quote=True, only="form").files[0]))]
    whole = {"format", "length", "relevance", "concision"} | ({"completeness"} if domain == "scenes" else set())
    broken: list[str] = []
    for item in items:
        said, counts = str(item.instruction), item.gold["counts"]
        asked = re.findall(r"Write one sentence per line|Write a list with dashes|Number the sentences", said)
        [limit] = re.findall(r"Use at most (\d+) words\.", said)
        assert len(asked) == 1
        words = [word for word in item.response[0].text.split() if any(map(str.isalpha, word))]
        assert counts["length"] == max(0, len(words) - int(limit))
        rules = re.findall(r"^Rule: (.*): (\w+) (\d)$", item.gold["feedback"], re.M)
        assert {aspect for _, aspect, _ in rules} == whole
        due = {aspect: int(weight) * min(counts[aspect], ASPECTS[aspect].cap) for _, aspect, weight in rules}
        for name, aspect, _ in rules:
            lost = re.search(rf"^{name.capitalize()}: .*?(?:, (\d+) lost, .*)?$", item.gold["feedback"], re.M)
            assert lost
            assert int(lost[1] or 0) == due[aspect]
        charged = sum(claim["cost"] for claim in item.gold["claims"])
        assert item.gold["penalty"] == charged + sum(due.values())
        broken += [aspect for aspect in whole if counts[aspect]]
    assert all(0.35 < broken.count(aspect) / len(items) < 0.8 for aspect in whole)


def test_what_cannot_be_taught_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only: there is no 'count': colour, size, texture, form"):
        write_lessons(Settings(), 2, tmp_path, only="count")
    with pytest.raises(UserError, match="only: talk has no responses"):
        write_lessons(Settings(form=0), 2, tmp_path, only="size", only_talk=True)
    with pytest.raises(UserError, match="form: where responses state one kind of claim alone"):
        write_lessons(Settings(), 2, tmp_path, only="size")
    for settings in (Settings(), Settings(version=4, responses=2), Settings("pictures", version=4)):
        with pytest.raises(UserError, match="only: form is taught by single lessons about written responses"):
            write_lessons(settings, 2, tmp_path, only="form")
    for settings in (Settings(domain="text"), Settings(responses=2)):
        with pytest.raises(UserError, match="only: single lessons about scenes"):
            write_lessons(settings, 2, tmp_path, only="size")
    with pytest.raises(UserError, match="only the domain 'scenes' has rows of talk, not 'text'"):
        write_lessons(Settings(domain="text"), 2, tmp_path, only_talk=True)
    with pytest.raises(UserError, match="from 0 to 100"):
        write_lessons(Settings(), 2, tmp_path, reference=101)
    with pytest.raises(UserError, match="padding: expected a percentage from 0 to 100, got -1"):
        write_lessons(Settings(), 2, tmp_path, padding=-1)
    with pytest.raises(UserError, match="blank: only the domain 'scenes' has empty pictures, not 'text'"):
        write_lessons(Settings(domain="text"), 2, tmp_path, blank=5)
    with pytest.raises(UserError, match="blank: expected a percentage from 0 to 100, got 200"):
        write_lessons(Settings(), 2, tmp_path, blank=200)


def test_lessons_of_version_4_share_rubrics_about_their_responses(tmp_path: Path) -> None:
    settings = Settings(domain="text", seed=3, version=4, form=0)
    [file] = write_lessons(settings, 120, tmp_path / "few", rubrics=12, shard=120).files
    [own] = write_lessons(settings, 120, tmp_path / "own", shard=120).files
    few, drawn = list(read_items(str(file))), list(read_items(str(own)))
    assert len({str(item.rubric) for item in few}) == 12 < len({str(item.rubric) for item in drawn})
    assert [item.response for item in few] == [item.response for item in drawn]
    lost = [sum(claim["cost"] for claim in item.gold["claims"]) for item in few]
    assert [item.gold["penalty"] for item in few] == lost
    assert sum(bool(n) for n in lost) > len(lost) / 2  # rubrics about something else would cost nothing
    assert not any("by_rubric" in item.gold for item in few)


def test_lessons_share_as_many_rubrics_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(domain="text", seed=3, claims=(1, 2), scales=("1-3",), form=0, aspects=("fact",))
    one = write_lessons(settings, 200, tmp_path / "one", rubrics=5, shard=100)
    two = write_lessons(settings, 200, tmp_path / "two", rubrics=5, shard=100, workers=2)
    assert [file.read_bytes() for file in one.files] == [file.read_bytes() for file in two.files]
    own = [*read_items(str(write_lessons(settings, 200, tmp_path / "own", shard=200).files[0]))]
    items = [item for file in one.files for item in read_items(str(file))]
    assert len({str(item.rubric) for item in items}) == 5 < len({str(item.rubric) for item in own})
    assert [item.response for item in items] == [item.response for item in own]
    for item in items:
        assert isinstance(item.rubric, Rubric)
        cost = int(re.findall(r"\d+", item.rubric.criterion)[0])
        lost = cost * sum(claim["verdict"] == "wrong" for claim in item.gold["claims"])
        assert item.gold["penalty"] == lost
        assert item.gold["feedback"].endswith(f"Lost: {lost}")
    monkeypatch.setattr(teach, "_MOST_LOOKED", 1)
    with pytest.raises(UserError, match=r"draws only 1\d\d different ones, not 200"):
        write_lessons(settings, 2, tmp_path / "few", rubrics=200)
    with pytest.raises(UserError, match="one response each"):
        write_lessons(Settings(domain="text", responses=2), 2, tmp_path / "pairs", rubrics=2)
