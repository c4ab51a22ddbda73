"""Rubric + format + engine = a judge: grade, compare, run over files, resumably."""
