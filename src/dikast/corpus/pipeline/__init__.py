"""Builds: running the stages of a recipe in order, resumably, and post-processing of the finished items."""
