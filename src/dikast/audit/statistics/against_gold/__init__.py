"""Verdicts against gold: measures, classes and rankings, what chance alone gives, and bounds on what is missing."""
