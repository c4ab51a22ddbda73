"""Training: teach a model to judge, and merge judges.

From a configuration (`config`) to examples (`examples`), token ids (`encode`), shards on disk (`shards`), batches
(`batches`), and the loop (`loop`) over a model (`model`) with its schedule (`schedule`) and checkpoints (`checkpoint`).
"""
