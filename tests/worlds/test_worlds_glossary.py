"""What names in rubrics mean, said apart from any rubric."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.surface.cli import app
from dikast.training.data.examples import rows_of_file
from dikast.worlds.glossary import ASK_NAMES
from dikast.worlds.sampling.held_out import HELD_OUT_ASPECTS
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.term_names import names
from dikast.worlds.scoring.terms import HELD_OUT_WORDS, held_composition
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons


def rows_of(folder: Path, settings: Settings, n: int = 200) -> list[dict[str, str]]:
    (file,) = write_lessons(settings, n, folder, names=True).files
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("domain", ["scenes", "text", "plates", "clips", "pictures", "retouch"])
def test_a_glossary_says_of_each_name_its_kind_and_word(domain: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "names", Settings(domain, seed=3, version=4))
    kinds: set[str] = set()
    words: set[str] = set()
    for row in rows:
        asked = row["instruction"].removeprefix(ASK_NAMES + " ").removesuffix(".").split("; ")
        told = [line.removeprefix("Rule: ").rpartition(": ") for line in row["target"].split("\n")]
        assert [name for name, _, _ in told] == asked  # each once, in this order
        for name, _, meaning in told:
            kind, word = meaning.split(" ")
            kinds.add(kind)
            words.add(word)
            assert kind == "all" or kind in ASPECTS
            if word == "all":
                assert name in names(kind, False, domain, "seen")
            else:
                assert word in name
                assert kind == "all" or not held_composition(kind, word)
    assert "all" in words
    if domain == "scenes":  # what rubrics of training never weigh is named here
        assert {"texture", "comparison"} <= kinds & set(HELD_OUT_ASPECTS)
        assert words & set(HELD_OUT_WORDS)
    if domain == "text":
        assert "list" in kinds


def test_no_phrase_that_is_held_out_stands_in_a_glossary(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "names", Settings(seed=3, version=4))
    told = "\n".join(row["target"] for row in rows)
    kinds = ("colour", "size", "texture", "comparison", "position")
    held = [name for kind in kinds for name in names(kind, False, "scenes", "held_out")]
    assert len(held) > 30
    assert not [name for name in held if f": {name}: " in told]


def test_a_glossary_is_talk_without_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "names"
    rows = rows_of(folder, Settings(seed=3, version=4), 30)
    assert sorted(path.name for path in folder.iterdir()) == ["talk-00000.jsonl", "world.json"]
    assert json.loads((folder / "world.json").read_text())["glossary"] == 1
    read = list(rows_of_file(str(folder / "talk-00000.jsonl"), talk=True))
    assert [target for _, target in read] == [row["target"] for row in rows]


def test_what_cannot_have_a_glossary_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "names"
    for settings in (Settings(version=3), Settings(version=4, responses=2)):
        with pytest.raises(UserError, match=r"glossary: .*--version 4"):
            write_lessons(settings, 10, out, names=True)
    with pytest.raises(UserError, match=r"glossary: .*leave one"):
        write_lessons(Settings(version=4), 10, out, names=True, only_talk=True)
    with pytest.raises(UserError, match=r"only: .*talk has no responses"):
        write_lessons(Settings(version=4, form=0), 10, out, names=True, only="colour")
    assert not out.exists()


def test_the_command_writes_a_glossary(tmp_path: Path) -> None:
    out = tmp_path / "names"
    ran = CliRunner().invoke(
        app, ["world", "teach", "--version", "4", "--glossary", "--domain", "text", "-n", "20", "--out", str(out)]
    )
    assert ran.exit_code == 0, ran.output
    assert "20 lessons" in ran.output
    assert len((out / "talk-00000.jsonl").read_text().splitlines()) == 20
