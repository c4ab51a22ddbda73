"""A build: a recipe's stages one after the other, resumably, and what is done with the finished items."""
