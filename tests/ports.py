"""Ports for servers that are told their port before they start."""

import random
import socket

_ANY = random.SystemRandom()  # trainers in tests seed the generator of `random`: two workers of pytest chose alike
_LOWEST, _HIGHEST = 20_000, 32_000  # below the range that Linux takes the ports of outgoing connections from


def free_port() -> int:
    """A port on which nobody listens, and which no client is given while the server starts."""
    while True:
        port = _ANY.randrange(_LOWEST, _HIGHEST)
        with socket.socket() as found:
            try:
                found.bind(("", port))  # on every address, as torch's store does
            except OSError:
                continue
        return port
