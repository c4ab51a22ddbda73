"""Sampling of everything that precedes the scene: random numbers, sentences, scores, wrong claims, held-out splits."""
