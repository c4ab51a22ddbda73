"""What a training run takes, worked out before any weights are loaded."""
