"""The run folder: which files it holds, how its lines are sealed with checksums and read, and how damage is found."""
