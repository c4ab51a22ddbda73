"""What a run says of itself, by hand."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.audit.statistics.intervals import mean_estimate, share
from dikast.core.errors import DataError
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.verdict import Usage
from dikast.engines.base import Completion, Request, Sampling
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.judging.summary import Counts, Rate, Tally, Values
from runs import lines, rows, summary, write_jsonl
from scripted import Scripted

RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}


def test_wilson_by_hand() -> None:
    # 2 of 10, z = 1.959964: z^2 = 3.841459; middle (.2 + .192073) / 1.384146 = .283260;
    # half 1.959964 * sqrt(.016 + .00960365) / 1.384146 = .226578
    rate = Rate.share(2, 10)
    assert (rate.value, rate.n, rate.level) == (0.2, 10, 0.95)
    assert rate.low == pytest.approx(0.056682, abs=1e-6)
    assert rate.high == pytest.approx(0.509838, abs=1e-6)


def test_rates_at_the_ends() -> None:
    none, all_of_them, nothing = Rate.share(0, 20), Rate.share(20, 20), Rate.share(0, 0)
    z2 = 3.841458820694124
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(z2 / (20 + z2))  # the interval of no success has a closed form
    assert all_of_them.high == 1.0
    assert all_of_them.low == pytest.approx(20 / (20 + z2))
    assert (nothing.value, nothing.low, nothing.high, nothing.n) == (None, None, None, 0)


def test_means_by_hand() -> None:
    # 1, 2, 3, 6: mean 3, variance (4 + 1 + 0 + 9) / 3 = 4.6667, half 3.182446 (t, 3 free) * sqrt(4.6667 / 4) = 3.437435
    rate = Rate.mean([1, 2, 3, 6])
    assert rate.value == 3.0
    assert rate.low is not None
    assert 3 - rate.low == pytest.approx(3.437435, abs=1e-6)
    assert rate.high == pytest.approx(6.437435, abs=1e-6)
    # 4, 5: 4.5 with 12.706 * .5 to each side; on 1-5 it can only be 1 to 5
    held = Rate.mean([4, 5], within=(1, 5))
    assert (held.value, held.low, held.high) == (4.5, 1, 5)
    one, nothing = Rate.mean([4.0]), Rate.mean([])
    assert (one.value, one.low, one.high) == (4.0, None, None)
    assert nothing.value is None
    same, none = Rate.mean([0.1] * 3), Rate.mean([0.0] * 5)
    assert same.value == pytest.approx(0.1)
    assert (same.low, same.high) == (None, None)
    assert (none.value, none.low, none.n) == (0.0, None, 5)


@pytest.mark.parametrize("seed", range(20))
def test_intervals_are_those_that_an_audit_prints(seed: int) -> None:
    """Rows of one item are no independent rows; also where all alike, or where there is one item."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, rng.integers(1, 30), n := int(rng.integers(1, 80)))
    values = rng.integers(0, 6, n) / 2
    flags = rng.random(n) < rng.choice([0, 0.1, 0.5, 1])
    counts, numbers = Counts(), Values()
    for item, flag, value in zip(items, flags, values, strict=True):
        counts.add(str(item), int(flag))
        numbers.add(str(item), value)
    repeated = items if len(set(items)) < n else None
    for mine, theirs in (
        (counts.share(1), share(flags, 0.95, repeated)),
        (numbers.mean(), mean_estimate(values, 0.95, repeated)),
    ):
        ends = [math.nan if each is None else each for each in (mine.value, mine.low, mine.high)]
        assert ends == pytest.approx([theirs.value, theirs.low, theirs.high], rel=1e-9, abs=1e-12, nan_ok=True)
        assert mine.n == theirs.n


def test_a_run_is_counted_by_hand(tmp_path: Path) -> None:
    replies = ["Verdict: 1", "Verdict: 5", "Verdict: 9", "I cannot help with that.", "Verdict: 5", "Hm."]

    def say(request: Request) -> str:
        if "/" in request.key:
            return " 2" if request.prefill.startswith("Hm.") else "?"
        return replies[int(request.about["item"][1:])]

    items = write_jsonl(tmp_path / "items.jsonl", rows(6))
    found = grade_file(Judge(Scripted(say), RUBRIC), Source(str(items)), tmp_path / "run")
    assert found == summary(tmp_path / "run")
    assert (found["items"], found["questions"], found["verdicts"], found["asked"]) == (6, 6, 6, 6)
    assert found["status"] == {"ok": 4, "off_scale": 1, "refused": 1}
    assert (found["failure_rate"]["value"], found["failure_rate"]["n"]) == (pytest.approx(2 / 6), 6)
    assert (found["forced_share"]["value"], found["forced_share"]["n"]) == (0.25, 4)
    assert found["criteria"]["good"]["labels"] == {"1": 1, "2": 1, "5": 2}
    assert found["criteria"]["good"]["mean_score"]["value"] == 13 / 4
    assert found["criteria"]["good"]["mean_score"]["n"] == 4
    assert sum(found["failures"].values()) == 2
    assert any(reason.startswith("refused: ") for reason in found["failures"])


def test_conflicts_are_counted_by_hand(tmp_path: Path) -> None:
    # three verdicts, one of them contradicted by an earlier one of its reply, and one failure: 1 of 3
    replies = ["Verdict: 1", "Verdict: 5\nNo:\nVerdict: 2", "I cannot help with that.", "Verdict: 5\nVerdict: 5"]
    items = write_jsonl(tmp_path / "items.jsonl", rows(4))
    judge = Judge(Scripted(lambda request: replies[int(request.about["item"][1:])]), RUBRIC)
    share = grade_file(judge, Source(str(items)), tmp_path / "run")["conflict_share"]
    assert (share["value"], share["n"]) == (pytest.approx(1 / 3), 3)
    written = (tmp_path / "run" / "verdicts.jsonl").read_text("utf-8").splitlines()
    assert sum('"conflict":true' in line for line in written) == sum("conflict" in line for line in written) == 1


def test_reasons_are_counted_to_the_end() -> None:
    tally = Tally()
    usage = asdict(Usage(1))
    for i in range(3000):
        words = "often" if i % 2 else "".join(chr(97 + int(digit)) for digit in str(i))
        tally.add({"status": "unparsed", "reason": words, "usage": usage, "question": {"item": str(i)}})
    assert tally.summary()["failures"]["unparsed: often"] == 1500
    assert len(tally.reasons) <= 1001


def test_reasons_that_differ_in_numbers_are_one_kind() -> None:
    tally = Tally()
    for i in range(5):
        reason = f"only 0.0{i} fell on the labels"
        tally.add({"status": "off_scale", "reason": reason, "usage": asdict(Usage()), "question": {"item": "i"}})
    assert tally.summary()["failures"] == {"off_scale: only 0.00 fell on the labels": 5}


def test_samples_are_joined_for_every_response(tmp_path: Path) -> None:
    # scores 2, 2, 5 for i0 (votes 2/3 on 2; expected 3) and 4, none, 4 for i1 (all on 4)
    said = {"i0": ["2", "2", "5"], "i1": ["4", "9", "4"]}

    def say(request: Request) -> str:
        return f"Verdict: {said[request.about['item']][request.about['sample']]}"

    items, run = write_jsonl(tmp_path / "items.jsonl", rows(2)), tmp_path / "run"
    judge = Judge(Scripted(say), RUBRIC, sampling=Sampling(temperature=1.0), samples=3)
    found = grade_file(judge, Source(str(items)), run)
    joined = {each["question"]["item"]: each for each in lines(run / "combined.jsonl")}
    assert (joined["i0"]["label"], joined["i0"]["expected"]) == ("2", pytest.approx(3.0))
    assert (joined["i1"]["label"], joined["i1"]["reason"]) == ("4", "1 of 3 samples had no verdict")
    assert (found["verdicts"], found["combined"]["verdicts"]) == (6, 2)
    assert found["combined"]["criteria"]["good"]["mean_score"]["n"] == 2  # responses, not samples
    assert found["combined"]["failure_rate"]["value"] == 0.0
    assert found["failure_rate"]["value"] == pytest.approx(1 / 6)


def test_totals_of_a_sheet_by_hand(tmp_path: Path) -> None:
    # good 5 of 1-5 is 1, weight 3; brief "fail" is 0, weight 1: (3 * 1 + 0) / 4 = .75. Without brief there is no total.
    sheet = {
        "name": "both",
        "criteria": [
            {"name": "good", "criterion": "Good?", "scale": "1-5", "weight": 3},
            {"name": "brief", "criterion": "Brief?", "scale": "pass/fail"},
        ],
    }
    said = {("i0", "good"): "5", ("i0", "brief"): "fail", ("i1", "good"): "3", ("i1", "brief"): "9"}

    def say(request: Request) -> str:
        return f"Verdict: {said[request.about['item'], request.about['criterion']]}"

    items, run = write_jsonl(tmp_path / "items.jsonl", rows(2, gold=None)), tmp_path / "run"
    judge = Judge(Scripted(say), sheet)
    found = grade_file(judge, Source(str(items)), run)
    assert lines(run / "totals.jsonl") == [
        {"item": "i0", "response": 0, "total": 0.75, "scores": {"good": 5.0, "brief": 0.0}},
        {"item": "i1", "response": 0, "total": None, "scores": {"good": 3.0, "brief": None}},
    ]
    assert (found["totals"]["responses"], found["totals"]["without_total"]) == (2, 1)
    assert found["totals"]["mean_total"]["value"] == 0.75
    item = {"id": "i0", "instruction": "?", "response": "!"}
    both = judge.grade_sheet(item)
    assert (both.total, [verdict.label for verdict in both.verdicts]) == (0.75, ["5", "fail"])


def test_an_item_may_bring_its_own_sheet(tmp_path: Path) -> None:
    own = {"criteria": [{"name": "x", "criterion": "X?"}, {"name": "y", "criterion": "Y?", "weight": 3}]}
    items = write_jsonl(tmp_path / "items.jsonl", [*rows(1), {**rows(2)[1], "rubric": own}])
    judge = Judge(Scripted(lambda request: f"Verdict: {5 if request.about['criterion'] == 'y' else 1}"), RUBRIC)
    grade_file(judge, Source(str(items)), tmp_path / "run")
    assert [(each["item"], each["total"]) for each in lines(tmp_path / "run" / "totals.jsonl")] == [("i1", 0.75)]


def test_what_is_read_back_is_what_was_said(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(30)), tmp_path / "run"
    judge = Judge("mock:failing,seed=3", "helpfulness")
    said = {verdict.key: verdict for verdict in judge.grade_many(Source(str(items)).items())}
    grade_file(judge, Source(str(items)), run)
    assert {verdict.key: verdict for verdict in current_verdicts(run)} == said


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a run: it has no verdicts\.jsonl"):
        list(current_verdicts(tmp_path))


def test_usage_of_a_run_adds_up(tmp_path: Path) -> None:
    usage = Usage(100, 40, 7, 0.5, 0.25)
    items = write_jsonl(tmp_path / "items.jsonl", rows(4))
    engine = Scripted(lambda _: Completion("", "Verdict: 3", usage=usage))
    found = grade_file(Judge(engine, RUBRIC), Source(str(items)), tmp_path / "run")
    assert found["usage"] == {"tokens_in": 400, "tokens_cached": 160, "tokens_out": 28, "seconds": 2.0, "cost": 1.0}


def test_a_criterion_on_several_scales_has_a_mean_of_goodness(tmp_path: Path) -> None:
    # 3 of 1-5 is (3 - 1) / 4 = .5; "pass" is 1; 2 of a 0-10 scale of harm is 1 - 2 / 10 = .8: mean 2.3 / 3
    scales: list[dict[str, Any]] = [
        {"scale": "1-5"},
        {"scale": "pass/fail"},
        {"scale": "0-10", "lower_is_better": True},
    ]
    items = [
        {"id": f"i{k}", "instruction": "?", "response": "!", "rubric": {"name": "good", "criterion": "Good?", **scale}}
        for k, scale in enumerate(scales)
    ]
    said = {"i0": "3", "i1": "pass", "i2": "2"}
    judge = Judge(Scripted(lambda request: f"Verdict: {said[request.about['item']]}"))
    path = write_jsonl(tmp_path / "items.jsonl", items)
    found = grade_file(judge, Source(str(path)), tmp_path / "run")["criteria"]["good"]
    assert found["mean_score"] is None
    assert found["mean_goodness"]["value"] == pytest.approx(2.3 / 3)
    assert found["labels"] == {"2 of 0-10": 1, "3 of 1-5": 1, "pass of pass/fail": 1}  # never pooled over scales
    one = grade_file(judge, Source(str(path), limit=1), tmp_path / "one")["criteria"]["good"]
    assert (one["mean_score"]["value"], one["labels"]) == (3, {"3": 1})
    assert "mean_goodness" not in one
