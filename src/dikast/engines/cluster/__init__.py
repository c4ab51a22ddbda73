"""Judges on the machines of a cluster."""
