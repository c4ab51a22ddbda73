"""Ranking the responses of an item from pairwise comparisons."""
