"""The files that answer a newcomer's questions are there, and a search for the field's term leads to them."""

from benchmarks.findability import FIRST, SOURCE, hits, rows


def test_a_search_for_the_term_leads_to_the_file() -> None:
    questions = rows()
    assert len(questions) == 40
    assert not [file for _, _, file in questions if not (SOURCE / file).is_file()]
    assert sum(file in hits(term)[:FIRST] for _, term, file in questions) >= 36
