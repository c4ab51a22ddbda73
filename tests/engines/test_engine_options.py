from typing import Any, Literal

import pytest

from dikast.core.errors import UserError
from dikast.engines.options import options_of, read_options


def opener(
    target: str, *, size: int = 1, share: float | None = None, device: str | int = "auto", mode: Literal["a", "b"] = "a"
) -> None: ...


def takes_all(target: str, **options: Any) -> None: ...


def test_values_are_read_by_annotation() -> None:
    known = options_of(opener)
    assert known is not None
    given = {"size": "3", "share": "none", "device": "0", "mode": "b"}
    assert read_options(given, known, where="x") == {"size": 3, "share": None, "device": 0, "mode": "b"}
    assert read_options({"share": ".5", "device": "cuda:0"}, known, where="x") == {"share": 0.5, "device": "cuda:0"}
    assert read_options({"size": 7}, known, where="x") == {"size": 7}
    assert options_of(takes_all) is None


def test_all_mistakes_are_told_at_once() -> None:
    known = options_of(opener)
    assert known is not None
    with pytest.raises(UserError) as caught:
        read_options({"sice": "1", "size": "one", "mode": "c", "zzz": "1"}, known, where="hf:x")
    assert str(caught.value) == (
        "hf:x: unknown option 'sice': did you mean 'size'?; option 'size': expected a whole number, got 'one';"
        " option 'mode': expected 'a' or 'b', got 'c'; unknown option 'zzz': known: device, mode, share, size"
    )
