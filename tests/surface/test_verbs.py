"""Verbs whose flags are the fields of dataclasses: one definition for the command line, YAML and Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner, Result

from dikast.core.checking import Mistakes, option
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.judging.run_options import SpendOptions
from dikast.surface.verbs import Verb, Verbs, verb

HELD: list[str] = []


@dataclass(frozen=True, kw_only=True)
class Group:
    file: Path = option(argument=True, help="What to read.")
    names: tuple[str, ...] = option((), "--name", help="Names.")
    parts: tuple[str, ...] = option((), commas=True, help="Parts.")
    mode: Literal["fast", "slow"] = option("fast", help="The mode.")
    scale: Scale | None = option(None, help="A scale.")
    share: float = option(0.5, above=0, below=1, help="A share.")

    @contextmanager
    def held(self) -> Iterator[None]:
        HELD.append("in")
        yield
        HELD.append("out")


def run(*words: str, gather: bool = False) -> tuple[dict[str, Any], Result]:
    found: dict[str, Any] = {}

    def one(group: Group, n: Annotated[int, typer.Option("--n")] = 3) -> None:
        """Say."""
        found.update(group=group, n=n, held=list(HELD))

    def all_told(group: Group, wrong: Mistakes) -> None:
        """Say."""
        wrong.tell("and the last")
        wrong.raise_all()

    app = Verbs()
    app.command("one")(verb(all_told if gather else one, config="Flags as YAML."))
    app.command("two")(lambda: None)
    return found, CliRunner().invoke(app, ["one", *words])


def test_flags_become_the_dataclass() -> None:
    HELD.clear()
    found, done = run("x.csv", "--name", "a", "--name", "b", "--parts", "c, d", "--mode", "slow", "--scale", "1-5")
    assert done.exit_code == 0, done.output
    assert found["group"] == Group(
        file=Path("x.csv"), names=("a", "b"), parts=("c", "d"), mode="slow", scale=Scale.parse("1-5")
    )
    assert (found["n"], found["held"], HELD) == (3, ["in"], ["in", "out"])
    assert run("x.csv")[0]["group"] == Group(file=Path("x.csv"))


def test_mistakes_in_flags_are_told_together() -> None:
    _, done = run("x.csv", "--mode", "quick", "--share", "1", "--scale", "5-1")
    assert isinstance(done.exception, UserError)
    told = str(done.exception).splitlines()
    assert told[0] == "flags: 3 mistakes"
    assert told[1] == "  --mode: expected 'fast' or 'slow', got 'quick'"
    assert told[2].startswith("  --scale: scale '5-1' runs backwards")
    assert told[3] == "  --share: expected a number above 0 and below 1, got 1.0"
    _, done = run("x.csv", "--share", "2", gather=True)
    assert "--share: expected a number above 0 and below 1, got 2.0\n  and the last" in str(done.exception)


def test_a_configuration_is_checked_as_flags_are(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("name: a\nparts: c,d\nshare: .25\nn: 4\n")
    found, _ = run("x.csv", "--config", str(path), "--share", "0.75")  # the command line wins
    assert found["group"] == Group(file=Path("x.csv"), names=("a",), parts=("c", "d"), share=0.75)
    assert found["n"] == 4
    path.write_text("nam: a\nmode: quick\nshare: 1\nscale: 5-1\n")
    _, done = run("x.csv", "--config", str(path))
    for line in (
        "c.yaml:1: field 'nam': unknown key: did you mean 'name'?",
        "c.yaml:2: field 'mode': expected 'fast' or 'slow', got 'quick'",
        "c.yaml:3: field 'share': expected a number above 0 and below 1, got 1",
        "c.yaml:4: field 'scale': scale '5-1' runs backwards",
    ):
        assert line in str(done.exception)


def test_budgets() -> None:
    assert SpendOptions(budget="calls=3, money=.5").bounds == {"calls": 3, "money": 0.5}
    assert SpendOptions().bounds == {}
    with pytest.raises(UserError, match=r"--budget 'cals=3': write calls=N"):
        _ = SpendOptions(budget="cals=3").bounds


def test_an_option_that_takes_one_value_is_refused_twice() -> None:
    _, done = run("x.csv", "--mode", "slow", "--mode=fast")
    assert done.exit_code == 2
    assert "'--mode': given 2 times; it takes one value" in " ".join(done.output.replace("│", " ").split())
    found, done = run("x.csv", "--name", "a", "--name", "b", "--mode", "slow")
    assert done.exit_code == 0
    assert found["group"].names == ("a", "b")


def test_every_verb_refuses_an_option_given_twice() -> None:
    from dikast.surface.cli import app

    done = CliRunner().invoke(app, ["grade", "x.csv", "--judge", "mock:oracle", "--rubric", "a", "--rubric", "b"])
    assert done.exit_code == 2
    assert "given 2 times" in done.output
    for name, lazy in get_command(app).verbs.items():  # type: ignore[attr-defined]
        built = lazy.build(name)
        assert all(isinstance(each, Verb) for each in getattr(built, "commands", {"": built}).values()), name
        assert " ".join(built.help.split("\n\n")[0].split()) == lazy.about, "what the help of all verbs says of it"


def test_no_verb_writes_to_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused before anything is read, asked or made, with the login of the address left out."""
    from dikast.surface.cli import app

    monkeypatch.chdir(tmp_path)
    tried = 0
    for name, lazy in get_command(app).verbs.items():  # type: ignore[attr-defined]
        built = lazy.build(name)
        for spelt, verb_ in getattr(built, "commands", {name: built}).items():
            for written in [each for each in verb_.params if each.name in ("out", "report")]:
                for place in ("s3://bucket/x.jsonl", "http://me:secret@127.0.0.1:1/x.html", "s4://x/y.csv"):
                    words = []
                    for each in verb_.params:
                        if each.required or each is written:
                            flag = [each.opts[-1]] if each.opts[0].startswith("-") else []
                            words += [*flag, place if each is written else "1"]
                    with pytest.raises(UserError, match="an address: name a file or a folder on this machine") as told:
                        verb_.make_context(spelt, words)
                    assert "secret" not in str(told.value)
                    tried += 1
    assert tried > 90
    assert not list(tmp_path.iterdir())
    for place in ("hf:s3://bucket/x", "parts:https://x.org/y"):  # what is behind the form is looked at by `export`
        from dikast.surface.export.export_run import export

        with pytest.raises(UserError, match="an address: name"):
            export(tmp_path, place)
