"""Findings to compare with rules, apart from any rubric, picture and response."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.surface.cli import app
from dikast.training.data.examples import rows_of_file
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.domains.vocabulary import COLOURS, HELD_OUT_PAIRS, SHAPES
from dikast.worlds.make import make
from dikast.worlds.matching import ASK_MATCH, checks, matching
from dikast.worlds.sampling.held_out import HELD_OUT_ASPECTS, HELD_OUT_DOMAIN, HELD_OUT_KINDS
from dikast.worlds.scoring.terms import HELD_OUT_WORDS, Term, held_composition, held_pair
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons


def rows_of(folder: Path, settings: Settings, n: int = 200) -> list[dict[str, str]]:
    (file,) = write_lessons(settings, n, folder, instead="matching").files
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_finding_is_checked_by_each_rule() -> None:
    claims = [
        Claim("colour", "colour", ("star", "red")),
        Claim("colour", "colour", ("ring", "blue")),
        Claim("size", "size", ("star", "large")),
    ]
    once, stars = Term("colour", "", "once", 3), Term("", "star", "double", 2)
    assert checks(claims, [1, 2, 2], [once, stars]) == [
        "colour all once 3 counts 3, all star double 2 counts 2",
        "colour all once 3 counts 0, all star double 2 no",
        "colour all once 3 no, all star double 2 counts 4",
    ]
    assert checks(claims[1:2], [1], [stars]) == ["all star double 2 no, not weighed"]
    assert checks(claims, [0, 0, 0], []) == ["", "", ""]


@pytest.mark.parametrize("domain", [domain for domain in DOMAINS if domain != HELD_OUT_DOMAIN])
def test_a_row_follows_from_what_it_states(domain: str, tmp_path: Path) -> None:
    """Worked again from the text of the row alone, by another program."""
    counted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    words: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for row in rows_of(tmp_path / "rows", Settings(domain, seed=3, version=4)):
        asked = row["instruction"].removeprefix(f"{ASK_MATCH} ").removesuffix(".").split("; ")
        rules = [each.removeprefix("Rule: ").split(" ") for each in asked if each.startswith("Rule: ")]
        findings = [each for each in asked if each.startswith("Finding: ")]
        told = row["target"].split("\n")
        assert told[: len(rules)] == asked[: len(rules)]
        terms = [Term(k.replace("all", ""), w.replace("all", ""), rule, int(n)) for k, w, rule, n in rules]
        assert not any(held_composition(*term[:2]) for term in terms)
        assert not any(held_pair(a, b) for a in terms for b in terms if a != b)
        total, paid = 0, set()
        for finding, line in zip(findings, told[len(rules) : -1], strict=True):
            verdict, about = finding.removeprefix("Finding: ").split(", ")
            kind, *args = about.split(" ")
            seen[kind] += 1
            pairs |= {(a, b) for a in args for b in args}
            said, cost = [], 0
            for wanted, word, rule, weight in rules:
                name = f"{wanted} {word} {rule} {weight}"
                if wanted not in ("all", kind) or word not in ("all", *args):
                    said.append(f"{name} no")
                    continue
                far, counts = verdict == "wrong far", verdict != "right" and name not in paid
                points = counts * int(weight) * {"double": 1 + far, "far": int(far)}.get(rule, 1)
                paid |= {name} if rule == "once" and points else set()
                said.append(f"{name} counts {points}")
                counted[kind] += 1
                words.add(word)
                cost += points
            total += cost
            said += [] if any("counts" in each for each in said) else ["not weighed"]
            said += [f"{cost} lost, {total} in all"] if cost else []
            assert line == f"{finding}, {', '.join(said)}"
        assert told[-1] == f"Lost: {total}"
    held = set(HELD_OUT_ASPECTS) & DOMAINS[domain].kinds.keys()  # what the split `aspects` weighs here
    assert held
    assert held <= counted.keys()
    assert words & set(HELD_OUT_WORDS)
    assert not seen.keys() & set(HELD_OUT_KINDS)
    assert not pairs & HELD_OUT_PAIRS
    shares = [counted[kind] / seen[kind] for kind in seen]
    assert max(shares) < 2.5 * min(shares)  # no kind counts by itself


def test_kinds_are_exchanged_and_not_renamed_for_good(tmp_path: Path) -> None:
    """What a claim of a texture states ("striped") is called by each kind in turn."""
    rows = rows_of(tmp_path / "rows", Settings(seed=3, version=4), 400)
    called = Counter(kind for row in rows for kind in re.findall(r"(\w+) \w+ striped", row["instruction"]))
    told = "certainty colour comparison count existence position relation shape size texture"
    assert sorted(called) == told.split(" ")
    assert max(called.values()) < 4 * min(called.values())
    first = Counter(re.findall(r"Finding: [a-z ]+, \w+ (\w+) striped", " ".join(row["instruction"] for row in rows)))
    assert set(SHAPES) | set(COLOURS) == first.keys()  # what has a texture is a shape in every claim that is drawn


WORLDS = [("scenes", split) for split in ("train", "operators", "combinations", "aspects", "attributes", "wordings")]
WORLDS += [(domain, "all") for domain in DOMAINS] + [("charts", "domain"), ("text", "combinations"), ("clips", "fresh")]


@pytest.mark.parametrize(("domain", "split"), WORLDS)
def test_every_world_has_such_rows(domain: str, split: str) -> None:
    for row in map(matching, make(Settings(domain, split, seed=4, version=4), 8)):
        assert row["instruction"].count("Finding: ") == row["target"].count("Finding: ") >= 1
        assert row["target"].startswith("Rule: ")
        if split not in ("all", "attributes"):
            named = [set(line.split(", ")[1].split(" ")) for line in row["target"].split("\n") if line[0] == "F"]
            assert not any({colour, shape} <= words for words in named for colour, shape in HELD_OUT_PAIRS)


def test_rows_are_talk_without_pictures_whatever_the_number_of_workers(tmp_path: Path) -> None:
    settings = Settings("text", seed=3, version=4)
    one, two = (
        write_lessons(settings, 40, tmp_path / str(workers), instead="matching", workers=workers, shard=20).files
        for workers in (1, 2)
    )
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]
    folder = tmp_path / "1"
    assert sorted(path.name for path in folder.iterdir()) == ["talk-00000.jsonl", "talk-00001.jsonl", "world.json"]
    assert json.loads((folder / "world.json").read_text())["matching"] == 2
    read = [target for _, target in rows_of_file(str(one[0]), talk=True)]
    assert read == [json.loads(line)["target"] for line in one[0].read_text().splitlines()]


def test_what_cannot_have_such_rows_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "rows"
    for settings in (Settings(version=3), Settings(version=4, responses=2)):
        with pytest.raises(UserError, match=r"matching: .*--version 4"):
            write_lessons(settings, 10, out, instead="matching")
    for others in ({"reference": 25}, {"quote": True}, {"blank": 5}):
        with pytest.raises(UserError, match="matching: it has no lessons and no pictures: leave out reference, "):
            write_lessons(Settings(version=4), 10, out, instead="matching", **others)
    assert not out.exists()


def test_the_command_writes_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows"
    told = ["world", "teach", "--version", "4", "--matching", "--domain", "text", "-n", "20", "--out", str(out)]
    ran = CliRunner().invoke(app, told)
    assert ran.exit_code == 0, ran.output
    assert "20 lessons" in ran.output
    assert len((out / "talk-00000.jsonl").read_text().splitlines()) == 20
