"""Seeds and counter-based random numbers: the n-th draw of a key is a fixed function of (key, n), on every machine.

SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"): draw n is `mix(key + n *
gamma)`. Library generators may change their streams between versions, which would change the items.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_M1, _M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(z: int) -> int:
    """The finaliser of SplitMix64: a bijection of 64-bit integers with good avalanche."""
    z = ((z ^ (z >> 30)) * _M1) & _MASK
    z = ((z ^ (z >> 27)) * _M2) & _MASK
    return z ^ (z >> 31)


def key_of(*parts: int | str) -> int:
    """One 64-bit key from whole numbers and short texts, in order."""
    key = 0x6A09E667F3BCC908
    for part in parts:
        number = int.from_bytes(part.encode(), "little") if isinstance(part, str) else part
        key = mix((key + _GAMMA) & _MASK)
        while True:
            key = mix(key ^ (number & _MASK))
            number >>= 64
            if number in (0, -1):
                break
    return key


class Stream:
    """The draws of one key, in order."""

    __slots__ = ("_state",)

    def __init__(self, *parts: int | str) -> None:
        self._state = key_of(*parts)

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1 (bias under n / 2**64)."""
        self._state = z = (self._state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * _M1) & _MASK
        z = ((z ^ (z >> 27)) * _M2) & _MASK
        return ((z ^ (z >> 31)) * n) >> 64

    def chance(self, percent: int) -> bool:
        """True with a probability of `percent` per cent."""
        return self.below(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, uniformly drawn."""
        return options[self.below(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All of `options` in random order (Fisher and Yates)."""
        found = list(options)
        for i in range(len(found) - 1, 0, -1):
            j = self.below(i + 1)
            found[i], found[j] = found[j], found[i]
        return found

    def fork(self) -> int:
        """A seed for an independent stream."""
        return self.below(1 << 63)


def noise_of(seed: int, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array of SplitMix64 bytes, uniform in 0..255."""
    count = 1
    for side in shape:
        count *= side
    with np.errstate(over="ignore"):
        z = np.uint64(key_of(seed)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_M1)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_M2)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(56)).astype(np.uint8).reshape(shape)
