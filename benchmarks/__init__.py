"""Measured speed; `make bench` runs all of it."""
