"""How far verdicts can be trusted: agreement, failures, intervals, calibration, ranking. Knows no model."""
