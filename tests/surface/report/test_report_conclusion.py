"""The conclusion of a page: its light by the rules of docs/report.md, and never a winner that is none."""

import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from dikast.audit.estimate import Estimate
from dikast.audit.plan import AuditPlan
from dikast.core.runs.run_files import remove
from dikast.core.scale import Scale
from dikast.surface.report.collect import collect
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusion import conclusion, of_judges
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.conclusions.of_judge import _against_people, of_judge
from dikast.surface.report.conclusions.of_systems import of_systems
from dikast.surface.report.headline import opening
from dikast.surface.report.report_options import Asked
from dikast.surface.report.standings import as_latex, as_markdown, board_of_judges, standings
from dikast.surface.report.table_page import collect_table


def compared(folder: Path, judge: str, rows: list[dict[str, object]], *more: object) -> RunPage:
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    done = runs.dikast_here(
        "compare", items, "--judge", judge, "--rubric", "helpfulness", "--out", folder / "run", "--json", *more
    )
    assert done.returncode in (0, 3), done.stderr
    return page(folder / "run")


def graded(folder: Path, judge: str, rows: list[dict[str, object]], *more: object) -> RunPage:
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    done = runs.dikast_here(
        "grade", items, "--judge", judge, "--rubric", "helpfulness", "--out", folder / "run", "--json", *more
    )
    assert done.returncode in (0, 3), done.stderr
    return page(folder / "run")


def page(run: Path) -> RunPage:
    return collect(run, Asked(AuditPlan(run, draws=100), queue=0))


def test_a_clear_winner_is_green_and_named(tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, "mock:oracle", runs.of_systems(150, 1.5)))
    assert found.light == "green"
    assert found.text.startswith("alpha is better than beta: it wins ")
    assert "[" in found.text


def test_equal_systems_are_not_told_apart(tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, "mock:oracle", runs.of_systems(120, 0.0)))
    assert found.light == "amber"
    assert found.text.startswith("Cannot tell ")


@pytest.mark.parametrize("judge", ["mock:first-slot", "mock:oracle,nats=8"])
def test_where_position_decides_nobody_wins(judge: str, tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, judge, runs.of_systems(120, 1.5)))
    assert found.light == "red"
    assert found.text.startswith("Do not use: position decides")
    assert "alpha" not in found.text


def test_one_order_names_no_winner(tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, "mock:oracle", runs.of_systems(150, 1.5), "--one-order"))
    assert found.light == "amber"
    assert found.text.startswith("Cannot tell alpha from beta from the effect of position")


def test_one_order_ranks_no_more_systems_than_two_either(tmp_path: Path) -> None:
    # the first slot wins every pair: c is always second, so its rank is 3 and nothing but its slot says so
    names = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "a")]
    rows: list[dict[str, object]] = [
        {"instruction": f"Q{k}?", "response_a": f"x {k}", "response_b": f"y {k}", "model_a": one, "model_b": two}
        for k, (one, two) in enumerate(names * 25)
    ]
    judged = compared(tmp_path, "mock:first-slot", rows, "--one-order")
    assert judged.audit is not None
    assert judged.audit["ranking"].estimate("c", "rank").low == 3
    assert conclusion(judged).text == (
        "Cannot tell which of a, b and c is best: each pair was judged in one order, so position may decide; "
        "the response shown first wins 100% [96%, 100%] of 100 pairs"
    )
    told = [note for note in judged.audit["ranking"].notes if "ranks may be those of positions" in note]
    assert told[0].startswith("the first response won 1.0000 [0.9630, 1.0000] of 100 pairs")


def test_of_three_the_best_is_named_where_all_are_behind(tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, "mock:oracle", runs.of_systems(300, 1.2, names=("alpha", "beta", "gamma"))))
    assert found.text.startswith("alpha is better than all others: against beta, the next, it wins ")


def test_a_winner_by_a_judge_without_gold_is_amber(tmp_path: Path) -> None:
    rows = runs.of_systems(150, 1.5)
    run = compared(tmp_path, "mock:oracle", rows).folder
    remove(run / "gold.jsonl")
    found = conclusion(page(run))
    assert found.light in ("amber", "grey")


@pytest.mark.parametrize(
    ("judge", "light", "words"),
    [
        ("mock:oracle,r=.97", "green", "Agrees closely with gold"),
        ("mock:oracle,r=.6", "amber", "Better than a judge that ignores the input"),
        ("mock:constant,label=3", "red", "Do not use: the judge always says 3"),
        ("mock:oracle,r=0", "red", "Do not use: not shown to be better than"),
        ("mock:oracle,failing=.7", "red", "of the questions got no verdict"),
        ("mock:oracle,failing=.2", "amber", "with gaps"),
    ],
)
def test_lights_of_a_judge(judge: str, light: str, words: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    rows = [{**row, "gold": draw.choice([1, 2, 3, 3, 4, 5])} for row in runs.rows(150)]
    found = of_judge(graded(tmp_path, judge, rows))
    assert (found.light, words in found.text) == (light, True), found


def test_few_rows_conclude_nothing(tmp_path: Path) -> None:
    found = of_judge(graded(tmp_path, "mock:oracle", runs.rows(12)))
    assert (found.light, found.text[:12]) == ("amber", "Too few item")


def test_against_people(tmp_path: Path) -> None:
    draw = random.Random(2)
    rows = []
    for k in range(200):
        true = draw.choice([1, 2, 3, 4, 5])
        near = [max(1, min(5, true + draw.choice([-1, 0, 0, 1]))) for _ in range(3)]
        rows.append(
            {"item": k, "score": near[0], "human_1": near[1], "human_2": near[2], "far": draw.choice([1, true])}
        )
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("human_1", "human_2"), draws=100)
    found = of_judge(collect_table(file, Asked(plan)))
    assert found.light == "green"
    assert found.text.startswith("Agrees with people about as well as they agree with each other")
    assert "people among themselves" in found.text
    plan = AuditPlan(file, score="far", gold=("human_1", "human_2"), draws=100)
    assert of_judge(collect_table(file, Asked(plan))).text.startswith("Better than chance, but people agree more")


@pytest.mark.parametrize(
    ("low", "high", "people", "told"),
    [
        (0.6, 0.9, 0.8, "Better than chance; it is unknown whether it agrees with people as well as they agree"),
        (0.5, 0.7, 0.8, "Better than chance, but people agree more with each other"),
        (0.71, 0.9, 0.8, "Agrees with people about as well as they agree with each other"),
        (0.6, 0.9, math.nan, "Better than a judge that ignores the input; whether it is good enough cannot be told"),
    ],
)
def test_what_is_said_of_people_is_what_the_interval_shows(low: float, high: float, people: float, told: str) -> None:
    found = Estimate((low + high) / 2, 50, low, high)
    beside = None if math.isnan(people) else (found, Estimate(people, 50))
    assert _against_people("r", found, beside).text.startswith(told)


def test_people_who_do_not_agree_with_each_other_are_no_measure(tmp_path: Path) -> None:
    """Each was green: a rater whose scale is turned round, one who always says 3, ten rows with two raters."""
    draw = random.Random(3)

    def light(name: str, second: Callable[[int, int], object], n: int = 200) -> Conclusion:
        told = []
        for k in range(n):
            first = draw.choice((1, 2, 3, 4, 5))
            told.append({"score": first if draw.random() < 0.95 else 3, "human_1": first, "human_2": second(k, first)})
        file = runs.write_jsonl(tmp_path / f"{name}.jsonl", told)
        plan = AuditPlan(file, score="score", gold=("human_1", "human_2"), draws=100, scale=Scale.parse("1-5"))
        return of_judge(collect_table(file, Asked(plan)))

    assert light("turned", lambda k, first: 6 - first if k % 5 else first).light != "green"
    constant = light("constant", lambda k, first: 3)
    assert (constant.light, constant.why) == ("amber", "one rater's agreement with another is undefined")
    few = light("few", lambda k, first: first if k < 10 else None)
    assert (few.light, few.why) == ("amber", "fewer than 30 items that all raters rated")
    assert "(n 10)" in few.text
    assert light("alike", lambda k, first: first).light == "green"


def test_a_correlation_of_1_by_one_row_is_not_green(tmp_path: Path) -> None:
    rows = [{"score": 1 if k else 5, "human": 1 if k else 5} for k in range(200)]
    file = runs.write_jsonl(tmp_path / "rare.jsonl", rows)
    found = of_judge(
        collect_table(file, Asked(AuditPlan(file, score="score", gold=("human",), draws=100, scale=Scale.parse("1-5"))))
    )
    assert (found.light, found.text[:31]) == ("amber", "Too few items on which gold dif")
    assert found.why == "gold differs as if 1.0 items alone did, fewer than 5"


def test_failures_of_pairs_are_told_as_pairs(tmp_path: Path) -> None:
    found = conclusion(compared(tmp_path, "mock:oracle,failing=.6", runs.of_systems(60, 1.0)))
    assert re.match(r"Do not use: \d+% \[\d+%, \d+%\] of the pairs got no verdict", found.text)


def test_the_judge_is_set_against_one_rater_as_people_are(tmp_path: Path) -> None:
    """Four raters whose errors are independent: their mean is far nearer to the judge than any one of them.

    With truth of variance 1, an error of variance 1 for a rater and 2 for the judge, correlations are 1/2 for two
    raters, 1/sqrt(2 * 3) = .408 for the judge and one, and 1/sqrt((1 + 1/4) * 3) = .516 for the judge and the mean.
    """
    draw = random.Random(5)
    rows = []
    for k in range(800):
        true = draw.gauss(0, 3)
        people = {f"human_{i}": round(true + draw.gauss(0, 3)) for i in range(4)}
        rows.append({"item": k, "score": round(true + draw.gauss(0, 3 * 2**0.5)), **people})
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=tuple(f"human_{i}" for i in range(4)), draws=100)
    found = collect_table(file, Asked(plan))
    told = of_judge(found)
    assert (told.light, told.text[:57]) == ("amber", "Better than chance, but people agree more with each other")
    one, among, mean = (float(each) for each in re.findall(r"(\d\.\d\d) \[", told.text))
    assert one == pytest.approx(0.408, abs=0.04)
    assert among == pytest.approx(0.5, abs=0.04)
    assert mean == pytest.approx(0.516, abs=0.05)
    assert among < mean + 0.1  # set against the mean, it would have been green


def scored(file: Path, scores: list[float], *gold: list[float], scale: str = "1-5") -> Conclusion:
    """The conclusion on a file of scores beside what one rater or several say."""
    names = [f"human_{i}" for i in range(len(gold))]
    rows = [{"id": k, "score": each, **dict(zip(names, people, strict=True))}
            for k, (each, *people) in enumerate(zip(scores, *gold, strict=True))]  # fmt: skip
    runs.write_jsonl(file, rows)
    stated = None if scale == "none" else Scale.parse(scale)
    plan = AuditPlan(file, score="score", gold=tuple(names), scale=stated, unscaled=stated is None, draws=100)
    return of_judge(collect_table(file, Asked(plan)))


_LOW = [1.0 + k * 7 % 3 for k in range(200)]  # gold of 1, 2 and 3
_ALL = [1.0 + k * 7 % 5 for k in range(200)]  # of 1 to 5


@pytest.mark.parametrize(
    ("scores", "gold", "light", "words", "why"),
    [
        (_ALL, _ALL, "green", "Agrees closely with gold", "1 in every draw"),
        ([6 - each for each in _ALL], _ALL, "red", "it ranks the other way round than gold", "-1 in every draw"),
        ([6 - each for each in _ALL[1:]] + [3], [*_ALL[1:], 5], "red", "ranks the other way round", "lies below 0"),
        ([3.0] * 200 + [4], [*_ALL, 1], "red", "not shown to be better than", "more than a tenth of the draws"),
        ([3.0] * 200 + [4], [*_ALL, 5], "amber", "How sure the agreement is", "more than a tenth of the draws"),
        (_ALL, [3.0] * 200, "grey", "Not known whether the judge is right", "every gold is 3"),
        ([3.0] * 200, [3.0] * 200, "grey", "Not known whether the judge is right", "every gold is 3"),
        (_ALL[:29], _ALL[:29], "amber", "Too few items to conclude anything", "fewer than 30 items with gold"),
    ],
)
def test_what_has_no_interval_has_its_true_reason(
    scores: list[float], gold: list[float], light: str, words: str, why: str, tmp_path: Path
) -> None:
    found = scored(tmp_path / "v.jsonl", scores, gold)
    assert (found.light, words in found.text, why in found.why) == (light, True, True), found


def test_scores_that_rank_as_gold_but_lie_two_levels_higher_are_amber(tmp_path: Path) -> None:
    # two levels higher but for each twentieth, which is one higher: 1.95 on average, and less than 1.6 in no draw
    off = [each + 2 - (k % 20 == 0) for k, each in enumerate(_LOW)]
    found = scored(tmp_path / "v.jsonl", off, _LOW)
    assert found.light == "amber"
    assert found.text.startswith("Ranks closely as gold does, but scores 1.95 [1.9"), found.text
    assert "] higher on a scale from 1 to 5. Correlation with gold (Pearson) 0.9" in found.text
    found = scored(tmp_path / "v.jsonl", _LOW, off)
    assert found.text.startswith("Ranks closely as gold does, but scores 1.95 [1.9"), found.text
    assert "] lower on a scale" in found.text
    alike = scored(tmp_path / "v.jsonl", [each + 2 for each in _LOW], _LOW)  # the mean error has no interval
    assert (alike.light, "scores 2.00 higher" in alike.text) == ("amber", True), alike


def test_scores_that_use_half_of_the_scale_are_amber(tmp_path: Path) -> None:
    # 1 to 5 as 2, 3, 3, 3, 4: the correlation is sqrt(.8) = .89; with variances of 2 and .4 and a covariance of .8 the
    # quadratic kappa is 2 * .8 / (2 + .4) = .67
    near = [{1: 2.0, 5: 4.0}.get(int(each), 3.0) for each in _ALL]
    found = scored(tmp_path / "v.jsonl", near, _ALL)
    assert found.light == "amber"
    assert found.text.startswith("Ranks closely as gold does, but by other levels: quadratic kappa 0.67 ["), found.text


def test_levels_are_set_against_those_of_people_as_ranks_are(tmp_path: Path) -> None:
    draw = random.Random(8)
    true = [draw.choice([1, 2, 3]) for _ in range(300)]
    one, two, judge = ([float(max(1, each + draw.choice([-1, 0, 0, 0, 1]))) for each in true] for _ in range(3))
    found = scored(tmp_path / "v.jsonl", judge, one, two)
    assert (found.light, found.text[:25]) == ("green", "Agrees with people about ")
    found = scored(tmp_path / "v.jsonl", [each + 1 for each in judge], one, two)
    assert found.light == "amber"
    assert found.text.startswith("Ranks as people do, but scores 1.0"), found.text


@pytest.mark.parametrize(("judge", "light"), [("mock:constant,label=tie", "grey"), ("mock:oracle,r=.5", "red")])
def test_gold_of_pairs_that_never_differs_is_not_held_against_a_judge_that_agrees(
    judge: str, light: str, tmp_path: Path
) -> None:
    pairs: list[dict[str, object]] = [
        {"id": f"p{k}", "instruction": f"Q{k}?", "response_a": f"x {k}", "response_b": f"y {k}", "gold": "tie"}
        for k in range(80)
    ]
    found = conclusion(compared(tmp_path, judge, pairs))
    assert found.light == light, found
    if light == "grey":
        assert found.text.startswith("Not known whether the judge is right: gold never differs, so a judge that always")


@pytest.mark.parametrize(("by_length", "light"), [(True, "amber"), (False, "green")])
def test_a_judge_that_agrees_no_more_than_length_does_is_amber(by_length: bool, light: str, tmp_path: Path) -> None:
    """Gold rises by a level with each fourfold length, but for a tenth of the items; or has nothing to do with it."""
    draw = random.Random(5)
    rows: list[dict[str, object]] = []
    for k in range(200):
        gold = draw.choice([1, 2, 3, 4, 5])
        size = 2 * 4 ** (gold if draw.random() < 0.9 else draw.choice([1, 2, 3, 4, 5])) if by_length else 200
        text = "word " * (size + draw.randint(0, size))
        rows.append({"id": f"i{k}", "instruction": f"Explain {k}.", "response": text, "gold": gold})
    found = conclusion(graded(tmp_path, "mock:oracle,r=.9", rows))
    assert found.light == light, found
    told = re.search(r"; the length of the response alone agrees as much: 0\.(\d\d)$", found.text)
    assert (told is not None) is by_length, found


def test_without_a_common_scale_only_ranks_are_spoken_of(tmp_path: Path) -> None:
    found = scored(tmp_path / "v.jsonl", [each * 17.3 for each in _ALL], _ALL, scale="none")
    assert (found.light, found.why) == ("green", "it is 1 in every draw")
    draw = random.Random(9)
    scores = [each * 17.3 + draw.random() * 9 for each in _ALL]
    found = scored(tmp_path / "v.jsonl", scores, _ALL, scale="none")
    assert found.light == "green"
    assert found.text.startswith("Ranks closely as gold does; how high scores are is not compared"), found.text
    plan = AuditPlan(tmp_path / "v.jsonl", score="score", gold=("human_0",), draws=100)
    found = of_judge(collect_table(tmp_path / "v.jsonl", Asked(plan)))
    assert found.light == "amber"
    assert "whether scores are as high is not known, since no scale is named" in found.text


@pytest.mark.parametrize(
    ("gold", "light", "words"),
    [
        ({"long": [3, 2], "short": [4, 4]}, "amber", "; gold says otherwise: -1.50 ["),
        ({"long": [3, 4], "short": [3, 3]}, "amber", "; gold says less: 0.50 ["),
        ({"long": [5, 5], "short": [3, 2]}, "green", "long scores better than short: by 1.50"),
        ({"long": [5, 5], "short": [1, 2]}, "green", "long scores better than short: by 1.50"),
    ],
)
def test_a_winner_is_green_only_where_gold_agrees(
    gold: dict[str, list[int]], light: str, words: str, tmp_path: Path
) -> None:
    """The judge gives 5 and 5 to long, 3 and 4 to short on prompts in turn: a lead of 1.5 on average."""
    said = {"long": [5, 5], "short": [3, 4]}
    rows = [
        {"id": f"{name}{k}", "prompt": f"Q{k}", "system": name, "score": said[name][k % 2], "gold": gold[name][k % 2]}
        for k in range(60) for name in said
    ]  # fmt: skip
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("gold",), draws=100)
    found = of_systems(collect_table(file, Asked(plan)))
    assert found is not None
    assert found.light == light, found
    assert words in found.text, found


def test_an_unfinished_run_says_how_many_were_asked_and_by_which_judge(tmp_path: Path) -> None:
    run = graded(tmp_path, "mock:oracle", runs.rows(8)).folder
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(lines[:4]))
    (run / "summary.json").unlink()
    read = page(run)
    assert opening(read).startswith("All 4 questions asked so far (4 of 8 planned questions) got a verdict")
    assert read.judge.startswith("mock"), read.judge


def half_of(run: Path) -> None:
    """Leave a run as if it had been stopped in its middle."""
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    (run / "summary.json").unlink()


def test_half_a_run_is_never_green_and_its_conclusion_says_so(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    scores = graded(tmp_path, "mock:oracle,r=.97", runs.rows(120))
    pairs = compared(tmp_path / "pairs", "mock:oracle", runs.of_systems(200, 1.5))
    assert conclusion(scores).light == conclusion(pairs).light == "green"
    for run, asked, planned in ((scores.folder, 60, 120), (pairs.folder, 200, 400)):
        half_of(run)
        found = conclusion(page(run))
        assert found.light == "amber", found
        assert found.text.endswith(f"; the run is unfinished: {asked} of {planned} questions have an answer")


def test_the_better_of_two_judges_is_not_green_where_a_run_is_half_done(tmp_path: Path) -> None:
    draw = random.Random(3)
    rows = [{**row, "gold": draw.choice([1, 2, 3, 4, 5])} for row in runs.rows(120)]
    found = []
    for name, judge in (("good", "mock:oracle,r=.97"), ("poor", "mock:oracle,r=.3")):
        (tmp_path / name).mkdir()
        found.append(graded(tmp_path / name, judge, rows))
        found[-1].name = name
    best = of_judges(found)
    assert best is not None
    assert best.light == "green"
    half_of(tmp_path / "poor/run")
    found[1] = page(tmp_path / "poor/run")
    found[1].name = "poor"
    best = of_judges(found)
    assert best is not None
    assert best.light == "amber"
    assert best.text.endswith("; poor is unfinished: 60 of 120 questions have an answer")


def test_damaged_verdicts_are_the_first_thing_said(tmp_path: Path) -> None:
    run = graded(tmp_path, "mock:oracle", runs.rows(8)).folder
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    lines[4] = b"\xff" + lines[4][1:]
    (run / "verdicts.jsonl").write_bytes(b"".join(lines))
    read = page(run)
    found = conclusion(read)
    assert found.light == "red"
    assert found.text.startswith("Do not use: verdicts.jsonl is damaged at line 5; `dikast doctor ")
    assert "damaged at line 5" in opening(read)


def test_a_judge_without_an_interval_does_not_overlap(tmp_path: Path) -> None:
    draw = random.Random(3)
    rows = [{**row, "gold": draw.choice([1, 2, 3, 4, 5])} for row in runs.rows(60)]
    pages = []
    for name, judge in (("good", "mock:oracle,r=.95"), ("const", "mock:constant,label=3"), ("poor", "mock:oracle,r=0")):
        (tmp_path / name).mkdir()
        pages.append(graded(tmp_path / name, judge, rows))
        pages[-1].name = name
    found = of_judges(pages)
    assert found is not None
    assert found.text.startswith("good has the highest correlation with gold, ")
    assert found.text.endswith("without an interval of their own: const")


def test_an_empty_run_is_grey(tmp_path: Path) -> None:
    run = graded(tmp_path, "mock:oracle", runs.rows(3)).folder
    (run / "verdicts.jsonl").write_bytes(b"")
    assert conclusion(page(run)).light == "red"  # the summary counts three
    (run / "summary.json").unlink()
    assert conclusion(page(run)).light == "grey"


def test_scores_that_differ_alike_on_every_prompt_have_no_interval_and_say_so(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": f"{model}{k}", "instruction": f"Q {k}", "response": f"{model} {k}", "model": model, "gold": gold}
        for model, gold in (("x", 5), ("y", 1)) for k in range(12)
    ]  # fmt: skip
    found = conclusion(graded(tmp_path, "mock:oracle,r=1", rows))
    assert (found.light, found.why) == ("amber", "there is no interval: all rows alike")


def test_a_judge_that_answers_a_few_questions_is_red_with_an_interval(tmp_path: Path) -> None:
    found = conclusion(graded(tmp_path, "mock:oracle,failing=1", runs.rows(40)))
    assert found.light == "red"
    assert re.fullmatch(r"Do not use: \d+% \[\d+%, \d+%\] of the questions got no verdict", found.text), found.text


def test_gold_that_never_differs_decides_nothing(tmp_path: Path) -> None:
    found = conclusion(graded(tmp_path, "mock:oracle,r=.9", [{**row, "gold": 3} for row in runs.rows(40)]))
    assert found.light == "grey"
    assert found.why == "the agreement with gold is undefined: every gold is 3"


def test_one_game_leaves_every_rank_open(tmp_path: Path) -> None:
    """A rank without an interval can be any: alpha has won the only pair, of which nothing follows."""
    read = compared(tmp_path, "mock:oracle,r=.9", runs.of_systems(1, 1.0))
    assert conclusion(read).light == "amber"
    board = standings(read)
    assert board is not None
    assert [row.rank.text for row in board.rows] == ["1–2", "1–2"]


def test_copies_say_what_the_page_says_with_one_format_a_column(tmp_path: Path) -> None:
    draw = random.Random(4)
    rows: list[dict[str, object]] = [
        {"id": f"{name}{k}", "instruction": f"Is {k} even?", "response": f"{k}, {name}. " * draw.randint(1, 4),
         "model": name, "gold": draw.randint(1, 5)}
        for k in range(30) for name in ("a_1", "b&c")
    ]  # fmt: skip
    for name in ("pairs", "scores", "others"):
        (tmp_path / name).mkdir()
    pairs = compared(tmp_path / "pairs", "mock:oracle", runs.of_systems(40, 0.5))
    scores = graded(tmp_path / "scores", "mock:oracle,r=.9,failing=.1", rows)
    others = graded(tmp_path / "others", "mock:oracle,r=.5,failing=.2", rows)
    for board in (standings(pairs), standings(scores), board_of_judges([scores, others])):
        assert board is not None
        table = [line[2:-2].split(" | ") for line in as_markdown(board).splitlines()[2:]]
        tex = [line[:-3].split(" & ") for line in as_latex(board).splitlines()[4:-2]]
        assert len(table) == len(tex) == 2
        for column in zip(*table, strict=True):
            assert len({tuple(re.findall(r"\.\d+%?", re.sub(r"\d", "0", cell))) for cell in column}) == 1, column
        for row, of_tex, shown in zip(table, tex, board.rows, strict=True):
            assert row[2].replace("\\", "") == of_tex[2].replace("\\", "") == board.shown(shown.main)
            assert "–" not in "".join(of_tex)


@pytest.mark.parametrize(("better", "light"), [(0, "amber"), (2, "green")])
def test_a_lead_that_is_of_length_alone_is_amber(better: int, light: str, tmp_path: Path) -> None:
    # alpha scores `better` levels more, and one more on the two of three prompts where it writes twice as much: its
    # lead is better + 2/3, and better where lengths are equal. 0 or 1 is added to each by the prompt, alike for both
    # on average, on long and on equal prompts.
    lines = ["prompt,system,words,verdict,gold"]
    for k in range(60):
        longer, more, less = min(1, k % 3), k // 3 % 2, k // 6 % 2
        alpha, beta = 2 + longer + better + more, 2 + less
        off = k % 10 == 0  # gold is higher there, for both
        lines += [f"p{k},alpha,{100 * 2**longer},{alpha},{alpha + off}", f"p{k},beta,100,{beta},{beta + off}"]
    (tmp_path / "old.csv").write_text("\n".join(lines))
    plan = AuditPlan(tmp_path / "old.csv", score="verdict", gold=("gold",), system="system",
                     cluster="prompt", length="words", draws=50)  # fmt: skip
    found = conclusion(collect_table(tmp_path / "old.csv", Asked(plan)))
    assert found.light == light, found
    assert found.text.startswith(f"alpha scores better than beta: by {better + 2 / 3:.2f} [")
    if light == "amber":
        assert "; if responses were equally long it would be 0.00 [-0." in found.text
        assert found.text.endswith(" on 60 prompts")
        assert found.why == "the interval of the length-controlled difference does not lie above 0"


@pytest.mark.parametrize(("better", "light"), [(0, "amber"), (1, "green")])
def test_a_win_rate_that_is_of_length_alone_is_amber(better: int, light: str, tmp_path: Path) -> None:
    # alpha writes more in two of three pairs. Where better is 0 it wins five sixths of these, and half of the others;
    # where it is 1 it wins five sixths of all, whatever the lengths.
    lines = ["pair,longer,verdict,swapped,gold"]
    for k in range(180):
        longer, turn = min(1, k % 3), k // 3 % 6
        wins = turn != 0 if longer or better else turn % 2 == 0
        won = "A" if wins else "B"
        lines.append(f"p{k},{-100 * longer},{won},{won},{'tie' if k % 10 == 0 else won}")
    (tmp_path / "old.csv").write_text("\n".join(lines))
    plan = AuditPlan(tmp_path / "old.csv", pairwise=True, score="verdict", swapped="swapped", gold=("gold",),
                     first="=alpha", second="=beta", length="longer", draws=99)  # fmt: skip
    found = conclusion(collect_table(tmp_path / "old.csv", Asked(plan)))
    assert found.light == light, found
    assert found.text.startswith(f"alpha is better than beta: it wins {83 if better else 72}% ["), found.text
    if light == "amber":
        assert "; if responses were equally long it would win 50% [" in found.text
        assert found.text.endswith("] against beta, by the model of 360 games")
        assert found.why == "the interval of the length-controlled win rate does not lie above 50 %"


@pytest.mark.parametrize(
    ("column", "cluster", "light", "told"),
    [
        ("id", "", "amber", "on 60 rows of 6 items"),
        ("question_id", "", "amber", "on 60 rows that share 6 values of 'question_id'"),
        ("question_id", "question_id", "amber", "on 60 rows of 6 items"),
        ("question_id", "none", "green", "on 60 rows"),
        ("topic", "", "green", "on 60 rows"),
    ],
)
def test_rows_of_one_item_count_once(column: str, cluster: str, light: str, told: str, tmp_path: Path) -> None:
    # six items, each ten times with the same gold: as much can be told of the judge as by six rows
    rows = [{column: f"q{k % 6}", "score": 1 + k % 6 - (k == 59), "human": 1 + k % 6} for k in range(60)]
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("human",), scale=Scale.parse("1-6"), cluster=cluster, draws=200)
    found = of_judge(collect_table(file, Asked(plan)))
    assert (found.light, found.text.split("] ")[-1]) == (light, told), found


@pytest.mark.parametrize(("column", "light"), [("", "green"), ("chars", "amber"), ("negative", "green")])
def test_the_logarithm_of_a_length_column_is_tried_too(column: str, light: str, tmp_path: Path) -> None:
    # the logarithm of the length is gold but for a tenth of the rows, and so is the judge; lengths of 4, 16, ... 1,024
    # characters agree far less with gold
    draw = random.Random(4)
    rows = []
    for k in range(300):
        gold = 1 + k % 5
        size = 4 ** (gold if draw.random() < 0.9 else draw.randint(1, 5))
        said = gold if draw.random() < 0.9 else draw.randint(1, 5)
        rows.append({"id": k, "score": said, "human": gold, "chars": size, "negative": -size})
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("human",), scale=Scale.parse("1-5"), length=column, draws=200)
    page = collect_table(file, Asked(plan))
    found = of_judge(page)
    assert found.light == light, found
    assert ("; the length of the response alone agrees as much: 0.85" in found.text) is (light == "amber"), found


@pytest.mark.parametrize(
    ("lost", "of_gold", "light"), [(4, False, "green"), (14, False, "amber"), (14, True, "green"), (14, True, "amber")]
)
def test_a_lead_that_the_missing_scores_could_undo_is_amber(
    lost: int, of_gold: bool, light: str, tmp_path: Path
) -> None:
    # alpha gets 4 where beta gets 3 on each fifth of 200 prompts, and 3 elsewhere; beta has no score on the first
    # `lost` (at most 3.5 % of the rows). With 5 for each of these, of 14 of which alpha has 4 on 2, the lead is
    # (38 - 12 * 2 - 2 * 1) / 200 = .06. Gold has 3 for beta there, or 5, or nothing.
    rows: list[dict[str, object]] = []
    for k in range(200):
        alpha, beta = 3 + (k % 5 == 4), 3
        there = beta if k >= lost else (None if not of_gold else 3 if light == "green" else 5)
        rows += [
            {"id": f"a{k}", "prompt": f"q{k}", "system": "alpha", "score": alpha, "gold": alpha},
            {"id": f"b{k}", "prompt": f"q{k}", "system": "beta", "score": beta if k >= lost else None, "gold": there},
        ]
    file = runs.write_jsonl(tmp_path / "v.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("gold",), scale=Scale.parse("1-5"), draws=100)
    found = conclusion(collect_table(file, Asked(plan)))
    assert found.light == light, found
    if light == "amber" and not of_gold:
        assert "; if every score that is missing spoke against alpha it would be 0.06 [-0.0" in found.text, found.text
        assert found.text.endswith(" on 200 prompts")
    elif light == "amber":
        assert "; gold says less: 0.06 [" in found.text, found.text


@pytest.mark.parametrize(("lost", "of_gold", "light"), [(2, False, "green"), (14, False, "amber"), (14, True, "green")])
def test_a_lead_that_the_missing_pairs_could_undo_is_amber(
    lost: int, of_gold: bool, light: str, tmp_path: Path
) -> None:
    # alpha wins 4 of each 7 pairs; of 280, 14 of which have no verdict (5 %), it wins 152 of 266, and 152 of 280 are
    # 54 % [48, 60]. Gold, where it is known of the lost ones, goes on in the same way.
    lines = ["pair,verdict,swapped,gold"]
    for k in range(280):
        won = "A" if k % 7 < 4 else "B"
        said = "" if k < lost else won
        lines.append(f"p{k},{said},{said},{won if said or of_gold else ''}")
    (tmp_path / "old.csv").write_text("\n".join(lines))
    plan = AuditPlan(tmp_path / "old.csv", pairwise=True, score="verdict", swapped="swapped", gold=("gold",),
                     first="=alpha", second="=beta", draws=99)  # fmt: skip
    found = conclusion(collect_table(tmp_path / "old.csv", Asked(plan)))
    assert found.light == light, found
    if light == "amber":
        assert "; if it had lost every pair without a verdict it would win 54% [48%, 60%] of 280 pairs" in found.text
