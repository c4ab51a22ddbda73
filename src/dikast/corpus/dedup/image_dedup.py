"""Pictures that look the same, or nearly: a perceptual hash of 256 bits, compared bit by bit."""

import numpy as np
from numpy.typing import NDArray

from dikast.core.media import image_sha256, load_image
from dikast.core.part import Image
from dikast.corpus.dedup.text_dedup import Match

SIDE = 16
BITS = SIDE * SIDE
DISTANCE = 40  # bits of 256; docs/lab-log.md has what others and what changed copies of the same lie apart
_GREY = 64  # pixels a side

Hash = NDArray[np.uint64]


def perceptual_hash(image: Image) -> Hash | None:
    """256 bits in four words: which of the 16 x 16 slowest cosines of the grey picture are above their median.

    The picture is reduced to 64 x 64 first. Blind to colour and brightness, and to what is smaller than a few
    hundredths of a side; mirrored, turned or cropped pictures are others. None for a flat picture. DataError when the
    picture cannot be read. Source: Zauner 2010, "Implementation and benchmarking of perceptual image hash functions",
    there 64 bits.
    """
    from PIL.Image import Resampling
    from scipy.fft import dctn

    grey = np.asarray(load_image(image).picture.convert("L").resize((_GREY, _GREY), Resampling.BOX), np.float64)
    if np.ptp(grey) < 2:
        return None
    waves = dctn(grey, norm="ortho")[:SIDE, :SIDE].ravel()
    waves[0] = 0  # the mean says nothing of what is shown
    return np.packbits(waves > np.median(waves[1:])).view(np.uint64)


class NearDuplicateImages:
    """Remembers pictures, 40 bytes each and their name, and finds those that differ in at most `distance` of 256 bits.

    Every picture is compared with all before it: about 3 ms a picture at 100,000. Flat pictures match by content alone.
    """

    def __init__(self, distance: int = DISTANCE) -> None:
        self.distance = distance
        self._names: list[str] = []
        self._hashes = np.zeros((64, BITS // 64), np.uint64)
        self._flat: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._names) + len(self._flat)

    def find(self, image: Image) -> Match | None:
        """The most alike picture added before, None if none is alike enough; `likeness` is the share of equal bits."""
        return self._look(image)[0]

    def add(self, image: Image, name: str) -> Match | None:
        """As `find`; a picture that matches nothing is remembered under `name`."""
        match, hashed = self._look(image)
        if match is not None:
            return match
        if hashed is None:
            self._flat[image_sha256(image)] = name
            return None
        if len(self._names) == len(self._hashes):
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
        self._hashes[len(self._names)] = hashed
        self._names.append(name)
        return None

    def _look(self, image: Image) -> tuple[Match | None, Hash | None]:
        hashed = perceptual_hash(image)
        if hashed is None:
            same = self._flat.get(image_sha256(image))
            return (None if same is None else Match(same, 1.0)), None
        if not self._names:
            return None, hashed
        apart = np.bitwise_count(self._hashes[: len(self._names)] ^ hashed).sum(axis=1)
        best = int(apart.argmin())
        close = int(apart[best]) <= self.distance
        return (Match(self._names[best], 1 - int(apart[best]) / BITS) if close else None), hashed
