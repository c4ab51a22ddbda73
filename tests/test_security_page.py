"""docs/security.md: each attack names the tests that hold it, and each test that it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ATTACKS, FIGURES = (
    (ROOT / "docs" / "security.md").read_text("utf-8").partition("## Attacks")[2].split("Tests that draw")
)
KEYWORDS = {"soak", "slow", "and", "or", "not"}


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of a table, without its head."""
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    return found[2:]


def test_each_attack_names_tests_that_exist() -> None:
    attacks = rows(ATTACKS)
    assert len(attacks) >= 60
    for cells in attacks:
        assert len(cells) == 3, cells
        named = re.findall(r"`(tests/[\w/]+\.py)`", cells[2])
        assert named, cells
        for each in named:
            assert "\ndef test_" in (ROOT / each).read_text("utf-8"), each


def test_each_figure_has_a_date_and_a_command_that_finds_tests() -> None:
    figures = rows(FIGURES)
    assert len(figures) > 8
    for cells in figures:
        assert len(cells) == 4, cells
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", cells[2]), cells
        assert re.search(r"\bpytest\b|python -m benchmarks\.", cells[3]), cells
        for each in re.findall(r"tests/[\w/]+\.py", cells[3]):
            source = (ROOT / each).read_text("utf-8")
            assert "mark.soak(" in source or "mark.slow" in source, each
            for words in re.findall(r'-k "?([\w ]+)"?', cells[3]):
                assert all(word in KEYWORDS or word in source for word in words.split()), cells
