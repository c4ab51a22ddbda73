"""The data of a run: from records to examples, tokens, shards and batches, with their augmentation."""
