"""Where a judge breaks: change items in a known way, judge again, compare."""
