"""New runs from recorded verdicts, without a model."""
