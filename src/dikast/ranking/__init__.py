"""From comparisons of an item's responses to an order."""
