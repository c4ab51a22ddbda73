"""The nouns as frozen values, and how they are written and read."""
