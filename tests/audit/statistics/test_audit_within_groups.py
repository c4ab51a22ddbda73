import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.results import Within
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.statistics.within_groups import agreement_within, less_group_means, most_without, right_orders
from dikast.audit.tables.row_scales import RowScales
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world

HOW = Resampling(200, 0.95, 0)
GROUP = np.array([0, 0, 1, 1])


def test_by_hand() -> None:
    # Means 2 and 6; what is left is -1, 1, -2, 2 against -1, 1, -1, 1: 6 / sqrt(10 x 4) = .9487.
    score, gold = np.array([1.0, 3, 4, 8]), np.array([0.0, 2, 5, 7])
    assert less_group_means(score, GROUP).tolist() == [-1, 1, -2, 2]
    assert agreement_within(score, gold, GROUP, HOW).value == pytest.approx(6 / math.sqrt(40))
    found, many = right_orders(score, np.array([2.0, 0, 5, 7]), GROUP)
    assert (found.value, found.n, many) == (0.5, 2, 2)  # one wrong, one right
    assert right_orders(np.array([1.0, 1, 4, 8]), gold, GROUP)[0].value == 0.75  # a tie is half
    # Means of gold 1, 1, 6, 6 against 0, 2, 5, 7: variances 6.25 and 7.25, the covariance is that of the means.
    assert most_without(gold, GROUP) == pytest.approx(math.sqrt(6.25 / 7.25))


def test_one_score_a_group_is_zero_and_alike_gold_undefined() -> None:
    gold = np.array([0.0, 2, 5, 7])
    found = agreement_within(np.array([1.0, 1, 9, 9]), gold, GROUP, HOW)
    assert (found.value, found.note) == (0.0, "each group has one score")
    assert math.isnan(agreement_within(gold, np.array([1.0, 1, 9, 9]), GROUP, HOW).value)
    assert math.isnan(agreement_within(gold[:2], gold[:2], GROUP[:2], HOW).value)


def test_an_interval_over_phrases_is_wider_where_scores_depend_on_them() -> None:
    rng = np.random.default_rng(5)
    group, phrase = np.repeat(np.arange(100), 4), np.tile(np.arange(400) % 8, 1)
    gold = rng.normal(size=400)
    score = np.where(phrase < 4, gold, rng.normal(size=400))  # half of the phrases are understood
    over_groups = agreement_within(score, gold, group, HOW)
    over_phrases = agreement_within(score, gold, group, HOW, phrase)
    assert over_groups.value == over_phrases.value
    assert over_phrases.high - over_phrases.low > 1.5 * (over_groups.high - over_groups.low)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(Settings("scenes", "fresh", 3, form=0, scales=("1-3",), version=4, size=48, grid=4), 240, folder)
    return folder / "items-00000.jsonl"


def proved(world: Path, spec: str, out: Path) -> Within:
    grade_file(Judge(spec), Source(str(world)), out)
    found = audit_file(AuditPlan(out, draws=200)).result(Within)
    assert found is not None
    assert found.groups == 60
    assert set(found.over) == {"meta.phrase", "meta.composition"}
    assert all(each.value == found.centred.value and each.n == 240 for each in found.over.values())
    return found


def test_a_judge_that_ignores_the_rubric_has_none_by_construction(world: Path, tmp_path: Path) -> None:
    found = proved(world, "mock:rubric-blind,r=1", tmp_path / "blind")
    assert found.pearson.value > 0.5  # the mean of gold over the rubrics: no such judge does better
    assert found.pearson.value <= found.most_without + 1e-9
    assert (found.centred.value, found.contrasts.value) == (0.0, 0.5)
    assert found.pairs > 100


def test_on_several_scales_a_judge_that_ignores_the_rubric_is_not_quite_without(tmp_path: Path) -> None:
    # Two groups, each a row on pass/fail (gold 0 or 1) and one on 1-3; gold as goodness: 1, .5 and 0, .5.
    # Their means .75 and .25 lie between two labels of 1-3, of which the worse is taken: 1, .5 and 0, 0.
    # Less the groups' means: score .25, -.25, 0, 0; gold .25, -.25, -.25, .25: r = .125 / sqrt(.125 x .25) = .7071.
    rows = [("a", "pass/fail", "pass"), ("a", "1-3", 2), ("b", "pass/fail", "fail"), ("b", "1-3", 2)]
    items = [
        {"id": str(i), "instruction": "Say it.", "response": "It.", "gold": gold, "meta": {"response": group},
         "rubric": {"name": "said", "criterion": "Is it said?", "scale": scale}}
        for i, (group, scale, gold) in enumerate(rows)
    ]  # fmt: skip
    (file := tmp_path / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    grade_file(Judge("mock:oracle,r=1"), Source(str(file)), tmp_path / "run")
    audit = audit_file(AuditPlan(tmp_path / "run", draws=200))
    alone = {str(row[0]): row[2] for row in audit["within"].rows}
    assert alone["pearson, centred by group"] == pytest.approx(math.sqrt(0.5))
    assert alone["contrasts in the right order"] == 0.75  # one right, one tie
    assert alone["pearson"] == pytest.approx(np.corrcoef([1, 0.5, 0, 0], [1, 0.5, 0, 0.5])[0, 1])
    assert any("several scales" in note for note in audit["within"].notes)


def test_scores_between_labels_can_be_one_score_a_group_on_several_scales(tmp_path: Path) -> None:
    write_world(Settings("text", "fresh", 3, form=0, version=4), 80, tmp_path / "world")
    grade_file(Judge("mock:oracle,r=.8"), Source(str(tmp_path / "world" / "items-00000.jsonl")), tmp_path / "run")
    alone = {}
    for score in ("score", "expected"):
        table = audit_file(AuditPlan(tmp_path / "run", score=score, draws=200))["within"]
        alone[score] = {str(row[0]): row[2] for row in table.rows}
        assert any("several scales" in note for note in table.notes) == (score == "score")
    assert alone["expected"]["pearson, centred by group"] == 0.0
    assert alone["expected"]["contrasts in the right order"] == 0.5
    assert alone["score"]["pearson, centred by group"] != 0.0


def test_of_two_labels_that_are_as_near_the_worse_is_taken_whatever_rounding_says() -> None:
    scale = Scale(tuple(map(str, range(11))), tuple(map(float, range(11))))
    rows = RowScales((scale,), np.zeros(3, np.int64))
    assert rows.nearest(np.array([0.1 + 0.55, 0.65, 0.66])).tolist() == [0.6, 0.6, 0.7]


def test_a_perfect_judge_has_all_of_it(world: Path, tmp_path: Path) -> None:
    found = proved(world, "mock:oracle,r=1", tmp_path / "oracle")
    assert (found.pearson.value, found.centred.value, found.contrasts.value) == pytest.approx((1, 1, 1))
    assert found.most_without < 0.9


def test_intervals_over_columns_of_ones_own(tmp_path: Path) -> None:
    rows = [{"answer": i // 4, "words": i % 8, "score": i % 5, "gold": (i + i % 3) % 5} for i in range(80)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    plan = AuditPlan(file, score="score", gold=("gold",), within="answer", over=("words",), draws=200)
    audit = audit_file(plan)
    found = audit.result(Within)
    assert found is not None
    assert (found.over["words"].value, found.over["words"].n) == (found.centred.value, 80)
    assert found.over["words"].low != found.centred.low
    assert "the same, interval over 8 of words" in [row[0] for row in audit["within"].rows]
    with pytest.raises(UserError, match="--over needs --within"):
        audit_file(replace(plan, within=""))
