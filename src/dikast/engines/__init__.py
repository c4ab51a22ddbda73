"""Models, anywhere, behind one protocol; mock engines with known faults."""
