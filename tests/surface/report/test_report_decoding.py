"""How often verdicts are decoded on the way to a report: once, and those that the page shows once more."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dikast.audit.plan import AuditPlan
from dikast.core.errors import UserError
from dikast.core.runs import current_verdicts, lines
from dikast.surface.report.collect import collect
from dikast.surface.report.report_options import Asked


@pytest.mark.parametrize("kind", ["graded", "compared"])
def test_verdicts_are_decoded_once_for_audit_and_page(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page counts rows while the audit reads them; no pass is made to learn what the run holds."""
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(kind), run)
    n = len((run / "verdicts.jsonl").read_bytes().splitlines())
    decoded: list[int] = []
    opened = lines.open_line

    def counted(raw: bytes, *, line: int, **more: object) -> object:
        decoded.append(line)
        return opened(raw, line=line, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(current_verdicts, "open_line", counted)
    monkeypatch.setattr(current_verdicts, "_BLOCK", 1)
    page = collect(run, Asked(AuditPlan(run, draws=20), queue=5, sample=4))
    orders = 2 if kind == "compared" else 1
    assert [len(entry.said) for entry in (*page.entries, *page.sample)] == [orders] * 9
    first = 3  # of the first verdicts: until both orders of a pair were seen
    assert n <= len(decoded) <= n + 9 * orders + first
    assert set(decoded) == set(range(1, n + 1))


@pytest.mark.parametrize("kind", ["graded", "compared"])
def test_a_page_is_the_same_whether_its_rows_were_read_by_the_audit_or_by_itself(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = request.getfixturevalue(kind)
    asked = Asked(AuditPlan(run, draws=20), queue=9)
    page = collect(run, asked)

    def refused(plan: AuditPlan, watch: object) -> None:
        raise UserError("not now")

    monkeypatch.setattr("dikast.surface.report.collect.audit_file", refused)
    alone = collect(run, asked)
    assert alone.audit is None
    assert alone.missing[-1] == "no audit: not now"
    assert page.rows == alone.rows > 0
    assert page.labels
    assert page.entries
    assert replace(page, audit=None, missing=[]) == replace(alone, missing=[])


def test_the_queue_shows_both_orders_of_a_pair(compared: Path) -> None:
    page = collect(compared, Asked(AuditPlan(compared, draws=20), queue=7))
    assert [{said.shown for said in entry.said} for entry in page.entries] == [{"A shown first", "B shown first"}] * 7
    for entry in page.entries:
        assert entry.verdict == " / ".join(said.label for said in entry.said)
