"""Tokens that prompts share are computed once: tries of prompts, attention over them, replies that follow them."""
