"""What is in a data set and what is wrong with it: the check, the data card and their measures."""
