"""A dictionary of bounded weight."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """Drops the least recently used values when the sum of weights exceeds `most`; the latest value always stays."""

    def __init__(self, most: int, weigh: Callable[[V], int]) -> None:
        self._most, self._weigh, self._total = most, weigh, 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value under the key, which counts as a use of it."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Remember a value."""
        with self._lock:
            if key in self._values:
                self._total -= self._weigh(self._values.pop(key))
            self._values[key] = value
            self._total += self._weigh(value)
            while self._total > self._most and len(self._values) > 1:
                self._total -= self._weigh(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._total = 0
