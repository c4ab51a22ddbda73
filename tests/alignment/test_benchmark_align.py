"""`make align` with a very small budget: every step of it runs, and goes on where it stopped; its figures by hand."""

import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from benchmarks import align
from benchmarks.align_claims import stages_table
from benchmarks.align_figures import Rows, best_of, share_of_gap

from dikast.core.item import item_to
from dikast.core.part import Text
from dikast.core.records import read_items, write_records
from dikast.worlds.domains.paraphrases import say
from dikast.worlds.domains.vocabulary import COLOURS, SHAPES


@pytest.mark.slow
def test_two_arms_of_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--out", str(tmp_path), "--arms", "gold,random", "--seeds", "1", "--budget", "tiny", "--rate", "1e-4"]
    align.main(flags)
    table = capsys.readouterr().out.partition("Budget `tiny`")[2]
    for line in (
        "| gold | start | 1 | ",
        "| random | start | 1 | ",
        "| see | 4 | ",
        "| sft | 4 | ",
        "| N | gold | scout | scout, no claims | length |",
    ):
        assert line in table
    for arm in ("gold-0", "random-0"):
        assert (tmp_path / "tiny/rate-0.0001" / arm / "report.json").is_file()
    policy = tmp_path / "tiny/policy-0/sft/model/model.safetensors"
    made = policy.stat().st_mtime_ns
    align.main(flags)  # nothing is done again
    assert policy.stat().st_mtime_ns == made
    assert capsys.readouterr().out.partition("Budget `tiny`")[2] == table


def test_what_a_stage_says_by_hand(tmp_path: Path) -> None:
    file = align.world(tmp_path, "tuning", 12, align.BUDGETS["tiny"])
    prompts = {item.id: item for item in read_items(str(file))}
    prompt = next(item for item in prompts.values() if "colour" in item.meta["spec"]["weights"])
    things = prompt.meta["scene"]["things"]
    thing = next(each for each in things if sum(each["shape"] == one["shape"] for one in things) == 1)
    other = next(each for each in COLOURS if each != thing["colour"])
    absent = next(each for each in SHAPES if each not in [one["shape"] for one in things])
    told = [(thing["shape"], thing["colour"]), (thing["shape"], other), (absent, other), (absent, thing["colour"])]
    text = " ".join([*(say("colour", pair, 0) for pair in told), "Nobody knows."])
    write_records(tmp_path / "said.jsonl", [item_to(replace(prompt, responses=((Text(text),),)))])
    head, _, row = stages_table({"sft": [tmp_path / "said.jsonl"]}, prompts)
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["claims"] == "4"
    assert cells["sentences unreadable"] == "0.200"
    wrong = cells["wrong, of a thing in the picture"], cells["wrong, of one that is not there |"]
    assert (cells["right"], *wrong) == ("0.25", "0.25", "0.50 |")


def test_best_of_n_by_hand() -> None:
    # Rewards 3, 2, 1 with golds .5, 1, 0. N = 2: the first is in 2 of 3 draws, in the third the second is the best, so
    # (2 x .5 + 1) / 3. N = 3: the first.
    rewards, golds = [2.0, 3.0, 1.0], [1.0, 0.5, 0.0]
    assert best_of(rewards, golds, 1) == pytest.approx(0.5)
    assert best_of(rewards, golds, 2) == pytest.approx(2 / 3)
    assert best_of(rewards, golds, 3) == pytest.approx(0.5)
    assert best_of([1.0, 1.0], [0.0, 1.0], 2) == pytest.approx(0.5)  # of equal rewards either is taken


def test_best_of_n_is_the_mean_over_all_draws() -> None:
    rewards, golds = [0.1, 0.7, 0.7, 0.3, 0.9, 0.3], [0.0, 1.0, 0.25, 0.5, 0.75, 0.0]
    for n in range(1, 7):
        found = []
        for draw in combinations(range(6), n):
            top = max(rewards[i] for i in draw)
            tied = [golds[i] for i in draw if rewards[i] == top]
            found.append(sum(tied) / len(tied))
        assert best_of(rewards, golds, n) == pytest.approx(sum(found) / len(found)), n


def test_the_share_of_a_gap_by_hand() -> None:
    # Gold gained (.2 + .4) / 2 = .3, the arm (.1 + .2) / 2 = .15: half, and half in every draw of prompts.
    gold, arm = Rows(["a", "b"], [0.2, 0.4]), Rows(["a", "b"], [0.1, 0.2])
    found = share_of_gap(arm, gold)
    assert found.value == pytest.approx(0.5)
    assert found.n == 2
    assert math.isnan(found.low)  # all draws alike: no interval, rather than one of width 0
    ids = [str(i) for i in range(40)]
    both = [Rows(ids, [top + (i % 4) / 10 for i in range(40)]) for top in (0.1, 0.4)]
    found = share_of_gap(both[0], both[1])
    assert found.value == pytest.approx(0.25 / 0.55)
    assert found.low < found.value < found.high
    assert math.isnan(share_of_gap(arm, Rows(["a", "b"], [0.0, 0.0])).value)  # gold gained nothing


def test_no_end_of_a_share_in_the_tables_is_below_0() -> None:
    rows = Rows(["a", "b", "c", "d"], [0.0, 0.0, 0.0, 1.0])
    assert rows.mean().low < 0
    assert f"{rows.mean((0.0, 1.0)):.2f}" == "0.25 [0.00, 1.00]"


def test_no_share_on_the_page_lies_outside_of_what_it_can_be() -> None:
    ends, column = 0, None
    for line in align.PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if "unreadable" in cells:
            column = cells.index("unreadable")
        elif not line.startswith("|"):
            column = None
        elif column is not None:
            found = [float(value) for value in re.findall(r"-?\d+\.\d+", cells[column])]
            assert all(0 <= value <= 1 for value in found), line
            ends += len(found)
    assert ends > 100
