"""Planning: memory, hours and disk of a training run, worked out before any weights are loaded."""
