"""The report: what a run found, on one page anyone can open."""
