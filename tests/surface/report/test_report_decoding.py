"""How often verdicts are decoded on the way to a report: by the audit, and by the page, which shows few of them."""

import shutil
from pathlib import Path

import pytest

from dikast.audit.plan import AuditPlan
from dikast.core.runs import current_verdicts, lines
from dikast.surface.report.collect import Asked, collect


@pytest.mark.parametrize("kind", ["graded", "compared"])
def test_verdicts_are_decoded_once_for_the_audit_and_once_for_the_page(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pass is made to find out what the run holds, nor to find the verdicts of the queue again."""
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
    page = collect(run, Asked(AuditPlan(run, draws=20), queue=5))
    orders = 2 if kind == "compared" else 1
    assert [len(entry.said) for entry in page.entries] == [orders] * 5
    first = 3  # of the first verdicts: until both orders of a pair were seen
    assert len(decoded) <= 2 * n + 5 * orders + first
    assert set(decoded) == set(range(1, n + 1))


def test_the_queue_shows_both_orders_of_a_pair(compared: Path) -> None:
    page = collect(compared, Asked(AuditPlan(compared, draws=20), queue=7))
    assert [{said.shown for said in entry.said} for entry in page.entries] == [{"A shown first", "B shown first"}] * 7
    for entry in page.entries:
        assert entry.verdict == " / ".join(said.label for said in entry.said)
