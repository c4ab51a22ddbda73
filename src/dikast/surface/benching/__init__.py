"""Benches on the command line: their options, runs and scorecards."""
