"""Released judges: a catalog of where their prompts are published, and their formats on first use."""
