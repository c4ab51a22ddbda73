import sys
from pathlib import Path

import pytest

from dikast.core.canonical import canonical_json, fingerprint
from dikast.core.errors import DataError, DikastError, EngineError, MissingExtra, RunError, UserError, require
from dikast.core.text import near_miss


def test_the_tree() -> None:
    assert {each.__mro__[1] for each in (UserError, RunError, EngineError)} == {DikastError}
    assert {each.__mro__[1] for each in (DataError, MissingExtra)} == {UserError}


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({}, "is wrong"),
        ({"path": "a.jsonl"}, "a.jsonl: is wrong"),
        ({"path": "a.jsonl", "line": 3}, "a.jsonl:3: is wrong"),
        ({"path": "a.jsonl", "line": 3, "field": "id"}, "a.jsonl:3: field 'id': is wrong"),
        ({"field": "id"}, "field 'id': is wrong"),
    ],
)
def test_a_data_error_says_where(where: dict[str, object], text: str) -> None:
    error = DataError("is wrong", **where)  # type: ignore[arg-type]
    assert str(error) == text
    assert (error.path, error.line, error.field) == (where.get("path", ""), where.get("line"), where.get("field", ""))


def test_an_engine_error_says_whether_to_ask_again() -> None:
    assert EngineError("slow", kind="timeout", retryable=True).retryable
    assert not EngineError("no", kind="auth").retryable


def test_require() -> None:
    assert require("json", "hf").dumps([1]) == "[1]"
    with pytest.raises(MissingExtra, match=r"no_such_package.*pip install 'dikast\[hf\]'"):
        require("no_such_package.part", "hf")


def test_require_lets_the_more_useful_message_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import what_it_needs_and_lacks\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="what_it_needs_and_lacks"):
        require("half_installed", "hf")
    assert "half_installed" not in sys.modules


def test_one_spelling_for_equal_values() -> None:
    assert canonical_json({"b": 1, "a": {"d": "é", "c": None}}) == '{"a":{"c":null,"d":"é"},"b":1}'.encode()
    assert canonical_json({1: "a"}) == canonical_json({"1": "a"})
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.5})
    assert (
        fingerprint({"a": 1, "b": [True, None, "x"]}) == "05d329c858ac58e98c54eae500b5d2e2"
    )  # keys on disk depend on it


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("respnse", "response"), ("Response", "response"), ("RESPONSES", "responses"), ("refrence", "reference"),
        ("score", None), ("", None), ("x" * 10_000, None),
    ],
)  # fmt: skip
def test_near_miss(name: str, near: str | None) -> None:
    assert near_miss(name, ["id", "response", "responses", "reference"]) == near
