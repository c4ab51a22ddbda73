"""The glossary holds the field's terms, once each, and points to pages that are there."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = Path(__file__).parents[1] / "src" / "dikast"
PAGE = (DOCS / "glossary.md").read_text("utf-8")
ROWS = [row.strip("|").split("|") for row in PAGE.splitlines() if row.startswith("| ") and not row.startswith("| term")]

SEARCHED = (
    "confidence interval", "inter-rater", "hyperparameter", "attention mask", "loss mask", "prompt injection",
    "perturbation", "adversarial", "few-shot", "prompt template", "length bias", "verbosity bias", "reward model",
    "LLM-as-a-judge", "synthetic", "deduplication", "data augmentation", "statistical power", "learning rate",
    "ground truth",
)  # fmt: skip


@pytest.mark.parametrize("term", SEARCHED)
def test_what_people_search_for_is_found(term: str) -> None:
    """In the glossary and in the source."""
    assert term.casefold() in PAGE.casefold()
    spelt = re.compile(re.sub(r"[ -]", "[ _-]", term), re.IGNORECASE)
    assert any(spelt.search(path.read_text("utf-8")) for path in SOURCE.rglob("*.py"))


def test_each_term_stands_once_and_points_to_a_page() -> None:
    terms = [row[0].strip() for row in ROWS]
    assert len(terms) > 40
    assert len(set(terms)) == len(terms)
    for row in ROWS:
        assert len(row) == 4, row
        for target in re.findall(r"\]\(([^)]+)\)", row[2]):
            page, _, anchor = target.partition("#")
            headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text("utf-8"), re.M)
            assert anchor in {"", *(each.lower().replace(" ", "-") for each in headings)}, target
        assert row[3].strip(), f"{row[0]}: what else is it called?"
