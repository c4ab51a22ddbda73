"""What is chosen to be asked, and in what order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import runs
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.rubric import load_rubric
from dikast.probes.plan import Planner, turns
from dikast.probes.run import load_items
from dikast.probes.sets import sets_of
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world


def planner(items: Sequence[Item], folder: Path, *only: str, seed: int = 0) -> Planner:
    rubric = load_rubric("helpfulness")
    return Planner(items, rubric, folder, seed=seed, only=only)  # type: ignore[arg-type]  # no sheet


@pytest.fixture
def plain(tmp_path: Path) -> list[Item]:
    return list(read_items(runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(200))))


def test_pairs_are_drawn_from_all_items_and_both_probes_ask_the_same(tmp_path: Path) -> None:
    write_world(Settings(domain="text", responses=2, seed=3), 150, tmp_path / "pairs")
    items = list(load_items(str(tmp_path / "pairs" / "items-00000.jsonl")))
    order = {item.id: i for i, item in enumerate(items)}
    only = ("position", "absolute-pairwise")
    found = [Planner(items, None, tmp_path, seed=seed, only=only).first(300).asked for seed in (0, 1)]
    chosen = [sorted(order[id.removesuffix("~pair")] for id in each.pairs) for each in found]
    assert chosen[0] != chosen[1]
    for each, places in zip(found, chosen, strict=True):
        assert len(places) == len(set(places)) >= 20
        assert 50 < np.mean(places) < 100  # of 150: not the first ones
        assert {f"{id.rsplit('~', 1)[0]}~pair" for id in each.absolute} <= each.pairs.keys()


def test_originals_and_variants_are_mixed(plain: list[Item], tmp_path: Path) -> None:
    plan = planner(plain, tmp_path, "style", "sentiment").first(300)
    places: dict[str, list[int]] = {}
    for i, id in enumerate(plan.asked.absolute):
        places.setdefault(id.rsplit("~", 1)[1], []).append(i)
    middle = len(plan.asked.absolute) / 2
    assert all(abs(float(np.mean(each)) - middle) < 0.25 * middle for each in places.values())


def test_parts_take_turns_forwards_and_backwards() -> None:
    found = list(turns([{"absolute": 12, "reversed": 6, "pairs": 0}]))
    assert found[:5] == [
        ("absolute", 0, 2),
        ("reversed", 0, 1),
        ("reversed", 1, 2),
        ("absolute", 2, 4),
        ("absolute", 4, 6),
    ]
    for part, size in (("absolute", 12), ("reversed", 6)):
        slices = [(start, stop) for name, start, stop in found if name == part]
        assert [start for start, _ in slices] == [0, *(stop for _, stop in slices[:-1])]
        assert slices[-1][1] == size


def test_calls_are_kept_and_spent_where_they_are_needed(plain: list[Item], tmp_path: Path) -> None:
    made = planner(plain, tmp_path, "style", "sentiment")
    plan = made.first(200)
    assert 90 <= plan.asked.calls <= 110
    before = {probe.name: len(sets_of(probe, plan.asked)) for probe in plan.probes}
    assert made.next(plan, {"style": 0.0, "sentiment": 20.0})
    assert made.next(plan, {"style": 0.0, "sentiment": 20.0})
    assert not made.next(plan, {"style": 20.0, "sentiment": 20.0})  # all rounds are made
    after = {probe.name: len(sets_of(probe, plan.asked)) for probe in plan.probes}
    assert after["style"] == before["style"]
    assert after["sentiment"] > 2 * before["sentiment"]
    assert 195 <= plan.asked.calls <= 200


def test_an_original_and_its_variant_are_of_one_round(plain: list[Item], tmp_path: Path) -> None:
    made = planner(plain, tmp_path, "style", "sentiment")
    plan = made.first(200)
    first = list(plan.asked.absolute)
    made.next(plan, {"style": 30.0, "sentiment": 0.0})
    stems = [{id.rsplit("~", 1)[0] for id in ids} for ids in (first, list(plan.asked.absolute)[len(first) :])]
    assert stems[1]
    assert not stems[0] & stems[1]


def test_the_same_items_and_seed_give_the_same_plan(plain: list[Item], tmp_path: Path) -> None:
    found = [list(planner(plain, tmp_path, "style", seed=seed).first(100).asked.absolute) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_a_probe_that_would_take_all_calls_leaves_some_to_others(plain: list[Item], tmp_path: Path) -> None:
    made = planner(plain, tmp_path, "length", "style")
    plan = made.first(120)
    before = {probe.name: len(sets_of(probe, plan.asked)) for probe in plan.probes}
    assert made.next(plan, {"length": 300.0, "style": 6.0})
    added = {probe.name: len(sets_of(probe, plan.asked)) - before[probe.name] for probe in plan.probes}
    assert added["style"] >= 4  # in proportion it would be a fiftieth of what length gets: none
    assert added["length"] >= added["style"]


def test_where_nothing_is_left_to_ask_the_look_is_the_last(plain: list[Item], tmp_path: Path) -> None:
    chosen = planner(plain[:12], tmp_path, "style")
    plan = chosen.first(1000)
    assert (len(plan.rounds), plan.last) == (1, 3)
    assert not chosen.next(plan, {"style": 100.0})
    assert plan.last == 1


def test_a_probe_of_others_alone_is_refused(plain: list[Item], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="deafness and blindness: reads the answers to other probes"):
        planner(plain, tmp_path, "deafness", "blindness")


def test_bad_input(plain: list[Item], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no probe stile"):
        planner(plain, tmp_path, "stile")
    plan = planner(plain, tmp_path, "style", "image-text").first(100)
    assert "it takes items with a picture" in plan.skipped["image-text"]
    with pytest.raises(UserError, match="nothing to ask"):
        planner([], tmp_path, "style").first(100)
