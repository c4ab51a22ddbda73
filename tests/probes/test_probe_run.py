"""`dikast probe` from end to end, on the standard suite and on anybody's items."""

import math
from pathlib import Path

import orjson
import pytest

import runs
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import write_records
from dikast.engines.mock.judges import Oracle
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.probes.card import Card
from dikast.probes.catalogue import catalogue
from dikast.probes.plan import record
from dikast.probes.run import probe
from dikast.probes.sets import BASE, SET
from dikast.probes.stock import named

NAMES = [each.name for each in catalogue("")]


@pytest.fixture(scope="module")
def card(suite_items: list[Item], tmp_path_factory: pytest.TempPathFactory) -> Card:
    return probe(Judge(Oracle(r=0.9)), suite_items, tmp_path_factory.mktemp("probe"), calls=1000)


def test_a_card_of_a_sound_judge(card: Card) -> None:
    assert [each.probe for each in card.results] == NAMES
    assert not card.faulty
    assert 980 <= card.calls <= 1_000
    assert not card.not_probed
    for each in card.results:
        assert each.effect.n >= 10
        if each.side != "none":
            assert not math.isnan(each.faultless.high)  # every probe states its bounds
        if each.side == "down":
            assert each.deaf == 0
            assert each.deaf_share.low < 0.05
    told = card.to_dict()
    assert told["counts"]["sound"] >= 25
    assert "| position | sound |" in card.to_markdown()
    assert "No probe looks for" in card.to_markdown()


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Oracle(r=0.9, nats=1.0), "position"),
        (Oracle(r=0.9, per_doubling=0.4), "length"),
        (Oracle(r=0.9, sway=1.5, when="truly delighted"), "sentiment"),
        (Oracle(r=0.9, sway=1.5, when="^## Answer"), "form"),
        (Oracle(r=0.0, ignores="images"), "image-swapped"),
        (Oracle(r=0.9, deaf=1.0), "reference-ignored"),
    ],
)
def test_a_fault_is_found_and_no_other(suite_items: list[Item], tmp_path: Path, fault: Oracle, found: str) -> None:
    made = probe(Judge(fault), suite_items, tmp_path, only=(found, "level-order"), calls=200)
    assert made[found].result == "faulty"
    assert made["level-order"].result != "faulty"


def test_drift_is_told_as_drift(suite_items: list[Item], tmp_path: Path) -> None:
    drifting = Judge(Oracle(r=0.9, drift=-1.0, drift_over=800))
    only = ("run-order", "level-order", "decoy", "style")
    made = probe(drifting, suite_items, tmp_path, only=only, calls=800)
    assert [each.probe for each in made.results if each.result == "faulty"] == ["run-order"]
    assert made["run-order"].effect.low < -0.75 < made["run-order"].effect.high


@pytest.mark.slow
def test_more_calls_make_more_sets(suite_items: list[Item], tmp_path: Path) -> None:
    judge, items = Judge(Oracle(r=0.9)), suite_items
    few = probe(judge, items, tmp_path / "few", calls=100, only=("image-blanked", "style"))
    many = probe(judge, items, tmp_path / "many", calls=250, only=("image-blanked", "style"))
    assert few.calls <= 100 < 230 < many.calls <= 250
    assert all(many[name].effect.n > few[name].effect.n for name in ("image-blanked", "style"))
    grown = probe(judge, items, tmp_path / "few", calls=250, only=("image-blanked", "style"))
    assert 230 < grown.calls <= 250


def test_a_folder_of_an_earlier_version_is_read_and_resumed(suite_items: list[Item], tmp_path: Path) -> None:
    out, log = tmp_path / "old", tmp_path / "asked.txt"
    judge = Judge(Oracle(r=0.9, log=str(log)))
    by_id = {item.id: item for item in suite_items}
    ids = [id.removesuffix("-base") for id in by_id if "-evidence-scenes" in id and id.endswith("-base")][:20]
    asks = [("base", SET), ("swapped", SET), ("base", BASE)]
    items = [named(by_id[f"{id}-{kind}"], f"{id}-{kind}~{variant}") for kind, variant in asks for id in ids]
    items += [named(by_id[f"{id}-base"], f"{id}-base~decoy") for id in ids]  # originals first, as it was
    out.mkdir()
    write_records(out / "absolute.jsonl", [record(item) for item in items])
    grade_file(judge, Source(str(out / "absolute.jsonl")), out / "absolute")
    verdicts = out / "absolute" / "verdicts.jsonl"
    lines = verdicts.read_bytes().splitlines(keepends=True)
    verdicts.write_bytes(b"".join(lines[:-5]))
    log.unlink()
    made = probe(judge, suite_items, out)
    assert len(log.read_bytes().splitlines()) == 5
    assert made.calls == 80
    assert made["decoy"].effect.n == 20
    assert made["image-swapped"].effect.n >= 10
    assert "earlier version" in made["style"].note
    assert probe(judge, suite_items, out).to_dict() == made.to_dict()
    assert len(log.read_bytes().splitlines()) == 5


def test_a_folder_of_other_probes_is_refused(suite_items: list[Item], tmp_path: Path) -> None:
    judge, items = Judge(Oracle(r=0.9)), suite_items
    probe(judge, items, tmp_path, calls=40, only=("style",))
    with pytest.raises(UserError, match="seed 0, only style"):
        probe(judge, items, tmp_path, calls=40, only=("decoy",))


def test_running_again_asks_nothing(suite_items: list[Item], tmp_path: Path) -> None:
    log = tmp_path / "asked.txt"
    judge = Judge(Oracle(r=0.9, log=str(log)))
    first = probe(judge, suite_items, tmp_path / "out", calls=300, only=("style", "level-order", "position"))
    asked = len(log.read_bytes().splitlines())
    assert asked == first.calls
    again = probe(judge, suite_items, tmp_path / "out", calls=300, only=("style", "level-order", "position"))
    assert len(log.read_bytes().splitlines()) == asked
    assert again.to_dict() == first.to_dict()


def test_the_command_on_own_items(tmp_path: Path) -> None:
    rows = [{**row, "reference": "An even number ends in 0, 2, 4, 6 or 8."} for row in runs.rows(40)]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    arguments = ["--judge", "mock:oracle", "--items", items, "--rubric", "helpfulness", "--out", tmp_path / "out"]
    done = runs.dikast_here("probe", *arguments, "--calls", 600)
    assert done.returncode == 0, done.stderr
    told = orjson.loads((tmp_path / "out" / "card.json").read_bytes())
    results = {each["probe"]: each for each in told["probes"]}
    assert results["authority"]["result"] in ("sound", "cannot tell")
    assert results["image-blanked"]["result"] == "not probed"  # there are no pictures
    assert results["position"]["result"] == "not probed"  # nor pairs
    assert "items with a picture" in told["not_probed"]["image-blanked"]
    assert "0 sets of items fit" in results["position"]["note"]
    assert "Probes of mock:oracle" in done.stdout


def test_the_gate_and_the_dry_run(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "pairs.jsonl", runs.pairs(30))
    arguments = ["--items", items, "--rubric", "helpfulness", "--only", "position", "--calls", 60]
    done = runs.dikast_here("probe", "--judge", "mock:first-slot", *arguments, "--out", tmp_path / "a", "--gate")
    assert done.returncode == 4
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *arguments, "--out", tmp_path / "b", "--gate", "--json")
    assert done.returncode == 0
    assert orjson.loads(done.stdout)["probes"][0]["result"] == "sound"
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *arguments, "--out", tmp_path / "c", "--dry-run")
    assert done.returncode == 0
    assert "calls, 1 probes, and up to" in done.stdout
    assert not (tmp_path / "c" / "absolute").exists()


def test_a_spent_budget_stops_and_the_next_run_goes_on(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(40))
    arguments = ["--judge", "mock:oracle", "--items", items, "--rubric", "helpfulness", "--out", tmp_path / "out"]
    arguments += ["--only", "authority", "--calls", 60]
    done = runs.dikast_here("probe", *arguments, "--budget", "calls=25")
    told = orjson.loads((tmp_path / "out" / "card.json").read_bytes())
    assert told["calls"] == 32  # the first round, of which the budget paid for 25
    (result,) = told["probes"]
    assert (result["result"], 1 <= result["lost"] <= 7) == ("cannot tell", True)
    done = runs.dikast_here("probe", *arguments)
    assert done.returncode == 0, done.stderr
    (result,) = orjson.loads((tmp_path / "out" / "card.json").read_bytes())["probes"]
    assert (result["effect"]["n"], result["lost"]) == (30, 0)  # and the other rounds


def test_bad_input(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(12))
    out = ["--out", tmp_path / "out", "--items", items]
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *out)
    assert done.returncode == 2
    assert "name a rubric with --rubric" in done.stderr
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *out, "--rubric", "helpfulness", "--only", "positon")
    assert done.returncode == 2
    assert "there is no probe positon" in done.stderr
    done = runs.dikast_here("probe", "--judge", "mock:oracle", "--items", tmp_path, "--out", tmp_path / "o")
    assert done.returncode == 2
