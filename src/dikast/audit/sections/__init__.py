"""The sections of an audit: what is measured of loaded rows, as typed results and tables."""
