from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.kept_runs import answers
from benchmarks.rubric_following import Graded, figures
from benchmarks.scout import names_nothing

from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.core.verdict import Question, Status, Verdict
from dikast.judging.judge import Judge
from dikast.worlds.domains.scene_graph import Scene
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings
from dikast.worlds.teach import worked


def test_a_stopped_benchmark_asks_only_what_is_missing(tmp_path: Path) -> None:
    samples = list(make(Settings(version=4, size=48), 8))
    judge = Judge("mock:oracle,r=.8", format="scout")
    whole = answers(judge, samples, str(tmp_path))
    assert whole.keys() == {sample.id for sample in samples}
    (verdicts,) = tmp_path.glob("*/run/verdicts.jsonl")
    before = verdicts.read_bytes().splitlines(keepends=True)
    verdicts.write_bytes(b"".join(before[:5]))
    again = answers(judge, samples, str(tmp_path))
    assert [again[sample.id].score for sample in samples] == [whole[sample.id].score for sample in samples]
    lines = verdicts.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    assert lines[:5] == before[:5]  # with their times
    assert [answers(judge, samples)[sample.id].score for sample in samples] == [whole[s.id].score for s in samples]


def test_floors_are_those_of_the_audit_and_of_a_judge_that_ignores_the_rubric(tmp_path: Path) -> None:
    samples = list(make(Settings(version=4, size=48), 64))
    judge = Judge("mock:rubric-blind,r=1", format="scout")
    (run,) = _measured(judge, samples, tmp_path / "several")
    audited = {str(row[0]): row[2] for row in audit_file(AuditPlan(run, draws=50))["within"].rows}
    floors = {name: floor for name, (_, floor) in _found(judge, samples, tmp_path / "several").items()}
    assert float(floors["centred by response"]) == pytest.approx(audited["pearson, centred by group"], abs=0.006)
    name = "contrast pairs: right order, ties half"
    assert float(floors[name]) == pytest.approx(audited["contrasts in the right order"], abs=0.006)

    alike = list(make(Settings(version=4, size=48, scales=("1-3",), form=0), 64))
    found = _found(judge, alike, tmp_path / "one")
    assert found["centred by response"] == (0, "0.00")
    assert found[name] == (0.5, "0.50")


def _measured(judge: Judge, samples: list[Sample], keep: Path) -> list[Path]:
    answers(judge, samples, str(keep))
    return list(keep.glob("*/run"))


def _found(judge: Judge, samples: list[Sample], keep: Path) -> dict[str, tuple[float, str]]:
    said = answers(judge, samples, str(keep))
    rows = [Graded(sample, said[sample.id], "") for sample in samples]
    return {name: (value.value, floor) for name, value, floor in figures(rows)}


def test_what_is_said_of_an_empty_picture_names_nothing() -> None:
    samples = list(make(Settings(size=48), 20))
    empty = [replace(each, graph=Scene(each.graph.grid, [], seed=each.graph.seed)) for each in samples]
    blanked, full = (
        [Verdict("k", Question(s.id, "c"), Status.UNPARSED, raw=worked(s)) for s in many] for many in (empty, samples)
    )
    found = names_nothing(blanked)
    assert (found.value, found.n) == (1.0, sum(len(s.responses[0].claims) for s in samples))
    assert names_nothing(full).value < 0.5  # some claims are about things that are not there
