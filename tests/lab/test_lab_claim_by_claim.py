"""Responses graded claim by claim, and joined again."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dikast.core.errors import UserError
from dikast.core.part import text_of
from dikast.core.rubric import Rubric
from dikast.lab.claim_by_claim import claims_apart, joined_score
from dikast.lab.experiment import load_experiment
from dikast.lab.findings import findings
from dikast.lab.running import run_experiments
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from lab_experiments import written

WORLD = {"domain": "text", "split": "fresh", "aspects": ["fact"], "scales": ["1-5"], "form": 0, "claims": [6, 6]}
ITEMS = [
    sample.item()
    for sample in make(Settings(domain="text", aspects=("fact",), scales=("1-5",), form=0, claims=(6, 6), seed=2), 40)
]


def test_right_answers_about_claims_give_the_gold_of_the_response() -> None:
    worst = set()
    for item in ITEMS:
        parts = list(claims_apart(item))
        assert [text_of(part.response) for part in parts] == [claim["text"] for claim in item.gold["claims"]]
        assert all(isinstance(part.rubric, Rubric) and part.rubric.scale.labels == ("fail", "pass") for part in parts)
        score, gold = joined_score([(part.gold["score"], part.meta) for part in parts])
        assert isinstance(item.rubric, Rubric)
        assert score == gold == item.rubric.scale.goodness(item.gold["score"])
        worst.add(score)
    assert len(worst) > 3


def test_a_claim_without_an_answer_leaves_the_response_without_a_score() -> None:
    parts = list(claims_apart(ITEMS[0]))
    score, gold = joined_score([(float("nan"), part.meta) for part in parts])
    assert score != score
    assert gold == gold


def test_mistakes_of_different_costs_are_refused() -> None:
    uneven = replace(ITEMS[0], meta={"spec": {"weights": {"fact": 1, "sum": 2}, "entries": [], "cuts": [0]}})
    with pytest.raises(UserError, match="every mistake costs the same"):
        list(claims_apart(uneven))


def test_findings_join_what_was_graded_apart(tmp_path: Path) -> None:
    by_claim = {"judge": "mock:oracle,r=1", "held": {"text": {"change": {"claim_wise": True}}}}
    held = {"text": {"world": {**WORLD, "seed": 5}, "n": 30}}
    path = written(tmp_path, base={"held": held}, arms={"poor": by_claim})
    run_experiments([load_experiment(path)], tmp_path / "lab")
    [found] = findings(tmp_path / "lab")
    joined = found.figures["poor", "text", "pearson"]
    assert joined.n == 30
    assert math.isclose(joined.value, 1)
    assert found.figures["good", "text", "pearson"].n == 30
    assert found.effects["gain"].n == 30  # paired
    assert found.cost["graded_items"] == 30 + 30 * 6


def test_items_of_other_numbers_of_claims_are_other_items(tmp_path: Path) -> None:
    held = {"text": {"world": {**WORLD, "claims": [6, 6]}, "n": 30}}
    fewer = {"judge": "mock:oracle,r=.9,errors=.5", "held": {"text": {"world": {"claims": [5, 5]}, "n": 50}}}
    path = written(tmp_path, base={"held": held}, arms={"poor": fewer})
    run_experiments([load_experiment(path)], tmp_path / "lab")
    [found] = findings(tmp_path / "lab")
    answered = found.figures["poor", "text", "pearson"].n
    assert 20 <= answered < 40
    assert found.figures["good", "text", "pearson"].n == 30
    assert found.effects["gain"].n == 30 + answered  # what one arm lacks is not taken from the other
    assert "not paired" in found.effects["gain"].method
