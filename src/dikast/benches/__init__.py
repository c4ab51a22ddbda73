"""Benchmarks of judges: what each is, its rows as items, and the scorecard of a judge on it."""
