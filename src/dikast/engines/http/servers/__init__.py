"""Many servers of one model behind one engine: their list, who gets what, which are down."""
