"""How a rubric weighs what is wrong, and the exact score that follows."""
