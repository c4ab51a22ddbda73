"""What follows from a run, by the rules of docs/report.md: on its judge, its systems, its rankings."""
