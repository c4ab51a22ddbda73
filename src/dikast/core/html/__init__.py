"""HTML: templates of pages, and how verdicts are shown in notebooks."""
