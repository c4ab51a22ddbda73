"""Feedback data for judges: converters of public schemas, checks with a data card, and a builder with any teacher."""
