"""Benchmarks of judges: their definitions, their rows as items, and the scorecard of a judge."""
