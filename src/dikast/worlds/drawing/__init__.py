"""Whole-number drawing: the same scene gives the same pixels on every machine."""
