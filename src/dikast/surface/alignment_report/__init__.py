"""The page of an alignment."""
