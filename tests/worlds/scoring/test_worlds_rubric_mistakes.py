"""Where a wrong grade comes from is read off the reply, step by step."""

import re

import numpy as np
import pytest
from benchmarks.rubric_following import Graded, _signs, share_by
from benchmarks.rubric_mistakes import CAUSES, cause, claims_of, table, wholes_of

from dikast.core.verdict import Question, Status, Verdict
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.settings import Settings
from dikast.worlds.teach import worked

SAMPLES = [
    *make(Settings("scenes", seed=4, version=4, form=60), 60),
    *make(Settings("text", seed=4, version=4, form=60), 60),
]


def _row(sample: Sample, *, label: str = "", raw: str = "") -> Graded:
    label = label or sample.gold()["label"]
    said = Verdict("k", Question("i", "c"), Status.OK, label=label, raw=raw or worked(sample, quote=True))
    return Graded(sample, said, "")


def test_worked_feedback_has_no_mistake() -> None:
    for sample in SAMPLES:
        row = _row(sample)
        assert all(checked and judged and charged for _, checked, judged, charged, _ in claims_of(row))
        assert all(charged for _, charged, _ in wholes_of(row))
        assert cause(row) == ""
        assert cause(_row(sample, label="another")) == CAUSES[4]
    assert f"| {CAUSES[0]} | 0 | - |" in "\n".join(table([_row(SAMPLES[0])]))
    assert any(costs for sample in SAMPLES for *_, costs in claims_of(_row(sample)))
    assert any(costs for sample in SAMPLES for *_, costs in wholes_of(_row(sample)))


@pytest.mark.parametrize(
    ("step", "old", "new"),
    [
        (0, r"^Claim: .*", "Claim: something else"),
        (1, r"^Finding: wrong(.*), \d+ lost, \d+ in all$", r"Finding: right\1"),
        (2, r"^(Finding: wrong.*), \d+ lost, \d+ in all$", r"\1"),
        (3, r"^((?!Finding|Claim|Rule).*), \d+ lost, \d+ in all$", r"\1"),
    ],
)
def test_the_first_step_that_went_wrong_is_told(step: int, old: str, new: str) -> None:
    found = []
    for sample in SAMPLES:
        raw = worked(sample, quote=True)
        changed = re.sub(old, new, raw, count=1, flags=re.M)
        if changed != raw:
            found.append(cause(_row(sample, label="another", raw=changed)))
    assert found
    assert set(found) == {CAUSES[step]}


def test_the_tables_count_what_they_say() -> None:
    sample = next(s for s in SAMPLES if s.settings.domain == "scenes" and "lost" in worked(s))
    wrong = re.sub(r"^(Finding: wrong.*), \d+ lost, \d+ in all$", r"\1", worked(sample, quote=True), flags=re.M)
    failed = Verdict("k", Question("i", "c"), Status.UNPARSED, raw="nothing")
    rows = [_row(sample), _row(sample, label="another", raw=wrong), Graded(sample, failed, "")]
    told = "\n".join(table(rows))
    assert told.startswith("1 of 2 grades are not gold's; 1 replies without a verdict are left out.")
    assert f"| {CAUSES[2]} | 1 | 1.00 [" in told
    assert f"| {CAUSES[1]} | 0 | 0.00 [" in told
    claim = next(claim for claim in sample.gold()["claims"] if claim["cost"])
    assert re.search(rf"^\| {claim['aspect']} \| \d+ \| 0\.50 \[", told, re.M)


def test_findings_are_counted_by_how_far_off_claims_are() -> None:
    samples = [sample for sample in SAMPLES if sample.settings.domain == "scenes"]
    said = [worked(sample, quote=True) for sample in samples]
    as_gold = "\n".join(table([_row(sample) for sample in samples]))
    blind = [re.sub(r"^Finding: wrong( far)?", "Finding: wrong far", raw, flags=re.M) for raw in said]
    all_far = "\n".join(table([_row(sample, raw=raw) for sample, raw in zip(samples, blind, strict=True)]))
    cells = r"\| position \| 1\.00 \[.*?\], n (\d+) \| 0\.00 \[.*?\], n (\d+) \| 1\.00 \[.*?\], n (\d+) \| "
    told, deaf = re.search(cells + r"0\.00 ", as_gold), re.search(cells + r"1\.00 ", all_far)
    assert told
    assert deaf
    claims = [
        claim["verdict"] for sample in samples for claim in sample.gold()["claims"] if claim["aspect"] == "position"
    ]
    assert [int(told[1]), int(told[2])] == [claims.count("wrong"), claims.count("right")]
    assert told.groups() == deaf.groups()


def test_contrasts_by_hand() -> None:
    # gold differs between rows 1 and 2 (a tie), 1 and 3 (right), 2 and 4 (the wrong way round), 3 and 4 (a tie)
    score, gold, group = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), np.zeros(4, np.int64)
    assert (_signs(score, gold, group).value, _signs(score, gold, group).n) == (0.25, 4)
    assert _signs(score, gold, group, tied=True).value == 0.5


def test_items_of_one_response_count_as_one_in_an_interval() -> None:
    hits = [True] * 40 + [False] * 40
    alone, together = share_by(hits, list(range(80))), share_by(hits, [i // 4 for i in range(80)])
    assert alone.value == together.value == 0.5
    assert together.high - together.low > 1.8 * (alone.high - alone.low)  # 20 responses for 80 items: twice as wide
