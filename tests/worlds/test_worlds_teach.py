"""Lessons agree with the gold, and their points add up."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.core.part import Text
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric
from dikast.prompts.format import load_format
from dikast.prompts.gold import gold_of
from dikast.surface.cli import app
from dikast.worlds import teach
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.domains.vocabulary import SHAPES
from dikast.worlds.make import make
from dikast.worlds.matching import NOT_WEIGHED
from dikast.worlds.sampling.response import Response, Sentence
from dikast.worlds.scoring.terms import Term
from dikast.worlds.settings import Settings
from dikast.worlds.teach import lesson, seen, talk, worked, worked_out, worked_sum, write_lessons


@pytest.mark.parametrize("domain", ["scenes", "text", "plates", "clips"])
def test_running_totals_lead_to_the_penalty(domain: str) -> None:
    for sample in make(Settings(domain=domain, seed=5), 60):
        text = worked(sample)
        lost = [int(n) for n in re.findall(r", (\d+) lost, \d+ in all", text)]
        totals = [int(n) for n in re.findall(r" lost, (\d+) in all", text)]
        assert totals == [sum(lost[: i + 1]) for i in range(len(lost))]
        assert text.endswith(f"Lost: {sample.graded[0].penalty}")
        assert sum(lost) == sample.graded[0].penalty


def test_findings_quote_the_rubric() -> None:
    told = set()
    for sample in make(Settings(seed=9), 80):
        findings = re.findall(r"^Finding: .*", worked(sample, quote=True), re.M)
        for claim, finding in zip(sample.gold()["claims"], findings, strict=True):
            about, *quote = re.sub(r"^Finding: \w+( far)?, |, \d+ lost, \d+ in all$", "", finding).split(", ")
            assert about.split()[0] == claim["aspect"]
            told.add(bool(sample.spec.entries))
            if quote == [NOT_WEIGHED]:
                assert not claim["cost"]
            else:
                assert all(name in sample.rubric.criterion for name in quote), quote
    assert told == {True, False}


def test_each_claim_is_checked_by_each_rule() -> None:
    things = [
        Thing("star", "green", "small", "plain", 0, 0),
        Thing("ring", "red", "large", "dotted", 3, 1),
        Thing("cross", "orange", "medium", "striped", 2, 3),
    ]
    sentences = [
        Sentence(f"The {shape} is red.", "claim", Claim("colour", "colour", (shape, "red")))
        for shape in ("star", "ring", "cross")
    ]
    terms = (Term("colour", "star", "double", 2, "hues of a star"), Term("", "red", "once", 1, "claims naming red"))
    sample = next(make(Settings(seed=9, version=4), 1))
    spec = replace(sample.spec, terms=terms, weights=(), names=())
    response = Response(tuple(sentences), 0)
    made = replace(sample, graph=Scene(4, things), spec=spec, responses=(response,), rivals=())
    lines = worked(made, quote=True).split("\n")
    assert lines[:2] == [
        "Rule: hues of a star: colour star double 2",
        "Rule: claims naming red: all red once 1",
    ]
    assert [line for line in lines if line.startswith("Finding")] == [
        "Finding: wrong far, colour star red, colour star double 2 counts 4, all red once 1 counts 1, 5 lost, 5 in all",
        "Finding: right, colour ring red, colour star double 2 no, all red once 1 counts 0",
        "Finding: wrong, colour cross red, colour star double 2 no, all red once 1 counts 0",
    ]
    assert lines[-1] == "Lost: 5"


@pytest.mark.parametrize("domain", ["scenes", "text"])
def test_what_the_rules_cost_is_what_gold_charges(domain: str) -> None:
    for sample in make(Settings(domain=domain, seed=12, version=4), 60):
        text = worked(sample, quote=True)
        assert len(re.findall(r"^Rule: ", text, re.M)) == len(sample.spec.terms) + len(sample.spec.names)
        findings = re.findall(r"^Finding: .*", text, re.M)
        for claim, finding in zip(sample.gold()["claims"], findings, strict=True):
            assert sum(map(int, re.findall(r" counts (\d+)", finding))) == claim["cost"]
            assert (NOT_WEIGHED in finding) == (" counts " not in finding)


def test_evidence_names_what_a_claim_is_about() -> None:
    things = [
        Thing("star", "red", "small", "plain", 0, 0),
        Thing("ring", "blue", "large", "dotted", 3, 1),
        Thing("star", "teal", "medium", "striped", 2, 3),
    ]
    scene = Scene(4, things, covers=[(3, 0)])
    stars, ring = "star a 1 small red plain star, d 3 medium teal striped star", "b 4 large blue dotted ring"
    for kind, args, told in (
        ("colour", ("star", "red"), stars),
        ("count", ("star", 2), stars),
        ("exists", ("heart", "red"), "heart nothing"),
        ("shape", ("blue", "star"), f"blue {ring}"),
        ("relation", ("star", "ring", "above"), f"{stars} against ring {ring}"),
        ("sure", ("top left", "star"), "a 1 small red plain star"),
        ("sure", ("top right", "star"), "a 4 covered"),
        ("sure", ("bottom left", "star"), "d 1 empty"),
    ):
        assert seen(Claim(kind, "any", args), scene) == told, kind
    assert seen(Claim("count", "count", ("star", 2)), scene, steps=True) == f"{stars}, 2 in all"
    assert seen(Claim("count", "count", ("heart", 2)), scene, steps=True) == "heart nothing"


def test_evidence_on_sums_and_ages_is_worked() -> None:
    notes = GivenText({"Ann": {"age": 57}}, numbers={"K": 21, "L": 83, "M": 7, "N": 129})
    for kind, args, told in (
        ("minus", ("L", "K", 59), "L = 83, K = 21, 3 minus 1 is 2, 8 minus 2 is 6, 62, stated 59"),
        ("plus", ("K", "L", 59), "K = 21, L = 83, 1 plus 3 is 4, 2 plus 8 is 10, 104, stated 59"),
        ("plus", ("L", "M", 90), "L = 83, M = 7, 3 plus 7 is 10, 8 plus 1 is 9, 90, stated 90"),
        ("minus", ("L", "M", 59), "L = 83, M = 7, 13 minus 7 is 6, 7 minus 0 is 7, 76, stated 59"),
        ("minus", ("N", "L", 59), "N = 129, L = 83, 9 minus 3 is 6, 12 minus 8 is 4, 46, stated 59"),
        ("age", ("Ann", "age", 59), "the age of Ann is 57, stated 59"),
        ("fact", ("Ann", "pet", "cat"), ""),
    ):
        assert worked_out(Claim(kind, "sum", args), notes) == told
    assert worked_sum(Claim("minus", "sum", ("L", "K", 59)), notes) == "83 minus 21 is 62"
    assert worked_sum(Claim("plus", "sum", ("K", "L", 59)), notes) == "21 plus 83 is 104"
    assert worked_sum(Claim("age", "number", ("Ann", "age", 59)), notes) == ""


def test_evidence_on_a_place_is_the_given_list_as_far_as_the_word() -> None:
    notes = GivenText(given=["fig", "kiwi", "rice"], edit="Reverse the list.", edited=["rice", "kiwi", "fig"])
    assert worked_out(Claim("place", "list", ("rice", 3)), notes) == "fig, kiwi, rice is at place 3, then at place 1"
    assert worked_out(Claim("place", "list", ("fig", 2)), notes) == "fig is at place 1, then at place 3"


def test_worked_evidence_ends_with_what_the_notes_say() -> None:
    seen_kinds = set()
    for sample in make(Settings("text", seed=21, version=4), 80):
        for claim, finding in zip(sample.responses[0].claims, sample.graded[0].findings, strict=True):
            if told := worked_out(claim, sample.graph):
                end = "" if claim.kind == "place" else f", stated {claim.args[-1]}"
                assert told.endswith(f" {finding.truth.rpartition(' ')[2]}{end}")
                seen_kinds.add(claim.kind)
    assert seen_kinds == {"age", "plus", "minus", "place"}


def test_what_is_left_out_is_named() -> None:
    settings = Settings(seed=8, aspects=("completeness", "colour"))
    samples = [s for s in make(settings, 60) if "completeness" in dict(s.spec.weights) and not s.spec.entries]
    assert samples
    for sample in samples:
        line = next(line for line in worked(sample).split("\n") if line.startswith("Omissions: "))
        left = re.sub(r", \d+ lost.*", "", line.partition("left out: ")[2])
        named = [] if left == "nothing" else left.split(" and ")
        assert len(named) == sample.graded[0].counts["completeness"]


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


def test_the_command_sets_how_many_claims_a_response_makes(tmp_path: Path) -> None:
    told = ["world", "teach", "-n", "20", "--version", "4", "--out", str(tmp_path / "short")]
    assert CliRunner().invoke(app, [*told, "--claims", "2-3", "--rubrics", "2"]).exit_code == 0
    items = [*read_items(str(tmp_path / "short" / "items-00000.jsonl"))]
    assert {len(item.gold["claims"]) for item in items} == {2, 3}


def test_what_cannot_be_taught_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only the domain 'scenes' has rows of talk, not 'text'"):
        write_lessons(Settings(domain="text"), 2, tmp_path, instead="talk")
    with pytest.raises(UserError, match="instead: there are rows of talk, glossary, matching, not of 'songs'"):
        write_lessons(Settings(), 2, tmp_path, instead="songs")
    both = CliRunner().invoke(app, ["world", "teach", "--talk", "--matching", "--out", str(tmp_path / "both")])
    assert str(both.exception) == "--talk and --matching: use one of them"
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
