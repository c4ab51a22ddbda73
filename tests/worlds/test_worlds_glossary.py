"""What names in rubrics mean, said apart from any rubric."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.surface.cli import app
from dikast.training.data.examples import rows_of_file
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.glossary import ASK_NAMES
from dikast.worlds.sampling.held_out import HELD_OUT_ASPECTS, HELD_OUT_DOMAIN, HELD_OUT_KINDS
from dikast.worlds.scoring.term_names import names, pattern_of
from dikast.worlds.scoring.terms import HELD_OUT_WORDS, RULES, Term, held_composition
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons


def rows_of(folder: Path, settings: Settings, n: int = 200) -> list[dict[str, str]]:
    (file,) = write_lessons(settings, n, folder, instead="glossary").files
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("domain", [domain for domain in DOMAINS if domain != HELD_OUT_DOMAIN])
def test_a_glossary_says_of_each_name_its_kind_and_word(domain: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "names", Settings(domain, seed=3, version=4))
    kinds: set[str] = set()
    words: set[str] = set()
    for row in rows:
        asked = row["instruction"].removeprefix(ASK_NAMES + " ").removesuffix(".").split("; ")
        told = [line.removeprefix("Rule: ").rpartition(": ") for line in row["target"].split("\n")]
        costs = [" ".join(meaning.split(" ")[2:]) for _, _, meaning in told]
        assert [f"{name}, {cost}" for (name, _, _), cost in zip(told, costs, strict=True)] == asked  # in this order
        assert len({name for name, _, _ in told}) == len(told)
        assert {cost.split(" ")[0] for cost in costs} <= set(RULES)
        for name, _, meaning in told:
            kind, word = (part if part != "all" else "" for part in meaning.split(" ")[:2])
            kinds.add(kind)
            words.add(word)
            assert kind or word
            assert not held_composition(kind, word)
            pattern = pattern_of(Term(kind, word, "each", 1, name), domain)
            assert pattern in names(kind, bool(word), domain, "seen")  # no phrase of the split `wordings`
    held = set(HELD_OUT_ASPECTS) & DOMAINS[domain].kinds.keys()  # what the split `aspects` weighs here
    assert held
    assert held <= kinds
    assert words & set(HELD_OUT_WORDS) or domain == "plates"
    assert not kinds & set(HELD_OUT_KINDS)


def test_a_glossary_is_talk_without_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "names"
    rows = rows_of(folder, Settings(seed=3, version=4), 30)
    assert sorted(path.name for path in folder.iterdir()) == ["talk-00000.jsonl", "world.json"]
    assert json.loads((folder / "world.json").read_text())["glossary"] == 2
    read = list(rows_of_file(str(folder / "talk-00000.jsonl"), talk=True))
    assert [target for _, target in read] == [row["target"] for row in rows]


def test_the_number_of_workers_does_not_change_a_glossary(tmp_path: Path) -> None:
    settings = Settings("text", seed=3, version=4)
    one, two = (
        write_lessons(settings, 40, tmp_path / str(workers), instead="glossary", workers=workers, shard=20).files
        for workers in (1, 2)
    )
    assert len(one) == 2
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_what_cannot_have_a_glossary_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "names"
    for settings in (Settings(version=3), Settings(version=4, responses=2)):
        with pytest.raises(UserError, match=r"glossary: .*--version 4"):
            write_lessons(settings, 10, out, instead="glossary")
    for others in ({"reference": 25}, {"quote": True}, {"padding": 5}, {"blank": 5}):
        with pytest.raises(UserError, match="glossary: it has no lessons and no pictures: leave out reference, "):
            write_lessons(Settings(version=4), 10, out, instead="glossary", **others)
    assert not out.exists()


def test_the_command_writes_a_glossary(tmp_path: Path) -> None:
    out = tmp_path / "names"
    ran = CliRunner().invoke(
        app, ["world", "teach", "--version", "4", "--glossary", "--domain", "text", "-n", "20", "--out", str(out)]
    )
    assert ran.exit_code == 0, ran.output
    assert "20 lessons" in ran.output
    assert len((out / "talk-00000.jsonl").read_text().splitlines()) == 20
