"""Strengths and ranks from comparisons of two: Bradley-Terry and Davidson models, their bootstrap, rankings."""
