"""Learning a format from prompts that others rendered: find what stays, name what changes, prove it on other rows."""
