"""Synthetic data: procedural images, text and clips with exact gold scores, to train and test judges."""
