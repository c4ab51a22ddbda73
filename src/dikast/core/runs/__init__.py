"""The run folder: which files it holds, how its lines are sealed and read, and what is wrong with a damaged one."""
