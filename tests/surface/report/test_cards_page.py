"""The page of scorecards says of a judge what the report's rules say."""

from pathlib import Path
from typing import Any

import pytest

from benches.own_bench import judge_own, own
from dikast.audit.plan import AuditPlan
from dikast.benches.scorecard import scorecard
from dikast.surface.benching.cards_page import card_conclusion, cards_page
from dikast.surface.report.collect import collect
from dikast.surface.report.conclusion import of_judge
from dikast.surface.report.report_options import Asked


@pytest.mark.parametrize("judge", ["mock:constant", "mock:random"])
def test_a_card_and_the_report_of_its_run_conclude_alike(judge: str, tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "q": f"question {k}", "a": "answer", "score": 1 + k % 5} for k in range(40)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": "score", "scale": "1-5"}, "official": {"metric": "pearson"},
    }  # fmt: skip
    judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out")
    run = tmp_path / "out/mine"
    card, reported = scorecard(run), of_judge(collect(run, Asked(AuditPlan(run))))
    assert card_conclusion(card) == reported
    assert reported.light == "red"
    if judge == "mock:constant":
        assert "the judge always says 3" in cards_page([card])
