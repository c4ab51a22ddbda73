"""What a conclusion says where several people rated: how well they agree, who rated what, on what they are split."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

import runs
from dikast.audit.plan import AuditPlan
from dikast.core.scale import Scale
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.headline import cards
from dikast.surface.report.report_options import Asked
from dikast.surface.report.table_page import collect_table


def rated(
    file: Path,
    said: Sequence[object],
    *people: Sequence[object],
    pairs: bool = False,
    rule: Literal["", "majority"] = "",
) -> RunPage:
    """The page of a file of what a judge said beside what each of several people said."""
    names = [f"human_{i}" for i in range(len(people))]
    rows = [{"id": f"q{k}", "score": each, "turned": each, **dict(zip(names, told, strict=True))}
            for k, (each, *told) in enumerate(zip(said, *people, strict=True))]  # fmt: skip
    runs.write_jsonl(file, rows)
    plan = AuditPlan(file, score="score", swapped="turned" if pairs else "", gold=tuple(names), pairwise=pairs,
                     gold_rule=rule, scale=None if pairs else Scale.parse("1-5"), draws=200)  # fmt: skip
    return collect_table(file, Asked(plan))


def test_people_who_hardly_agree_are_no_measure(tmp_path: Path) -> None:
    # two raters and the judge see the truth in .4 of the rows and draw elsewhere: any two agree as well as any others,
    # by a correlation of .4 * .4 = .16, which was green by the letter
    draw = random.Random(6)
    true = [draw.randint(1, 5) for _ in range(1500)]
    judge, one, two = ([each if draw.random() < 0.4 else draw.randint(1, 5) for each in true] for _ in range(3))
    found = of_judge(rated(tmp_path / "v.jsonl", judge, one, two))
    assert found.light == "amber", found
    assert found.text.startswith("Better than chance, but people are not shown to agree with each other more than")
    assert found.why == "the interval of one rater against another does not lie above 0.2"


@pytest.mark.parametrize(("share", "light"), [(0.1, "amber"), (0.8, "green")])
def test_people_agree_on_pairs_only_beyond_chance(share: float, light: str, tmp_path: Path) -> None:
    # of choices between two, two raters who toss coins agree on half: what counts is how far they agree beyond that
    draw = random.Random(7)
    true = [draw.choice("AB") for _ in range(600)]
    judge, one, two = ([each if draw.random() < share**0.5 else draw.choice("AB") for each in true] for _ in range(3))
    found = of_judge(rated(tmp_path / "v.jsonl", judge, one, two, pairs=True))
    assert found.light == light, found
    if light == "amber":
        assert "more than slightly (beyond chance 0." in found.text
        assert found.why == "the interval of people's agreement does not lie above 0.2"


@pytest.mark.parametrize("pairs", [False, True])
def test_raters_of_different_rows_are_not_one_rater(pairs: bool, tmp_path: Path) -> None:
    draw = random.Random(8)
    labels: list[object] = ["A", "B"] if pairs else [1, 2, 3, 4, 5]
    true = [draw.choice(labels) for _ in range(200)]
    judge = [each if draw.random() < 0.7 else draw.choice(labels) for each in true]
    page = rated(tmp_path / "v.jsonl", judge, [*true[:100], *[None] * 100], [*[None] * 100, *true[100:]], pairs=pairs)
    found = of_judge(page)
    assert found.light == "amber", found
    noted = "no pair was rated by two" if pairs else "no row was rated by two"
    nobody = f"no {'pair' if pairs else 'row'} was rated by two of the 2 raters"
    assert found.why == f"the interval reaches below 0.8, and how well people agree is not known: {nobody}"
    assert (
        f"no human ceiling: {nobody}" in next(each for each in cards(page) if each.title == "Agreement with gold").notes
    )
    assert page.audit is not None
    assert any(f"no human ceiling: {noted}" in note for note in page.audit["beside"].notes)


@pytest.mark.parametrize("pairs", [False, True])
def test_rows_on_which_raters_are_split_are_counted(pairs: bool, tmp_path: Path) -> None:
    draw = random.Random(9)
    labels: list[object] = ["A", "B"] if pairs else [1, 2, 3, 4, 5]
    true = [draw.choice(labels) for _ in range(100)]
    other = [labels[1 - labels.index(each)] if pairs else 1 + each % 5 for each in true]  # type: ignore[operator]
    second = [*true[:60], *other[60:]]
    page = rated(tmp_path / "v.jsonl", true, true, second, pairs=pairs, rule="majority")
    assert "on 60 " + ("pairs" if pairs else "rows") + ", without 40 on which raters are split" in of_judge(page).text
    assert page.audit is not None
    assert any("40 " in note and "without a majority among raters: no gold" in note for note in page.audit.notes)
    if pairs:
        assert "left out: 40 pairs on which raters are split" in page.audit["accuracy"].notes
    assert "split" not in of_judge(rated(tmp_path / "w.jsonl", true, true, true, pairs=pairs, rule="majority")).text


def paired(file: Path, said: Sequence[str], gold: Sequence[str]) -> Conclusion:
    return of_judge(rated(file, said, gold, pairs=True))


def test_a_judge_that_always_says_tie_is_told_as_that(tmp_path: Path) -> None:
    gold = ["A", "B", "B", "tie", "B"] * 16
    found = paired(tmp_path / "v.jsonl", ["tie"] * 80, gold)
    assert (found.light, found.why) == ("red", "a constant verdict carries no information")
    assert found.text.startswith("Do not use: the judge always says tie, on 80 pairs. Accuracy 0.20 ["), found.text
    nearly = paired(tmp_path / "w.jsonl", ["A", *["tie"] * 79], gold)
    assert nearly.light == "red"
    assert nearly.text.endswith("on 80 pairs; it says tie in 99%"), nearly.text


@pytest.mark.parametrize(("wrong", "light"), [(0, "grey"), (2, "grey"), (40, "red")])
def test_gold_that_is_always_a_tie_tells_nothing_of_a_judge_that_agrees(wrong: int, light: str, tmp_path: Path) -> None:
    found = paired(tmp_path / "v.jsonl", [*["A"] * wrong, *["tie"] * (80 - wrong)], ["tie"] * 80)
    assert found.light == light, found
    if light == "grey":
        assert found.text.startswith("Not known whether the judge is right: gold never differs, so a judge that always")
