"""What the statistics are made of: weights on rows, means without rounding, contingency tables, linearisation."""
