import re
from itertools import islice

import pytest
from benchmarks.rubric_following import Graded, charges
from benchmarks.rubric_linter import faults, lint, rubrics

from dikast.core.verdict import Question, Status, Verdict
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.level_words import HELD_OUT, SEEN, TEMPLATES, levels
from dikast.worlds.scoring.penalty import Spec
from dikast.worlds.scoring.rubric_grammar import rubric_of
from dikast.worlds.scoring.term_names import names, pattern_of
from dikast.worlds.scoring.terms import Term, held_composition, held_pair, terms_cost
from dikast.worlds.settings import Settings
from dikast.worlds.teach import worked

RED, LARGE, TWO = (
    Claim("colour", "colour", ("star", "red")),
    Claim("size", "size", ("star", "large")),
    Claim("count", "count", ("cross", 2)),
)


@pytest.mark.parametrize(
    ("term", "lost"),
    [
        (Term("colour", "", "each", 2), [2, 0, 0]),  # 2 x 1
        (Term("colour", "", "double", 2), [4, 0, 0]),  # 3 steps off are far
        (Term("size", "", "far", 1), [0, 0, 0]),  # 1 step off is not
        (Term("", "star", "each", 1), [1, 1, 0]),
        (Term("", "star", "once", 3), [3, 0, 0]),
        (Term("colour", "cross", "each", 1), [0, 0, 0]),
        (Term("count", "cross", "each", 1), [0, 0, 0]),  # right
    ],
)
def test_what_a_term_costs(term: Term, lost: list[int]) -> None:
    assert terms_cost([RED, LARGE, TWO], [3, 1, 0], [term]) == lost


def test_terms_that_cover_one_claim_add_up() -> None:
    both = [Term("colour", "", "each", 2), Term("", "star", "each", 1)]
    assert terms_cost([RED, LARGE, TWO], [3, 1, 0], both) == [3, 1, 0]


def test_a_rubric_says_what_it_weighs() -> None:
    terms = (Term("colour", "star", "double", 2, "hues where a star is named"), Term("size", "", "each", 1, "sizes"))
    rubric = rubric_of(Spec((), False, (0, 2), "1-3", False, (0, 0, 0, 0), terms=terms, domain="scenes"))
    assert rubric.criterion == (
        "Judge the hues where a star is named and the sizes. A mistake costs: 2 for hues where a star is named; 1 for"
        " sizes. A mistake in the hues where a star is named costs double if the colour is 2 or more steps off on the"
        " colour wheel. The colour wheel is red, orange, yellow, green, teal, blue, purple, pink, and red again."
    )
    assert dict(rubric.levels) == {"3": "nothing lost", "2": "1 to 2 points lost", "1": "more than 2 points lost"}


def test_thousands_of_terms_and_many_held_out() -> None:
    shapes = ("circle", "square", "triangle", "diamond", "cross", "star")
    kinds = ("colour", "size", "shape", "position", "relation", "count", "existence")
    held = [(kind, word) for kind in kinds for word in shapes if held_composition(kind, word)]
    assert 2 < len(held) < len(kinds) * len(shapes) / 2
    headings = [Term(kind, word, "each", 1) for kind in kinds for word in ("", *shapes)]
    pairs = [(a, b) for i, a in enumerate(headings) for b in headings[i + 1 :] if held_pair(a, b)]
    assert len(pairs) > 100
    assert not held_pair(headings[0], headings[0])


@pytest.mark.parametrize(("kind", "domain"), [("number", "plates"), *((kind, "scenes") for kind in ("", *ASPECTS))])
def test_each_aspect_has_a_bank_of_names(kind: str, domain: str) -> None:
    for about in (False, True):
        seen, held = names(kind, about, domain, "seen"), names(kind, about, domain, "held_out")
        assert 30 <= len(seen) + len(held) <= 60
        assert len(held) >= 5
        assert not set(seen) & set(held)
        assert set(names(kind, about, domain, "all")) == {*seen, *held}
        known = {word for name in seen for word in name.split()}
        assert {word for name in held for word in name.split()} <= known


def test_the_pattern_of_a_name() -> None:
    assert pattern_of(Term("", "star", "each", 1, "claims naming a star"), "scenes") == "claims naming {w}"
    red = Term("binding", "red", "each", 1, "paired colours where red is named")
    assert pattern_of(red, "clips") == "paired colours where {w} is named"
    assert pattern_of(Term("size", "", "each", 1, "sizes stated"), "scenes") == "sizes stated"


def test_fifty_templates_of_levels() -> None:
    assert TEMPLATES == len(SEEN) + len(HELD_OUT) == 50
    assert levels((0, 1, 4), 0) == ["nothing lost", "1 point lost", "2 to 4 points lost", "more than 4 points lost"]
    assert levels((1,), 6) == ["up to 1 point off", "over 1 point off"]
    assert len({tuple(levels((0, 2), i)) for i in range(TEMPLATES)}) == 50


def test_the_linter_finds_nothing() -> None:
    assert not lint(islice(rubrics(3), 150))


@pytest.mark.slow
def test_the_linter_finds_nothing_in_ten_thousand_rubrics() -> None:
    assert not lint(islice(rubrics(0), 10_000))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Judge the", "Judge the the", "doubled word"),
        ("costs double", "is special", ""),
        (" The colour wheel is red", " Wheel red", "unit undefined: on the colour wheel"),
        ("1 for sizes", "for sizes", "cost unsaid"),
        ("Judge the", "Points are lost by the", "odd words"),
    ],
)
def test_the_linter_finds_planted_faults(old: str, new: str, fault: str) -> None:
    terms = (Term("colour", "star", "double", 2, "hues where a star is named"), Term("size", "", "each", 1, "sizes"))
    spec = Spec((), False, (0, 2), "1-3", False, (0, 0, 0, 0), terms=terms, domain="scenes")
    sample = next(rubrics(0))
    planted = _Planted(sample, spec, old, new)
    assert (fault in list(faults(planted))) == bool(fault)  # type: ignore[arg-type]


class _Planted:
    """A sample whose rubric's text was changed."""

    def __init__(self, sample: Sample, spec: Spec, old: str, new: str) -> None:
        from dataclasses import replace

        self.spec = spec
        told = rubric_of(spec)
        assert old in told.criterion
        self.rubric = replace(told, criterion=told.criterion.replace(old, new))


@pytest.mark.parametrize("split", ["wordings", "combinations", "aspects"])
def test_what_is_held_out_is_many(split: str) -> None:
    by = "phrase" if split == "wordings" else "composition"
    held = {sample.meta()[by] for sample in make(Settings(split=split, seed=4, version=4), 240)}
    assert len(held) >= 20
    if split == "wordings":  # phrases, whatever they are about
        assert any("{w}" in phrase for phrase in held)
        assert not any(re.search(r"\b(star|red)\b", phrase) for phrase in held)


def test_charges_are_read_from_what_a_judge_says() -> None:
    samples = list(make(Settings(seed=4, version=4), 80))
    said = [Verdict("k", Question("i", "c"), Status.UNPARSED, raw=worked(s, quote=True)) for s in samples]
    found = list(charges([Graded(*each, "") for each in zip(samples, said, strict=True)]))
    for weighed in (True, False):
        assert [charged for _, cost, charged, _ in found if cost is weighed][20:] != []
        assert all(charged is weighed for _, cost, charged, _ in found if cost is weighed)
