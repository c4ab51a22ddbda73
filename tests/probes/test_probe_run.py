"""`dikast probe` from end to end, on the standing suite and on anybody's items."""

from pathlib import Path

import orjson
import pytest

import runs
from dikast.engines.mock.judges import Oracle
from dikast.judging.judge import Judge
from dikast.probes.card import Card
from dikast.probes.catalogue import catalogue
from dikast.probes.run import load_items, probe
from dikast.worlds.prove import write_suite

NAMES = [each.name for each in catalogue("")]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    write_suite("prove", folder)
    return folder


@pytest.fixture(scope="module")
def card(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Card:
    return probe(Judge(Oracle(r=0.9)), load_items(str(suite)), tmp_path_factory.mktemp("probe"))


def test_a_card_of_a_sound_judge(card: Card) -> None:
    assert [each.probe for each in card.results] == NAMES
    assert card.sound
    assert 1_700 <= card.calls <= 2_050
    assert not [each.probe for each in card.results if each.result == "not run"]
    for each in card.results:
        assert each.effect.n >= 10
        if each.side != "none":
            assert each.seen >= 0  # every probe states its own power
    told = card.to_dict()
    assert told["counts"]["pass"] >= 15
    assert "| position | pass |" in card.to_markdown()


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Oracle(r=0.9, nats=1.0), "position"),
        (Oracle(r=0.9, per_doubling=0.4), "length"),
        (Oracle(r=0.9, sway=1.5, when="truly delighted"), "sentiment"),
        (Oracle(r=0.0, ignores="images"), "image-swapped"),
    ],
)
def test_a_fault_is_found_and_no_other(suite: Path, tmp_path: Path, fault: Oracle, found: str) -> None:
    made = probe(Judge(fault), load_items(str(suite)), tmp_path, only=(found, "decoy"))
    assert made[found].result == "fail"
    assert made["decoy"].result == "pass"


def test_running_again_asks_nothing(suite: Path, tmp_path: Path) -> None:
    log = tmp_path / "asked.txt"
    judge = Judge(Oracle(r=0.9, log=str(log)))
    first = probe(judge, load_items(str(suite)), tmp_path / "out", calls=300, only=("style", "level-order", "position"))
    asked = len(log.read_bytes().splitlines())
    assert asked == first.calls
    again = probe(judge, load_items(str(suite)), tmp_path / "out", calls=300, only=("style", "level-order", "position"))
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
    assert results["authority"]["result"] in ("pass", "unclear")
    assert results["image-blanked"]["result"] == "not run"  # there are no pictures
    assert results["position"]["result"] == "not run"  # nor pairs
    assert "0 sets of items fit" in results["position"]["note"]
    assert "Probes of mock:oracle" in done.stdout


def test_the_gate_and_the_dry_run(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "pairs.jsonl", runs.pairs(30))
    arguments = ["--items", items, "--rubric", "helpfulness", "--only", "position", "--calls", 60]
    done = runs.dikast_here("probe", "--judge", "mock:first-slot", *arguments, "--out", tmp_path / "a", "--gate")
    assert done.returncode == 4
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *arguments, "--out", tmp_path / "b", "--gate", "--json")
    assert done.returncode == 0
    assert orjson.loads(done.stdout)["probes"][0]["result"] == "pass"
    done = runs.dikast_here("probe", "--judge", "mock:oracle", *arguments, "--out", tmp_path / "c", "--dry-run")
    assert done.returncode == 0
    assert "calls, 1 probes" in done.stdout
    assert not (tmp_path / "c" / "absolute").exists()


def test_a_spent_budget_stops_and_the_next_run_goes_on(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(40))
    arguments = ["--judge", "mock:oracle", "--items", items, "--rubric", "helpfulness", "--out", tmp_path / "out"]
    arguments += ["--only", "authority", "--calls", 60]
    done = runs.dikast_here("probe", *arguments, "--budget", "calls=25")
    assert "35 without a verdict" in done.stderr
    (result,) = orjson.loads((tmp_path / "out" / "card.json").read_bytes())["probes"]
    assert (result["result"], result["lost"]) == ("unclear", 30)  # the bases were asked first
    done = runs.dikast_here("probe", *arguments)
    assert done.returncode == 0, done.stderr
    (result,) = orjson.loads((tmp_path / "out" / "card.json").read_bytes())["probes"]
    assert (result["effect"]["n"], result["lost"]) == (30, 0)


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
