"""Statistics of verdicts: pure functions of arrays, each defined once; they read no file and render nothing."""
