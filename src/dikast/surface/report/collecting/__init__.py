"""What a page is made of: its values, and what is counted of the rows of a run."""
