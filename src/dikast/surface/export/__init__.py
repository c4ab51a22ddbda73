"""A run written for other programs: tables, data sets, and the logs of other evaluation tools."""
