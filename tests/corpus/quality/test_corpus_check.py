"""Checks of feedback data find the faults that were planted, and none in clean data."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from corpus.rows import FEEDBACK, PREFERENCE
from dikast.core.errors import DataError
from dikast.core.records import write_items, write_records
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.quality.check import Check, check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.quality.mutual_information import cut, information, mutual_information
from dikast.corpus.quality.plots import plots
from dikast.surface.cli import app
from dikast.worlds.make import make
from dikast.worlds.settings import Settings


def test_mutual_information_by_hand() -> None:
    # two fair coins that always agree share one bit; independent ones share none
    a = np.array([0, 0, 1, 1])
    assert math.isclose(mutual_information(a, a), 1.0)
    assert mutual_information(a, np.array([0, 1, 0, 1])) == 0
    # p(a=0)=3/4, b=1 only with a=1: H(b) = .8113, H(b|a) = 0
    assert math.isclose(mutual_information(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])), 0.8112781244591328)
    assert cut(np.array([1.0, 1.0, 1.0, 5.0]), 4).tolist() == [0, 0, 0, 1]


def test_information_is_beside_what_chance_gives() -> None:
    rng = np.random.default_rng(5)
    score = rng.integers(1, 6, 2000)
    found = information("words", 10 * score + rng.normal(0, 5, 2000), score)
    assert found.bits > 1
    assert found.p == 1 / 201
    nothing = information("words", rng.normal(0, 1, 2000), score)
    assert abs(nothing.excess) < 0.01
    assert nothing.p > 0.01
    constant = information("words", np.ones(50), score[:50])
    assert math.isnan(constant.bits)
    assert math.isnan(constant.p)
    assert constant.n == 50


def test_shuffles_are_fair() -> None:
    rng = np.random.default_rng(11)
    low = [information("x", rng.normal(size=80), rng.integers(1, 4, 80), draws=39).p <= 0.05 for _ in range(300)]
    assert 0.02 < np.mean(low) < 0.09


def test_likeness_is_found() -> None:
    text = "The quick brown fox jumps over the lazy dog while the old grey cat sleeps on the warm stone by the river"
    index = Index()
    assert index.add(text, "a") is None
    same = index.add(text.upper() + "!", "b")
    assert same is not None
    assert (same.name, same.likeness) == ("a", 1.0)
    near = index.find(text + " today")
    assert near is not None
    assert 0.8 <= near.likeness < 1
    assert index.find("Something else entirely is said here about boats and bread") is None
    assert index.find("...") is None
    assert Index(near=False).find(text) is None


def feedback(i: int, score: int, words: int, **more: Any) -> dict[str, Any]:
    said = " ".join(f"word{i}x{k}" for k in range(words))
    return {**FEEDBACK, "orig_instruction": f"Task number {i} of many: say {i * 7}", "orig_response": said,
            "orig_score": str(score), "orig_feedback": "It is fine.", **more}  # fmt: skip


def checked(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Check:
    path = tmp_path / "set.jsonl"
    write_records(path, rows)
    return check_file(path, CheckOptions(draws=50, **options))


def test_length_bias_is_found(tmp_path: Path) -> None:
    check = checked(tmp_path, [feedback(i, 1 + i % 5, 5 + 4 * (i % 5)) for i in range(100)])
    words = check.information[0]
    assert (words.feature, words.n) == ("words", 100)
    assert words.bits > 2
    assert words.r > 0.99
    assert check.scores == {str(n): 20 for n in range(1, 6)}
    assert check.rubrics["distinct"] == 1
    flat = checked(tmp_path, [feedback(i, 1 + i % 5, 5 + i // 5) for i in range(100)])
    assert abs(flat.information[0].r) < 0.05
    assert flat.information[0].p > 0.05


def test_contradictions_and_duplicates_are_found(tmp_path: Path) -> None:
    rows = [feedback(i, 3, 8) for i in range(6)]
    rows[1]["orig_feedback"] = "Weak on the whole. So the overall score is 2."
    rows[2]["orig_feedback"] = "Score: 3. " + "After that come many reasons. " * 5
    rows[4] = {**rows[3], "orig_score": "1"}
    found = checked(tmp_path, rows).findings
    assert found["feedback states another score"].examples == ["line 2: labelled 3, the feedback says 2"]
    assert (found["feedback states another score"].found, found["feedback states another score"].n) == (1, 6)
    assert found["feedback names its score early"].examples == ["line 3"]
    assert found["the same response scored differently"].examples == ["line 5: 1, earlier 3"]
    assert found["duplicate responses"].found == 1
    pairs = [
        PREFERENCE,
        {**PREFERENCE, "orig_preference": "B"},
        {**PREFERENCE, "orig_feedback": "Response B is better."},
    ]
    told = checked(tmp_path, pairs).findings
    assert told["preference against the scores"].found == 1
    assert told["feedback prefers the other"].found == 1


def test_leaks_are_found(tmp_path: Path) -> None:
    bench = tmp_path / "bench.jsonl"
    write_records(bench, [feedback(i, 3, 30) for i in (1, 2)])
    rows = [feedback(i, 3, 30) for i in (7, 2, 9)]
    check = checked(tmp_path, rows, against=(str(bench),))
    assert check.findings["leaked: response"].found == 1
    assert check.findings["leaked: instruction"].found == 1
    assert check.findings["leaked: rubric"].found == 1
    assert f"{bench}:2" in check.findings["leaked: response"].examples[0]
    assert check.against == {str(bench): 2}


def test_worlds_tell_nothing_by_their_length(tmp_path: Path) -> None:
    path = tmp_path / "world.jsonl"
    write_items(path, (s.item() for s in make(Settings(domain="text", scales=("1-5",), form=0), 250)))
    check = check_file(path, CheckOptions(near=False))
    assert check.information[0].p > 0.01
    assert check.findings["feedback states another score"].found == 0


def test_check_and_card_on_the_command_line(tmp_path: Path) -> None:
    path, card = tmp_path / "set.jsonl", tmp_path / "card.md"
    write_records(path, [feedback(i, 1 + i % 5, 9) for i in range(20)])
    result = CliRunner().invoke(app, ["corpus", "check", str(path), "--json", "--draws", "20"])
    assert result.exit_code == 0, result.output
    told = orjson.loads(result.stdout)
    assert told["records"] == 20
    assert told["information"][0]["n"] == 20
    made = CliRunner().invoke(app, ["corpus", "card", str(path), "-o", str(card), "--title", "Ours"])
    assert made.exit_code == 0, made.output
    text = card.read_text("utf-8")
    assert text.startswith("# Ours\n")
    assert "| 5 | 4 | 20.0% |" in text
    assert "Leakage was not checked" in text


@pytest.mark.parametrize("verb", ["check", "card"])
def test_flags_of_both_verbs_come_from_one_place_and_from_files(verb: str, tmp_path: Path) -> None:
    path, config = tmp_path / "set.jsonl", tmp_path / "check.yaml"
    write_records(path, [feedback(i, 1 + i % 5, 9 + i % 5) for i in range(20)])
    more = ["-o", str(tmp_path / "card.md"), "--no-plots"] if verb == "card" else []
    config.write_text(f"against: [{path}]\nnear: false\ndraws: 20\nlanguage: Klingon\n")
    refused = CliRunner().invoke(app, ["corpus", verb, str(path), *more, "--config", str(config)])
    assert "language 'Klingon' cannot be identified" in str(refused.exception)
    told = CliRunner().invoke(app, ["corpus", verb, str(path), *more, "--config", str(config), "--language", "en"])
    assert told.exit_code == 0, told.output
    text = (tmp_path / "card.md").read_text() if verb == "card" else told.output
    assert "Leakage was not checked" not in text
    config.write_text("draws: 3\nlanguag: en\n")
    refused = CliRunner().invoke(app, ["corpus", verb, str(path), *more, "--config", str(config)])
    assert "did you mean 'language'?" in str(refused.exception)
    assert "of at least 20" in str(refused.exception)


def test_the_card_s_plots_show_its_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path, card = tmp_path / "set.jsonl", tmp_path / "my card.md"
    write_records(path, [feedback(i, 1 + i % 5, 9 + i % 5) for i in range(20)])
    made = CliRunner().invoke(app, ["corpus", "card", str(path), "-o", str(card)])
    assert made.exit_code == 0, made.output
    assert "(my%20card.svg)" in card.read_text("utf-8")
    svg = (tmp_path / "my card.svg").read_text("utf-8")
    for told in ("score", "mean words of a response", "mutual information with the score, bits", "characters"):
        assert f"<!-- {told} -->" in svg
    again = plots(check_file(path), tmp_path / "again.svg")
    assert again is not None
    assert again.read_text("utf-8") == svg
    bare = plots(checked(tmp_path, [{"id": "1", "instruction": "q", "response": "a"}], near=False), tmp_path / "no.svg")
    assert bare is None
    CliRunner().invoke(app, ["corpus", "card", str(path), "-o", str(tmp_path / "plain.md"), "--no-plots"])
    assert not (tmp_path / "plain.svg").exists()


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"set\.jsonl:2"):
        checked(tmp_path, [feedback(1, 2, 3), {**feedback(2, 2, 3), "orig_score": "two"}])
