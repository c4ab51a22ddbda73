"""Training in several processes that each hold a share of the model: loading, checkpoints, and the model at the end."""
