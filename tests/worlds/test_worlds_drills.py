"""Lessons that state one kind of claim alone."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.surface.cli import app
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons


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


@pytest.mark.parametrize(("kind", "version"), [("number", 3), ("number", 4), ("sum", 4), ("list", 3), ("list", 4)])
def test_notes_can_be_asked_for_one_kind_of_claim(kind: str, version: int, tmp_path: Path) -> None:
    settings = Settings("text", seed=4, version=version, form=0)
    items = [*read_items(str(write_lessons(settings, 60, tmp_path / "only", quote=True, only=kind).files[0]))]
    wrong, near, claims = 0, 0, 0
    for item in items:
        notes, told = item.meta["scene"], item.gold["claims"]
        assert {claim["aspect"] for claim in told} == {kind}
        assert 3 <= len(told) <= 4
        findings = re.findall(
            rf"^Finding: (right|wrong)( far)?, {kind} (.*?) (\d+)(?:, |$)", item.gold["feedback"], re.M
        )
        evidence = re.findall(r"^Evidence: (.*)$", item.gold["feedback"], re.M)
        for (verdict, far, subject, stated), seen in zip(findings, evidence, strict=True):
            one, _, other = subject.partition(" ")
            if kind == "number":
                true = notes["people"][one]["age"]
                assert seen == f"the age of {one} is {true}, stated {stated}"
            elif kind == "list":
                true = notes["edited"].index(one) + 1
                assert seen.endswith(f"{one} is at place {notes['given'].index(one) + 1}, then at place {true}")
            else:
                a, b = notes["numbers"][one], notes["numbers"][other]
                assert seen.startswith(f"{one} = {a}, {other} = {b}, ")
                true = a + b if " plus " in seen else a - b
                assert true > 0
                assert seen.endswith(f", {true}, stated {stated}")
            assert (verdict == "right") == (int(stated) == true)
            wrong, near, claims = wrong + (verdict == "wrong"), near + (verdict == "wrong" and not far), claims + 1
        text = text_of(item.instruction[0].content)
        assert text.endswith("Say what the notes tell.")
        if kind == "sum":
            assert all(f"{letter} = {n}." in text for letter, n in notes["numbers"].items())
    assert 0.45 < wrong / claims < 0.65
    assert 0 < near < wrong
    assert json.loads((tmp_path / "only" / "world.json").read_text())["only"] == kind


def test_what_cannot_be_drilled_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only: there is no 'count': colour, size, texture, number, sum, list"):
        write_lessons(Settings(), 2, tmp_path, only="count")
    with pytest.raises(UserError, match="only: talk has no responses"):
        write_lessons(Settings(form=0), 2, tmp_path, only="size", instead="talk")
    with pytest.raises(UserError, match="claims: what is shown sets how many there are of one kind"):
        write_lessons(Settings(form=0, claims=(2, 3)), 2, tmp_path, only="size")
    with pytest.raises(UserError, match="form: where responses state one kind of claim alone"):
        write_lessons(Settings(), 2, tmp_path, only="size")
    for settings in (Settings(domain="text"), Settings(domain="plates"), Settings(responses=2)):
        with pytest.raises(UserError, match="only: single lessons of the domain 'scenes' can state claims of 'size'"):
            write_lessons(settings, 2, tmp_path, only="size")
    with pytest.raises(UserError, match="only: single lessons of the domain 'text' can state claims of 'sum' alone"):
        write_lessons(Settings(), 2, tmp_path, only="sum")
    with pytest.raises(UserError, match="version: checklists of version 3 list sums in one order of numbers"):
        write_lessons(Settings("text", form=0), 2, tmp_path, only="sum")


@pytest.mark.parametrize(
    ("domain", "kind", "version"), [("text", "list", 3), ("text", "list", 4), ("scenes", "texture", 3)]
)
def test_no_rubric_of_training_weighs_some_kinds(domain: str, kind: str, version: int, tmp_path: Path) -> None:
    settings = Settings(domain, version=version, form=0)
    items = [*read_items(str(write_lessons(settings, 40, tmp_path, only=kind).files[0]))]
    assert {item.gold["penalty"] for item in items} == {0}


def test_the_command_drills_with_references_and_padding(tmp_path: Path) -> None:
    told = ["world", "teach", "-n", "20", "--version", "4", "--domain", "text", "--only", "sum", "--form", "0"]
    done = CliRunner().invoke(
        app, [*told, "--quote", "--reference", "100", "--padding", "100", "--out", str(tmp_path / "sums")]
    )
    assert done.exit_code == 0, done.output
    for item in read_items(str(tmp_path / "sums" / "items-00000.jsonl")):
        assert item.reference is not None
        assert {claim["aspect"] for claim in item.gold["claims"]} == {"sum"}
        assert len(text_of(item.responses[0]).split(". ")) > len(item.gold["claims"])
