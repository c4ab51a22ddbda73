"""From files to arrays: columns, joins, derived columns, long form, runs, scales; which rows count, in which order."""
