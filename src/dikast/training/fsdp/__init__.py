"""Training with a model that is sharded over processes (FSDP2): loading, checkpoints, and the final model."""
