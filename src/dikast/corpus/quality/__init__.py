"""The check of a data set, its data card, and the measures they use."""
