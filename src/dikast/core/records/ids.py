"""Which ids have been seen, in little memory."""

from array import array


class Ids:
    """The line on which each id first stood: 12 bytes a slot, 24 MiB for a million ids (36 while it grows).

    An open-addressing table of 64-bit hashes (SipHash of CPython, rekeyed in each process). That two different ids
    among n share a hash has odds of about n^2 / 2^65: 3e-8 for a million. Callers confirm a hit where they can.
    """

    def __init__(self) -> None:
        self._mask, self._count = 2**12 - 1, 0
        self._hashes = array("Q", [0]) * (self._mask + 1)  # 0 is an empty slot
        self._lines = array("I", [0]) * (self._mask + 1)

    def add(self, name: str, line: int) -> int | None:
        """Remember `name`; the line on which (very probably) the same name stood before, or None."""
        hashed = hash(name) & 0xFFFF_FFFF_FFFF_FFFF or 1
        hashes, mask = self._hashes, self._mask
        at = hashed & mask
        while hashes[at]:
            if hashes[at] == hashed:
                return self._lines[at]
            at = (at + 1) & mask
        hashes[at], self._lines[at] = hashed, line
        self._count += 1
        if self._count * 4 > mask * 3:
            self._grow()
        return None

    def _grow(self) -> None:
        old_hashes, old_lines = self._hashes, self._lines
        self._mask = 2 * self._mask + 1
        hashes, lines, mask = array("Q", [0]) * (self._mask + 1), array("I", [0]) * (self._mask + 1), self._mask
        for hashed, line in zip(old_hashes, old_lines, strict=True):
            if hashed:
                at = hashed & mask
                while hashes[at]:
                    at = (at + 1) & mask
                hashes[at], lines[at] = hashed, line
        self._hashes, self._lines = hashes, lines
