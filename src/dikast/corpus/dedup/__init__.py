"""Duplicates, near duplicates and contamination: text, images, wording."""
