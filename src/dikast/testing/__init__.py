"""Aids for testing what plugs into Dikast; outside the rooms, imported by none of them."""

from dikast.testing.conformance import RULES, check_engine, sample_requests

__all__ = ["RULES", "check_engine", "sample_requests"]
