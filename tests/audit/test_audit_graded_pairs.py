"""Choices that follow from responses graded alone, with gold that says which is better: rules and clusters."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.results import Accuracy
from dikast.surface.cli import app

TOPICS = 4


def compared(folder: Path, *judges: str) -> Path:
    """A run of 24 pairs by scores, six of each topic; all pairs of a topic have the same lengths and the same gold."""
    items = folder / "pairs.jsonl"
    rows: list[dict[str, Any]] = [
        {
            "id": f"i{k}", "instruction": f"Question {k}?", "gold": "ab"[k % 2], "other": "a", "topic": f"t{k % TOPICS}",
            "responses": ["word " * 400, "word"] if k % TOPICS < 3 else ["word", "word " * 400],
        }
        for k in range(24)
    ]  # fmt: skip
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = [part for judge in judges for part in ("--judge", judge)]
    line = ["compare", str(items), *given, "--rubric", "helpfulness", "--from-absolute", "--out", str(folder / "run")]
    done = CliRunner().invoke(app, [*line, "--quiet"])
    assert done.exit_code == 0, done.output
    return folder / "run"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return compared(tmp_path, "mock:prefers-long,r=0,per_doubling=2")


def right(found: Audit) -> Any:
    accuracy = found.result(Accuracy)
    assert accuracy is not None
    return accuracy.rules["all"]


def test_choices_are_drawn_together_by_the_column_of_clusters(run: Path) -> None:
    alone, together = (right(audit_file(AuditPlan(run, cluster=name))) for name in ("", "topic"))
    assert (alone.value, alone.n) == (together.value, together.n)
    assert together.high - together.low > alone.high - alone.low  # four topics say less than 24 pairs
    for name in ("item", "response"):  # of responses, which no pair has one of
        assert right(audit_file(AuditPlan(run, cluster=name))).value == alone.value


def test_raters_of_choices_are_joined_by_the_rule(run: Path, tmp_path: Path) -> None:
    file, names = tmp_path / "pairs.jsonl", ("other", "gold")
    first = audit_file(AuditPlan(run, gold=names, gold_file=file, gold_rule="first"))
    assert right(first).n == 24  # all from "other"; the majority of two is where both say a
    assert right(first).value == right(audit_file(AuditPlan(run, gold=("other",), gold_file=file))).value
    majority = audit_file(AuditPlan(run, gold=names, gold_file=file))
    assert right(majority).n == 12
    assert not any("rated nothing" in note for each in (first, majority) for note in each.notes)
