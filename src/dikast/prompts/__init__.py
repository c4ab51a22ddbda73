"""Formats: asking and parsing in one object."""
