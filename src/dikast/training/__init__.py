"""Training: teach a model to judge, and merge judges.

From a configuration (`config`) to examples (`data.examples`), token ids (`data.encode`), shards on disk, batches
(`batches`), and the loop (`loop`) over a model (`model`) with its schedule (`schedule`) and checkpoints (`checkpoint`).
"""
