import re
from pathlib import Path

import orjson
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.surface.commands.world_command import app


def test_make_and_peek(tmp_path: Path) -> None:
    runner = CliRunner()
    made = runner.invoke(app, ["make", "-n", "4", "--pairs", "--size", "48", "--out", str(tmp_path / "w"), "--json"])
    assert made.exit_code == 0, made.output
    told = orjson.loads(made.stdout)
    assert told["items"] == 4
    assert len(Path(told["files"][0]).read_text("utf-8").splitlines()) == 4
    shown = runner.invoke(app, ["peek", str(tmp_path / "w"), "--out", str(tmp_path / "sheet"), "-n", "2"])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "sheet.html").read_text("utf-8")
    assert page.count("<img ") == page.count('<img alt="Picture ') > 0  # what a screen reader says
    assert (tmp_path / "sheet.png").exists()


def test_domains_by_commas_or_again(tmp_path: Path) -> None:
    for out, options in (("a", ["--domain", "text,scenes"]), ("b", ["--domain", "text", "--domain", "scenes"])):
        made = CliRunner().invoke(app, ["make", "-n", "4", "--size", "48", *options, "--out", str(tmp_path / out)])
        assert made.exit_code == 0, made.output
    one, two = (tmp_path / out / "items-00000.jsonl" for out in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_bad_settings_stop_before_anything_is_written(tmp_path: Path) -> None:
    for options in (["--split", "trian"], ["--objects", "2-40"], ["--pairs", "--groups", "3"], ["--suite", "proof"],
                    ["--domain", ","], ["--domain", "text,scens"], ["--ties", "20"], ["--large"],
                    ["--suite", "prove", "--domain", "text"]):  # fmt: skip
        result = CliRunner().invoke(app, ["make", "--out", str(tmp_path / "w"), *options])
        assert isinstance(result.exception, UserError)
        assert not (tmp_path / "w").exists()


def test_the_share_of_rubrics_that_weigh_form_is_that_of_the_lessons(tmp_path: Path) -> None:
    rule, shares = re.compile(r"^Rule: .*: (relevance|concision|consistency|format|length) \d$", re.M), []
    for percent in ("0", "100"):
        options = ["--version", "4", "--quote", "--form", percent, "-n", "40", "--out", str(tmp_path / percent)]
        assert CliRunner().invoke(app, ["teach", *options]).exit_code == 0
        rows = (tmp_path / percent / "items-00000.jsonl").read_text("utf-8").splitlines()
        shares.append(sum(bool(rule.search(orjson.loads(row)["gold"]["feedback"])) for row in rows) / len(rows))
    assert shares[0] == 0
    assert shares[1] > 0.5
