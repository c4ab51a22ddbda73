"""Which rows a page holds within its size, and the rest on pages beside it."""
