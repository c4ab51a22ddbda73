"""The page of a run of rankings concludes on the orders: what `dikast rank` has printed, by the rules of the docs."""

import math
import random
from pathlib import Path

import orjson
import pytest

import runs
from dikast.audit.plan import AuditPlan
from dikast.surface.report.collect import collect
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusion import conclusion
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.headline import opening
from dikast.surface.report.report_options import Asked


def ranked(folder: Path, judge: str, n: int = 40, *more: object, gold: bool = True) -> Path:
    draw = random.Random(3)
    rows = [{"id": f"i{k}", "instruction": f"Say {k}.", "responses": [f"{k} {'word ' * 9**j}" for j in range(3)],
             **({"gold": draw.sample([1, 3, 5], 3)} if gold else {})} for k in range(n)]  # fmt: skip
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    done = runs.dikast_here("rank", items, "--judge", judge, "--rubric", "helpfulness", "--schedule", "full", "--out",
                            folder / "run", "-q", *more)  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    return folder / "run"


def page_of(run: Path, level: float = 0.95) -> RunPage:
    return collect(run, Asked(AuditPlan(run, draws=50, level=level)))


def wilson(k: int, n: int) -> str:
    """`k` of `n` as the page shows it, by Wilson's formula with z = 1.96."""
    z, p = 1.959963984540054, k / n
    middle, half = (p + z * z / (2 * n)), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    ends = [(middle + sign * half) / (1 + z * z / n) for sign in (-1, 1)]
    return f"{p:.0%} [{ends[0]:.0%}, {ends[1]:.0%}] of {n} items"


def hits(run: Path) -> int:
    """How many orders begin with the response that gold has above the others (5 on each item)."""
    gold = {line["item"]: line["gold"] for line in runs.lines(run / "gold.jsonl")}
    return sum(gold[line["item"]][line["order"][0]] == 5 for line in runs.lines(run / "rankings.jsonl"))


def test_the_orders_are_what_is_concluded_on(tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:oracle,r=.95", 160)
    found, page = conclusion(page_of(run)), page_of(run)
    figure = f"The first response is the best by gold in {wilson(hits(run), 160)}, one drawn at random in 33%"
    assert found.text == f"Finds the best response. {figure}"
    assert (found.light, found.why) == ("green", "the whole interval lies at 80% or above")
    assert opening(page).startswith("160 of 160 items are ranked, by 960 comparisons; ")  # 3 pairs x 2 orders x 160
    file = tmp_path / "page.html"
    assert runs.dikast_here("report", run, "-o", file, "--draws", 20).returncode == 0
    assert file.read_text().index(figure) < file.read_text().index("160 of 160 items are ranked, by 960 comparisons")


def test_an_order_that_is_no_better_than_chance_is_red(tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:random")
    found = conclusion(page_of(run))
    assert found.light == "red"
    assert found.text.startswith("Do not use: not shown to find the best response more often than chance. ")
    share = runs.summary(run)["ranking"]["gold"]["first_is_best"]  # a tie of two in the first place is half of each
    assert f"in {share['value']:.0%} [{share['low']:.0%}, {share['high']:.0%}] of 40 items" in found.text


def test_orders_that_gaps_or_doubts_remain_on_are_amber(tmp_path: Path) -> None:
    for name, judge, n, told, why in (
        ("few", "mock:oracle", 12, "Too few items to conclude anything. ", "fewer than 30 items"),
        ("gaps", "mock:oracle,failing=.15", 40, "Finds the best response more often than chance, with",
         "of the pairs got no verdict, more than 5%"),
        ("weak", "mock:oracle,r=.5", 40, "Finds the best response more often than chance; whether often enough cannot",
         "the interval reaches below 80%"),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        found = conclusion(page_of(ranked(tmp_path / name, judge, n)))
        assert (found.light, found.text.startswith(told), why in found.why) == ("amber", True, True), found


def test_verdicts_that_are_not_there_come_first(tmp_path: Path) -> None:
    page = page_of(ranked(tmp_path, "mock:oracle,r=.9,failing=.8"))
    assert conclusion(page) == of_judge(page)
    assert conclusion(page).text.startswith("Do not use: ")
    assert conclusion(page).why == "more than half of the pairs got no verdict"


@pytest.mark.parametrize(("n", "gold"), [(12, True), (40, False)])
def test_a_red_judge_comes_first_where_gold_does_not_decide(n: int, gold: bool, tmp_path: Path) -> None:
    page = page_of(ranked(tmp_path, "mock:first-slot", n, gold=gold))
    assert conclusion(page) == of_judge(page)
    assert conclusion(page).text.startswith("Do not use: position decides")


def test_without_gold_it_says_how_clear_the_best_is(tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:oracle,r=0,per_doubling=.3", gold=False)
    clear = sum(line["best"][line["order"][0]] >= 0.95 for line in runs.lines(run / "rankings.jsonl"))
    assert 0 < clear < 40
    found = conclusion(page_of(run))
    assert found.light == "grey"
    told = "Not known whether the best response comes first: there is no gold; one is clear in "
    assert found.text == told + wilson(clear, 40)


def test_another_level_is_the_audits(tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:oracle,r=.5")
    page = page_of(run, level=0.5)
    assert page.audit is not None
    by_audit = page.audit["rankings"].estimate("best response found", "value")
    assert f"{by_audit.value:.0%} [{by_audit.low:.0%}, {by_audit.high:.0%}] of 40 items" in conclusion(page).text
    assert by_audit.level == 0.5


_FIRST = {"value": 0.5, "low": 0.3, "high": 0.7, "n": 40, "level": 0.95}


@pytest.mark.parametrize(
    "ranking",
    [
        None,
        3,
        [],
        {},
        {"gold": 5},
        {"gold": {"first_is_best": {"value": "x"}}},
        {"gold": {"first_is_best": _FIRST}, "items": "x", "skipped": {"why": "x"}, "cycles": {"value": 1, "low": "x"}},
        {"gold": {"first_is_best": _FIRST | {"low": "x"}, "at_random": "x"}, "skipped": 3},
        {"gold": {"first_is_best": _FIRST | {"level": "x", "n": "x"}, "at_random": 0.5}},
    ],
)
def test_a_summary_that_somebody_changed_still_gives_a_page(ranking: object, tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:oracle,r=.9", 6)
    summary = runs.summary(run) | {"ranking": ranking}
    (run / "summary.json").write_bytes(orjson.dumps(summary))
    found = conclusion(page_of(run))
    assert found.text
    assert "nan" not in found.text


def test_a_damaged_file_of_orders_is_told(tmp_path: Path) -> None:
    run = ranked(tmp_path, "mock:oracle,r=0,per_doubling=.3", 6, gold=False)
    (run / "rankings.jsonl").write_text("{}\n")
    page = page_of(run)
    assert page.ranked is None
    assert any(each.startswith("no rankings: ") and "rankings.jsonl" in each for each in page.missing)
    assert conclusion(page) == of_judge(page)
