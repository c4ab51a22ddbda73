"""Memory and processes of this machine."""
