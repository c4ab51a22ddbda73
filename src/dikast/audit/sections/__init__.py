"""The sections of an audit: statistics of loaded rows, as typed results and tables."""
