"""Aids for testing extensions of Dikast, and for tests that ask a judge; outside the rooms, imported by none."""

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "RULES": "conformance",
    "StubTeacher": "stub_teacher",
    "assert_grade": "asserting",
    "assert_prefers": "asserting",
    "check_engine": "conformance",
    "sample_requests": "conformance",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: pytest loads the plugin beside it in every session, and it must be light."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dikast.testing.{_HOME[name]}"), name)


if TYPE_CHECKING:
    from dikast.testing.asserting import assert_grade, assert_prefers
    from dikast.testing.conformance import RULES, check_engine, sample_requests
    from dikast.testing.stub_teacher import StubTeacher

__all__ = ["RULES", "StubTeacher", "assert_grade", "assert_prefers", "check_engine", "sample_requests"]
