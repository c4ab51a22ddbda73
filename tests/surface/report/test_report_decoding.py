"""How often verdicts are decoded on the way to a report: once; of a large run those that the page shows once more."""

import itertools
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dikast
from dikast.audit.plan import AuditPlan
from dikast.core.errors import DataError, UserError
from dikast.core.runs import current_verdicts, lines
from dikast.surface.report.collect import collect
from dikast.surface.report.report_options import Asked


@pytest.mark.parametrize("kind", ["graded", "compared"])
def test_verdicts_are_decoded_once_for_audit_and_page(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once where the run is small; else what the audit asks first and what the page shows is read anew."""
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(kind), run)
    n = len((run / "verdicts.jsonl").read_bytes().splitlines())
    decoded: list[int] = []
    read: list[str] = []
    opened, opened_file = lines.open_line, Path.open

    def counted(raw: bytes, *, line: int, **more: object) -> object:
        decoded.append(line)
        return opened(raw, line=line, **more)  # type: ignore[arg-type]

    def noted(path: Path, *given: Any, **more: Any) -> Any:
        read.append(path.name)
        return opened_file(path, *given, **more)

    monkeypatch.setattr(current_verdicts, "open_line", counted)
    monkeypatch.setattr(Path, "open", noted)
    orders = 2 if kind == "compared" else 1
    asked = Asked(AuditPlan(run, draws=20), queue=5, sample=4)
    small = collect(run, asked)
    assert decoded == list(range(1, n + 1))
    assert read.count("verdicts.jsonl") == 1
    decoded.clear()
    monkeypatch.setattr(current_verdicts, "_SMALL", 0)
    monkeypatch.setattr(current_verdicts, "_BLOCK", 1)
    page = collect(run, asked)
    assert [len(entry.said) for entry in (*page.entries, *page.sample)] == [orders] * 9
    first = 3  # of the first verdicts: until both orders of a pair were seen
    assert n <= len(decoded) <= n + 9 * orders + first
    assert set(decoded) == set(range(1, n + 1))
    assert replace(page, audit=None) == replace(small, audit=None)


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the lines of runs that are decoded, by folder, as of runs that are too large to be held."""
    decoded: Counter[str] = Counter()
    opened = lines.open_line

    def counted(raw: bytes, *, path: str, **more: Any) -> object:
        decoded[Path(path).parent.name] += 1
        return opened(raw, path=path, **more)

    monkeypatch.setattr(current_verdicts, "open_line", counted)
    monkeypatch.setattr(current_verdicts, "_SMALL", 0)
    monkeypatch.setattr(current_verdicts, "_BLOCK", 4)
    return decoded


def test_of_two_large_runs_in_pairs_the_first_is_decoded_once_more(
    compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its own audit, and as the run that the second is compared with, whose keys are known from its first line."""
    first, second = (shutil.copytree(compared, tmp_path / name) for name in ("first", "second"))
    n = len((compared / "verdicts.jsonl").read_bytes().splitlines())
    decoded = count_decoded(monkeypatch)
    page = collect(second, Asked(AuditPlan(second, draws=20), queue=0, sample=0), rival=first)
    assert page.audit is not None
    assert "rival" in page.audit
    assert n <= decoded["first"] <= n + 4
    assert n <= decoded["second"] <= n + 8


def test_verdicts_of_a_large_ranking_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    given = {"instruction": "Name a prime.", "responses": ["9", "7", "8"], "gold": [1, 5, 3]}
    rows = [{"id": f"r{k}", **given} for k in range(20)]
    dikast.rank(rows, "mock:oracle", "helpfulness", schedule="full", out=run)
    n = len((run / "verdicts.jsonl").read_bytes().splitlines())
    assert n == 20 * 6
    decoded = count_decoded(monkeypatch)
    page = collect(run, Asked(AuditPlan(run, draws=20), queue=0, sample=0))
    assert page.audit is not None
    assert n <= decoded["run"] <= n + 8  # those until both orders of a pair were seen


def test_damage_is_told_by_every_reader_of_a_run_that_is_held(tmp_path: Path, graded: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(graded, run)
    told = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join([*told[:3], told[3].replace(b"item", b"itme", 1), *told[4:]]))
    with current_verdicts.decoded_once():
        for _ in range(2):
            records = current_verdicts.all_records(run)
            assert [line for _, line in itertools.islice(records, 3)] == [1, 2, 3]
            with pytest.raises(DataError, match=r"verdicts.jsonl:4: a damaged record"):
                next(records)


def test_a_run_that_grows_is_read_again(tmp_path: Path, graded: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(graded, run)
    told = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(told[:3]))
    with current_verdicts.decoded_once():
        assert len(list(current_verdicts.all_records(run))) == 3
        (run / "verdicts.jsonl").write_bytes(b"".join(told))
        assert len(list(current_verdicts.all_records(run))) == len(told)


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
