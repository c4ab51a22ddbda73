"""One file for each group of verbs; each parses, calls one function, prints."""
