"""Learning a format from rendered prompts: find the fixed text, name the slots, verify on held-out rows."""
