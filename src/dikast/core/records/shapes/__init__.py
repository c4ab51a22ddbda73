"""Forms of records that other programs and public data sets have."""
