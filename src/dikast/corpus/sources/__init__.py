"""The inputs of builds: images, questions, seed rubrics, evaluation prompts, pairs with known preferences."""
