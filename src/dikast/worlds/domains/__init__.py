"""The domains: what can be shown and said, and what is true of it."""
