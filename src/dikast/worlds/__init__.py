"""Procedural images, text and clips with exact gold scores, to train, test and prove judges."""
