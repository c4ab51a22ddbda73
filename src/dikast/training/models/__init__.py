"""Models as files: opened or drawn from scratch, saved with a card, merged, exported and released."""
