from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import RunError, UserError
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.make import Maker
from dikast.worlds.prove import Plan, domains_with_pairs, probe_suite, suite, write_probe_suite, write_suite
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import SPLITS
from dikast.worlds.settings import Settings


@pytest.mark.parametrize("domain", ["scenes", "text", "clips", "retouch"])
def test_twins_say_the_same_and_score_differently(domain: str) -> None:
    maker = Maker(Settings(domain=domain, split="all", form=0))
    for i in range(5):
        one, other = maker.twins(i)
        assert one.responses == other.responses
        assert one.rubric == other.rubric
        assert one.gold()["score"] != other.gold()["score"]


@pytest.mark.parametrize(
    ("domain", "kind"), [("scenes", "count"), ("scenes", "colour"), ("text", "plus"), ("clips", "moment")]
)
def test_a_ladder_falls_rung_by_rung(domain: str, kind: str) -> None:
    rungs = Maker(Settings(domain=domain, split="all", form=0)).ladder(0, kind)
    metrics = [dict(rung.notes)["rung"] for rung in rungs]
    assert metrics == sorted(set(metrics))
    assert metrics[0] == 0
    levels = [rung.levels[0] for rung in rungs]
    assert levels == sorted(levels)
    assert levels[0] == 0 < levels[-1]


@pytest.mark.parametrize(("domain", "aspect"), [("scenes", "completeness"), ("retouch", "preservation")])
def test_a_ladder_of_whole_counts(domain: str, aspect: str) -> None:
    rungs = Maker(Settings(domain=domain, split="all", form=0)).ladder(0, aspect)
    assert [rung.graded[0].counts[aspect] for rung in rungs] == [0, 1, 2, 3]
    assert [rung.levels[0] for rung in rungs] == [0, 1, 2, 2]
    assert len({rung.responses for rung in rungs}) == 1


def test_an_unknown_suite_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="suite"):
        write_suite("proof", tmp_path)


def probe_rows(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "items-00000.jsonl").read_bytes().splitlines()]


def test_probes_of_chosen_domains_and_split(tmp_path: Path) -> None:
    write_probe_suite(tmp_path, calls=1, domains=("text",), split="fresh")
    rows = probe_rows(tmp_path)
    assert {row["meta"]["split"] for row in rows} == {"fresh"}
    pairs = Counter(row["meta"]["domain"] for row in rows if "responses" in row)
    assert pairs == {"text": 91}  # of all seven domains 13 each

    before = (tmp_path / "items-00000.jsonl").read_bytes()
    write_probe_suite(tmp_path, calls=9000, domains=("text",), split="fresh")
    assert (tmp_path / "items-00000.jsonl").read_bytes() == before  # what was judged is not drawn again


def test_the_order_of_domains_is_no_other_suite(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text(
        '{"suite": "probe", "seed": 0, "domains": ["scenes", "text"], "split": "fresh"}'
    )
    (tmp_path / "items-00000.jsonl").write_text("")
    write_probe_suite(tmp_path, calls=1, domains=("text", "scenes"), split="fresh")


def test_items_of_anything_else_are_no_suite(tmp_path: Path) -> None:
    (tmp_path / "items-00000.jsonl").write_text("")
    with pytest.raises(UserError, match="suite: None, not probe"):
        write_probe_suite(tmp_path, calls=1)


def test_domains_without_pairs_in_a_split_have_no_probes_there() -> None:
    assert domains_with_pairs("all") == list(DOMAINS)
    assert set(DOMAINS) - set(domains_with_pairs("fresh")) == {"charts"}  # held out
    assert not {"text", "plates", "clips"} & set(domains_with_pairs("operators"))


def test_what_a_split_does_not_draw_has_no_ladder() -> None:
    # of 5,000 drafts of fresh scenes for item 6 none has a comparison of numbers whose every rung can be drawn
    with pytest.raises(RunError, match="no ladder of 'more' for item 6"):
        Maker(Settings(split="fresh", seed=10, form=0, edits=False)).ladder(6, "more")
    plan = Plan(seed=5, times=2, domains=("scenes",), split="fresh")
    ladders = Counter(dict(each.notes)["suite"] for each in probe_suite(plan) if each.name.endswith("-off0"))
    assert ladders["ladder-more"] == 7
    assert {ladders[f"ladder-{kind}"] for kind in ("colour", "larger", "count")} == {8}


@pytest.mark.slow
@pytest.mark.parametrize("split", sorted(SPLITS))
def test_every_split_has_probes(split: str) -> None:
    plan = Plan(domains=tuple(domains_with_pairs(split)[:2]), split=split)
    found = Counter(dict(sample.notes)["suite"] for sample in probe_suite(plan))
    assert {"swap", "edits", "evidence"} <= found.keys()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"domains": ("scenes",)}, "domains: .*'text'.*, not .'scenes'"),
        ({"split": "wordings"}, "split: all, not wordings"),
        ({"seed": 4}, "seed: 3, not 4"),
    ],
)
def test_items_of_another_probe_suite_are_refused(other: dict[str, Any], said: str, tmp_path: Path) -> None:
    # a folder of before, which does not tell its domains and split
    (tmp_path / "world.json").write_text('{"suite": "probe", "seed": 3, "times": 1, "version": "worlds/3"}')
    (tmp_path / "items-00000.jsonl").write_text("")
    write_probe_suite(tmp_path, calls=1, seed=3)
    with pytest.raises(UserError, match=said):
        write_probe_suite(tmp_path, calls=1, **{"seed": 3, **other})


@pytest.mark.parametrize(
    ("domains", "split", "said"),
    [
        (("stars",), "all", "domain: .*'stars'"),
        (("charts",), "fresh", "domain: 'charts' is held out"),
        (("text",), "operators", "operators"),  # has no pairs there
        ((), "frsh", "split: .*'frsh'"),
    ],
)
def test_no_probe_suite_of_unknown_settings(domains: tuple[str, ...], split: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        write_probe_suite(tmp_path / "suite", calls=1, domains=domains, split=split)
    assert not (tmp_path / "suite").exists()


@pytest.mark.slow
def test_the_suite_keeps_its_promises() -> None:
    sets: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    ids = []
    for sample in suite():
        notes = dict(sample.notes)
        sets[notes["suite"], notes["set"]].append(sample)
        ids.append(sample.id)
    assert 1500 <= len(ids) == len(set(ids)) <= 2500
    for (part, _), members in sets.items():
        if part in ("twins", "contrast"):
            assert len({member.gold()["score"] for member in members}) == 2
        if part == "edits":
            assert len({member.gold()["score"] for member in members}) == 1
        if part == "swap":
            first, second = (member.gold()["preference"] for member in members)
            assert {"a": "b", "b": "a", "tie": "tie"}[first] == second
        if part == "evidence":
            levels = {member.name.rsplit("-", 1)[-1]: member.levels[0] for member in members}
            assert levels.get("blank", levels["base"]) >= levels["base"]
