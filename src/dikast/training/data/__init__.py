"""The data of a training run: records to examples, tokens, shards and batches, with augmentation."""
