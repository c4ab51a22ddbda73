"""Files by which a conclusion would mislead, each told as what it is: copies, texts whose length is gold, slices in
which the judge knows nothing, few prompts, a column of slots read as responses.
"""

import random
from pathlib import Path
from typing import Any

import pytest

import runs
from dikast.audit.plan import AuditPlan
from dikast.core.scale import Scale
from dikast.surface.report.collect import collect
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusion import conclusion
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.report_options import Asked
from dikast.surface.report.table_page import collect_table


def page_of(file: Path, rows: list[dict[str, object]], **plan: Any) -> RunPage:
    runs.write_jsonl(file, rows)
    given: dict[str, Any] = {"score": "score", "gold": ("human",), "draws": 200} | plan
    if not given.get("pairwise"):
        given.setdefault("scale", Scale.parse("1-5"))
    return collect_table(file, Asked(AuditPlan(file, **given)))


def told_of(file: Path, rows: list[dict[str, object]], **plan: Any) -> Conclusion:
    return conclusion(page_of(file, rows, **plan))


@pytest.mark.parametrize(("texts", "light"), [(6, "amber"), (60, "green")])
def test_copies_of_a_few_texts_are_few_items(texts: int, light: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"prompt": f"Q{k % texts}?", "response": f"Answer {k % texts}", "score": 1 + k % 5 - (k == 4),
         "human": 1 + k % 5}
        for k in range(120)
    ]  # fmt: skip
    found = told_of(tmp_path / "v.jsonl", rows)
    assert found.light == light, found
    assert found.text.endswith(" on 120 rows with 6 different texts") is (light == "amber"), found
    assert told_of(tmp_path / "v.jsonl", rows, cluster="none").light == "green"


@pytest.mark.parametrize("pairs", [False, True])
def test_the_length_of_texts_in_a_file_is_tried(pairs: bool, tmp_path: Path) -> None:
    """Gold is the length of the response (of pairs, the longer one wins), and the judge misses a tenth of it."""
    draw, rows = random.Random(2), list[dict[str, object]]()
    for k in range(300):
        true = draw.randint(1, 5)
        said = true if draw.random() < 0.9 else draw.randint(1, 5)
        text, other = "word " * 2**true, "word " * 2**said
        if pairs:
            side, wrong = ("A", "B") if k % 2 else ("B", "A")
            responses = {
                "response_a": text * 2 if side == "A" else text,
                "response_b": text * 2 if side == "B" else text,
            }
            said_side = side if draw.random() < 0.9 else wrong
            rows.append({"prompt": f"Q{k}?", **responses, "score": said_side, "turned": said_side, "human": side})
        else:
            rows.append({"prompt": f"Q{k}?", "response": text, "score": said, "human": true, "other": len(other)})
    found = told_of(tmp_path / "v.jsonl", rows, **({"pairwise": True, "swapped": "turned"} if pairs else {}))
    assert found.light == "amber", found
    assert "; the length of the response alone agrees as much: 1.00" in found.text


@pytest.mark.parametrize("by", [(), ("domain",)])
def test_a_slice_in_which_the_judge_knows_nothing_is_named(by: tuple[str, ...], tmp_path: Path) -> None:
    draw = random.Random(3)
    rows: list[dict[str, object]] = []
    for k in range(660):
        true, hard = draw.randint(1, 5), k < 60
        rows.append({"id": k, "domain": "hard" if hard else "easy", "score": draw.randint(1, 5) if hard else true,
                     "human": true})  # fmt: skip
    found = told_of(tmp_path / "v.jsonl", rows, by=by)
    assert found.light == ("amber" if by else "green"), found
    named = "; by domain it is not shown to be better than a judge that ignores the input in hard "
    assert (named in found.text) is bool(by), found
    assert not by or found.text.endswith("(n 60)"), found
    few = told_of(tmp_path / "w.jsonl", [row for row in rows if int(str(row["id"])) >= 35], by=("domain",))
    assert few.light == "green", few  # 25 rows tell nothing of a slice


@pytest.mark.parametrize(("prompts", "light"), [(5, "amber"), (40, "green")])
def test_a_lead_on_few_prompts_is_amber(prompts: int, light: str, tmp_path: Path) -> None:
    draw = random.Random(4)
    rows: list[dict[str, object]] = []
    for k in range(200):
        for name, low in (("alpha", 3), ("beta", 2)):
            score = low + draw.randint(0, 2)
            rows.append(
                {"id": f"{name}{k}", "prompt": f"Q{k % prompts}", "system": name, "score": score, "human": score}
            )
    found = told_of(tmp_path / "v.jsonl", rows)
    assert found.light == light, found
    assert found.text.startswith("alpha scores better than beta: by ")
    assert light == "green" or found.why == "fewer than 30 prompts of both"
    blind = [{name: value for name, value in row.items() if name != "human"} for row in rows]
    assert ", says the judge" in told_of(tmp_path / "w.jsonl", blind, gold=()).text


def test_a_column_that_names_slots_is_said_where_position_seems_to_decide(tmp_path: Path) -> None:
    draw = random.Random(5)
    rows: list[dict[str, object]] = []
    for k in range(100):
        true = draw.choice("AB")
        rows.append({"id": k, "score": true, "turned": "B" if true == "A" else "A", "human": true})
    plan = {"pairwise": True, "swapped": "turned"}
    found = told_of(tmp_path / "v.jsonl", rows, **plan)
    assert found.light == "red"
    assert found.text.endswith("; or the column of the other order names slots: then say --swapped-as slots"), found
    assert told_of(tmp_path / "v.jsonl", rows, **plan, swapped_as="slots").light == "green"


@pytest.mark.parametrize(("texts", "light"), [(5, "amber"), (50, "green")])
def test_items_of_a_run_that_are_copies_count_once(texts: int, light: str, tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "instruction": f"Q{k % texts}?", "response": f"Answer {k % texts}", "gold": 1 + k % 5}
            for k in range(100)]  # fmt: skip
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    words = ("--judge", "mock:oracle,r=.98", "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    done = runs.dikast_here("grade", items, *words)
    assert done.returncode == 0, done.stderr
    found = conclusion(collect(tmp_path / "run", Asked(AuditPlan(tmp_path / "run", draws=100), queue=0)))
    assert found.light == light, found
    assert found.text.endswith("on 100 rows with 5 different texts") is (light == "amber"), found


@pytest.mark.parametrize(("failures", "light"), [(3, "amber"), (20, "green")])
def test_gold_that_differs_on_few_items_concludes_nothing(failures: int, light: str, tmp_path: Path) -> None:
    """A judge that finds 60 % of all failures finds 3 of 3 in one of five such files."""
    rows: list[dict[str, object]] = [{"id": k, "score": said, "human": said} for k in range(40)
                                     for said in [1 if k < failures else 5]]  # fmt: skip
    found = told_of(tmp_path / "v.jsonl", rows)
    assert found.light == light, found
    assert found.text.startswith("Too few items on which gold differs") is (light == "amber"), found


def test_a_few_values_far_from_all_others_conclude_nothing(tmp_path: Path) -> None:
    draw = random.Random(3)
    rows: list[dict[str, object]] = [
        {"id": k, "score": draw.randint(1, 6), "human": draw.randint(1, 6)} if k < 60 else
        {"id": k, "score": 100, "human": 100} for k in range(64)
    ]  # fmt: skip
    found = told_of(tmp_path / "v.jsonl", rows, scale=Scale.parse("1-100"))
    assert found.text.startswith("Too few items on which gold differs"), found


def test_rare_values_that_never_meet_are_not_the_other_way_round(tmp_path: Path) -> None:
    """Each says 1 in a tenth of the rows, and never both: by chance so in 13 % of such files."""
    rows: list[dict[str, object]] = [
        {"id": k, "score": 1 if k % 10 == 0 else 5, "human": 1 if k % 10 == 1 else 5} for k in range(200)
    ]
    page = page_of(tmp_path / "v.jsonl", rows)
    assert page.audit is not None
    assert page.audit["agreement"].estimate("pearson", "value").high < 0
    assert any(note.startswith("approximate: by chance alone 2.0 rows") for note in page.audit["agreement"].notes)
    assert conclusion(page).text.startswith("Do not use: not shown to be better than a constant")
