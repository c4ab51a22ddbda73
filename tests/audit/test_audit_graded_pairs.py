"""Choices that follow from responses graded alone, with gold that says which is better: rules, clusters, panels."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dikast.audit.audit import audit_file
from dikast.audit.panel_audit import panel_audit
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.results import Accuracy
from dikast.core.errors import UserError
from dikast.surface.cli import app

TOPICS = 4


def compared(folder: Path, *judges: str) -> Path:
    """A run of 24 pairs by scores, six of each topic; all pairs of a topic have the same lengths and the same gold."""
    items = folder / "pairs.jsonl"
    rows: list[dict[str, Any]] = [
        {
            "id": f"i{k}", "instruction": f"Question {k}?", "gold": "ab"[k % 2], "other": "a",
            "topic": f"t{k % TOPICS}",
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


def share(cell: Any) -> float:
    return float(cell.value)


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


def test_choices_are_sliced_by_what_a_pair_has(run: Path, tmp_path: Path) -> None:
    found = audit_file(AuditPlan(run, by=("topic",)))
    # the judge takes the longer one: the first of t0, t1, t2, the second of t3; gold is a, b, a, b
    said = {row[0]: (row[1], share(row[4])) for row in found["by topic of pairs"].rows}
    assert said == {"t0": (6, 1.0), "t1": (6, 0.0), "t2": (6, 1.0), "t3": (6, 1.0)}
    assert [row[1] for row in found["by topic"].rows] == [12] * 4  # of single responses
    (tmp_path / "weather.csv").write_text(
        "id,sky\n" + "".join(f"i{k},{'sun' if k % 8 < 4 else 'rain'}\n" for k in range(24))
    )
    beside = audit_file(AuditPlan(run, by=(f"sky@{tmp_path}/weather.csv",)))
    assert [(row[0], share(row[4])) for row in beside["by sky of pairs"].rows] == [("rain", 0.75), ("sun", 0.75)]
    alone = audit_file(AuditPlan(run, by=("response",)))
    assert "by response of pairs" not in {table.name for table in alone.tables}
    assert any("choices are not sliced by response" in note for note in alone.notes)
    assert right(alone).value == right(found).value == 0.75


def test_gold_of_choices_stands_in_another_file(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("id,one,two,mark\n" + "".join(f"i{k},{'ba'[k % 2]},a,{k % 5 + 1}\n" for k in range(24)))
    names = ("one", "two")
    beside = audit_file(AuditPlan(run, gold=tuple(f"{name}@{file}" for name in names)))
    assert right(beside) == right(audit_file(AuditPlan(run, gold=names, gold_file=file)))
    assert right(audit_file(AuditPlan(run, gold=(f"one@{file}",)))).value == 0.25  # the opposite of gold
    with pytest.raises(UserError, match="is read from one file"):
        audit_file(AuditPlan(run, gold=(f"one@{file}", f"other@{tmp_path}/pairs.jsonl")))
    rated = audit_file(AuditPlan(run, gold=(f"mark@{file}",)))  # numbers rate responses
    assert rated.result(Accuracy) is None
    assert "agreement" in {table.name for table in rated.tables}


def test_a_panel_of_choices_is_compared_with_their_gold(tmp_path: Path) -> None:
    run = compared(tmp_path, "mock:prefers-long,r=0,per_doubling=2", "mock:prefers-long,r=0,per_doubling=3")
    found = panel_audit(AuditPlan(run))
    each = right(audit_file(AuditPlan(next(path.parent for path in sorted(run.glob("*/verdicts.jsonl"))))))
    assert (right(found).value, right(found).n) == (each.value, each.n)  # both always take the longer one
    assert "by topic" in {table.name for table in panel_audit(AuditPlan(run, by=("topic",))).tables}
    file = tmp_path / "people.csv"
    file.write_text("id,one\n" + "".join(f"i{k},{'ba'[k % 2]}\n" for k in range(24)))
    assert right(panel_audit(AuditPlan(run, gold=(f"one@{file}",)))).value == 0.25


def test_agreement_among_judges_is_of_the_rows_and_clusters_that_were_asked_for(tmp_path: Path) -> None:
    items, sheet = tmp_path / "x.jsonl", tmp_path / "sheet.yaml"
    rows = [
        {"id": f"i{k}", "instruction": "?", "response": "word " * (1 + 40 * (k % 5)), "topic": f"t{k % 2}"}
        for k in range(20)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sheet.write_text("criteria:\n" + "".join(f"- {{name: {n}, criterion: It is good, scale: 1-5}}\n" for n in "abc"))
    judges = ["--judge", "mock:rubric-blind,r=0", "--judge", "mock:constant"]
    line = ["grade", str(items), *judges, "--rubric", str(sheet), "--out", str(tmp_path / "run"), "--quiet"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output

    def same(**asked: Any) -> Any:
        return panel_audit(AuditPlan(tmp_path / "run", **asked))["judge pairs"].estimate("judge 1 - judge 2", "exact")

    together, alone = same(), same(cluster="none")
    assert together.high - together.low > alone.high - alone.low  # a response's criteria are graded alike
    assert (together.n, same(where=("topic=t0",)).n) == (60, 30)
