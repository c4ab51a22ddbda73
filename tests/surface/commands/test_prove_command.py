"""`dikast prove`: one verdict a line, and a page that needs no network."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from dikast.audit.estimate import Estimate
from dikast.probes.abilities import ABOUT, Ability, Agreement
from dikast.probes.judge_proof import Proof
from dikast.surface.cli import app
from dikast.surface.prove_page import proof_conclusion


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prove") / "proof"
    done = CliRunner().invoke(app, ["prove", "--judge", "mock:oracle,r=1", "--out", str(folder), "--calls", "200"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert (
        sum(
            bool(re.match(r" +(reads|counts|binds|places|follows|resists)\b.* (yes|partly|no|cannot)", x))
            for x in lines
        )
        == 10
    )
    assert all(len(x) < 80 for x in lines if re.match(r" +(ability|reads|counts|binds|places|follows|resists)\b", x))
    assert any("resists order: both orders agree on" in x for x in lines)
    return folder


def test_the_page_shows_each_ability_and_asks_nobody(out: Path) -> None:
    page = (out / "prove.html").read_text("utf-8")
    assert page.count('<span class="told') == 10
    assert page.count("<details") == 10
    assert "generated items (scenes, plates, charts, clips, text; split all)" in page
    assert "data:image/png" in page
    assert not re.search(r"(src|href)=.(?!data:)", page)
    assert "<script" not in page


@pytest.mark.parametrize(
    ("told", "light", "text"),
    [
        ({}, "green", "Shows 10 of 10 abilities"),
        ({"counts": "cannot tell", "binds": "partly"}, "amber", "partly: binds; 1 cannot be told"),
        ({"counts": "no", "binds": "partly"}, "red", "Lacks 1 of 10 abilities: counts; shows 8; partly: binds"),
        ({"counts": "not asked"}, "green", "Shows 9 of 9 abilities"),
        (dict.fromkeys(ABOUT, "not asked"), "grey", "Nothing is known yet"),
    ],
)
def test_the_page_opens_with_one_conclusion(told: dict[str, Any], light: str, text: str) -> None:
    found = Estimate(1.0, 40, 0.9, 1.0)
    each = tuple(Ability(name, told.get(name, "yes"), found, 0.5) for name in ABOUT)
    conclusion = proof_conclusion(Proof("me", 1, each, Agreement(found, 0.5, found, found, 1), (), {}))
    assert conclusion.light == light
    assert text in conclusion.text


def test_a_second_run_asks_nothing(out: Path) -> None:
    before = (out / "singles" / "verdicts.jsonl").read_bytes()
    again = CliRunner().invoke(
        app, ["prove", "--judge", "mock:oracle,r=1", "--out", str(out), "--calls", "200", "--json", "--quiet"]
    )
    assert again.exit_code == 0, again.output
    told = orjson.loads(again.stdout)
    assert told == orjson.loads((out / "prove.json").read_bytes())
    assert told["calls"] <= 200
    assert (out / "singles" / "verdicts.jsonl").read_bytes() == before


def test_a_dry_run_counts_the_calls(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["prove", "--judge", "mock:oracle", "--out", str(tmp_path), "--calls", "200", "--dry-run"]
    )
    assert re.fullmatch(r"1?\d\d calls", done.stdout.strip()), done.output
    assert not (tmp_path / "singles").exists()
