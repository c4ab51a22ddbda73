"""Patterns of files are tried, with a limit of time, before they are used."""

import subprocess
import time

import pytest

from dikast.core.errors import UserError
from dikast.core.machine import endless_patterns
from dikast.core.machine.endless_patterns import refuse_endless

NAMES = [f"model.layers.{k}.self_attn.q_proj" for k in range(200)]


def test_patterns_that_end_pass() -> None:
    refuse_endless(["q_proj|v_proj", r"layers\.\d+\.(mlp|self_attn)\.", "(not closed"], NAMES, "a.yaml")


def test_patterns_without_a_choice_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", started)
    refuse_endless(["q_proj", "model.layers.0", "[qv]_proj$"], NAMES, "a.yaml")
    with pytest.raises(AssertionError, match="a process was started"):
        refuse_endless([".*"], NAMES, "a.yaml")


@pytest.mark.parametrize("endless", ["((a|[a-z._0-9])+)+!", ".?" * 40 + "!", "(?:.|.)" * 28 + "!"])
def test_one_that_does_not_end_is_named(endless: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endless_patterns, "_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(UserError) as told:
        refuse_endless(["a*", endless, "z+"], NAMES, "a.yaml: lora")
    assert str(told.value).startswith(f"a.yaml: lora: the pattern {endless[:20]!r:.20}")
    assert time.monotonic() - begun < 20
