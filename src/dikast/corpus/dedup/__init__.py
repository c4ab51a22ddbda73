"""Deduplication and contamination: near duplicates of texts, images and wording."""
