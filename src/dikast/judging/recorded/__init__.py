"""What is made of recorded verdicts without a model."""
