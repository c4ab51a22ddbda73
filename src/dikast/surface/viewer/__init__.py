"""`dikast view`: a folder of runs in a browser."""
