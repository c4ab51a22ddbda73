"""One checker of configuration: every mistake at once, each with file, line, field and cure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from dikast.core.checking import Mistakes, Option, fit, keys_of, like, option, read_settings, spelt
from dikast.core.errors import DataError, UserError
from dikast.core.scale import Scale
from dikast.core.text import Located, parse_located


@dataclass(frozen=True)
class Inner:
    share: float = option(0.5, least=0, most=1)


@dataclass(frozen=True)
class Settings:
    out: str
    count: int = option(1, least=1)
    rate: float = option(1e-3, above=0)
    mode: Literal["fast", "slow"] = "fast"
    betas: tuple[float, float] = option((0.9, 0.95), least=0, below=1)
    files: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)
    several: tuple[Inner, ...] = ()
    splits: Mapping[str, float] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    scale: Scale | None = None
    path: Path | None = None
    root: str = option("", internal=True)


def read(text: str) -> Settings:
    mistakes = Mistakes(parse_located(text, "c.yaml"))
    found = read_settings(Settings, mistakes)
    mistakes.raise_all()
    assert found is not None
    return found


def test_values_are_read_by_their_types() -> None:
    found = read(
        "out: x\nrate: 1e-5\nbetas: [0, .5]\nfiles: one.jsonl\ninner: {share: 1}\nseveral: [{}, {share: 0}]\n"
        "splits: {a: 1}\nanything: {b: [1]}\nscale: 1-5\npath: p"
    )
    assert found == Settings(
        "x", 1, 1e-5, "fast", (0.0, 0.5), ("one.jsonl",), Inner(1.0), (Inner(), Inner(0.0)), {"a": 1.0}, {"b": [1]},
        Scale.parse("1-5"), Path("p"),
    )  # fmt: skip
    assert type(found.inner.share) is float


def test_every_mistake_at_once_with_line_and_cure() -> None:
    with pytest.raises(DataError) as caught:
        read(
            "cuont: 3\ncount: 0\nrate: .inf\nmode: quick\nbetas: [1, 2, 3]\nfiles: [a, 3]\ninner: {shar: 1, share: 2}\n"
            "several: 3\nsplits: [1]\nscale: 5-1\nroot: x\npath: [p]\nzzz: 1\n"
        )
    assert str(caught.value).splitlines() == [
        "c.yaml: 15 mistakes",
        "  c.yaml:1: field 'cuont': unknown key: did you mean 'count'?",
        "  c.yaml:2: field 'count': expected a whole number of at least 1, got 0",
        "  c.yaml:3: field 'rate': expected a number above 0 and finite, got inf",
        "  c.yaml:4: field 'mode': expected 'fast' or 'slow', got 'quick'",
        "  c.yaml:5: field 'betas': expected 2 values, got 3",
        "  c.yaml:6: field 'files.1': expected text, got 3",
        "  c.yaml:7: field 'inner.shar': unknown key: did you mean 'share'?",
        "  c.yaml:7: field 'inner.share': expected a number from 0 to 1, got 2",
        "  c.yaml:8: field 'several': expected a list, got 3",
        "  c.yaml:9: field 'splits': expected a mapping of names to numbers, got [1]",
        "  c.yaml:10: field 'scale': scale '5-1' runs backwards:"
        " write 1-5 (and `lower_is_better: true` if low is good)",
        "  c.yaml:11: field 'root': unknown key: known: out, count, rate, mode, betas, files, inner, several, splits,"
        " anything, scale, path",
        "  c.yaml:12: field 'path': expected a path, got ['p']",
        "  c.yaml:13: field 'zzz': unknown key: known: out, count, rate, mode, betas, files, inner, several, splits,"
        " anything, scale, path",
        "  c.yaml:1: the key 'out' is missing",
    ]


def test_a_misspelt_word_has_its_near_match() -> None:
    with pytest.raises(DataError, match=r"expected 'fast' or 'slow', got 'slwo': did you mean 'slow'\?"):
        read("out: x\nmode: slwo")


@pytest.mark.parametrize(
    "text", ["out: x\ncount: true", "out: x\ncount: 1.0", "out: x\ncount: '1'", "out: x\nrate: no"]
)
def test_types_are_not_guessed(text: str) -> None:
    with pytest.raises(DataError, match=r"c.yaml:2: field '(count|rate)': expected a (whole )?number, got"):
        read(text)


def test_a_key_in_the_place_of_something_else_is_not_repeated() -> None:
    with pytest.raises(DataError, match=r"got \{'openai': 'm', 'api_key': '\[key\]'\}"):
        read("out: {openai: m, api_key: hunter2hunter}")


def test_a_single_mistake_is_told_alone() -> None:
    with pytest.raises(DataError) as caught:
        read("out: x\ncount: 0")
    assert str(caught.value) == "c.yaml:2: field 'count': expected a whole number of at least 1, got 0"


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 20, "0x" + "f" * 17])
def test_a_number_that_no_file_of_ours_can_hold_is_told_with_its_line(number: str) -> None:
    with pytest.raises(DataError, match=r"a\.yaml:2: not valid YAML: a number of more than 64 bits"):
        parse_located(f"a: 1\nb: {number}\n", "a.yaml")


def test_bounds() -> None:
    assert Option().holds(math.nan)  # nothing is asked of it
    assert not Option(least=0).holds(math.nan)
    assert not Option(least=0).holds(math.inf)
    assert [Option(least=0, most=1).holds(each) for each in (-0.1, 0, 1, 1.1)] == [False, True, True, False]
    assert [Option(above=0, below=1).holds(each) for each in (0, 0.5, 1)] == [False, True, False]
    assert Option(above=0, below=1).bounds() == "above 0 and below 1"
    assert Option(most=3).bounds() == "at most 3"


def test_an_option_like_another() -> None:
    @dataclass(frozen=True)
    class Other:
        rate: float = like(Settings, "rate")
        number: int = like(Settings, "count", help="how many")

    assert Other() == Other(1e-3, 1)
    assert keys_of(Other)["rate"].option == keys_of(Settings)["rate"].option
    assert keys_of(Other)["number"].option == Option(least=1, help="how many")


def test_words_typed_on_a_command_line() -> None:
    told: list[str] = []

    def typed(kind: Any, text: str) -> Any:
        return fit(kind, text, told.append, text=True)

    assert [typed(bool, each) for each in ("yes", "Off")] == [True, False]
    assert (typed(int | None, "none"), typed(int | str, "3"), typed(int | str, "x")) == (None, 3, "x")
    assert typed(Literal["a", 2], "2") == 2
    assert told == []
    assert typed(float | None, "x") is None
    assert told == ["expected a number, got 'x'"]
    assert spelt(int | str | None) == "a whole number, text or none"


def test_steps_that_raise_are_told_together() -> None:
    mistakes = Mistakes(Located({}, ""))

    def fails() -> int:
        raise UserError("the first")

    assert mistakes.of(lambda: 3) == 3
    assert mistakes.of(fails) is None
    mistakes.add("the second")
    with pytest.raises(UserError, match=r"^2 mistakes\n  the first\n  the second$"):
        mistakes.raise_all()
    assert list(keys_of(Inner)) == ["share"]
