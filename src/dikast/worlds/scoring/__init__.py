"""How rubrics weigh errors, and the exact score that follows."""
