"""A judge behind HTTP, for many clients at once."""
