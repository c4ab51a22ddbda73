"""How choices are spelt, what cannot be read, and how two games make one verdict."""

from pathlib import Path

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, write
from dikast.audit.plan import PairLabels
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.choices import DISAGREE, FIRST, NONE, SECOND, TIE, WRONG
from dikast.audit.tables.columns import Words
from dikast.core.errors import UserError


def read(labels: str, *texts: str) -> list[int]:
    words = Words(np.arange(len(texts)), list(texts))
    return list(pairs.read_choices(words, PairLabels.parse(labels), "score").codes)


def test_numbers_are_the_same_choice_however_they_are_written() -> None:
    assert read("1,2,0", "1.0", "2.00", "0", "-0.0", "2e0", "12", "") == [FIRST, SECOND, TIE, TIE, SECOND, NONE, NONE]
    assert read("1,2", "1", "tie") == [FIRST, TIE]


def test_an_outcome_has_several_spellings() -> None:
    assert read("1|model_1,2|Model_2,0|1.5|both", "MODEL_1", "model_2", "1.50", "Both", "0.0", "1") == [
        FIRST, SECOND, TIE, TIE, TIE, FIRST,
    ]  # fmt: skip


@pytest.mark.parametrize("labels", ["1,2,2.0", "A,a", "1,2|x,0|X", "1,1"])
def test_two_outcomes_with_one_spelling_are_refused(labels: str) -> None:
    with pytest.raises(UserError, match=r"stands for both .* give each outcome spellings of its own"):
        PairLabels.parse(labels)


@pytest.mark.parametrize("labels", ["1", "1,2,", "1,2|,0", "1,2,0,3", "|,2"])
def test_labels_without_a_word_are_refused(labels: str) -> None:
    with pytest.raises(UserError, match="write the words for first, second and tie"):
        PairLabels.parse(labels)


def test_a_column_that_cannot_be_read_stops_the_audit(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"won": "1"}] * 60 + [{"won": "2.5"}] * 38 + [{"won": "n/a?"}] * 2
    file = write(tmp_path / "x.csv", rows)
    arguments = (file, "--score", "won", "--pair-labels", "1,2,0")
    told = refused(run_audit, *arguments)
    assert "40 of the 100 values in column 'won' are no choice: 38 '2.5', 2 'n/a?'" in told
    assert "--allow-unread" in told
    allowed = run_audit(*arguments, "--allow-unread")
    assert rows_of(allowed, "failures", "status")["unparsed"]["count"] == 40
    assert rows_of(run_audit(*arguments, "--failed", "2.5"), "failures", "status")["failed"]["count"] == 40
    spelt = run_audit(file, "--score", "won", "--pair-labels", "1,2|2.5,0")  # 2 of 100 are not over a tenth
    assert rows_of(spelt, "failures", "status")["failed"]["count"] == 2


def test_gold_that_cannot_be_read_stops_the_audit(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"won": "a", "gold": "a"}] * 8 + [{"won": "a", "gold": "model B"}] * 2
    told = refused(run_audit, write(tmp_path / "x.csv", rows), "--score", "won", "--gold", "gold", "--pairwise")
    assert "2 of the 10 values in column 'gold' are no choice: 2 'model B'" in told


def test_two_games_net() -> None:
    one = [FIRST, FIRST, FIRST, TIE, SECOND, TIE, NONE, WRONG]
    two = [FIRST, TIE, SECOND, SECOND, TIE, TIE, FIRST, TIE]
    net = [FIRST, FIRST, DISAGREE, SECOND, SECOND, TIE, NONE, WRONG]
    assert pairs.joint(one, two, "net").tolist() == net
    assert pairs.joint(one, two).tolist() == [FIRST, DISAGREE, DISAGREE, DISAGREE, DISAGREE, TIE, NONE, WRONG]
    assert pairs.joint(one, two, "tie").tolist() == [FIRST, TIE, TIE, TIE, TIE, TIE, NONE, WRONG]


def test_two_games_from_the_command_line(tmp_path: Path, run_audit: Run) -> None:
    # 10 pairs agree, 6 are a win and a tie, 4 are a win of each: gold always says the first
    rows = [{"one": a, "two": b, "gold": "a"} for a, b in [("a", "a")] * 10 + [("a", "tie")] * 6 + [("a", "b")] * 4]
    arguments = (write(tmp_path / "x.csv", rows), "--score", "one", "--swapped", "two", "--gold", "gold")
    both = rows_of(run_audit(*arguments), "accuracy", "statistic")["accuracy (all)"]
    assert both["both together"]["value"] == 10 / 20
    found = run_audit(*arguments, "--two-games", "net")
    assert rows_of(found, "accuracy", "statistic")["accuracy (all)"]["both together"]["value"] == 16 / 20
    assert any("--two-games net" in note for note in found["tables"]["accuracy"]["notes"])
    assert {row["side"]: row["share"]["value"] for row in found["tables"]["preferences"]["rows"]}["first wins"] == 0.8
