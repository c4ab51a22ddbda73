"""Prefix sharing: common prefixes of prompts are computed once. Tries of prompts, attention over them, their
replies.
"""
