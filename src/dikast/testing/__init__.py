"""Aids for testing what plugs into Dikast, and for tests that ask a judge; outside the rooms, imported by none."""

from dikast.testing.asserting import assert_grade, assert_prefers
from dikast.testing.conformance import RULES, check_engine, sample_requests

__all__ = ["RULES", "assert_grade", "assert_prefers", "check_engine", "sample_requests"]
